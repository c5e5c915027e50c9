"""Bodies of the routes of lists: what decisions 12 say as types."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.lists.lists import LONGEST_NOTE, LONGEST_TAG, MAX_AT_ONCE, NAME_FORM, ListEntry, ListKind, StoredList
from svc.features.organizations.bodies import MemberId
from svc.http.schema import Limit
from svc.kernel.values.fields import A_LIST_ID, Cursor, PageCursor, Time, Timestamp, about
from svc.kernel.values.struct_fields import body_of
from svc.kernel.values.timestamps import timestamp

ListName = Annotated[
    str, about("Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it.", "vip_accounts")
]
NewListName = Annotated[ListName, Meta(pattern=NAME_FORM)]
Kind = Annotated[
    ListKind,
    about("What its entries are, which never changes. A list of kind `address` has addresses and networks.", "account"),
]
Value = Annotated[
    str,
    about(
        "A visitor id, an account id, an address or network, a country code, an AS number, an origin or a tag, as the "
        "kind of the list is.",
        "user-8271",
    ),
]
Note = Annotated[str, about("Why it is there.", "chargeback in June")]


class ListBody(msgspec.Struct, frozen=True, kw_only=True):
    """One list (decisions 12.1)."""

    id: Annotated[str, about("Its id.", A_LIST_ID)]
    name: ListName
    kind: Kind
    entries: Annotated[int, about("How many entries it has.", 2)]
    created_at: Annotated[Timestamp, about("When it was made.")]
    updated_at: Annotated[Timestamp, about("When its name or its entries were changed last.")]


class ListsBody(msgspec.Struct, frozen=True):
    """All lists of an organization."""

    lists: Annotated[tuple[ListBody, ...], about("In the order of their names.")]


class CreateListBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `createList`."""

    name: NewListName
    kind: Kind


class UpdateListBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `updateList`."""

    name: NewListName | UnsetType = UNSET


class ListEntriesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of `listListEntries`."""

    q: Annotated[str, Meta(max_length=LONGEST_TAG), about("Beginning of the value.", "user-")] | UnsetType = UNSET
    limit: Limit = 50
    cursor: PageCursor | UnsetType = UNSET


class CountEntriesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of how many entries a list has."""

    q: Annotated[str, Meta(max_length=LONGEST_TAG), about("Beginning of the value.", "user-")] | UnsetType = UNSET


class EntryBody(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a list (decisions 12.1)."""

    value: Annotated[
        Value, about("In its one spelling: networks without host bits, lower-case origins, upper-case countries.")
    ]
    note: Note
    expires_at: Annotated[Time | None, about("When the entry expires.", None)]
    created_at: Annotated[Timestamp, about("When it was added.")]
    created_by: (
        Annotated[MemberId, about("The member who added it; left out where a management key did.")] | UnsetType
    ) = UNSET


class EntriesBody(msgspec.Struct, frozen=True):
    """A page of the entries of a list."""

    entries: Annotated[tuple[EntryBody, ...], about("In the order of their values.")]
    next_cursor: Annotated[Cursor, about("Of the next page; left out on the last one.")] | UnsetType = UNSET


class NewEntryBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry to add."""

    value: Value
    note: Annotated[Note, Meta(max_length=LONGEST_NOTE)] = ""
    expires_at: Annotated[
        Annotated[datetime, Meta(tz=True)] | None,
        about("When the entry expires; `null` = never.", None),
    ] = None


class AddEntriesBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `addListEntries`."""

    entries: Annotated[
        tuple[NewEntryBody, ...],
        Meta(max_length=MAX_AT_ONCE),
        about("At most 1,000. A value that is in the list gets a new note and expiry."),
    ]


class AddedBody(msgspec.Struct, frozen=True):
    """Response of `addListEntries`."""

    added: Annotated[int, about("Values that were not in the list.", 1)]
    replaced: Annotated[int, about("Values that were.", 0)]


class RemoveEntriesBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `removeListEntries`."""

    values: Annotated[
        tuple[Value, ...],
        Meta(max_length=MAX_AT_ONCE),
        about("At most 1,000. One that is not in the list is passed over.", ["user-8271"]),
    ]


def list_row(found: StoredList, expired: int, organization_created_at_ms: int) -> ListBody:
    """Return a stored list; `expired` of its entries have expired."""
    created_at_ms = organization_created_at_ms if found.created_at_ms is None else found.created_at_ms
    return body_of(
        ListBody,
        found,
        entries=found.entries - expired,
        created_at=timestamp(created_at_ms),
        updated_at=timestamp(created_at_ms if found.updated_at_ms is None else found.updated_at_ms),
    )


def entry_row(entry: ListEntry) -> EntryBody:
    """Return a stored entry."""
    return body_of(EntryBody, entry)
