"""The tables of what an organization keeps of itself: its people with their invitations, its lists and its rules.

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.features.lists.lists import ListEntry, StoredList
from svc.features.rules.ruleset import Ruleset
from svc.identify.velocity.counts import KINDS as _KINDS
from svc.kernel.access.members import Invitation, Member
from svc.kernel.store.schema.codec import Key, Opaque, Record
from svc.kernel.store.schema.key_parts import DIGEST_16, LIST_ID, MOMENT, SECRET_32, TEXT, U32, digest, index_of
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    ErasedBy,
    NotPersonal,
    Swept,
    Table,
    Until,
    With,
)

_OF_THE_CUSTOMER = NotPersonal("the customer's own people, not visitors; a member that is removed is deleted")

MEMBERS = Table(
    "members",
    Key(organization=U32, member_id=TEXT),
    Record(Member, remembered=1024),
    Until("it is removed"),
    _OF_THE_CUSTOMER,
    invariants=("members",),
)

MEMBER_EMAILS = Table(
    "member_emails",
    Key(email=digest(32), organization=U32),
    Opaque("bytes"),
    With("members"),
    _OF_THE_CUSTOMER,
    fenced_by="owner",
    invariants=("members", "member_emails"),
)
"""By the SHA-256 of an address: the id of the member who has it, in each organization."""

INVITATIONS = Table(
    "invitations",
    Key(organization=U32, digest=SECRET_32),
    Record(Invitation),
    Swept("when it has expired; using it deletes it"),
    NOT_PERSONAL,
)
"""By HMAC-SHA256(pepper, token)."""

# Lists of values that rules look up. Entries lie in the order of their values.
LISTS = Table(
    "lists",
    Key(organization=U32, name=TEXT),
    Record(StoredList, remembered=1024),
    Until("it is deleted"),
    NOT_PERSONAL,
    invariants=("lists",),
)
"""Of the six that every organization has, those that it has used."""

LIST_ENTRIES = Table(
    "list_entries",
    Key(organization=U32, list=LIST_ID, value=TEXT),
    Record(ListEntry),
    Swept("when it has expired, or its list was deleted"),
    ErasedBy("purge_listed"),
    invariants=("lists",),
)
"""By the value (see `lists.entry_key`)."""

LIST_EXPIRIES = Table(
    "list_expiries",
    Key(organization=U32, expires_at=MOMENT, list=LIST_ID, value=TEXT),
    Opaque(),
    With("list_entries"),
    ErasedBy("purge_listed"),
    invariants=("lists",),
)
"""The entries that expire, by when."""

LIST_MARKS = Table(
    "list_marks",
    Key(organization=U32, mark=DIGEST_16),
    Opaque(),
    With("lists"),
    ErasedBy("purge_listed"),
    invariants=("lists",),
)
"""A digest of each list and of each entry: it tells one that a corrupt table hides from one that never was."""

RULESETS = Table(
    "rulesets",
    Key(organization=U32, kind=index_of(_KINDS)),
    Record(Ruleset, remembered=256),
    WITH_ORGANIZATION,
    NotPersonal("conditions are the customer's own text"),
    invariants=("rulesets",),
)
"""In force, of live or of test environments; no row = that of the start."""

RULESET_HISTORY = Table(
    "ruleset_history",
    Key(organization=U32, kind=index_of(_KINDS), revision=U32),
    Record(Ruleset),
    Until("`MOST_REVISIONS` later ones were saved (`features/rules/jobs.py`)"),
    NotPersonal("conditions are the customer's own text"),
    invariants=("rulesets",),
)
"""The latest revisions that were in force, and revision 0 for good: it tells that others were saved."""
