"""Indexing: the bounded transactions that put events of the tail into segments, and small segments into large ones.

Nothing depends on when they run, or how far they get: an event is found in the tail as in a segment
(`queries.py`). Segments follow each other in the order of arrival. Large ones are older than all small ones,
as they are made of the oldest small ones. An event that comes late, into the time of a segment, is put into that one.

`rebuild` makes again what follows from the events, their index and the counters of the hours, for an upgrade and `svc
store rebuild-indexes`. In memory are the digests of some thousand events and the counters of one organization.

A segment of which a row is corrupt is made again from its events (ADR 186). Reading comes first, a slice at a time;
where anything of the segment has changed since, nothing is replaced. A segment whose key may be corrupt is left alone:
which events it had is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from svc.identify.events.hour_counts import NOTHING, HourCounts
from svc.identify.events.segments import Digests, Run, Segment, Slots, cut, joined, of_one, position, slot
from svc.identify.index.digests import digests
from svc.identify.index.queries import (
    FIRST,
    FIRST_PART,
    LAST,
    PARTS,
    SLOTS,
    SMALL,
    Scope,
    delete_run,
    holder,
    read_run,
    scope_of,
    write_run,
)
from svc.identify.queries.events import event_if_readable
from svc.identify.queries.hours import HourKey, hour_key
from svc.identify.records import Event
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS, HOURS, LATE_EVENTS
from svc.kernel.store import operations
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import QUIET, Steps, counted
from svc.kernel.values.ids import HOUR_MS, first_id, made_at_ms

EVENTS_A_SMALL = 64
MAX_IN_SMALL = 256
"""A small segment that late events make larger is cut."""
SMALL_IN_LARGE = 64
EVENTS_A_LARGE = EVENTS_A_SMALL * SMALL_IN_LARGE
MAX_IN_LARGE = 2 * EVENTS_A_LARGE
SCOPES_A_POLL = 16
"""Organizations and environments that are read in one poll."""
_BEYOND = (2**32 - 1,)

Position = tuple[int, bytes]
Positions = list[Position]
Indexed = tuple[Position, Digests]


class Polled(NamedTuple):
    """The scopes with work to do, among some of those that have a tail."""

    found: Scope | None
    resume: Scope | None
    """The last scope that was read; `None` = there are no more behind it."""


def poll(snapshot: Snapshot, after: Scope | None, before_ms: int, of: int | None = None) -> Polled:
    """Return the first scope after `after`, of organization `of` if given, for which `step` would do something."""
    end = _BEYOND if of is None else (of + 1,)
    for _ in range(SCOPES_A_POLL):
        start = (of or 0,) if after is None else (after.number, after.environment + 1)
        first = next(snapshot.scan_past_corruption(EVENT_TAIL, start, end), None)
        if first is None:
            return Polled(None, None)
        after = Scope(*first[0][:2])
        try:
            is_due = _is_due(snapshot, after, before_ms)
        except CorruptionError:
            is_due = True  # the step reports it, for this scope alone
        if is_due:
            return Polled(after, after)
    return Polled(None, after)


def _is_due(snapshot: Snapshot, scope: Scope, before_ms: int) -> bool:
    newest = _newest(snapshot, scope, LAST)
    return bool(_new(snapshot, scope, newest, before_ms) or _late(snapshot, scope, newest) or _small(snapshot, scope))


def step(transaction: Transaction, scope: Scope, before_ms: int) -> bool:
    """Build one segment of events that arrived before `before_ms`, or merge small segments into a large one, or put
    late events into one. Return whether there was anything to do.
    """
    newest = _newest(transaction, scope, LAST)
    new = _new(transaction, scope, newest, before_ms)
    if new:
        _take_in(transaction, scope, new, Run(b"", {}), new[-1], SMALL)
        return True
    late = _late(transaction, scope, newest)
    if late:
        _put_in(transaction, scope, late)
        return True
    small = _small(transaction, scope)
    if small:
        runs = [read_run(transaction, scope, SMALL, upper) for upper in small]
        for upper in small:
            delete_run(transaction, scope, SMALL, upper)
        write_cut(transaction, scope, joined(runs), small[-1], SLOTS)
    return bool(small)


def mend_tail(transaction: Transaction, scope: Scope) -> int:
    """Write the rows of the tail that cannot be read again, by their events, and return how many. One whose event
    cannot be read either has no values then: lists go on naming it, until it is taken out (decisions 17.5).
    """
    rows = transaction.scan_past_corruption(EVENT_TAIL, scope, (scope.number, scope.environment + 1))
    corrupt = list(islice((key for key, row in rows if isinstance(row, CorruptionError)), EVENTS_A_SMALL))
    for key in corrupt:
        event = event_if_readable(transaction, scope.number, key[-1])
        is_here = event is not None and (scope_of(scope.number, event), event.occurred_at_ms) == (scope, key[-2])
        transaction.put(EVENT_TAIL, key, digests(event) if event is not None and is_here else Digests(()))
    return len(corrupt)


def _new(snapshot: Snapshot, scope: Scope, newest: Position, before_ms: int) -> Positions:
    """Return the oldest events of the tail that are newer than all segments; nothing if they are too few."""
    keys = snapshot.scan_keys(EVENT_TAIL, (*scope, *newest), (*scope, max(before_ms, newest[0])))
    return _first((key for key in keys if key[-2:] != newest), EVENTS_A_SMALL)


def _newest(snapshot: Snapshot, scope: Scope, below: Position) -> Position:
    """Return the position up to which the segments whose keys are `below` have events; `FIRST` if there is none."""
    found = [FIRST]
    for part in (SMALL, SLOTS):
        keys = snapshot.scan_keys_reverse(EVENT_SEGMENTS, (*scope, part), (*scope, part, *below))
        found += [key[-2:] for key in islice(keys, 1)]
    return max(found)


def _late(snapshot: Snapshot, scope: Scope, newest: Position) -> Positions:
    """Return the oldest events of the tail that belong in existing segments; nothing if they are too few."""
    return _first(snapshot.scan_keys(EVENT_TAIL, scope, (*scope, *newest)), EVENTS_A_SMALL)


def _small(snapshot: Snapshot, scope: Scope) -> Positions:
    """Return the small segments to join into a large one; nothing if they are too few."""
    keys = snapshot.scan_keys(EVENT_SEGMENTS, (*scope, SMALL), (*scope, SMALL + 1))
    return _first(keys, SMALL_IN_LARGE)


def _first(keys: Iterator[tuple[Any, ...]], count: int) -> Positions:
    """Return the positions in the first `count` keys; nothing if there are fewer."""
    found = [key[-2:] for key in islice(keys, count)]
    return found if len(found) == count else []


def _put_in(transaction: Transaction, scope: Scope, late: Positions) -> None:
    """Put late events into the segment to which the first of them belongs."""
    found = holder(transaction, scope, late[0])
    assert found is not None, "they are older than the newest segment"
    part, upper = found
    run = read_run(transaction, scope, part, upper)
    delete_run(transaction, scope, part, upper)
    _take_in(transaction, scope, [here for here in late if here <= upper], run, upper, part)


def _take_in(transaction: Transaction, scope: Scope, events: Positions, run: Run, upper: Position, part: int) -> None:
    """Write a segment with its own events and these of the tail; `upper` is the position in its key."""
    runs = [run]
    rows = [transaction.get(EVENT_TAIL, *scope, *here) for here in events]  # before any is asked: one round trip
    for here, row in zip(events, rows, strict=True):
        assert row is not None
        runs.append(of_one(here, row))
        transaction.delete(EVENT_TAIL, *scope, *here)
    write_cut(transaction, scope, joined(runs), upper, part)


def write_cut(transaction: Transaction, scope: Scope, run: Run, upper: Position, part: int) -> None:
    """Write a segment, or several where it has grown too large; `upper` is the position in the key of the newest."""
    large = part == SLOTS
    most = EVENTS_A_LARGE if large and len(run) > MAX_IN_LARGE else MAX_IN_LARGE if large else MAX_IN_SMALL
    *before, last = cut(run, most) or [run]
    for each in before:
        slots = Slots(each.slots)
        write_run(transaction, scope, each, position(slots[len(slots) - 1]), large=large)
    if last:
        write_run(transaction, scope, last, upper, large=large)


INDEX = (EVENT_TAIL, EVENT_SEGMENTS, LATE_EVENTS)
_ALWAYS_MS = 2**64 - 1


class Rebuilt(msgspec.Struct, frozen=True):
    """The numbers of rows after a rebuild."""

    events: int
    index_rows: int
    hours: int


def rebuild(transaction: Transaction, now_ms: int, steps: Steps = QUIET) -> Rebuilt:
    """Call `rebuild_indexes` in a transaction that is not recorded (`Store.change_log`); end the operation log."""
    operations.drop(transaction, now_ms, "the indexes of the store were rebuilt")
    events = rebuild_indexes(transaction, steps)
    return Rebuilt(events, sum(transaction.count(table) for table in INDEX), transaction.count(HOURS))


def rebuild_indexes(transaction: Transaction, steps: Steps = QUIET) -> int:
    """Delete the index and all counters without reading them, and rebuild them from the events. Return the number of
    events; how many were read is reported to `steps`. Raises `CorruptionError` if an event cannot be read.
    """
    for table in (*INDEX, HOURS):
        transaction.clear(table)
    steps.stage("rebuilding the indexes", transaction.count(EVENTS))
    rebuilt = 0
    rows = counted(transaction.scan(EVENTS), steps)
    for number, of_organization in groupby(rows, key=lambda row: row[0][0]):
        hours: dict[HourKey, HourCounts] = {}
        indexes: dict[Scope, _Index] = {}
        for (_, request_id), event in of_organization:
            hour = hour_key(number, event)
            hours[hour] = hours.get(hour, NOTHING).plus(event)
            scope = scope_of(number, event)
            if scope not in indexes:
                indexes[scope] = _Index(transaction, scope)
            indexes[scope].add((event.occurred_at_ms, request_id), digests(event))
            if event.feed_at_ms is not None:
                transaction.put(LATE_EVENTS, (*scope, event.feed_at_ms, request_id), b"")
            rebuilt += 1
        for index in indexes.values():
            index.end()
        for hour, counts in hours.items():
            transaction.put(HOURS, hour, counts)
    return rebuilt


class _Index:
    """The index of one environment while its events come in the order of their ids, which is almost that of arrival.
    Events in order go into large segments at once, others into the tail.
    """

    def __init__(self, transaction: Transaction, scope: Scope) -> None:
        self._transaction, self._scope = transaction, scope
        self._newest = FIRST
        self._waiting: list[Indexed] = []

    def add(self, here: Position, values: Digests) -> None:
        if here <= self._newest:
            self._transaction.put(EVENT_TAIL, (*self._scope, *here), values)
            return
        self._waiting.append((here, values))
        if len(self._waiting) == 2 * EVENTS_A_LARGE:
            self._waiting.sort(key=itemgetter(0))
            self._write()

    def _write(self) -> None:
        full, self._waiting = self._waiting[:EVENTS_A_LARGE], self._waiting[EVENTS_A_LARGE:]
        self._newest = full[-1][0]
        run = joined([of_one(*each) for each in full])
        write_run(self._transaction, self._scope, run, self._newest, large=True)

    def end(self) -> None:
        self._waiting.sort(key=itemgetter(0))
        while len(self._waiting) >= EVENTS_A_LARGE:
            self._write()
        for here, values in self._waiting:
            self._transaction.put(EVENT_TAIL, (*self._scope, *here), values)
        while step(self._transaction, self._scope, _ALWAYS_MS):
            pass


ROWS_A_SLICE = 64
EVENTS_A_SLICE = 128
ID_AHEAD_MS = HOUR_MS
"""By how much an id may be ahead of its event's arrival (decisions 17.1), or behind it."""


