"""Transactions of lists and their entries: make, change, delete, erase and expire (decisions 12).

A list counts its entries, and of one of addresses how many there are of each length of networks, so that rules ask for
no others. Its organization's row says whether it has any, and `filled_lists` what rules need of it, by the transaction
that adds the first one or deletes the last. Each value has a row that says which lists have it. An entry that expires
has a row of `list_expiries`, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from svc.features.contracts.cleanup import CleanupStep, CleanupTask, Pass
from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.lists.lists import (
    MAX_ENTRIES,
    MAX_LISTS,
    FilledList,
    FilledLists,
    Listed,
    ListEntry,
    Listing,
    ListKind,
    StoredList,
    entry_key,
)
from svc.features.lists.queries import (
    expired_keys,
    find_entry,
    find_list,
    lists_of,
    living_entries,
    named_list,
    raw_id,
    stored_entry,
)
from svc.features.lists.tables import FILLED_LISTS, LIST_ENTRIES, LIST_EXPIRIES, LISTED, LISTS
from svc.features.rules.jobs import is_named
from svc.identify.model import Subject
from svc.kernel.store.schema.key_parts import LIST_ID
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import items_of_step
from svc.kernel.tenants.queries import organization
from svc.kernel.tenants.tables import ORGANIZATIONS
from svc.kernel.values.refusals import Refusal

ROWS_OF_AN_ENTRY = 4
"""With what says which lists have its value, and when it expires; a deleted list has some more."""


class NewEntry(NamedTuple):
    """An entry to add; its value is in the form of `lists.canonical`."""

    value: str
    note: str = ""
    expires_at_ms: int | None = None


class Added(NamedTuple):
    """The result of adding entries."""

    added: int
    replaced: int


def create_list(
    transaction: Transaction, number: int, list_id: str, name: str, kind: ListKind, now_ms: int
) -> StoredList | Refusal:
    """Create an empty list. Refusals: `409 list_exists` if the name is taken, `409 list_limit` beyond `MAX_LISTS`."""
    if named_list(transaction, number, name) is not None:
        return Refusal("list_exists")
    if len(lists_of(transaction, number)) >= MAX_LISTS:
        return Refusal("list_limit")
    made = StoredList(id=list_id, name=name, kind=kind, created_at_ms=now_ms, updated_at_ms=now_ms)
    _keep(transaction, number, made)
    return made


def rename_list(transaction: Transaction, number: int, list_id: str, name: str, now_ms: int) -> StoredList | Refusal:
    """Rename a list; its present name changes nothing. Refusals: `404 not_found`, `409 list_permanent`, `list_in_use`
    or `list_exists`.
    """
    found = find_list(transaction, number, list_id)
    if found is None:
        return Refusal("not_found")
    if found.name == name:
        return found
    refusal = _bound(transaction, number, found)
    if refusal is not None:
        return refusal
    if name in lists_of(transaction, number):
        return Refusal("list_exists")
    renamed = msgspec.structs.replace(found, name=name, updated_at_ms=now_ms)
    _drop(transaction, number, found)
    _keep(transaction, number, renamed)
    return renamed


def delete_list(transaction: Transaction, number: int, list_id: str) -> bool | Refusal:
    """Delete a list. Return `False` if it is deleted and `continue_deletion` must follow for the rest of its entries.
    Refusals: `404 not_found`, `409 list_permanent` or `list_in_use`.
    """
    found = find_list(transaction, number, list_id)
    if found is None:
        return Refusal("not_found")
    refusal = _bound(transaction, number, found)
    if refusal is not None:
        return refusal
    _drop(transaction, number, found)
    return continue_deletion(transaction, number, list_id)


def continue_deletion(transaction: Transaction, number: int, list_id: str) -> bool:
    """Delete some entries of a deleted list; return `True` if nothing is left. Retention does so otherwise."""
    most = items_of_step(ROWS_OF_AN_ENTRY)
    return _purge(transaction, number, raw_id(list_id), most) < most


def _keep(transaction: Transaction, number: int, found: StoredList) -> None:
    transaction.put(LISTS, (number, found.name), found)
    _mark(transaction, number, found.name, found if found.entries else None)


def _drop(transaction: Transaction, number: int, found: StoredList) -> None:
    transaction.delete(LISTS, number, found.name)
    _mark(transaction, number, found.name, None)


def _mark(transaction: Transaction, number: int, name: str, found: StoredList | None) -> None:
    """Write what rules need of the list of this name, if that is new, and that rules may decide; `None` = it has no
    entries.
    """
    before = transaction.get(FILLED_LISTS, number) or FilledLists()
    if not before.lists and transaction.has(FILLED_LISTS, number):
        return  # it cannot be read, which must not prevent an erasure
    others = [each for each in before.lists if each.name != name]
    lists = sorted([*others, described(found)] if found else others, key=attrgetter("name"))
    after = FilledLists(tuple(lists))
    if not after.lists:
        transaction.delete(FILLED_LISTS, number)
    elif after != before:
        transaction.put(FILLED_LISTS, (number,), after)
    owner = organization(transaction, number)
    marked = msgspec.structs.replace(owner, has_rules=True, filled_lists=after.names)
    if marked != owner:
        transaction.put(ORGANIZATIONS, (number,), marked)


def described(found: StoredList) -> FilledList:
    """Return what rules need of a list."""
    prefixes = tuple((version, length) for version, length, _ in found.prefixes)
    return FilledList(found.name, raw_id(found.id), found.kind, prefixes)


def mark_filled_lists(transaction: Transaction, number: int) -> None:
    """Write which lists of an organization have entries, by their counts."""
    for name, found in lists_of(transaction, number).items():
        if found.entries:
            _mark(transaction, number, name, found)


def note_listed(transaction: Transaction, number: int) -> None:
    """Write for each value in lists of an organization which of them have it, by their entries."""
    for (_, raw_list, _), entry in list(transaction.scan(LIST_ENTRIES, number)):
        _note(transaction, number, raw_list, entry)


def _note(transaction: Transaction, number: int, raw_list: bytes, entry: ListEntry) -> None:
    """Write that the list has the value of an entry."""
    key = (number, entry_key(entry.value))
    before = transaction.get(LISTED, *key)
    others = () if before is None else before.without(raw_list)
    transaction.put(LISTED, key, Listed((*others, Listing(raw_list, entry.expires_at_ms))))


def _forget(transaction: Transaction, number: int, raw_list: bytes, value: str) -> None:
    """Write that the list does not have a value any more."""
    key = (number, entry_key(value))
    before = transaction.get(LISTED, *key)
    others = () if before is None else before.without(raw_list)
    if others:
        transaction.put(LISTED, key, Listed(others))
    else:
        transaction.delete(LISTED, *key)


def _bound(transaction: Transaction, number: int, found: StoredList) -> Refusal | None:
    """Return a refusal for a list whose name is permanent or in use by a rule."""
    if found.is_permanent:
        return Refusal("list_permanent")
    return Refusal("list_in_use") if is_named(transaction, number, found.name) else None


def add_entries(
    transaction: Transaction,
    number: int,
    list_id: str,
    entries: Sequence[NewEntry],
    now_ms: int,
    by: str | None = None,
) -> Added | Refusal:
    """Add entries. An entry whose value is in the list already is replaced, but keeps its time of creation and author.
    `by`: the id of the member who adds them. Refusals: `404 not_found`; `409 list_limit`, without adding any, if more
    than `MAX_ENTRIES` would not have expired.
    """
    found = find_list(transaction, number, list_id)
    if found is None:
        return Refusal("not_found")
    newest = {entry.value: entry for entry in entries}
    raw_list = raw_id(list_id)
    stored = {value: stored_entry(transaction, number, raw_list, value) for value in newest}
    added = [value for value, entry in stored.items() if entry is None or not entry.is_living(now_ms)]
    if not has_room(transaction, number, len(added), now_ms):
        return Refusal("list_limit")
    for value, entry in newest.items():
        before = stored[value]
        if before is not None:
            _forget_expiry(transaction, number, raw_list, before)
        stays = before is not None and before.is_living(now_ms)
        made = (before.created_at_ms, before.created_by) if before is not None and stays else (now_ms, by)
        row = ListEntry(value, entry.note, entry.expires_at_ms, *made)
        transaction.put(LIST_ENTRIES, (number, raw_list, entry_key(value)), row)
        _note(transaction, number, raw_list, row)
        if row.expires_at_ms is not None:
            transaction.put(LIST_EXPIRIES, (number, row.expires_at_ms, raw_list, entry_key(value)), b"")
    counted = found.counting(added=[value for value, entry in stored.items() if entry is None])
    _keep(transaction, number, msgspec.structs.replace(counted, updated_at_ms=now_ms))
    delete_expired(transaction, number, now_ms, 2 * len(newest))  # so that what has expired never piles up
    return Added(len(added), len(entries) - len(added))


def has_room(snapshot: Snapshot, number: int, added: int, now_ms: int) -> bool:
    """Return whether `added` more entries fit in the organization's lists. Expired ones are counted only if need be."""
    stored = sum(found.entries for found in lists_of(snapshot, number).values())
    return stored + added <= MAX_ENTRIES or living_entries(snapshot, number, now_ms) + added <= MAX_ENTRIES


