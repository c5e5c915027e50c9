"""The tables of lists and their entries."""

from __future__ import annotations

from svc.features.lists.lists import FilledLists, Listed, ListEntry, StoredList
from svc.kernel.store.schema.codec import Key, Opaque, Record
from svc.kernel.store.schema.key_parts import (
    LIST_ID,
    MOMENT,
    TEXT,
    U32,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    ErasedBy,
    Swept,
    Table,
    Until,
    With,
)

# Lists of values that rules look up. Entries lie in the order of their values.
LISTS = Table(
    "lists",
    Key(organization=U32, name=TEXT),
    Record(StoredList, remembered=1024),
    Until("it is deleted"),
    NOT_PERSONAL,
    invariants=("lists",),
    since=6,
)
"""Of the six that every organization has, those that it has used."""
LIST_ENTRIES = Table(
    "list_entries",
    Key(organization=U32, list=LIST_ID, value=TEXT),
    Record(ListEntry),
    Swept("when it has expired, or its list was deleted"),
    ErasedBy("purge_listed"),
    invariants=("lists",),
    since=6,
)
"""By the value (see `lists.entry_key`)."""
LISTED = Table(
    "listed",
    Key(organization=U32, value=TEXT),
    Record(Listed),
    With("list_entries"),
    ErasedBy("purge_listed"),
    invariants=("lists",),
    since=9,
)
"""By the value, as entries are: which lists have it."""
FILLED_LISTS = Table(
    "filled_lists",
    Key(organization=U32),
    Record(FilledLists, remembered=1024),
    Until("no list has entries"),
    NOT_PERSONAL,
    invariants=("lists",),
    since=9,
)
"""What rules need of the lists that have entries."""
LIST_EXPIRIES = Table(
    "list_expiries",
    Key(organization=U32, expires_at=MOMENT, list=LIST_ID, value=TEXT),
    Opaque(),
    With("list_entries"),
    ErasedBy("purge_listed"),
    invariants=("lists",),
    since=6,
)
"""The entries that expire, by when."""
