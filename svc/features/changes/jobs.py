"""Changes in the store: new events and notes of updates and erasures, read in one order (ADR 221).

New events have the places of the feed, and no row here. What is said of the feed (`features/feed/jobs.py`) holds for
both: who gives out a place closes the feed up to there first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from svc.features.contracts.cleanup import CleanupStep, CleanupTask, Sweep
from svc.features.feed import jobs as feeds
from svc.features.feed.feed import Ahead
from svc.features.feed.jobs import FeedPosition
from svc.features.labels.jobs import Labeled
from svc.features.labels.queries import find_outcome
from svc.identify.events.listing import (
    CHANGE_KINDS,
    EVERYTHING,
    Filters,
    Position,
    first_change_behind,
    place_of_change,
)
from svc.identify.index.looks import Looks
from svc.identify.index.queries import Scope, is_indexed
from svc.identify.queries.event_changes import changes_from, newest_change
from svc.identify.queries.events import (
    KEYS_OF_A_LOOK,
    MAX_KEYS,
    EventMatch,
    UnreadableEvent,
)
from svc.identify.tables import EVENT_CHANGES, EVENTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import STEP_ROWS
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.ids import made_at_ms

ChangeType = Literal["event.created", "event.updated", "event.erased"]
_TYPES: Final[tuple[ChangeType, ...]] = ("event.updated", "event.erased")
"""Of the kinds of notes, in their order."""
assert len(_TYPES) == len(CHANGE_KINDS)


class NotedChange(NamedTuple):
    """An update or an erasure, as it is noted."""

    place: Position
    type: ChangeType
    request_id: UUID
    made_at_ms: int


ChangePlace = FeedPosition | NotedChange
"""A place in the order of changes: that of a new event, or of a note."""


class Change(NamedTuple):
    """A change, with its event as it is now."""

    place: Position
    type: ChangeType
    at_ms: int
    """When it was made, in Unix milliseconds; of a new event its arrival."""
    request_id: UUID
    event: EventMatch | UnreadableEvent | None
    """`None` = it is erased, or older than events are readable."""
    labeled: Labeled | None = None
    """Where the event is gone by its age and only its label is kept: that label as it is now."""


class ChangePlaces(NamedTuple):
    """A range of places."""

    rows: list[ChangePlace]
    resume: Position | None
    """As of `FeedPositions`."""


def ahead(snapshot: Snapshot, scope: Scope, now_ms: int) -> Ahead:
    """Return what there is after the closed part, as for the feed: events and notes together."""
    found = feeds.ahead(snapshot, scope, now_ms)
    start_ms = found.closed_to_ms + 1
    due = newest_change(snapshot, scope, start_ms, max(Ahead.due_before_ms(now_ms), start_ms))
    newest = newest_change(snapshot, scope, start_ms)
    return found._replace(
        due_at_ms=_later(found.due_at_ms, None if due is None else due[2]),
        newest_at_ms=_later(found.newest_at_ms, None if newest is None else newest[2]),
    )


def _later(one_ms: int | None, other_ms: int | None) -> int | None:
    return max(filter(None, (one_ms, other_ms)), default=None)


def places(
    snapshot: Snapshot,
    scope: Scope,
    filters: Filters,
    after: Position,
    to_ms: int,
    limit: int,
    most_keys: int = MAX_KEYS,
) -> ChangePlaces:
    """Return up to `limit` places after `after` and up to `to_ms` (Unix ms, inclusive), oldest first, and where to
    resume; arguments as of `feed.jobs.positions`. Places of new events are read by `read` as those of the feed are.
    """
    created = feeds.positions(snapshot, scope, filters, after, to_ms, limit, most_keys)
    noted = changes_from(snapshot, scope, first_change_behind(after), to_ms)
    rows: list[ChangePlace] = [*created.rows]
    for (_, _, at_ms, sequence, kind, request_id), made_ms in islice(noted, limit + 1):
        rows.append(NotedChange(place_of_change(at_ms, sequence), _TYPES[kind], UUID(bytes=request_id), made_ms))
    rows.sort(key=place_of)
    end = created.resume
    if end is not None:
        rows = [row for row in rows if place_of(row) <= end]
    if len(rows) > limit:
        del rows[limit:]
        end = place_of(rows[-1])
    return ChangePlaces(rows, end)


def place_of(row: ChangePlace) -> Position:
    """Return where a row is in the order of changes."""
    return row.place if isinstance(row, NotedChange) else row.of.position


def scan_places(
    snapshot: Snapshot, after: Position, count: int, *, scope: Scope, filters: Filters, to_ms: int
) -> Iterator[tuple[Position, ChangePlace | None]]:
    """Yield `count` places as `places` returns them, as `feed.jobs.scan_positions` does."""

    def look(after: Position, limit: int) -> ChangePlaces:
        return places(snapshot, scope, filters, after, to_ms, limit, KEYS_OF_A_LOOK)

    return Looks(place_of).scan(look, after, count)


def read_each(
    snapshot: Snapshot, wanted: Sequence[ChangePlace], scope: Scope, oldest_ms: int
) -> Iterator[Change | None]:
    """Yield the change at each of these places; `None` for a new event that is gone, or that arrived before `oldest_ms`
    (Unix ms). An event that was updated several times is read once.
    """
    updated: dict[UUID, _Updated] = {}
    for each in wanted:
        if not isinstance(each, NotedChange):
            yield _created(snapshot, each, oldest_ms)
            continue
        found = _Updated()
        if each.type == "event.updated":
            if each.request_id not in updated:
                updated[each.request_id] = _updated(snapshot, each.request_id, scope, oldest_ms)
            found = updated[each.request_id]
        yield Change(each.place, each.type, each.made_at_ms, each.request_id, *found)


def _created(snapshot: Snapshot, position: FeedPosition, oldest_ms: int) -> Change | None:
    for place, found in feeds.read(snapshot, [position], EVERYTHING, oldest_ms):
        at_ms = found.event.occurred_at_ms if isinstance(found, EventMatch) else position.of.position.arrival_ms
        return Change(place, "event.created", at_ms, found.request_id, found)
    return None


class _Updated(NamedTuple):
    """An event that was updated, as it is now: see `Change`."""

    event: EventMatch | UnreadableEvent | None = None
    labeled: Labeled | None = None


def _updated(snapshot: Snapshot, request_id: UUID, scope: Scope, oldest_ms: int) -> _Updated:
    try:
        event = snapshot.get(EVENTS, scope.number, request_id.bytes)
        if event is None:
            return _without_event(snapshot, request_id, scope)
    except CorruptionError as error:
        return _Updated(UnreadableEvent(request_id, error))
    if event.occurred_at_ms < oldest_ms:
        return _Updated(labeled=Labeled(event.label, event.label_reason))
    return _Updated(EventMatch(request_id, event))


def _without_event(snapshot: Snapshot, request_id: UUID, scope: Scope) -> _Updated:
    """Return what is known of an updated event that is not there: erased, too old, or hidden by a corrupt row."""
    raw_id = request_id.bytes
    if is_indexed(snapshot, scope, (made_at_ms(raw_id), raw_id)):
        hidden = CorruptionError(f"the event {request_id} is missing, but the index has it")
        return _Updated(UnreadableEvent(request_id, hidden))
    found = find_outcome(snapshot, scope.number, raw_id)
    if found is None:
        return _Updated()
    return _Updated(labeled=Labeled(found.outcome.facts.label, found.outcome.facts.label_reason))


def _expired_notes(sweep: Sweep) -> CleanupTask:
    oldest_ms = max(sweep.now_ms - sweep.event_ms, 0)
    return CleanupTask(EVENT_CHANGES.name, partial(_delete_expired, oldest_ms), (sweep.number, 0))


def _delete_expired(oldest_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Delete some recorded changes of one environment that are as old as events may be. `start`: the organization and
    the environment.
    """
    number, environment = start
    keys = list(islice(transaction.scan_keys(EVENT_CHANGES, start, (*start, oldest_ms)), STEP_ROWS))
    for key in keys:
        transaction.delete(EVENT_CHANGES, *key)
    if len(keys) == STEP_ROWS:
        return CleanupStep(len(keys), start)
    is_last = environment + 1 == len(ENVIRONMENTS)
    return CleanupStep(len(keys), None if is_last else (number, environment + 1))


PASSES = (_expired_notes,)
