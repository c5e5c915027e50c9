"""The index of events: by which rows an event is found, and searches over them (ADR 63).

A new event is one row of the tail, with the digests of its values. Later its row is replaced by a slot and postings in
a segment (`jobs.py`), whenever that may be: each event is in the tail or in one segment, and a search
reads both. So nothing depends on when the index is made, and an event that arrives late, or out of order, is found as
any other.

What may live here: the rows of one event, the rows of one segment, and searches from the newest event on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import merge
from itertools import chain, islice, product, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from svc.identify.events.listing import Position
from svc.identify.events.segments import GONE, Digests, Run, Segment, Slots, packed, position, slot
from svc.identify.index.digests import Wanted, digests
from svc.identify.records import Event
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, LATE_EVENTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.fields import ENVIRONMENTS

SMALL = 0
"""The part of the key of a segment in one row."""
SLOTS = 1
"""The part with the slots of a large segment."""
FIRST_PART = 2
PARTS = 32
"""Rows with the postings of a large segment."""
LAST = (2**64 - 1, b"\xff" * 16)
FIRST = (0, bytes(16))
SEGMENT_KEYS = 8
"""Reading a segment costs about as much as reading this number of rows of the tail."""
_PLACES_A_KEY = 64
_NOT_HERE = 4096
by_position = itemgetter(0)

Row = tuple[bytes, int, Segment | None]
"""Slot of the position in the key, part, value; no value where it was not read."""
TailRow = tuple[tuple[Any, ...], Digests | CorruptionError]


class Scope(NamedTuple):
    """The scope of one event index: an organization (by its number in the store) and the index of an environment."""

    number: int
    environment: int


def scope_of(number: int, event: Event) -> Scope:
    """Return the scope in which an event is indexed."""
    return Scope(number, ENVIRONMENTS.index(event.environment))


def add(transaction: Transaction, number: int, request_id: bytes, event: Event) -> None:
    """Index a new event."""
    scope = scope_of(number, event)
    transaction.put(EVENT_TAIL, (*scope, event.occurred_at_ms, request_id), digests(event))
    if event.feed_at_ms is not None:
        transaction.put(LATE_EVENTS, (*scope, event.feed_at_ms, request_id), b"")


def unindex(transaction: Transaction, number: int, events: Iterable[tuple[bytes, Event]]) -> None:
    """Remove events, each with its request id (16 bytes), from the event index, if they are in it."""
    gone: defaultdict[Scope, dict[Position, Sequence[int]]] = defaultdict(dict)
    for request_id, event in events:
        scope = scope_of(number, event)
        if event.feed_at_ms is not None:
            transaction.delete(LATE_EVENTS, *scope, event.feed_at_ms, request_id)
        gone[scope][Position(event.occurred_at_ms, request_id)] = digests(event).values
    for scope, own in gone.items():
        remove(transaction, scope, own)


def values_at(snapshot: Snapshot, scope: Scope, here: tuple[int, bytes]) -> tuple[int, ...] | None:
    """Return the digests under which the event at this position is indexed; `None` where no sound row says."""
    with suppress(CorruptionError):
        row = snapshot.get(EVENT_TAIL, *scope, *here)
        found = _slot_of(snapshot, scope, here) if row is None else None
        if row is not None:
            return row.values
        if found is not None:
            part, upper, slot_index = found
            postings = read_run(snapshot, scope, part, upper).postings
            return tuple(digest for digest, indexes in postings.items() if slot_index in indexes)
    return None


def remove(transaction: Transaction, scope: Scope, gone: Mapping[Position, Sequence[int]]) -> None:
    """Remove the events at these positions, with these digests; each row of a segment is written once."""
    rows: defaultdict[tuple[int, tuple[int, bytes]], dict[int, Sequence[int]]] = defaultdict(dict)
    for here, values in gone.items():
        found = None if transaction.delete(EVENT_TAIL, *scope, *here) else _slot_of(transaction, scope, here)
        if found is not None:
            part, upper, slot_index = found
            for each in _parts_with(part, values):
                rows[each, upper][slot_index] = values
    for (part, upper), own in rows.items():
        segment = transaction.get(EVENT_SEGMENTS, *scope, part, *upper)
        if segment is not None:
            _put(transaction, scope, part, upper, segment.without(own))


def _put(transaction: Transaction, scope: Scope, part: int, upper: tuple[int, bytes], segment: Segment) -> None:
    """Write a row of a segment, or delete it if it has become empty."""
    key = (*scope, part, *upper)
    if segment.digests or not Slots(segment.slots).is_empty:
        transaction.put(EVENT_SEGMENTS, key, segment)
    else:
        transaction.delete(EVENT_SEGMENTS, *key)


def is_indexed(snapshot: Snapshot, scope: Scope, here: tuple[int, bytes]) -> bool:
    """Return whether the index has an event at this position (arrival in Unix ms, 16 bytes of the request id), in the
    tail or in a segment; `False` for an erased event. Raises `CorruptionError`.
    """
    return snapshot.has(EVENT_TAIL, *scope, *here) or _slot_of(snapshot, scope, here) is not None


def _slot_of(snapshot: Snapshot, scope: Scope, here: tuple[int, bytes]) -> tuple[int, tuple[int, bytes], int] | None:
    """Return (part, position in the key, index of the slot) of the segment that has an event at this position."""
    found = holder(snapshot, scope, here)
    own = None if found is None else snapshot.get(EVENT_SEGMENTS, *scope, found[0], *found[1])
    slot_index = None if own is None else Slots(own.slots).find(slot(here))
    return None if found is None or slot_index is None else (*found, slot_index)


def _parts_with(part: int, values: Sequence[int]) -> list[int]:
    """Return the parts of a segment that have an event with these digests; `part` is the one with its slot."""
    return [SMALL] if part == SMALL else [SLOTS, *sorted(set(map(part_of, values)))]


def rows_of(
    snapshot: Snapshot, number: int, request_id: bytes, event: Event
) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    """Yield (table, key) of the index rows that have data of an event; they have data of other events too."""
    scope, here = scope_of(number, event), (event.occurred_at_ms, request_id)
    if event.feed_at_ms is not None:
        yield LATE_EVENTS, (*scope, event.feed_at_ms, request_id)
    if snapshot.has(EVENT_TAIL, *scope, *here):
        yield EVENT_TAIL, (*scope, *here)
        return
    found = holder(snapshot, scope, here)
    if found is not None:
        part, upper = found
        for each in _parts_with(part, digests(event).values):
            yield EVENT_SEGMENTS, (*scope, each, *upper)


def holder(snapshot: Snapshot, scope: Scope, here: tuple[int, bytes]) -> tuple[int, tuple[int, bytes]] | None:
    """Return (part, position in the key) of the segment that would have this position; `None` = newer than all."""
    found: list[tuple[tuple[int, bytes], int]] = []
    for part in (SMALL, SLOTS):
        key = next(snapshot.scan_keys(EVENT_SEGMENTS, (*scope, part, *here), (*scope, part + 1)), None)
        if key is not None:
            found.append((key[-2:], part))
    if not found:
        return None
    upper, part = min(found)
    return part, upper


def count_segments(snapshot: Snapshot, number: int, most: int) -> int:
    """Return how many segments an organization has, up to `most`: a search to the end reads a row of each."""
    parts = product(range(len(ENVIRONMENTS)), (SMALL, SLOTS))
    keys = (snapshot.scan_keys(EVENT_SEGMENTS, (number, *part), (number, part[0], part[1] + 1)) for part in parts)
    return sum(1 for _ in islice(chain.from_iterable(keys), most))


def part_of(digest: int) -> int:
    """Return the part of a large segment that has the postings of a digest."""
    return FIRST_PART + digest * PARTS // 2**64


def read_run(snapshot: Snapshot, scope: Scope, part: int, upper: tuple[int, bytes]) -> Run:
    """Return a whole segment; an empty one if it is not stored."""
    postings: dict[int, Sequence[int]] = {}
    for each in (SMALL,) if part == SMALL else range(FIRST_PART, FIRST_PART + PARTS):
        segment = snapshot.get(EVENT_SEGMENTS, *scope, each, *upper)
        if segment is not None:
            postings.update(segment.postings())
    own = snapshot.get(EVENT_SEGMENTS, *scope, part, *upper)
    return Run(b"" if own is None else own.slots, postings)


def write_run(transaction: Transaction, scope: Scope, run: Run, upper: tuple[int, bytes], *, large: bool) -> None:
    """Write a segment with the events of a run, of which none is newer than the position `upper`."""
    if not large:
        transaction.put(EVENT_SEGMENTS, (*scope, SMALL, *upper), packed(run.slots, run.postings))
        return
    transaction.put(EVENT_SEGMENTS, (*scope, SLOTS, *upper), Segment(run.slots))
    parts: dict[int, dict[int, Sequence[int]]] = {}
    for digest, slot_indexes in run.postings.items():
        parts.setdefault(part_of(digest), {})[digest] = slot_indexes
    for part, postings in parts.items():
        transaction.put(EVENT_SEGMENTS, (*scope, part, *upper), packed(b"", postings))


def delete_run(transaction: Transaction, scope: Scope, part: int, upper: tuple[int, bytes]) -> None:
    """Delete the rows of a segment."""
    transaction.delete(EVENT_SEGMENTS, *scope, part, *upper)
    if part == SLOTS:
        for each in range(FIRST_PART, FIRST_PART + PARTS):
            transaction.delete(EVENT_SEGMENTS, *scope, each, *upper)


class Search:
    """Iterate over the positions of the events that have all that is asked for, newest first: those below `beyond` and
    not below `oldest`. A corrupt row of the tail counts as having it.

    It reads about `most_keys` rows of the tail, or fewer segments. Over rows that are being fetched
    (`kernel/store/postgresql/rows.py`) an absent row of slots counts for as many events as its postings say, so that no
    more segments are asked for than are needed.
    """

    _is_newest_first = True

    def __init__(
        self,
        snapshot: Snapshot,
        scope: Scope,
        asked: Sequence[Wanted],
        oldest: tuple[int, bytes] = FIRST,
        beyond: tuple[int, bytes] = LAST,
        most_keys: int | None = None,
    ) -> None:
        self._snapshot, self._scope, self._asked = snapshot, scope, asked
        self._oldest, self._beyond = oldest, beyond
        self._first, self._above = slot(oldest), slot(beyond)
        self._keys_left = most_keys
        self._to_pass = 0
        self._is_counting = self._may_begin_below = False
        self._tail = ((slot(key[-2:]), row) for key, row in self._tail_rows())
        self._next = next(self._tail, None)
        self._all = self._slots()
        self.ended_at: Position | None = None
        """Where it gave up: everything newer was searched, and nothing older."""

    def __iter__(self) -> Iterator[Position]:
        return map(position, self._all)

    def pass_over(self, count: int) -> int:
        """Go on behind the next `count` events; return how many there were, or more where that is the end. Events of a
        segment are counted together: none of them is looked at, and where digests are asked for no row of slots either.
        """
        self._to_pass = count
        while self._to_pass and next(self._all, None) is not None:
            self._to_pass -= 1
        passed, self._to_pass = count - self._to_pass, 0
        return passed

    def count(self, most: int) -> int:
        """Return how many events there are up to `ended_at`, or `most` of them. As `pass_over`, but of the oldest
        segment, which may begin below the window, the row of slots is read.
        """
        self._is_counting = True
        return self.pass_over(most)

    def _pass_some(self, count: int) -> int:
        """Pass over up to `count` events at once, and return how many: the last one is left to `pass_over`."""
        passed = max(0, min(count, self._to_pass - 1))
        self._to_pass -= passed
        return passed

    def _tail_rows(self) -> Iterator[TailRow]:
        start, end = (*self._scope, *self._oldest), (*self._scope, *self._beyond)
        return self._snapshot.scan_past_corruption(EVENT_TAIL, start, end, reverse=self._is_newest_first)

    def _slots(self) -> Iterator[bytes]:
        has_looked, rows = False, self._rows()
        row = next(rows, None)
        while row is not None:
            upper, part, segment = row
            following = next(rows, None) if self._is_counting else None
            self._may_begin_below = self._is_counting and following is None
            yield from self._tail_above(upper)
            if self.ended_at is None and has_looked and self._is_spent:
                self.ended_at = just_above(position(upper))
            if self.ended_at is not None:
                return
            has_looked |= upper < self._above  # the first may have no event below `beyond`
            for found in self._found(upper, part, segment):
                yield from self._tail_above(found)
                if self.ended_at is not None:
                    return
                yield found
            row = following or next(rows, None)
        yield from self._tail_above(b"")

    @property
    def _is_spent(self) -> bool:
        return self._keys_left is not None and self._keys_left <= 0

    def _spend(self, keys: int) -> None:
        if self._keys_left is not None:
            self._keys_left -= keys

    def _tail_above(self, bound: bytes) -> Iterator[bytes]:
        while self.ended_at is None and self._next is not None and self._next[0] > bound:
            yield from self._next_of_tail(self._next)

    def _next_of_tail(self, row: tuple[bytes, Digests | CorruptionError]) -> Iterator[bytes]:
        """Yield the slot of this row of the tail if it has all digests asked for, or is corrupt; go to the next row."""
        found, own = row
        self._spend(1)
        if isinstance(own, CorruptionError) or all(_has(own, each) for each in self._asked):
            yield found
        self._next = next(self._tail, None)
        if self._is_spent:
            self.ended_at = position(found)

    def _rows(self) -> Iterator[Row]:
        """Yield the first row to read of each segment that may have such events, in the order of the search."""
        strips = self._strip(SMALL), self._strip(self._first_part)
        return merge(*strips, key=by_position, reverse=self._is_newest_first)

    @property
    def _first_part(self) -> int:
        """Return the part of a large segment that is read first."""
        first = self._asked[0] if self._asked else None
        return part_of(first) if isinstance(first, int) else SLOTS

    def _strip(self, part: int) -> Iterator[Row]:
        return strip(self._snapshot, self._scope, part, self._oldest, self._beyond)

    def _found(self, upper: bytes, part: int, segment: Segment | None) -> Iterator[bytes]:
        """Yield slots of a segment that are asked for, newest first; `GONE` for all if the row of slots is missing."""
        self._spend(SEGMENT_KEYS)
        slot_indexes = self._slot_indexes(upper, part, segment)
        if self._asked and not slot_indexes:
            return iter(())
        passes = slot_indexes and len(slot_indexes) < self._to_pass and upper < self._above and self._next is None
        if passes and not self._may_begin_below:
            self._pass_some(len(slot_indexes))
            return iter(())
        own = segment if part == SMALL else None
        if own is None:
            part = SMALL if part == SMALL else SLOTS
            own = self._snapshot.get(EVENT_SEGMENTS, *self._scope, part, *position(upper))
        if own is None:
            there = len(slot_indexes) or _NOT_HERE
            return repeat(GONE, there - self._pass_some(there))
        return self._in_window(upper, Slots(own.slots), slot_indexes)

    def _slot_indexes(self, upper: bytes, part: int, segment: Segment | None) -> Sequence[int]:
        """Return where in a segment the events are that have all that is asked for; nothing if nothing is."""
        found: Sequence[int] = ()
        for at, each in enumerate(self._asked):
            having = self._having(upper, segment if at == 0 or part == SMALL else None, each)
            if at == 0:
                found = having
            else:
                also = frozenset(having)
                self._spend((len(found) + len(also)) // _PLACES_A_KEY)
                found = [slot_index for slot_index in found if slot_index in also]
            if not found:
                break
        return found

    def _having(self, upper: bytes, segment: Segment | None, each: Wanted) -> Sequence[int]:
        """Return where in a segment the events are that have this digest, or one of these. `segment`: the row with its
        postings, if it is read already.
        """
        if isinstance(each, int):
            return (segment or self._part(upper, part_of(each))).having(each)
        found = set[int]()
        rows: dict[int, Segment] = {}
        for digest in sorted(each):
            of_digest = part_of(digest)
            row = segment or rows.get(of_digest)
            if row is None:
                row = rows[of_digest] = self._part(upper, of_digest)
            found.update(row.having(digest))
        self._spend(len(found) // _PLACES_A_KEY)
        return sorted(found)

    def _part(self, upper: bytes, part: int) -> Segment:
        self._spend(SEGMENT_KEYS)
        return self._snapshot.get(EVENT_SEGMENTS, *self._scope, part, *position(upper)) or Segment()

    def _in_window(self, upper: bytes, slots: Slots, slot_indexes: Sequence[int]) -> Iterator[bytes]:
        high = slots.below(self._above) if upper >= self._above else len(slots)
        low = slots.below(self._first) if len(slots) and slots[0] < self._first else 0
        if self._asked:
            first, beyond = bisect_left(slot_indexes, low), bisect_left(slot_indexes, high)
            living = slot_indexes[first:beyond]
        elif self._to_pass > 1:
            living = slots.living_between(low, high)
        else:
            return _living(slots, self._in_order(range(low, high)))
        passed = 0
        if living and (self._next is None or self._next[0] < slots[living[0]]):  # no event of the tail is among them
            passed = self._pass_some(len(living))
        return (slots[slot_index] for slot_index in islice(self._in_order(living), passed, None))

    def _in_order(self, slot_indexes: Sequence[int]) -> Iterable[int]:
        return reversed(slot_indexes) if self._is_newest_first else slot_indexes


def _has(row: Digests, each: Wanted) -> bool:
    return each in row.values if isinstance(each, int) else not each.isdisjoint(row.values)


def strip(
    snapshot: Snapshot, scope: Scope, part: int, oldest: tuple[int, bytes], beyond: tuple[int, bytes]
) -> Iterator[Row]:
    """Yield (slot of the position in the key, part, value) of the rows of a part, `SMALL` or one of a large segment,
    newest first; the value is `None` for `SLOTS`, which is not read. The first one is of the segment which ends at or
    above `beyond`: it may begin below.
    """
    stem, table = (*scope, part), EVENT_SEGMENTS
    above, below = (*stem, *beyond), ((*stem, *oldest), (*stem, *beyond))
    if part == SLOTS:  # whose rows are read only if needed
        covering = islice(snapshot.scan_keys(table, above, (*scope, part + 1)), 1)
        for key in chain(covering, snapshot.scan_keys_reverse(table, *below)):
            yield slot(key[-2:]), part, None
    else:
        rows = islice(snapshot.scan(table, *stem, start=above), 1)
        for key, segment in chain(rows, snapshot.scan_reverse(table, *below)):
            yield slot(key[-2:]), part, segment


def _living(slots: Slots, slot_indexes: Iterable[int]) -> Iterator[bytes]:
    """Yield those of the slots at these indexes whose events were not erased."""
    for slot_index in slot_indexes:
        found = slots[slot_index]
        if found != (slots[slot_index - 1] if slot_index else GONE):
            yield found


def just_above(here: Position) -> Position:
    """Return the smallest position that is newer than this one."""
    arrival_ms, request_id = here
    following = int.from_bytes(request_id) + 1
    if following >> 128:
        return Position(arrival_ms + 1, bytes(16))
    return Position(arrival_ms, following.to_bytes(16))
