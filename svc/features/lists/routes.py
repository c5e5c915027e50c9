"""Lists of an organization, their entries, and the lists that a value is in (decisions 12). A change holds from the
next request on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated

from msgspec import UNSET

from svc.features.keys.routes import read_expiry
from svc.features.lists import jobs as lists
from svc.features.lists.bodies import (
    AddedBody,
    AddEntriesBody,
    CountEntriesQuery,
    CreateListBody,
    EntriesBody,
    ListBody,
    ListEntriesQuery,
    ListsBody,
    NewEntryBody,
    RemoveEntriesBody,
    UpdateListBody,
    entry_row,
    list_row,
)
from svc.features.lists.jobs import NewEntry
from svc.features.lists.lists import ListEntry, ListKind, StoredList, canonical, searched
from svc.features.lists.queries import (
    entries_behind,
    expired_entries,
    find_list,
    lists_of,
    raw_id,
)
from svc.features.rules.compiling import compile_in_force
from svc.http.callers.limits import ENTRY_WORK
from svc.http.change import caller_of, change, delete_in_steps
from svc.http.listing import counted, encoded, read_page
from svc.http.route import ORGANIZATION, Call, Route, Services, console_route
from svc.http.schema import TotalBody
from svc.identify.velocity.counts import KINDS
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.encodings import Cursors
from svc.kernel.values.fields import A_LIST_ID, about
from svc.kernel.values.refusals import Detail, Refusal
from svc.kernel.values.struct_fields import sent
from svc.world import twenty_characters


async def list_lists(services: Services, call: Call) -> ListsBody | Refusal:
    """`GET .../lists`: all lists, the six that every organization has among them (decisions 12.1)."""
    number = call.organization.number

    def read(snapshot: Snapshot) -> tuple[ListBody, ...]:
        expired = expired_entries(snapshot, number, call.at_ms)
        return tuple(_row(call, found, expired[found.id]) for found in lists_of(snapshot, number).values())

    return ListsBody(await services.store.query(read))


async def create_list(services: Services, call: Call) -> ListBody | Refusal:
    """`POST .../lists`: `201` with the new list. `409 list_exists` or `list_limit` (decisions 12.1)."""
    body: CreateListBody = call.body
    number = call.organization.number
    list_id = "lst_" + twenty_characters(services.world.entropy)
    job = partial(lists.create_list, number=number, list_id=list_id, name=body.name, kind=body.kind, now_ms=call.at_ms)
    made = await change(services, call, job)
    return made if isinstance(made, Refusal) else _row(call, made, 0)


async def get_list(services: Services, call: Call) -> ListBody | Refusal:
    """`GET .../lists/{list_id}`: the list. `404 not_found`."""
    number, list_id = call.organization.number, call.path["list_id"]

    def read(snapshot: Snapshot) -> ListBody | Refusal:
        found = find_list(snapshot, number, list_id)
        if found is None:
            return Refusal("not_found")
        return _row(call, found, expired_entries(snapshot, number, call.at_ms)[list_id])

    return await services.store.query(read)


async def update_list(services: Services, call: Call) -> ListBody | Refusal:
    """`PATCH .../lists/{list_id}`: another name. `404`, `409 list_permanent`, `list_in_use` or `list_exists` (decisions
    12.2).
    """
    body: UpdateListBody = call.body
    if body.name is UNSET:
        return await get_list(services, call)
    number, list_id = call.organization.number, call.path["list_id"]
    await compile_in_force(services, number, *KINDS)
    job = partial(lists.rename_list, number=number, list_id=list_id, name=body.name, now_ms=call.at_ms)
    renamed = await change(services, call, job)
    return renamed if isinstance(renamed, Refusal) else await get_list(services, call)


async def delete_list(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../lists/{list_id}`: `204` when nothing of it is left. `404`, `409 list_permanent` or `list_in_use`
    (decisions 12.2).

    Where the caller does not wait, retention deletes the rest of its entries.
    """
    number, list_id = call.organization.number, call.path["list_id"]
    await compile_in_force(services, number, *KINDS)
    begin = partial(lists.delete_list, number=number, list_id=list_id)
    return await delete_in_steps(
        services, call, begin, partial(lists.continue_deletion, number=number, list_id=list_id)
    )


