"""The tables of accounts, and of what is counted of visitors, accounts and addresses.

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.domain.accounts.record import AccountRecord
from svc.domain.accounts.velocity import KINDS as _KINDS
from svc.domain.accounts.velocity import LONGEST_S as _LONGEST_S
from svc.domain.accounts.velocity import SUBJECTS as _SUBJECTS
from svc.domain.accounts.velocity import VelocityRow
from svc.store.schema.codec import Key, Layout, Record
from svc.store.schema.key_parts import U32, U64, index_of, period
from svc.store.schema.table import ErasedBy, LastTwoPeriods, Swept, Table

VELOCITY = Table(
    "velocity",
    Key(organization=U32, period=period(1000 * _LONGEST_S), kind=index_of(_KINDS), subject=index_of(_SUBJECTS), id=U64),
    Layout(VelocityRow.pack, VelocityRow.unpack),
    LastTwoPeriods(),
    ErasedBy("purge_velocity"),
)
"""By subject: a visitor's number, the digest of an account or the id of an address. The first event of a period of 30
days carries over what is left of the period before, whose row counts no more from then on.
"""
ACCOUNTS = Table(
    "accounts",
    Key(organization=U32, kind=index_of(_KINDS), account=U64),
    Record(AccountRecord),
    Swept("unseen for `visitor_retention_days`"),
    ErasedBy("leave_accounts"),
    invariants=("accounts",),
)
"""By the digest of an account: since when it is known, and its visitors (ADR 167)."""
