"""The rules of lists and their entries in every store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from svc.features.lists.jobs import described
from svc.features.lists.lists import FIRST_LISTS, FilledLists, Listing, StoredList, entry_key, first_list, prefix_of
from svc.features.lists.tables import FILLED_LISTS, LIST_ENTRIES, LIST_EXPIRIES, LISTED, LISTS
from svc.kernel.store.schema.key_parts import LIST_ID, moment
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.queries import organization


def list_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield a sentence for each fault in the lists of an organization. Entries of a deleted list may exist until
    retention deletes them; one of the six that every organization has is never deleted, and without a row it is empty.
    """
    lists: dict[str, StoredList] = {found.id: found for found in (first_list(number, name) for name in FIRST_LISTS)}
    rows: dict[str, StoredList] = {}
    stored_ids: set[str] = set()
    for (_, name), stored in snapshot.scan(LISTS, number):
        if stored.name != name or stored.id in stored_ids:
            yield f"list {stored.id} of organization {number} is not the one named {name}"
        stored_ids.add(stored.id)
        rows[name] = lists[stored.id] = stored
    yield from _mismarked(snapshot, number, rows)
    yield from _miscounted(snapshot, number, lists)
    for _, expires_at_ms, raw_list, key in snapshot.scan_keys(LIST_EXPIRIES, (number,), (number + 1,)):
        entry = snapshot.get(LIST_ENTRIES, number, raw_list, key)
        if entry is None or entry.expires_at_ms != expires_at_ms:
            yield f"at {moment(expires_at_ms)} an entry of organization {number} expires that does not say so"
    for (_, key), found in snapshot.scan(LISTED, number):
        for listing in found.listings:
            entry = snapshot.get(LIST_ENTRIES, number, listing.raw_list, key)
            if entry is None or entry.expires_at_ms != listing.expires_at_ms:
                yield f"a value of organization {number} is said to be in a list that does not have it so"


def _mismarked(snapshot: Snapshot, number: int, rows: dict[str, StoredList]) -> Iterator[str]:
    """Yield where the organization's row does not name a list that has entries, or names one without a row. That one
    has become empty is no fault.
    """
    owner = organization(snapshot, number)
    if owner.removed_at_ms is not None:
        return
    for name, found in rows.items():
        if found.entries and name not in owner.filled_lists:
            yield f"list {found.id} has entries, organization {number} does not say so"
    for name in owner.filled_lists:
        if name not in rows:
            yield f"organization {number} says that the list {name} has entries, which it does not have"
    filled = snapshot.get(FILLED_LISTS, number) or FilledLists()
    if filled.names != owner.filled_lists:
        yield f"the lists with entries of organization {number} are not those that its row names"
    for name, found in filled.by_name.items():
        if name in rows and rows[name].entries and found != described(rows[name]):
            yield f"list {rows[name].id} of organization {number} is not what rules read of it"


def _miscounted(snapshot: Snapshot, number: int, lists: dict[str, StoredList]) -> Iterator[str]:
    entries = Counter[str]()
    prefixes: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for (_, raw_list, key), entry in snapshot.scan(LIST_ENTRIES, number):
        list_id, expires_at_ms = str(LIST_ID.show(raw_list)), entry.expires_at_ms
        name = f"an entry of list {list_id} of organization {number}"
        if entry_key(entry.value) != key:
            yield f"{name} lies under the key of another value"
        if expires_at_ms is not None and not snapshot.has(LIST_EXPIRIES, number, expires_at_ms, raw_list, key):
            yield f"{name} expires at {moment(expires_at_ms)}, and is not listed there"
        listed = snapshot.get(LISTED, number, key)
        if listed is None or Listing(raw_list, expires_at_ms) not in listed.listings:
            yield f"{name} is not found by its value"
        entries[list_id] += 1
        if list_id in lists and lists[list_id].kind == "address":
            prefixes[list_id][prefix_of(entry.value)] += 1
    for list_id, stored in lists.items():
        counted = {(version, length): count for version, length, count in stored.prefixes}
        if (stored.entries, counted) != (entries[list_id], prefixes[list_id]):
            yield f"list {list_id} of organization {number} has {entries[list_id]} entries, its count says otherwise"


RULES = {"lists": list_faults}