async def list_entries(services: Services, call: Call) -> EntriesBody | Refusal:
    """`GET .../lists/{list_id}/entries`: a page of the entries that have not expired, in the order of their values.
    `404`, `422` (`invalid_cursor`).
    """
    query: ListEntriesQuery = call.query
    number = call.organization.number
    found = await _find(services, call)
    if found is None:
        return Refusal("not_found")
    beginning, list_id = searched(found.kind, sent(query.q) or ""), found.id
    cursors = Cursors(services.webhooks.cursors_key, "list_entries", number, raw_id(list_id))

    scan = partial(_scan, number=number, list_id=list_id, beginning=beginning, now_ms=call.at_ms)
    page = await read_page(services, call.turn, cursors, query, encoded(scan, entry_row))
    return page if isinstance(page, Refusal) else EntriesBody(page.rows, page.next_cursor)


async def count_entries(services: Services, call: Call) -> TotalBody | Refusal:
    """`GET /console/api/lists/{list_id}/count`: how many entries a list has that begin so. `404 not_found`."""
    query: CountEntriesQuery = call.query
    found = await _find(services, call)
    if found is None:
        return Refusal("not_found")
    beginning = searched(found.kind, sent(query.q) or "")
    number, now_ms = call.organization.number, call.at_ms
    scan = partial(_scan, number=number, list_id=found.id, beginning=beginning, now_ms=now_ms)
    return await counted(services, scan, b"", call.turn)


def _scan(
    snapshot: Snapshot, after: bytes, count: int, *, number: int, list_id: str, beginning: str, now_ms: int
) -> Iterator[tuple[bytes, ListEntry | None]]:
    for at, entry in entries_behind(snapshot, number, list_id, beginning, after.decode(), count):
        yield at.encode(), entry if entry.is_living(now_ms) and entry.value.startswith(beginning) else None


async def add_entries(services: Services, call: Call) -> AddedBody | Refusal:
    """`POST .../lists/{list_id}/entries`: `200` with how many values were added and replaced, all or none. `404`, `422`
    with each value or expiry that is wrong, `409 list_limit`, `429` after much work.
    """
    body: AddEntriesBody = call.body
    found = await _to_change(services, call, len(body.entries))
    if isinstance(found, Refusal):
        return found
    entries = read_entries(found.kind, body.entries, call.at_ms)
    if isinstance(entries, Refusal):
        return entries
    caller = caller_of(call)
    job = partial(
        lists.add_entries,
        number=caller.organization.number,
        list_id=found.id,
        entries=entries,
        now_ms=call.at_ms,
        by=caller.member_id,
    )
    added = await change(services, call, job)
    return added if isinstance(added, Refusal) else AddedBody(*added)


