"""Lists as they are read: by rules, for which all lists of a kind take one row, and by the API and the command line.

The six lists that every organization has are there for all of these, whether or not they have a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from svc.features.lists.lists import (
    FIRST_LISTS,
    FilledLists,
    ListEntry,
    ListKind,
    Prefix,
    StoredList,
    canonical,
    covering,
    entry_key,
    first_list,
    is_list_name,
    key_prefix,
)
from svc.features.lists.tables import FILLED_LISTS, LIST_ENTRIES, LIST_EXPIRIES, LISTED, LISTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.key_parts import LIST_ID
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.organization import Organization


def named_list(snapshot: Snapshot, number: int, name: str) -> StoredList | None:
    """Return a list of the organization by its name; `None` if there is none. One row is read."""
    found = snapshot.get(LISTS, number, name) if is_list_name(name) else None
    return first_list(number, name) if found is None and name in FIRST_LISTS else found


class AskedLists:
    """Answers whether the values of an event are in lists of its organization, and reads each row once. An address is
    in a list, too, if one of the list's networks includes it; `None` and text of another kind are in no list.

    `owner`: the organization, whose row is the one in this snapshot; `value_of`: the event's value of a kind of list;
    `is_relied_on`: whether what a list of this name says counts, asked only of lists that have the value.
    For lists without entries nothing is read; for others one row, and one for each kind that is asked for, of addresses
    one for each prefix length that an asked list has. Calls raise `CorruptionError` if a list that should have entries
    is missing.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        owner: Organization,
        value_of: Callable[[ListKind], str | None],
        now_ms: int,
        is_relied_on: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._snapshot = snapshot
        self._owner = owner
        self._value_of = value_of
        self._now_ms = now_ms
        self._is_relied_on = is_relied_on
        self._lists: FilledLists | None = None
        self._found: dict[ListKind | Prefix, frozenset[bytes]] = {}
        """The ids of lists that have the value of a kind; of addresses, by prefix."""

    def __call__(self, name: str) -> bool:
        """Return whether the value of the list's kind is in the list of this name, and counts."""
        lists = self._lists
        if lists is None:
            if name not in self._owner.filled_lists:
                return False
            lists = self._lists = filled_lists(self._snapshot, self._owner)
        found = lists.by_name.get(name)
        if found is None:
            return False
        return any(
            found.raw_id in self._ids(asked) for asked in (found.prefixes if found.kind == "address" else (found.kind,))
        ) and self._is_relied_on(name)

    def any_of(self, names: frozenset[str]) -> bool:
        """Return whether any of the lists of these names would be answered with yes."""
        lists = self._lists
        if lists is None:
            if names.isdisjoint(self._owner.filled_lists):
                return False
            lists = self._lists = filled_lists(self._snapshot, self._owner)
        is_found = any(not ids.isdisjoint(self._ids(asked)) for asked, ids in lists.asked(names).items())
        return is_found and any(map(self, names))

    def _ids(self, asked: ListKind | Prefix) -> frozenset[bytes]:
        ids = self._found.get(asked)
        if ids is None:
            ids = self._found[asked] = self._lists_with(self._spelled(asked))
        return ids

    def _spelled(self, asked: ListKind | Prefix) -> str | None:
        """Return the event's value of a kind as entries spell it, or the network of its address with a prefix."""
        value = self._value_of("address" if isinstance(asked, tuple) else asked)
        if value is None:
            return None
        return next(covering(value, (asked,)), None) if isinstance(asked, tuple) else canonical(asked, value)

    def _lists_with(self, value: str | None) -> frozenset[bytes]:
        found = None if value is None else self._snapshot.get(LISTED, self._owner.number, entry_key(value))
        if found is None:
            return frozenset()
        return frozenset(each.raw_list for each in found.listings if each.is_living(self._now_ms))


def filled_lists(snapshot: Snapshot, owner: Organization) -> FilledLists:
    """Return the lists of an organization that have entries. Raises `CorruptionError` unless they are those
    that its row names.
    """
    found = snapshot.get(FILLED_LISTS, owner.number) or FilledLists()
    if found.names != owner.filled_lists:
        names = ", ".join(owner.filled_lists)
        raise CorruptionError(f"organization {owner.number} says that {names} have entries, its lists are others")
    return found


def asked_prefixes(found: StoredList) -> int:
    """Return how many prefix lengths `AskedLists` looks up at most for an address; 0 for lists of other kinds."""
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