class BrokenSegment(NamedTuple):
    """A segment with a row that cannot be read."""

    scope: Scope
    part: int
    """`SMALL` or `SLOTS`: the part of its key."""
    upper: Position
    """The position in its key: none of its events is newer."""


class Remains(NamedTuple):
    """The rows of a broken segment, and the position after which it begins."""

    rows: dict[int, Segment | str]
    """Part -> row, or what is wrong with a corrupt one."""
    lower: Position
    """The newest position that is in an older segment."""


def broken_segments(snapshot: Snapshot, start: bytes) -> tuple[list[BrokenSegment], bytes | None]:
    """Return the segments with corrupt rows in a slice from a packed key on, and the next start; `None` = the end."""
    found: dict[BrokenSegment, None] = {}
    last: bytes | None = None
    for last, value in islice(snapshot.unchecked(EVENT_SEGMENTS, start), ROWS_A_SLICE):
        try:
            EVENT_SEGMENTS.verify_checksum(last, value)
        except CorruptionError:
            number, environment, part, *upper = EVENT_SEGMENTS.key.unpack(last)
            found[BrokenSegment(Scope(number, environment), min(part, SLOTS), (upper[0], upper[1]))] = None
    return list(found), None if last is None else last + b"\0"


def remains_of(snapshot: Snapshot, broken: BrokenSegment) -> Remains | None:
    """Return what there is of a segment; `None` = it is sound. Raises `CorruptionError` if its key is in doubt."""
    scope, part, upper = broken
    rows: dict[int, Segment | str] = {}
    for each in _parts(part):
        try:
            row = snapshot.get(EVENT_SEGMENTS, *scope, each, *upper)
        except CorruptionError as error:
            rows[each] = str(error)
        else:
            if row is not None:
                rows[each] = row
    if not any(isinstance(row, str) for row in rows.values()):
        return None
    lower = _newest(snapshot, scope, upper)
    own = rows.get(part)
    if isinstance(own, Segment):
        slots = Slots(own.slots)
        is_sound = bool(len(slots)) and lower < position(slots[len(slots) - 1]) <= upper
    else:
        event = event_if_readable(snapshot, scope.number, upper[1])
        is_sound = own is not None and event is not None and _place(event, scope) == upper[0]
    if not is_sound:
        raise _unknown()
    return Remains(rows, lower)


