"""The table of accounts.

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.identify.velocity.counts import KINDS as _KINDS
from svc.identify.velocity.record import AccountRecord
from svc.identify.velocity.recount import Recount
from svc.kernel.store.schema.codec import Key, Record
from svc.kernel.store.schema.key_parts import U32, U64, index_of
from svc.kernel.store.schema.table import NOT_PERSONAL, WITH_ORGANIZATION, ErasedBy, Swept, Table

ACCOUNTS = Table(
    "accounts",
    Key(organization=U32, kind=index_of(_KINDS), account=U64),
    Record(AccountRecord),
    Swept("unseen for `visitor_retention_days`"),
    ErasedBy("leave_accounts"),
    invariants=("accounts",),
)
"""By the digest of an account: since when it is known, and its visitors (ADR 167)."""

RECOUNTS = Table("recounts", Key(organization=U32), Record(Recount), WITH_ORGANIZATION, NOT_PERSONAL)
"""Of an organization with events from before velocity: how far these are counted (ADR 192). It stays when all are, to
say which events no row counts.
"""
