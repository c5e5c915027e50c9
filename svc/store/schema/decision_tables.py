"""The tables of what an organization decides by: its lists, and the entries that they have.

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.domain.lists import ListEntry, StoredList
from svc.store.schema.codec import Key, Opaque, Record
from svc.store.schema.key_parts import LIST_ID, MOMENT, TEXT, U32
from svc.store.schema.table import NOT_PERSONAL, ErasedBy, Swept, Table, Until, With

# Lists of values that rules look up. Entries lie in the order of their values.
LISTS = Table(
    "lists",
    Key(organization=U32, name=TEXT),
    Record(StoredList, remembered=1024),
    Until("it is deleted"),
    NOT_PERSONAL,
    rules=("lists",),
)
"""Of the six that every organization has, those that it has used."""
LIST_ENTRIES = Table(
    "list_entries",
    Key(organization=U32, list=LIST_ID, value=TEXT),
    Record(ListEntry),
    Swept("when it has expired, or its list was deleted"),
    ErasedBy("purge_listed"),
    rules=("lists",),
)
"""By the value as of `lists.entry_key`."""
LIST_EXPIRIES = Table(
    "list_expiries",
    Key(organization=U32, expires_at=MOMENT, list=LIST_ID, value=TEXT),
    Opaque(),
    With("list_entries"),
    ErasedBy("purge_listed"),
    rules=("lists",),
)
"""The entries that expire, by when."""
