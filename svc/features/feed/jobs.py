"""The feed in the store: closing it, and reading it in the order of positions (ADR 130).

An event has the position of its arrival, unless events up to that position were already given out when it was stored:
then it has the next one. Code that gives out a position closes the feed up to there first. A reader of a state in which
it is closed sees all that will ever be there. `put_event` gives events their positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from svc.features.feed.feed import Ahead
from svc.identify.events.listing import Filters, Position
from svc.identify.index.digests import wanted
from svc.identify.index.forward_queries import SearchForward
from svc.identify.index.looks import Looks
from svc.identify.index.queries import LAST, Scope, Search, just_above
from svc.identify.queries import events
from svc.identify.queries.events import KEYS_OF_A_LOOK, MAX_KEYS, EventMatch, EventPosition, UnreadableEvent
from svc.identify.records import RetentionPass
from svc.identify.tables import FEED_CLOSED, LATE_EVENTS, RETENTION_PASSES
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import organization
from svc.kernel.values.ids import HOUR_MS, made_at_ms


def closed_to_ms(snapshot: Snapshot, scope: Scope) -> int:
    """Return the time (Unix ms, inclusive) up to which the feed is closed: no event can take a position there any more.
    0 if the feed was never read.
    """
    return snapshot.get(FEED_CLOSED, *scope) or 0


def ahead(snapshot: Snapshot, scope: Scope, now_ms: int) -> Ahead:
    """Return what the feed has after its closed part: the times of the first late event and of the newest events."""
    closed = closed_to_ms(snapshot, scope)
    start = Position(closed + 1, bytes(16))
    beyond = (scope.number, scope.environment + 1)
    late, _ = next(snapshot.scan_past_corruption(LATE_EVENTS, (*scope, *start), beyond), (None, None))
    return Ahead(
        closed_to_ms=closed,
        late_at_ms=None if late is None else late[2],
        due_at_ms=_newest(snapshot, scope, start, Position(max(Ahead.due_before_ms(now_ms), 0), bytes(16))),
        newest_at_ms=_newest(snapshot, scope, start),
    )


def _newest(snapshot: Snapshot, scope: Scope, start: Position, beyond: tuple[int, bytes] = LAST) -> int | None:
    """Return the arrival of the newest event from `start` to before `beyond`; `None` if there is none."""
    found = next(iter(Search(snapshot, scope, (), start, beyond)), None) if start < beyond else None
    return None if found is None else found.arrival_ms


DOUBTED_MS = 30 * HOUR_MS
"""Retention passes over an organization every six hours, and not by a clock that has jumped ahead by a day."""


class FeedPosition(NamedTuple):
    """A position in the feed, and whether its event arrived earlier than that (`is_late`)."""

    of: EventPosition
    is_late: bool


class FeedPositions(NamedTuple):
    """A range of the feed."""

    rows: list[FeedPosition]
    resume: Position | None
    """Where the next read starts: everything up to here, inclusive, was read. `None` if all that was asked for was
    read.
    """


def positions(
    snapshot: Snapshot,
    scope: Scope,
    filters: Filters,
    after: Position,
    to_ms: int,
    limit: int,
    most_keys: int = MAX_KEYS,
) -> FeedPositions:
    """Return up to `limit` feed positions after `after` and up to `to_ms` (Unix ms, inclusive), oldest first, and where
    to resume. Late events are not filtered, and on-time results include them once more at their arrival: `read` filters
    the former and drops the latter.

    Look at no more than about `most_keys` index keys; the result may end there.
    """
    start, beyond = just_above(after), Position(to_ms + 1, bytes(16))
    if start >= beyond:
        return FeedPositions([], None)
    search = SearchForward(snapshot, scope, wanted(filters), start, beyond, most_keys)
    on_time = list(islice(search, limit + 1))
    late = islice(snapshot.scan_past_corruption(LATE_EVENTS, (*scope, *start), (*scope, *beyond)), limit + 1)
    rows = [FeedPosition(EventPosition(scope, each), is_late=False) for each in on_time]
    rows += [FeedPosition(EventPosition(scope, Position(*key[-2:])), is_late=True) for key, _ in late]
    rows.sort(key=lambda row: row.of.position)
    end = search.ended_at
    if end is not None:
        rows = [row for row in rows if row.of.position <= end]
    if len(rows) > limit:
        del rows[limit:]
        end = rows[-1].of.position
    return FeedPositions(rows, end)


def scan_positions(
    snapshot: Snapshot, after: Position, count: int, *, scope: Scope, filters: Filters, to_ms: int
) -> Iterator[tuple[Position, FeedPosition | None]]:
    """Yield `count` feed positions as `positions` returns them, each with where it is; `None` = some keys were looked
    at without finding one. Fewer only at the end.
    """

    def look(after: Position, limit: int) -> FeedPositions:
        return positions(snapshot, scope, filters, after, to_ms, limit, KEYS_OF_A_LOOK)

    return Looks[Position, FeedPosition](lambda row: row.of.position).scan(look, after, count)


def oldest_shown_ms(snapshot: Snapshot, number: int, now_ms: int, retention_ms: int) -> int:
    """Return when the oldest event arrived that a feed of the organization has, in Unix ms. `retention_ms`: how long
    events are readable.

    A clock by which retention would delete nothing hides nothing either (decisions 17.3): what a cursor passed over
    would be there again, and never be read, once the clock is right.
    """
    made = snapshot.get(RETENTION_PASSES, number) or RetentionPass()
    believed_ms = made.began_at_ms or organization(snapshot, number).created_at_ms
    is_doubted = now_ms - believed_ms > DOUBTED_MS
    return (believed_ms if is_doubted else now_ms) - retention_ms


def read_each(
    snapshot: Snapshot, wanted: Sequence[FeedPosition], filters: Filters, oldest_ms: int
) -> Iterator[tuple[Position, EventMatch | UnreadableEvent] | None]:
    """Yield what `read` returns for each of these positions; `None` for one that it leaves out."""
    for place in wanted:
        yield next(iter(read(snapshot, [place], filters, oldest_ms)), None)


def read(
    snapshot: Snapshot, wanted: Sequence[FeedPosition], filters: Filters, oldest_ms: int
) -> list[tuple[Position, EventMatch | UnreadableEvent]]:
    """Return the events at these positions, each with its position, in feed order. Leave out events that were deleted
    meanwhile, do not match the filters, or arrived before `oldest_ms` (Unix ms). One that cannot be read is there as an
    `UnreadableEvent`, as in `events.read_all`, once: at its late position if it has one.
    """
    rows: list[tuple[Position, EventMatch | UnreadableEvent]] = []
    for is_late in (False, True):
        places = {row.of.request_id: row.of for row in wanted if row.is_late == is_late}
        for found in events.read_all(snapshot, list(places.values()), filters):
            place = places[found.request_id.bytes]
            if isinstance(found, UnreadableEvent):
                belongs = is_late or not _comes_late(snapshot, place)
                arrival_ms = made_at_ms(place.request_id) if is_late else place.position.arrival_ms
            else:
                belongs = is_late == (found.event.feed_at_ms is not None)
                arrival_ms = found.event.occurred_at_ms
            if belongs and arrival_ms >= oldest_ms:
                rows.append((place.position, found))
    return sorted(rows, key=itemgetter(0))


def _comes_late(snapshot: Snapshot, place: EventPosition) -> bool:
    """Return whether the event at this position has a later one in the feed. Late events are few."""
    start, beyond = (*place.scope, place.position.arrival_ms), (place.scope.number, place.scope.environment + 1)
    return any(key[-1] == place.request_id for key, _ in snapshot.scan_past_corruption(LATE_EVENTS, start, beyond))


def close(transaction: Transaction, scope: Scope, to_ms: int) -> int:
    """Close the feed up to and including `to_ms` (any Unix ms): events stored from then on get a position after it.
    Return the time up to which it is closed now, which may be later.

    This relies on conflict detection: a job that writes this row and a job that has read it, to store an event, are
    never both committed unless one has seen the other.
    """
    closed = closed_to_ms(transaction, scope)
    if to_ms > closed:
        transaction.put(FEED_CLOSED, scope, to_ms)
    return max(closed, to_ms)