def remove_entries(
    transaction: Transaction, number: int, list_id: str, values: Iterable[str], now_ms: int
) -> StoredList | Refusal:
    """Remove the entries of these values, given in canonical spelling; values without an entry are ignored. `404
    not_found` for an unknown list.
    """
    found = find_list(transaction, number, list_id)
    if found is None:
        return Refusal("not_found")
    wanted = (find_entry(transaction, number, found, value, now_ms) for value in dict.fromkeys(values))
    gone = [entry for entry in wanted if entry is not None]
    if not gone:
        return found
    for entry in gone:
        _delete(transaction, number, raw_id(list_id), entry)
    left = msgspec.structs.replace(found.counting(removed=[entry.value for entry in gone]), updated_at_ms=now_ms)
    _keep(transaction, number, left)
    return left


def listed(snapshot: Snapshot, number: int, kind: ListKind, value: str) -> Iterator[tuple[bytes, ListEntry]]:
    """Yield (id of the list as in keys, entry) of every entry for a visitor or an account in the organization's lists,
    including expired ones.
    """
    raw_lists = {raw_id(found.id): found.kind for found in lists_of(snapshot, number).values()}
    for raw_list in (*raw_lists, *_stray_lists(snapshot, number, raw_lists)):
        if raw_lists.get(raw_list, kind) == kind:  # one that was deleted may have been of this kind
            entry = stored_entry(snapshot, number, raw_list, value) or _unreadable(snapshot, number, raw_list, value)
            if entry is not None:
                yield raw_list, entry


