"""The tables of accounts, and of how often and with whom their like were seen."""

from __future__ import annotations

from svc.identify.velocity.counts import KINDS, LONGEST_S, SUBJECTS, Recount, VelocityRow
from svc.identify.velocity.record import AccountRecord
from svc.kernel.store.schema.codec import Key, Layout, Opaque, Record
from svc.kernel.store.schema.key_parts import (
    U32,
    U64,
    index_of,
    period,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    ErasedBy,
    LastTwoPeriods,
    NotPersonal,
    Swept,
    Table,
    Until,
)

VELOCITY = Table(
    "velocity",
    Key(organization=U32, period=period(1000 * LONGEST_S), kind=index_of(KINDS), subject=index_of(SUBJECTS), id=U64),
    Layout(VelocityRow.pack, VelocityRow.unpack),
    LastTwoPeriods(),
    ErasedBy("purge_velocity"),
)
"""By subject: a visitor's number, the digest of an account or the id of an address. The first event of a period of 30
days carries over what is left of the period before, whose row counts no more from then on.
"""
ACCOUNTS = Table(
    "accounts",
    Key(organization=U32, kind=index_of(KINDS), account=U64),
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
ACCOUNT_ERASURES = Table(
    "account_erasures",
    Key(organization=U32, account=U64),
    Opaque("bytes"),
    Until("the account is erased"),
    NotPersonal("an erasure under way; its last step deletes the row"),
)
"""By the digest of an account: its id. Erasures that have begun and have not ended."""
