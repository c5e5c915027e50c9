"""Indexing: the bounded transactions that put events of the tail into segments, and small segments into large ones.

Nothing depends on when they run, or how far they get: an event is found in the tail as in a segment
(`queries.py`). Segments follow each other in the order of arrival. Large ones are older than all small ones,
as they are made of the oldest small ones. An event that comes late, into the time of a segment, is put into that one.

`rebuild` makes again what follows from the events, their index and the counters of the hours, for an upgrade and `svc
store rebuild-indexes`. In memory are the digests of some thousand events and the counters of one organization.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from svc.identify.events.hour_counts import NOTHING, HourCounts
from svc.identify.events.segments import Digests, Run, Slots, cut, joined, of_one, position
from svc.identify.index.digests import digests
from svc.identify.index.queries import FIRST, SLOTS, SMALL, Scope, delete_run, holder, read_run, scope_of, write_run
from svc.identify.queries.events import event_if_readable
from svc.identify.queries.hours import HourKey, hour_key
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS, HOURS, LATE_EVENTS
from svc.kernel.store import operations
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import QUIET, Steps, counted

EVENTS_A_SMALL = 64
MAX_IN_SMALL = 256
"""A small segment that late events make larger is cut."""
SMALL_IN_LARGE = 64
EVENTS_A_LARGE = EVENTS_A_SMALL * SMALL_IN_LARGE
MAX_IN_LARGE = 2 * EVENTS_A_LARGE
SCOPES_A_POLL = 16
"""Organizations and environments that are read in one poll."""
_BEYOND = (2**32 - 1,)


class Polled(NamedTuple):
    """The scopes with work to do, among some of those that have a tail."""

    found: Scope | None
    resume: Scope | None
    """The last scope that was read; `None` = there are no more behind it."""


def poll(snapshot: Snapshot, after: Scope | None, before_ms: int, of: int | None = None) -> Polled:
    """Return the first scope after `after` for which `step` would do something; with `of`, only of that
    organization.
    """
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
    newest = _newest(snapshot, scope)
    return bool(_new(snapshot, scope, newest, before_ms) or _late(snapshot, scope, newest) or _small(snapshot, scope))


def step(transaction: Transaction, scope: Scope, before_ms: int) -> bool:
    """Build one segment of events that arrived before `before_ms`, or merge small segments into a large one, or put
    late events into one. Return whether there was anything to do.
    """
    newest = _newest(transaction, scope)
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


Position = tuple[int, bytes]
Positions = list[Position]


def _new(snapshot: Snapshot, scope: Scope, newest: Position, before_ms: int) -> Positions:
    """Return the oldest events of the tail that are newer than all segments; nothing if they are too few."""
    keys = snapshot.scan_keys(EVENT_TAIL, (*scope, *newest), (*scope, max(before_ms, newest[0])))
    return _first((key for key in keys if key[-2:] != newest), EVENTS_A_SMALL)


def _newest(snapshot: Snapshot, scope: Scope) -> Position:
    """Return the position up to which there are segments."""
    found = [FIRST]
    for part in (SMALL, SLOTS):
        keys = snapshot.scan_keys_reverse(EVENT_SEGMENTS, (*scope, part), (*scope, part + 1))
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
    """Rebuild the indexes as `rebuild_indexes` does, in a transaction that is not recorded (`Store.change_log`), and
    end the operation log.
    """
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
        self._waiting: list[tuple[tuple[int, bytes], Digests]] = []

    def add(self, here: tuple[int, bytes], values: Digests) -> None:
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
