"""Events as they are stored, and the queries that find them again.

A page reads the index (`index/queries.py`) and the events on it, however many events there are. What it looks at is
bounded, and a page that ends there says where the next one goes on (ADR 37, 63).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

import msgspec

from svc.identify.events.event_row import EventBody, UnreadableEventBody, event_row, unreadable_event_row
from svc.identify.events.listing import EVERYTHING, Filters, Listing, Position, Resume
from svc.identify.index import queries as event_index
from svc.identify.index.digests import Wanted, digest_of, wanted
from svc.identify.index.looks import Looks, Rows
from svc.identify.index.queries import Scope, Search, is_indexed, scope_of
from svc.identify.index.tally_queries import read_part
from svc.identify.queries import hours
from svc.identify.queries.event_changes import note_changes
from svc.identify.records import DeferredReport, Document, Event
from svc.identify.tables import DEFERRED_REPORTS, DOCUMENTS, EVENTS, FEED_CLOSED, WEIGHTS_SNAPSHOTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import made_at_ms


def event(snapshot: Snapshot, number: int, request_id: UUID) -> Event | None:
    """Return an event of any environment, however old; `None` if there is none, or retention deleted it."""
    return snapshot.get(EVENTS, number, request_id.bytes)


def document(snapshot: Snapshot, number: int, request_id: UUID) -> Document | None:
    """Return the archived report of an event; `None` if none was archived, or it was deleted."""
    return snapshot.get(DOCUMENTS, number, request_id.bytes)


def deferred_report(snapshot: Snapshot, number: int, request_id: UUID) -> DeferredReport | None:
    """Return the deferred report that was accepted for an event; `None` if there is none."""
    return snapshot.get(DEFERRED_REPORTS, number, request_id.bytes)


def weights_snapshot(snapshot: Snapshot, digest: bytes) -> dict[str, int]:
    """Return the weights by signal with this digest, kept as long as a document names them."""
    kept = snapshot.get(WEIGHTS_SNAPSHOTS, digest)
    assert kept is not None, f"the weights {digest.hex()} are not kept"
    return kept.weights


MAX_KEYS = 20_000
"""Keys that a page looks at, where a segment counts as several."""
KEYS_OF_A_LOOK = 256
"""How many of these one step of a scan looks at, whether it finds something or not: about a millisecond. To begin a
search takes a tenth of one.
"""
MAX_LOOKS = MAX_KEYS // KEYS_OF_A_LOOK
"""Steps without a result that a page may take."""


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
    """Write a new event of the organization (its number) with its place in the feed; index and count it."""
    event = _placed(transaction, number, event)
    transaction.put(EVENTS, (number, request_id.bytes), event)
    event_index.add(transaction, number, request_id.bytes, event)
    hours.count(transaction, number, event)


def _placed(transaction: Transaction, number: int, event: Event) -> Event:
    """Return a new event with its place in the feed: the job depends on that, not on how far the feed is closed."""
    arrival_ms = event.occurred_at_ms

    def late(closed_to_ms: int | None) -> int | None:
        return None if closed_to_ms is None or arrival_ms > closed_to_ms else closed_to_ms + 1

    feed_at_ms = transaction.ask(FEED_CLOSED, event_index.scope_of(number, event), late)
    return event if feed_at_ms is None else msgspec.structs.replace(event, feed_at_ms=feed_at_ms)


def rewrite_event(
    transaction: Transaction, number: int, request_id: UUID, before: Event, after: Event, now_ms: int
) -> None:
    """Replace a stored event, index it again and note the change now (Unix ms); hour counters stay as they are."""
    event_index.unindex(transaction, number, [(request_id.bytes, before)])
    transaction.put(EVENTS, (number, request_id.bytes), after)
    event_index.add(transaction, number, request_id.bytes, after)
    note_changes(transaction, scope_of(number, after), "updated", now_ms, [(request_id.bytes, feed_time_ms(after))])


def feed_time_ms(event: Event) -> int:
    """Return the time of an event's place in the feed, in Unix milliseconds."""
    return event.occurred_at_ms if event.feed_at_ms is None else event.feed_at_ms


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
    `resume`.
    """
    scope = Scope(number, ENVIRONMENTS.index(environment))
    beyond = listing.after or Position(listing.to_ms, bytes(16))
    asked = wanted(listing.filters)
    search = Search(snapshot, scope, asked, (max(listing.from_ms, 0), bytes(16)), beyond, most_keys)
    passed = search.pass_over(listing.offset)
    rows = [EventPosition(scope, position) for position in islice(search, listing.limit + 1)]
    if len(rows) > listing.limit:
        return Positions(rows[:-1], Resume(rows[-2].position))
    if search.ended_at is None:
        return Positions(rows, None)
    return Positions(rows, Resume(search.ended_at, listing.offset - passed))


def newest(
    snapshot: Snapshot,
    scopes: Sequence[Scope],
    asked: Sequence[Wanted],
    oldest: tuple[int, bytes],
    beyond: tuple[int, bytes],
    limit: int = KEYS_OF_A_LOOK,
) -> Positions:
    """Return the positions of the newest events of several scopes together: of those below `beyond` and not below
    `oldest` that have all that is `asked`. Of each scope about `KEYS_OF_A_LOOK` keys are looked at.
    """
    searches = [Search(snapshot, scope, asked, oldest, beyond, KEYS_OF_A_LOOK) for scope in scopes]
    of_each = (
        [EventPosition(scope, here) for here in islice(search, limit)]
        for scope, search in zip(scopes, searches, strict=True)
    )
    found = list(islice(merge(*of_each, key=attrgetter("position"), reverse=True), limit))
    ends = [search.ended_at for search in searches if search.ended_at is not None]
    if len(found) == limit:
        ends.append(found[-1].position)
    if not ends:
        return Positions(found, None)
    return Positions([place for place in found if place.position >= max(ends)], Resume(max(ends)))


class EventScan:
    """The events that a listing asks for, of some environments, newest first, for all slices of one read."""

    def __init__(self, number: int, environments: Sequence[Environment], listing: Listing) -> None:
        self._number, self._environments, self._listing = number, environments, listing
        self._looks = Looks[Resume, EventPosition](lambda place: Resume(place.position))

    def positions(self, snapshot: Snapshot, resume: Resume, count: int) -> Rows[Resume, EventPosition]:
        """Yield `count` positions, each with where to go on; `None` = nothing found so far. Fewer only at the end."""
        number, listing = self._number, self._listing
        scopes = [Scope(number, ENVIRONMENTS.index(environment)) for environment in self._environments]
        asked, oldest = wanted(listing.filters), (max(listing.from_ms, 0), bytes(16))

        def look(resume: Resume, limit: int) -> Positions:
            if len(scopes) > 1:
                return newest(snapshot, scopes, asked, oldest, resume.after, limit)
            left = listing._replace(limit=limit, after=resume.after, offset=resume.offset)
            return positions(snapshot, number, self._environments[0], left, KEYS_OF_A_LOOK)

        return self._looks.scan(look, resume, count, lambda: snapshot.is_missing)

    def events(self, snapshot: Snapshot, resume: Resume, count: int) -> Rows[Resume, EventMatch | UnreadableEvent]:
        """Yield the same as `positions`, but the events, as `read_all` does; `None` for those that it leaves out."""
        for behind, place in self.positions(snapshot, resume, count):
            yield behind, None if place is None else _row(snapshot, place, self._listing.filters)


def scan_counts(
    snapshot: Snapshot,
    resume: Resume,
    count: int,
    *,
    number: int,
    environment: Environment,
    listing: Listing,
    most: int,
) -> Iterator[tuple[Resume, int]]:
    """Yield how many events a listing asks for, in up to `count` parts, newest first, each with where the next one
    begins; of the last part that is `NOTHING_BEHIND`. A part counts up to `most`, and reads no event: those of another
    value with the same digest are counted too.
    """
    scope, asked = Scope(number, ENVIRONMENTS.index(environment)), wanted(listing.filters)
    oldest = (max(listing.from_ms, 0), bytes(16))
    while resume != NOTHING_BEHIND and count > 0:
        search = Search(snapshot, scope, asked, oldest, resume.after, KEYS_OF_A_LOOK)
        passed, count = search.count(most), count - 1
        resume = NOTHING_BEHIND if search.ended_at is None or passed == most else Resume(search.ended_at)
        yield resume, passed


NOTHING_BEHIND = Resume(Position(0, bytes(16)))


def scan_action_counts(
    snapshot: Snapshot,
    resume: Resume,
    count: int,
    *,
    number: int,
    environment: Environment,
    actions: Sequence[str],
    from_ms: int,
) -> Iterator[tuple[Resume, dict[str, int]]]:
    """Yield how many events have each action, in parts as `scan_counts`; the index is read once for all."""
    scope = Scope(number, ENVIRONMENTS.index(environment))
    asked = {digest_of("action", action): action for action in actions}
    oldest = Position(max(from_ms, 0), bytes(16))
    while resume != NOTHING_BEHIND and count > 0:
        part = read_part(snapshot, scope, asked, oldest, resume.after, KEYS_OF_A_LOOK)
        resume, count = NOTHING_BEHIND if part.rest is None else Resume(part.rest), count - 1
        yield resume, {asked[digest]: tally.events for digest, tally in part.tallies().items()}


def read(snapshot: Snapshot, wanted: Sequence[EventPosition], filters: Filters) -> list[EventMatch]:
    """Return the same as `read_all`, but only the events that can be read."""
    return [found for found in read_all(snapshot, wanted, filters) if isinstance(found, EventMatch)]


def read_one(snapshot: Snapshot, place: EventPosition, filters: Filters) -> EventMatch | None:
    """Return the event at a position as `read` does; `None` where it would return none."""
    found = _row(snapshot, place, filters)
    return found if isinstance(found, EventMatch) else None


def read_all(
    snapshot: Snapshot, wanted: Sequence[EventPosition], filters: Filters
) -> list[EventMatch | UnreadableEvent]:
    """Return the events at these positions, in their order. Leave out events that were deleted meanwhile, and those
    whose values do not match `filters` although a digest does. An event whose row is corrupt is an `UnreadableEvent`,
    whatever the filters; so is one that the index names and that does not exist, or belongs elsewhere.
    """
    rows = (_row(snapshot, place, filters) for place in wanted)
    return [row for row in rows if row is not None]


def _row(snapshot: Snapshot, place: EventPosition, filters: Filters) -> EventMatch | UnreadableEvent | None:
    request_id = UUID(bytes=place.request_id)
    try:
        event = snapshot.get(EVENTS, place.scope.number, place.request_id)
    except CorruptionError as error:
        return UnreadableEvent(request_id, error)
    if event is None:
        is_lost = not snapshot.is_missing and is_indexed(snapshot, *place)
        return UnreadableEvent(request_id, _misplaced(place)) if is_lost else None
    if not _is_at(place, event):
        return UnreadableEvent(request_id, _misplaced(place))
    return EventMatch(request_id, event) if filters is EVERYTHING or filters.matches(event) else None


def read_each(
    snapshot: Snapshot, wanted: Sequence[EventPosition], filters: Filters = EVERYTHING
) -> Iterator[EventMatch | None]:
    """Yield the event at each position; `None` for one that is gone, unreadable, or does not fit the filters."""
    for place in wanted:
        yield read_one(snapshot, place, filters)


def naming(snapshot: Snapshot, wanted: Sequence[EventPosition], text: str) -> Sequence[EventPosition]:
    """Return the places of the events that have this text in any of their fields, or as a part of one, and of those
    that are missing. No event is decoded, which is most of the time that reading one takes, nor verified.
    """
    if not text:
        return wanted
    table, raw_text = EVENTS, text.encode()
    keys = [table.key.pack(each.scope.number, each.request_id) for each in wanted]
    rows = zip(wanted, snapshot.reader.get_many(table.name, keys), strict=True)
    return [each for each, raw in rows if raw is None or raw_text in raw]


def event_if_readable(snapshot: Snapshot, number: int, request_id: bytes) -> Event | None:
    """Return an event for what counts or groups events; `None` if there is none, or its row is corrupt."""
    with suppress(CorruptionError):
        return snapshot.get(EVENTS, number, request_id)
    return None


def events_matching(
    snapshot: Snapshot, number: int, filters: Filters, environments: Sequence[Environment] = ENVIRONMENTS
) -> Iterator[tuple[bytes, Event | None]]:
    """Yield (request id, 16 bytes, and event) of the organization's events that match, however old; `None` for one
    that cannot be read, which the index has for these filters.
    """
    for request_id in _indexed(snapshot, number, filters, environments):
        yield from _matching(snapshot, number, filters, (request_id,))


def request_ids_matching(snapshot: Snapshot, number: int, filters: Filters) -> list[bytes]:
    """Return the request ids of what `events_matching` yields. In a database it takes a round trip for many events."""
    found, at_once = [*_indexed(snapshot, number, filters, ENVIRONMENTS)], KEYS_OF_A_LOOK
    parts = (found[start : start + at_once] for start in range(0, len(found), at_once))
    return [
        request_id
        for part in parts
        for request_id, _ in snapshot.evaluate(lambda state, part=part: [*_matching(state, number, filters, part)])
    ]


def _indexed(snapshot: Snapshot, number: int, filters: Filters, environments: Sequence[Environment]) -> Iterator[bytes]:
    for environment in map(ENVIRONMENTS.index, environments):
        yield from (raw_id for _, raw_id in Search(snapshot, Scope(number, environment), wanted(filters)))


def _matching(
    snapshot: Snapshot, number: int, filters: Filters, request_ids: Sequence[bytes]
) -> Iterator[tuple[bytes, Event | None]]:
    for request_id in request_ids:
        event = event_if_readable(snapshot, number, request_id)
        if event is None or filters.matches(event):  # another may have its digests
            yield request_id, event


def event_by_request(
    snapshot: Snapshot, number: int, environment: Environment, request_id: UUID, now_ms: int, retention_ms: int
) -> Event | None:
    """Return the same as `readable_event`, but only if the event is of this environment; else `None`."""
    event = readable_event(snapshot, number, request_id, now_ms, retention_ms)
    return event if event is not None and event.environment == environment else None


def readable_event(snapshot: Snapshot, number: int, request_id: UUID, now_ms: int, retention_ms: int) -> Event | None:
    """Return an event of the organization, in any environment; `None` if there is none, or if it is older than
    `retention_ms` (interface 8, decisions 16.1). Raises as `refuse_hidden` does.
    """
    event = snapshot.get(EVENTS, number, request_id.bytes)
    if event is None:
        refuse_hidden(snapshot, number, request_id, now_ms, retention_ms)
    return event if event is not None and event.occurred_at_ms >= now_ms - retention_ms else None


def refuse_hidden(snapshot: Snapshot, number: int, request_id: UUID, now_ms: int, retention_ms: int) -> None:
    """Check that an event that was not found does not exist: raise `CorruptionError` if the index has it, as lists show
    it then (decisions 17.5). Events older than `retention_ms` are not checked.
    """
    at_ms, raw_id = made_at_ms(request_id.bytes), request_id.bytes
    if at_ms < now_ms - retention_ms or snapshot.is_missing:
        return
    for environment_index in range(len(ENVIRONMENTS)):
        if is_indexed(snapshot, Scope(number, environment_index), (at_ms, raw_id)):
            raise CorruptionError(f"the event {request_id} is missing, but the index has it")


def _is_at(event_position: EventPosition, event: Event) -> bool:
    scope, position = event_position
    at_ms = position.arrival_ms
    return event_index.scope_of(scope.number, event) == scope and at_ms in (event.occurred_at_ms, event.feed_at_ms)


def _misplaced(event_position: EventPosition) -> CorruptionError:
    return CorruptionError(f"the index has request {UUID(bytes=event_position.request_id)} where it does not belong")
