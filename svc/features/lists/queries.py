"""Lists as they are read: by rules, of which a question costs nothing, or two rows where the list has entries, and by
the API and the command line.

The six lists that every organization has are there for all of these, whether or not they have a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from svc.features.lists.lists import (
    FIRST_LISTS,
    ListEntry,
    ListKind,
    StoredList,
    canonical,
    covering,
    entry_key,
    first_list,
    is_list_name,
    key_prefix,
)
from svc.features.lists.tables import LIST_ENTRIES, LIST_EXPIRIES, LISTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.key_parts import LIST_ID
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.organization import Organization


def named_list(snapshot: Snapshot, number: int, name: str) -> StoredList | None:
    """Return a list of the organization by its name; `None` if there is none. One row is read."""
    found = snapshot.get(LISTS, number, name) if is_list_name(name) else None
    return first_list(number, name) if found is None and name in FIRST_LISTS else found


def filled_list(snapshot: Snapshot, owner: Organization, name: str) -> StoredList | None:
    """Return a list of an organization, whose row is the one in this snapshot, if it has entries by that row; else
    `None`, and nothing is read. Raises `CorruptionError` for a list that should have entries and is missing.
    """
    if name not in owner.filled_lists:
        return None
    found = snapshot.get(LISTS, owner.number, name)
    if found is None:
        raise CorruptionError(f"the list {name} is missing, and its organization says that it has entries")
    return found


def contains(snapshot: Snapshot, number: int, found: StoredList, value: str | None, now_ms: int) -> bool:
    """Return whether the list contains a value now. The value is any text; an address is also contained if one of the
    list's networks includes it. `None` and text of another kind are in no list.

    For an empty list nothing is read, for others one row; for a list of addresses at most one row for each prefix
    length that it has.
    """
    if value is None or not found.entries:
        return False
    if found.kind == "address":
        prefixes = ((version, length) for version, length, _ in found.prefixes)
        return any(find_entry(snapshot, number, found, one, now_ms) for one in covering(value, prefixes))
    spelled = canonical(found.kind, value)
    return spelled is not None and find_entry(snapshot, number, found, spelled, now_ms) is not None


def asked_prefixes(found: StoredList) -> int:
    """Return how many prefix lengths `contains` looks up at most for an address; 0 for lists of other kinds."""
    return max(Counter(version for version, _, _ in found.prefixes).values(), default=0)


def list_names(snapshot: Snapshot, number: int) -> dict[str, ListKind]:
    """Return the name and kind of every list of the organization."""
    return {name: found.kind for name, found in lists_of(snapshot, number).items()}


def lists_of(snapshot: Snapshot, number: int) -> dict[str, StoredList]:
    """Return all lists of the organization by name, in the order of their names."""
    found = {name: stored for (_, name), stored in snapshot.scan(LISTS, number)}
    found |= {name: first_list(number, name) for name in FIRST_LISTS if name not in found}
    return dict(sorted(found.items()))


def find_list(snapshot: Snapshot, number: int, list_id: str) -> StoredList | None:
    """Return a list of the organization by its id; `None` for any other text."""
    return next((found for found in lists_of(snapshot, number).values() if found.id == list_id), None)


def raw_id(list_id: str) -> bytes:
    """Return the id of a list as it is stored in keys."""
    return LIST_ID.read(list_id)


def find_entry(snapshot: Snapshot, number: int, found: StoredList, value: str, now_ms: int) -> ListEntry | None:
    """Return the entry of a value in its canonical spelling, if it has not expired; else `None`."""
    entry = stored_entry(snapshot, number, raw_id(found.id), value)
    return entry if entry is not None and entry.is_living(now_ms) else None


def stored_entry(snapshot: Snapshot, number: int, raw_list: bytes, value: str) -> ListEntry | None:
    """Return the entry of a value, even if it has expired; `None` if there is none."""
    entry = snapshot.get(LIST_ENTRIES, number, raw_list, entry_key(value))
    return entry if entry is not None and entry.value == value else None


def expired_keys(snapshot: Snapshot, number: int, now_ms: int) -> Iterator[tuple[int, int, bytes, str]]:
    """Yield the keys in `LIST_EXPIRIES` of expired entries that are still stored, earliest expiry first."""
    yield from snapshot.scan_keys(LIST_EXPIRIES, (number,), (number, now_ms + 1))


def expired_entries(snapshot: Snapshot, number: int, now_ms: int) -> Counter[str]:
    """Return by list id how many entries have expired and are still stored."""
    counts = Counter(raw_list for _, _, raw_list, _ in expired_keys(snapshot, number, now_ms))
    return Counter({str(LIST_ID.show(raw_list)): count for raw_list, count in counts.items()})


def living_entries(snapshot: Snapshot, number: int, now_ms: int) -> int:
    """Return how many entries of the organization's lists have not expired."""
    expired = expired_entries(snapshot, number, now_ms)
    return sum(found.entries - expired[found.id] for found in lists_of(snapshot, number).values())


def entries_behind(
    snapshot: Snapshot, number: int, list_id: str, beginning: str, after: str, limit: int
) -> list[tuple[str, ListEntry]]:
    """Return (key, entry) of at most `limit` entries in key order: those whose values may begin with `beginning` and
    whose keys are after `after`; empty texts stand for all. Expired entries are included.
    """
    stem = (number, raw_id(list_id), key_prefix(beginning))
    start = (*stem[:2], max(after, stem[2]))
    rows = snapshot.scan(LIST_ENTRIES, *stem, start=start)
    return list(islice(((key[2], entry) for key, entry in rows if key[2] != after), limit))