def _unreadable(snapshot: Snapshot, number: int, raw_list: bytes, value: str) -> ListEntry | None:
    """Return what other rows say of a corrupt entry (`erasure/unreadable`), so that it can be deleted; `None`
    if there is none, or it can be read.
    """
    key = (number, raw_list, entry_key(value))
    if not snapshot.has(LIST_ENTRIES, *key) or snapshot.get(LIST_ENTRIES, *key) is not None:
        return None
    noted = snapshot.get(LISTED, number, entry_key(value))
    ends = {each.raw_list: each.expires_at_ms for each in noted.listings} if noted else {}
    return ListEntry(value, "", ends.get(raw_list), 0)


def purge_listed(transaction: Transaction, number: int, kind: ListKind, value: str) -> bool:
    """Remove a visitor or an account from all lists of the organization; return whether it was in any."""
    gone = list(listed(transaction, number, kind, value))
    for raw_list, entry in gone:
        _delete(transaction, number, raw_list, entry)
    _uncount(transaction, number, gone)
    return bool(gone)


def delete_expired(transaction: Transaction, number: int, now_ms: int, most: int) -> int:
    """Delete up to `most` expired entries, the earliest first; returns how many there were."""
    keys = list(islice(expired_keys(transaction, number, now_ms), most))
    entries = [(raw_list, transaction.get(LIST_ENTRIES, number, raw_list, key)) for _, _, raw_list, key in keys]
    gone = [(raw_list, entry) for raw_list, entry in entries if entry is not None]
    for raw_list, entry in gone:
        _delete(transaction, number, raw_list, entry)
    _uncount(transaction, number, gone)
    return len(gone)


