"""Repair of the index of events: a segment of which a row is corrupt is made again from its events (ADR 186).

What may live here: which segments have corrupt rows, which events are in one, and the transaction that replaces it.
Reading comes first, a slice at a time; where anything of the segment has changed since, nothing is replaced. A segment
whose key may be corrupt is left alone: which events it had is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from svc.identify.events.segments import Digests, Run, Segment, Slots, joined, of_one, position, slot
from svc.identify.index.digests import digests
from svc.identify.index.queries import FIRST, FIRST_PART, PARTS, SLOTS, SMALL, Scope, delete_run, scope_of
from svc.identify.indexing.jobs import write_cut
from svc.identify.queries.events import event_if_readable
from svc.identify.records import Event
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.ids import HOUR_MS, first_id, made_at_ms

ROWS_A_SLICE = 64
EVENTS_A_SLICE = 128
ID_AHEAD_MS = HOUR_MS
"""By how much an id may be ahead of its event's arrival (decisions 17.1), or behind it."""

Position = tuple[int, bytes]
Indexed = tuple[Position, Digests]


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
    """Return the segments to which corrupt rows belong, in a slice of the index from a packed key on, and where the
    next slice begins; `None` = that was all.
    """
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
    """Return what there is of a segment; `None` if no row of it is corrupt any more. Raises `CorruptionError` where its
    key may be corrupt.
    """
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
    lower = _newest_below(snapshot, scope, upper)
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


def _newest_below(snapshot: Snapshot, scope: Scope, upper: Position) -> Position:
    """Return the position up to which segments older than the one with this key have events; `FIRST` if none is."""
    found = [FIRST]
    for part in (SMALL, SLOTS):
        keys = snapshot.scan_keys_reverse(EVENT_SEGMENTS, (*scope, part), (*scope, part, *upper))
        found += [key[-2:] for key in islice(keys, 1)]
    return max(found)


def _parts(part: int) -> Iterator[int]:
    yield part
    if part == SLOTS:
        yield from range(FIRST_PART, FIRST_PART + PARTS)