async def remove_entries(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../lists/{list_id}/entries`: `204`. `404`, `422` with each value that could not be in the list, `429`
    after much work.
    """
    body: RemoveEntriesBody = call.body
    found = await _to_change(services, call, len(body.values))
    if isinstance(found, Refusal):
        return found
    values = [canonical(found.kind, text) for text in body.values]
    faults = [_fault(f"values[{index}]") for index, value in enumerate(values) if value is None]
    if faults:
        return Refusal("validation_error", tuple(faults))
    job = partial(
        lists.remove_entries,
        number=call.organization.number,
        list_id=found.id,
        values=[value for value in values if value is not None],
        now_ms=call.at_ms,
    )
    left = await change(services, call, job, may_use_reserve=True)
    return left if isinstance(left, Refusal) else None


def read_entries(kind: ListKind, entries: Sequence[NewEntryBody], now_ms: int) -> list[NewEntry] | Refusal:
    """Return the entries for a list of this kind, with canonical values, or `422` with every invalid value
    (`invalid_value`) and every expiry that is not after `now_ms` (`out_of_range`).
    """
    read: list[NewEntry] = []
    faults: list[Detail] = []
    for index, entry in enumerate(entries):
        value, expires_at_ms = canonical(kind, entry.value), read_expiry(entry.expires_at, now_ms)
        if value is None:
            faults.append(_fault(f"entries[{index}].value"))
        elif isinstance(expires_at_ms, Refusal):
            faults.append(Detail(f"entries[{index}].expires_at", "out_of_range", "body"))
        else:
            read.append(NewEntry(value, entry.note, expires_at_ms))
    return Refusal("validation_error", tuple(faults)) if faults else read


def _fault(field: str) -> Detail:
    return Detail(field, "invalid_value", "body")


async def _to_change(services: Services, call: Call, entries: int) -> StoredList | Refusal:
    """Return the list of the path, whose entries are to be changed. `404`, `429` after much work."""
    refusal = services.limits.work_refusal(call.organization.number, ENTRY_WORK * entries, call.at_ms)
    return refusal or await _find(services, call) or Refusal("not_found")


async def _find(services: Services, call: Call) -> StoredList | None:
    number, list_id = call.organization.number, call.path["list_id"]
    return await services.store.query(partial(find_list, number=number, list_id=list_id))


def _row(call: Call, found: StoredList, expired: int) -> ListBody:
    return list_row(found, expired, caller_of(call).organization.created_at_ms)


_LIST = ORGANIZATION + "/lists/{list_id}"
_ENTRIES = _LIST + "/entries"
LIST_ID = {"list_id": Annotated[str, about("Id of the list.", A_LIST_ID)]}
_SIX = (
    "`blocked_visitors`, `blocked_accounts`, `blocked_addresses`, `trusted_visitors`, `trusted_accounts` and "
    "`trusted_addresses`"
)

_route = partial(Route, tag="Management: lists", kinds=("management",), variables=LIST_ID)


ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listLists",
        path=ORGANIZATION + "/lists",
        summary="List lists",
        description=f"Every organization has six from the start: {_SIX}.",
        handler=list_lists,
    ),
    _route(
        operation_id="createList",
        method="POST",
        path=ORGANIZATION + "/lists",
        summary="Make a list",
        description="At most 100 per organization, the six built-in lists included.",
        handler=create_list,
        body=CreateListBody,
        status=201,
        errors=("list_exists", "list_limit"),
    ),
    _route(
        operation_id="getList",
        path=_LIST,
        summary="Read a list",
        description="Without its entries, which are listed apart.",
        handler=get_list,
    ),
    _route(
        operation_id="updateList",
        method="PATCH",
        path=_LIST,
        summary="Rename a list",
        description="A built-in list, and one that a rule uses, keeps its name.",
        handler=update_list,
        body=UpdateListBody,
        errors=("list_permanent", "list_in_use", "list_exists"),
    ),
    _route(
        operation_id="deleteList",
        method="DELETE",
        path=_LIST,
        summary="Delete a list",
        description="With its entries. A built-in list, and one that a rule uses, cannot be deleted.",
        handler=delete_list,
        status=204,
        errors=("list_permanent", "list_in_use"),
    ),
    _route(
        operation_id="listListEntries",
        path=_ENTRIES,
        summary="List the entries of a list",
        description=(
            "In the order of their values, without those that have expired. A page may be short and have a "
            "`next_cursor`."
        ),
        handler=list_entries,
        query=ListEntriesQuery,
    ),
    _route(
        operation_id="addListEntries",
        method="POST",
        path=_ENTRIES,
        summary="Add entries to a list",
        description=(
            "All of them or, where one is refused, none. Values are stored in one spelling: networks without host "
            "bits, lower-case origins, upper-case countries, AS numbers as digits. At most 100,000 entries that have "
            "not expired may be in the lists of an organization. What is added counts from the next request on."
        ),
        handler=add_entries,
        needs="list",
        body=AddEntriesBody,
        errors=("list_limit",),
    ),
    _route(
        operation_id="removeListEntries",
        method="DELETE",
        path=_ENTRIES,
        summary="Remove entries from a list",
        description="By their values. From the next request on they are in it no more.",
        handler=remove_entries,
        needs="list",
        body=RemoveEntriesBody,
        status=204,
    ),
    console_route(
        operation_id="countConsoleEntries",
        path="/lists/{list_id}/count",
        variables=LIST_ID,
        summary="Count the entries of a list that begin so",
        description="Up to 10,000 are looked at.",
        handler=count_entries,
        query=CountEntriesQuery,
        errors=("not_found",),
    ),
)
