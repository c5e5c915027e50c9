"""Events as they are stored, and the queries that find them again.

A page reads the index (`index/queries.py`) and the events on it, however many events there are. What it looks at is
bounded, and a page that ends there says where the next one goes on (ADR 37, 63).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

import msgspec

from svc.identify.events.event_row import EventBody, UnreadableEventBody, event_row, unreadable_event_row
from svc.identify.events.listing import EVERYTHING, Filters, Listing, Position, Resume
from svc.identify.index import queries as event_index
from svc.identify.index.queries import Scope, Search, is_indexed
from svc.identify.queries.hours import count, hours
from svc.identify.records import Event
from svc.identify.tables.events import DEFERRED_REPORTS, DOCUMENTS, EVENTS, FEED_CLOSED
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.environments import ENVIRONMENTS, Environment
from svc.kernel.values.ids import HOUR_MS, made_at_ms

MAX_KEYS = 20_000
"""Keys that a page looks at, where a segment counts as several."""


class EventMatch(NamedTuple):
    """An event with its id."""

    request_id: UUID
    event: Event


class UnreadableEvent(NamedTuple):
    """An event that the index names and that cannot be read (decisions 17.5)."""

    request_id: UUID
    because: CorruptionError


def listed_row(found: EventMatch | UnreadableEvent) -> EventBody | UnreadableEventBody:
    """Return the row of a list or feed (interface 2.3, decisions 17.5)."""
    if isinstance(found, UnreadableEvent):
        return unreadable_event_row(found.request_id)
    return event_row(found.event, found.request_id)


def put_event(transaction: Transaction, number: int, request_id: UUID, event: Event) -> None:
    """Write a new event of the organization (by its number in the store), with its place in the feed; index it, and
    count it.
    """
    event = _placed(transaction, number, event)
    transaction.put(EVENTS, (number, request_id.bytes), event)
    event_index.add(transaction, number, request_id.bytes, event)
    count(transaction, number, event)


def _placed(transaction: Transaction, number: int, event: Event) -> Event:
    """Give a new event its place in the feed (`features/feed/queries.py`). The job depends on that place only, and not
    on the time up to which the feed is closed.
    """
    arrival_ms = event.occurred_at_ms

    def late(closed_to_ms: int | None) -> int | None:
        return None if closed_to_ms is None or arrival_ms > closed_to_ms else closed_to_ms + 1

    feed_at_ms = transaction.ask(FEED_CLOSED, event_index.scope_of(number, event), late)
    return event if feed_at_ms is None else msgspec.structs.replace(event, feed_at_ms=feed_at_ms)


def rewrite_event(transaction: Transaction, number: int, request_id: UUID, before: Event, after: Event) -> None:
    """Replace a stored event, and index it by its new values; the hour counters stay as they are."""
    event_index.unindex(transaction, number, request_id.bytes, before)
    transaction.put(EVENTS, (number, request_id.bytes), after)
    event_index.add(transaction, number, request_id.bytes, after)


class EventPosition(NamedTuple):
    """Where the index has an event."""

    scope: Scope
    position: Position

    @property
    def request_id(self) -> bytes:
        """The 16 bytes of the event's id."""
        return self.position.request_id


class Positions(NamedTuple):
    """The positions of the events of a page."""

    rows: list[EventPosition]
    resume: Resume | None
    """`None` = there is no page after it."""


class EventPage(NamedTuple):
    """A page of events."""

    events: list[EventMatch | UnreadableEvent]
    resume: Resume | None
    """`None` = there is no page after it."""


def event_page(snapshot: Snapshot, number: int, environment: Environment, listing: Listing) -> EventPage:
    """Return the events that the listing asks for, newest first; those of one millisecond by request id, the largest
    first. Read only the events that are returned, and those of another value with the same digest.
    """
    found = positions(snapshot, number, environment, listing)
    return EventPage(read_all(snapshot, found.rows, listing.filters), found.resume)


def positions(
    snapshot: Snapshot, number: int, environment: Environment, listing: Listing, most_keys: int = MAX_KEYS
) -> Positions:
    """Return the positions of the events of a page, in its order; pass them to `read`, a few at a time if need be. Read
    no event.

    Look at no more than about `most_keys` index keys: a page that ends there may be short, or empty, and has a
    `resume`. Raises `CorruptionError` if the index has nothing for events that are counted.
    """
    scope = Scope(number, ENVIRONMENTS.index(environment))
    beyond = listing.after or Position(listing.to_ms, bytes(16))
    asked = event_index.wanted(listing.filters)
    search = Search(snapshot, scope, asked, (max(listing.from_ms, 0), bytes(16)), beyond, most_keys)
    rows: list[EventPosition] = []
    passed = 0
    for position in search:
        if passed < listing.offset:
            passed += 1
        elif len(rows) == listing.limit:
            return Positions(rows, Resume(rows[-1].position))
        else:
            rows.append(EventPosition(scope, position))
    if search.ended_at is None:
        if not passed and not rows and listing.after is None and listing.filters == EVERYTHING:
            _refuse_counted(snapshot, number, environment, listing)
        return Positions(rows, None)
    return Positions(rows, Resume(search.ended_at, listing.offset - passed))


def _refuse_counted(snapshot: Snapshot, number: int, environment: Environment, listing: Listing) -> None:
    """Raise `CorruptionError` if a window without events has a whole hour in which the counters have some."""
    for hour_ms, _ in hours(snapshot, number, environment, listing.from_ms, listing.to_ms):
        if listing.from_ms <= hour_ms <= listing.to_ms - HOUR_MS:
            raise CorruptionError(f"the index of organization {number} has no event of an hour that counts some")