def delete_stray(transaction: Transaction, number: int, most: int) -> int:
    """Delete up to `most` entries of lists that were deleted; returns how many there were."""
    there = {raw_id(found.id) for found in lists_of(transaction, number).values()}
    deleted = 0
    for raw_list in _stray_lists(transaction, number, there):
        deleted += _purge(transaction, number, raw_list, most - deleted)
        if deleted == most:
            break
    return deleted


def _stray_lists(snapshot: Snapshot, number: int, there: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the id of each list that has entries and is not one of these. Each gap between two of them is a look-up
    that waits for no other: in a database one round trip serves all.
    """
    start = bytes(LIST_ID_BYTES)
    for end in [*((number, raw_list) for raw_list in sorted(there)), (number + 1,)]:
        while (found := next(snapshot.scan_keys(LIST_ENTRIES, (number, start), end), None)) is not None:
            yield found[1]
            start = _behind(found[1])
        start = _behind(end[1]) if len(end) > 1 else start


def _behind(raw_list: bytes) -> bytes:
    return (int.from_bytes(raw_list) + 1).to_bytes(LIST_ID_BYTES)


LIST_ID_BYTES = 20


def _purge(transaction: Transaction, number: int, raw_list: bytes, most: int) -> int:
    """Delete up to `most` entries of a list whose row is gone."""
    entries = [entry for _, entry in islice(transaction.scan(LIST_ENTRIES, number, raw_list), most)]
    for entry in entries:
        _delete(transaction, number, raw_list, entry)
    return len(entries)


def _delete(transaction: Transaction, number: int, raw_list: bytes, entry: ListEntry) -> None:
    transaction.delete(LIST_ENTRIES, number, raw_list, entry_key(entry.value))
    _forget(transaction, number, raw_list, entry.value)
    _forget_expiry(transaction, number, raw_list, entry)


def _forget_expiry(transaction: Transaction, number: int, raw_list: bytes, entry: ListEntry) -> None:
    if entry.expires_at_ms is not None:
        transaction.delete(LIST_EXPIRIES, number, entry.expires_at_ms, raw_list, entry_key(entry.value))


def _uncount(transaction: Transaction, number: int, gone: Iterable[tuple[bytes, ListEntry]]) -> None:
    """Take deleted entries out of the counts of their lists; the time of their last change stays."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for raw_list, entry in gone:
        values[str(LIST_ID.show(raw_list))].append(entry.value)
    for found in lists_of(transaction, number).values() if values else ():
        if found.id in values:
            _keep(transaction, number, found.counting(removed=values[found.id]))


def _is_listed(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> bool:
    return any(listed(snapshot, number, subject, subject_id))


def _of_subject(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> Keys:
    for raw_list, entry in listed(snapshot, number, subject, subject_id):
        key = entry_key(entry.value)
        yield LIST_ENTRIES, (number, raw_list, key)
        yield LISTED, (number, key)
        if entry.expires_at_ms is not None:
            yield LIST_EXPIRIES, (number, entry.expires_at_ms, raw_list, key)


ERASED = {
    "purge_listed": Erased((LIST_ENTRIES, LIST_EXPIRIES, LISTED), of_subject=_of_subject),
}
FORGET = Forgetting(is_known=_is_listed, at_once=purge_listed)


def _delete_ended(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Delete some entries that have expired, which are one range of expiries; then some whose list was deleted."""
    (number,), most = start, items_of_step(ROWS_OF_AN_ENTRY)
    deleted = delete_expired(transaction, number, now_ms, most) or delete_stray(transaction, number, most)
    return CleanupStep(deleted, start if deleted else None)


PASSES: tuple[Pass, ...] = (
    lambda sweep: CleanupTask(LIST_ENTRIES.name, partial(_delete_ended, sweep.now_ms), (sweep.number,)),
)
