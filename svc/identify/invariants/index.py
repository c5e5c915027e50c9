"""What must be true of the index of events: each is in the tail or in one segment, under its values and no others.

Memory is bounded by one segment, whatever the number of events; of a corrupt index all events are looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from svc.identify.events.segments import Slots, position, slot
from svc.identify.index.digests import digests
from svc.identify.index.queries import (
    FIRST,
    FIRST_PART,
    PARTS,
    SLOTS,
    SMALL,
    Scope,
    is_indexed,
    part_of,
    read_run,
    scope_of,
)
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS, LATE_EVENTS
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS


def index_faults(snapshot: Snapshot, number: int, events: int) -> Iterator[str]:
    """Yield a sentence for each fault in the index of an organization. `events`: the number of its events."""
    faults = 0
    found = 0
    for environment in range(len(ENVIRONMENTS)):
        scope = Scope(number, environment)
        for fault in _scope_faults(snapshot, scope):
            if fault is None:
                found += 1
            else:
                faults += 1
                yield fault
    if faults or found != events:  # else the numbers match, so that each event has a slot
        for (_, raw_id), event in snapshot.scan(EVENTS, number):
            if not is_indexed(snapshot, scope_of(number, event), (event.occurred_at_ms, raw_id)):
                yield f"request {UUID(bytes=raw_id)} is not found in the index"


def _scope_faults(snapshot: Snapshot, scope: Scope) -> Iterator[str | None]:
    """Check one environment. Yield `None` for each event that is where it belongs, and a sentence for each fault."""
    yield from _feed_faults(snapshot, scope)
    for key, row in snapshot.scan(EVENT_TAIL, *scope):
        yield _fault(snapshot, scope, key[-2:], row.values, EVENT_TAIL.name)
        if _is_in_segment(Snapshot(snapshot.reader), scope, key[-2:]):
            yield f"request {UUID(bytes=key[-1])} is in {EVENT_TAIL.name} and in {EVENT_SEGMENTS.name}"
    uppers: dict[tuple[int, bytes], int] = {}
    for part in (SMALL, SLOTS):
        for key in snapshot.scan_keys(EVENT_SEGMENTS, (*scope, part), (*scope, part + 1)):
            uppers[key[-2:]] = part
    before = slot(FIRST)
    for upper in sorted(uppers):
        yield from _segment_faults(snapshot, scope, uppers[upper], upper, before)
        before = slot(upper)
    stem = (*scope, FIRST_PART)
    for key in snapshot.scan_keys(EVENT_SEGMENTS, stem, (*scope, FIRST_PART + PARTS)):
        if uppers.get(key[-2:]) != SLOTS:
            yield f"part {key[2]} of {EVENT_SEGMENTS.name} up to {UUID(bytes=key[-1])} belongs to no segment"


def _feed_faults(snapshot: Snapshot, scope: Scope) -> Iterator[str]:
    """Yield a fault for each row of late events whose event is missing, or has another place in the feed."""
    for key in snapshot.scan_keys(LATE_EVENTS, scope, (scope.number, scope.environment + 1)):
        event = snapshot.get(EVENTS, scope.number, key[-1])
        if event is None or (scope_of(scope.number, event), event.feed_at_ms) != (scope, key[2]):
            yield f"{LATE_EVENTS.name} has request {UUID(bytes=key[-1])}, which has no such place in the feed"


def _is_in_segment(snapshot: Snapshot, scope: Scope, here: tuple[int, bytes]) -> bool:
    for part in (SMALL, SLOTS):
        upper = next(snapshot.scan_keys(EVENT_SEGMENTS, (*scope, part, *here), (*scope, part + 1)), None)
        segment = None if upper is None else snapshot.get(EVENT_SEGMENTS, *upper)
        if segment is not None and Slots(segment.slots).find(slot(here)) is not None:
            return True
    return False


def _segment_faults(
    snapshot: Snapshot, scope: Scope, part: int, upper: tuple[int, bytes], before: bytes
) -> Iterator[str | None]:
    run = read_run(snapshot, scope, part, upper)
    name = f"the segment up to request {UUID(bytes=upper[1])}"
    values: list[list[int]] = [[] for _ in range(len(run))]
    for digest, indexes in sorted(run.postings.items()):
        for index in indexes:
            if index < len(values):
                values[index].append(digest)
            else:
                yield f"{name} has a value of an event that it does not have"
    if part == SLOTS:
        for each in range(FIRST_PART, FIRST_PART + PARTS):
            own = snapshot.get(EVENT_SEGMENTS, *scope, each, *upper)
            if own is not None and any(part_of(digest) != each for digest in own.digests):
                yield f"{name} has values in part {each} that belong into another"
    last = before
    living = dict(Slots(run.slots).living())
    for index, found in living.items():
        if not last < found <= slot(upper):
            yield f"{name} has events out of order"
        last = found
        yield _fault(snapshot, scope, position(found), tuple(values[index]), EVENT_SEGMENTS.name)
    if any(of_one for index, of_one in enumerate(values) if index not in living):
        yield f"{name} has values of events that are gone"


def _fault(
    snapshot: Snapshot, scope: Scope, here: tuple[int, bytes], values: tuple[int, ...], table: str
) -> str | None:
    request_id = here[1]
    event = snapshot.get(EVENTS, scope.number, request_id)
    if event is None:
        request = UUID(bytes=request_id)
        return f"{table} names request {request}, which has no event; `svc store quarantine {request}` takes it out"
    if (scope_of(scope.number, event), event.occurred_at_ms) != (scope, here[0]):
        return f"{table} has request {UUID(bytes=request_id)} where it does not belong"
    if digests(event).values != values:
        return f"{table} has request {UUID(bytes=request_id)} under other values than it has"
    if event.feed_at_ms is not None and not snapshot.has(LATE_EVENTS, *scope, event.feed_at_ms, request_id):
        return f"request {UUID(bytes=request_id)} is not found in the feed"
    return None