def _unknown() -> CorruptionError:
    return CorruptionError(
        f"a row of {EVENT_SEGMENTS.name} fits no segment: `svc store rebuild-indexes` makes the whole index again"
    )


def events_of(
    snapshot: Snapshot, broken: BrokenSegment, remains: Remains, after: bytes | None
) -> tuple[list[Indexed], bytes | None]:
    """Return a slice of the events that the segment had, as they are to be indexed, and where the next one begins:
    `after`, which is `None` for the first one. Its slots say which they were; where those are lost, the events that
    arrived in its time do.
    """
    own = remains.rows[broken.part]
    if isinstance(own, Segment):
        begin = 0 if after is None else int.from_bytes(after)
        named = [position(raw) for _, raw in islice(Slots(own.slots).living(), begin, begin + EVENTS_A_SLICE)]
        done = begin + len(named)
        found: list[Indexed] = [(here, _digests(snapshot, broken.scope, here)) for here in named]
        return found, done.to_bytes(4) if len(named) == EVENTS_A_SLICE else None
    return _events_between(snapshot, broken, remains.lower, after)


def _events_between(
    snapshot: Snapshot, broken: BrokenSegment, lower: Position, after: bytes | None
) -> tuple[list[Indexed], bytes | None]:
    """Read a slice of events by id, whose time is that of arrival to within an hour. An unreadable event counts as one
    of this environment that arrived when its id was made; another environment may list it, too.
    """
    scope, upper = broken.scope, broken.upper
    start = first_id(lower[0] - ID_AHEAD_MS) if after is None else after
    end = first_id(upper[0] + ID_AHEAD_MS + 1)
    rows = snapshot.scan_past_corruption(EVENTS, (scope.number, start), (scope.number, end))
    found: list[Indexed] = []
    count, request_id = 0, b""
    for (_, request_id), event in islice(rows, EVENTS_A_SLICE):
        count += 1
        readable = None if isinstance(event, CorruptionError) else event
        at_ms = made_at_ms(request_id) if readable is None else _place(readable, scope)
        if at_ms is None:  # of another environment
            continue
        here = (at_ms, request_id)
        if lower < here <= upper and not snapshot.has(EVENT_TAIL, *scope, *here):
            found.append((here, Digests(()) if readable is None else digests(readable)))
    return found, (int.from_bytes(request_id) + 1).to_bytes(16) if count == EVENTS_A_SLICE else None