def read(snapshot: Snapshot, wanted: Sequence[EventPosition], filters: Filters) -> list[EventMatch]:
    """Return the same as `read_all`, but only the events that can be read."""
    return [found for found in read_all(snapshot, wanted, filters) if isinstance(found, EventMatch)]


def read_all(
    snapshot: Snapshot, wanted: Sequence[EventPosition], filters: Filters
) -> list[EventMatch | UnreadableEvent]:
    """Return the events at these positions, in their order. Leave out events that were deleted meanwhile, and those
    whose values do not match `filters` although a digest does. An event whose row is corrupt is an `UnreadableEvent`,
    whatever the filters; so is one that the index names and that does not exist, or belongs elsewhere.
    """
    found = [(place, _read_one(snapshot, place)) for place in wanted]
    rows: list[EventMatch | UnreadableEvent] = []
    for place, event in found:
        request_id = UUID(bytes=place.request_id)
        if isinstance(event, CorruptionError):
            rows.append(UnreadableEvent(request_id, event))
        elif event is None:
            if is_indexed(snapshot, *place):
                rows.append(UnreadableEvent(request_id, _misplaced(place)))
        elif not _is_at(place, event):
            rows.append(UnreadableEvent(request_id, _misplaced(place)))
        elif filters.matches(event):
            rows.append(EventMatch(request_id, event))
    return rows


def _read_one(snapshot: Snapshot, place: EventPosition) -> Event | CorruptionError | None:
    try:
        return snapshot.get(EVENTS, place.scope.number, place.request_id)
    except CorruptionError as error:
        return error


def read_each(
    snapshot: Snapshot, wanted: Sequence[EventPosition], filters: Filters = EVERYTHING
) -> Iterator[EventMatch | None]:
    """Yield the event at each of these positions; `None` for one that is gone, cannot be read, or does not fit the
    filters.
    """
    found = {each.request_id.bytes: each for each in read(snapshot, wanted, filters)}
    return (found.get(place.request_id) for place in wanted)


def read_naming(snapshot: Snapshot, wanted: Sequence[EventPosition], text: str) -> list[EventMatch]:
    """Return the same as `read`, of the events that have this text in any of their fields, or as a part of one. The
    others are not decoded, which is most of the time that reading an event takes, nor verified.
    """
    if not text:
        return read(snapshot, wanted, EVERYTHING)
    table, raw_text = EVENTS, text.encode()
    keys = [table.key.pack(each.scope.number, each.request_id) for each in wanted]
    rows = zip(wanted, snapshot.reader.get_many(table.name, keys), strict=True)
    return read(snapshot, [each for each, raw in rows if raw is None or raw_text in raw], EVERYTHING)


def event_if_readable(snapshot: Snapshot, number: int, request_id: bytes) -> Event | None:
    """Return an event for what counts or groups events; `None` if there is none, or its row is corrupt."""
    with suppress(CorruptionError):
        return snapshot.get(EVENTS, number, request_id)
    return None


def event_by_request(
    snapshot: Snapshot, number: int, environment: Environment, request_id: UUID, now_ms: int, retention_ms: int
) -> Event | None:
    """Return the same as `readable_event`, but only if the event is of this environment; else `None`."""
    event = readable_event(snapshot, number, request_id, now_ms, retention_ms)
    return event if event is not None and event.environment == environment else None


def readable_event(snapshot: Snapshot, number: int, request_id: UUID, now_ms: int, retention_ms: int) -> Event | None:
    """Return an event of the organization, in any environment; `None` if there is none, or if it is older than
    `retention_ms` (interface 8, decisions 16.1). Raises `CorruptionError` if it is missing although a row that is
    stored with it exists: a damaged index hides it (decisions 17.5).
    """
    event = snapshot.get(EVENTS, number, request_id.bytes)
    if event is None:
        refuse_hidden(snapshot, number, request_id, now_ms, retention_ms)
    return event if event is not None and event.occurred_at_ms >= now_ms - retention_ms else None


def refuse_hidden(snapshot: Snapshot, number: int, request_id: UUID, now_ms: int, retention_ms: int) -> None:
    """Check that an event that was not found does not exist: raise `CorruptionError` if a row that is stored with it
    exists, or the index has it. Events older than `retention_ms` are not checked.
    """
    at_ms, raw_id = made_at_ms(request_id.bytes), request_id.bytes
    if at_ms < now_ms - retention_ms:
        return
    for table in (DOCUMENTS, DEFERRED_REPORTS):
        if snapshot.has(table, number, raw_id):
            raise CorruptionError(f"the event {request_id} is missing, but its row of {table.name} exists")
    for environment_index in range(len(ENVIRONMENTS)):
        if is_indexed(snapshot, Scope(number, environment_index), (at_ms, raw_id)):
            raise CorruptionError(f"the event {request_id} is missing, but the index has it")


def _is_at(event_position: EventPosition, event: Event) -> bool:
    scope, position = event_position
    at_ms = position.arrival_ms
    return event_index.scope_of(scope.number, event) == scope and at_ms in (event.occurred_at_ms, event.feed_at_ms)


def _misplaced(event_position: EventPosition) -> CorruptionError:
    return CorruptionError(f"the index has request {UUID(bytes=event_position.request_id)} where it does not belong")