def _place(event: Event, scope: Scope) -> int | None:
    return event.occurred_at_ms if scope_of(scope.number, event) == scope else None


def _digests(snapshot: Snapshot, scope: Scope, here: Position) -> Digests:
    """Return the digests of the event at this position; none if it cannot be read, so that lists still show it."""
    event = event_if_readable(snapshot, scope.number, here[1])
    return Digests(()) if event is None or _place(event, scope) != here[0] else digests(event)


def replace(transaction: Transaction, broken: BrokenSegment, remains: Remains, found: Sequence[Run]) -> int | None:
    """Write a segment of these events in the place of a broken one, and return how many it has; do nothing, and return
    `None`, if it is not as it was when they were read. Raises `CorruptionError`, and writes nothing, where the event of
    its key is not among them: then others may be missing, too.
    """
    try:
        is_as_read = remains_of(transaction, broken) == remains
    except CorruptionError:
        is_as_read = False
    if not is_as_read:
        return None
    run = joined(found)
    if isinstance(remains.rows[broken.part], str) and Slots(run.slots).find(slot(broken.upper)) is None:
        raise _unknown()
    delete_run(transaction, broken.scope, broken.part, broken.upper)
    if run:
        write_cut(transaction, broken.scope, run, broken.upper, broken.part)
    return len(run)


def run_of(found: Sequence[Indexed]) -> Run:
    """Return a slice of events as a run."""
    return joined([of_one(*each) for each in found])


def _parts(part: int) -> Iterator[int]:
    yield part
    if part == SLOTS:
        yield from range(FIRST_PART, FIRST_PART + PARTS)
