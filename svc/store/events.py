"""Events as they are found again: where each one is indexed, and the queries over those indexes.

There is no index of all events: the levels, merged, are one. A page of one filter reads the keys before it and the
events on it, however many events there are. Several filters are an intersection of streams, each ordered by arrival:
what it looks at is bounded, and a page that ends there says where the next one goes on (ADR 37).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from heapq import merge
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from svc.domain.listing import FACETS, LEVELS, Filters, Listing, Position, Resume, values_of
from svc.domain.model import ENVIRONMENTS, Environment, Level
from svc.domain.records import RETENTION_MS, Event
from svc.store.codec import CorruptionError
from svc.store.hours import count
from svc.store.snapshot import Snapshot, Transaction
from svc.store.tables import (
    EVENTS,
    EVENTS_BY_FACET,
    EVENTS_BY_LEVEL,
    EVENTS_BY_VISITOR,
    Table,
)

MOST_KEYS = 20_000
"""Keys that a page of several filters looks at."""
MISSES = 8
"""A jump costs about as much as so many steps."""
_PLACES: dict[Level | None, int] = {None: 0, **{level: place for place, level in enumerate(LEVELS, start=1)}}
"""Level -> its place in the keys. On disk: append, never move."""
_by_arrival = attrgetter("arrival", "request_id")


class EventMatch(NamedTuple):
    """An event with its id."""

    request_id: UUID
    event: Event


def put_event(transaction: Transaction, number: int, request_id: UUID, event: Event) -> None:
    """Write a new event of the organization (by its number in the store) and its index rows, and count it."""
    transaction.put(EVENTS, (number, request_id.bytes), event)
    for table, key in index_keys(number, request_id.bytes, event):
        transaction.put(table, key, b"")
    count(transaction, number, event)


def index_keys(number: int, request_id: bytes, event: Event) -> tuple[tuple[Table[bytes], tuple[Any, ...]], ...]:
    """(table, key) of every index row of an event, each once: to be deleted together with it."""
    return tuple((table, key) for table, stems in _STEMS for key in _keys(stems, number, request_id, event))


def value_digest(value: str) -> bytes:
    """By what a value of a facet stands in keys: 8 bytes. Two values may share one, so that events are looked at."""
    return blake2b(value.encode(), digest_size=8).digest()


Stems = Callable[[Event], Iterable[tuple[Any, ...]]]


def _level_stem(event: Event) -> Iterable[tuple[Any, ...]]:
    return ((_PLACES[event.verdict.suspect_level],),)


def _visitor_stem(event: Event) -> Iterable[tuple[Any, ...]]:
    return ((event.verdict.visitor_id.encode(), _PLACES[event.verdict.suspect_level]),)


def _facet_stems(event: Event) -> Iterable[tuple[Any, ...]]:
    rows = [(place, value_digest(value)) for place, facet in enumerate(FACETS) for value in values_of(event, facet)]
    return dict.fromkeys(rows)


_STEMS: tuple[tuple[Table[bytes], Stems], ...] = (
    (EVENTS_BY_LEVEL, _level_stem),
    (EVENTS_BY_VISITOR, _visitor_stem),
    (EVENTS_BY_FACET, _facet_stems),
)
"""What stands in the keys of an event between the environment and the arrival."""
INDEXES: tuple[Table[bytes], ...] = tuple(table for table, _ in _STEMS)


def _keys(stems: Stems, number: int, request_id: bytes, event: Event) -> list[tuple[Any, ...]]:
    environment, arrival = ENVIRONMENTS.index(event.environment), event.occurred_at_ms
    return [(number, environment, *stem, arrival, request_id) for stem in stems(event)]


class EventPosition(NamedTuple):
    """An index row of an event: where it stands in one of `INDEXES`."""

    table: Table[bytes]
    key: tuple[Any, ...]

    @property
    def request_id(self) -> bytes:
        """The 16 bytes of the event's id, the last part of every index key."""
        *_, request_id = self.key
        return request_id

    @property
    def position(self) -> Position:
        """Where it stands among all events."""
        return Position(*self.key[-2:])


class Places(NamedTuple):
    """The index rows of a page."""

    rows: list[EventPosition]
    resume: Resume | None
    """`None` = there is no page after it."""


class EventPage(NamedTuple):
    """A page of events."""

    events: list[EventMatch]
    resume: Resume | None
    """`None` = there is no page after it."""


def event_page(snapshot: Snapshot, number: int, environment: Environment, listing: Listing) -> EventPage:
    """The events that the listing asks for, newest first; of one millisecond, the larger request id first. Reads no
    event that it does not return, but for those of another value with the same digest.
    """
    found = places(snapshot, number, environment, listing)
    return EventPage(read(snapshot, found.rows, listing.filters), found.resume)


def places(
    snapshot: Snapshot, number: int, environment: Environment, listing: Listing, most_keys: int = MOST_KEYS
) -> Places:
    """The index rows of a page of events, in its order, for `read`, which may take them some at a time. No event is
    read.

    With one filter, or a visitor at a level, it reads `offset + limit` keys and at most one more of each level. With
    several it looks at no more than about `most_keys`, and a page that ends there may be short, or empty, and has a
    `resume`.
    """
    search = _Search(snapshot, number, environment, listing, most_keys)
    rows: list[EventPosition] = []
    passed = 0
    for row in search:
        if passed < listing.offset:
            passed += 1
        elif len(rows) == listing.limit:
            return Places(rows, Resume(rows[-1].position))
        else:
            rows.append(row)
    if search.ended_at is None:
        return Places(rows, None)
    return Places(rows, Resume(search.ended_at, listing.offset - passed))


class _Search:
    """The index rows of the events that a listing is about, newest first."""

    def __init__(
        self, snapshot: Snapshot, number: int, environment: Environment, listing: Listing, most_keys: int
    ) -> None:
        self._listing = listing
        self._keys_left = most_keys
        stem = (number, ENVIRONMENTS.index(environment))
        self._streams = [
            _Stream(snapshot, table, [(*stem, *middle) for middle in middles], listing.from_ms)
            for table, middles in _streams(listing.filters)
        ]
        self.ended_at: Position | None = None
        """Where it gave up: all that is newer was looked at, and what is older was not."""

    def __iter__(self) -> Iterator[EventPosition]:
        listing = self._listing
        beyond = listing.after or (listing.to_ms,)
        first, *others = self._streams
        return self._intersection(first, others, beyond) if others else first.below(beyond)

    def _intersection(
        self, first: _Stream, others: Sequence[_Stream], beyond: tuple[Any, ...]
    ) -> Iterator[EventPosition]:
        """Walks the first stream. Where `MISSES` of its events in a row are not in the others, it jumps to where one
        of those goes on, so that neither a dense stream nor a sparse one makes the other slow.
        """
        while True:
            misses = 0
            for found in first.below(beyond):
                self._keys_left -= 1
                missing = self._first_without(found.position, others)
                if missing is None:
                    yield found
                misses = 0 if missing is None else misses + 1
                if self._keys_left <= 0:
                    self.ended_at = found.position
                    return
                if missing is not None and misses == MISSES:
                    self._keys_left -= 1
                    older = next(missing.below(found.position), None)
                    if older is None:
                        return
                    beyond = _just_above(older.position)
                    break
            else:
                return

    def _first_without(self, position: Position, streams: Sequence[_Stream]) -> _Stream | None:
        """The first of the streams that does not have this position; `None` where all have it."""
        for stream in streams:
            self._keys_left -= 1
            if not stream.has(position):
                return stream
        return None


class _Stream:
    """The index rows of one filter in the order of events, newest first: those of several stems, merged."""

    def __init__(self, snapshot: Snapshot, table: Table[bytes], stems: list[tuple[Any, ...]], from_ms: int) -> None:
        self._snapshot = snapshot
        self._table = table
        self._stems = stems
        self._from_ms = from_ms

    def below(self, beyond: tuple[Any, ...]) -> Iterator[EventPosition]:
        """The rows that are older than the first parts of a position."""
        keys = (
            self._snapshot.scan_keys_reverse(self._table, (*stem, self._from_ms), (*stem, *beyond))
            for stem in self._stems
        )
        return (EventPosition(self._table, key) for key in merge(*keys, key=_by_arrival, reverse=True))

    def has(self, position: Position) -> bool:
        """Whether the event at this position is among them."""
        return any(self._snapshot.has(self._table, *stem, *position) for stem in self._stems)


def _streams(filters: Filters) -> list[tuple[Table[bytes], list[tuple[Any, ...]]]]:
    """(table, what stands between the environment and the arrival) of each stream whose intersection is asked for,
    those that are likely to be small first.
    """
    every_level = [_PLACES[filters.level]] if filters.level is not None else list(_PLACES.values())
    facets = [(EVENTS_BY_FACET, [(FACETS.index(facet), value_digest(value))]) for facet, value in filters.facets()]
    if filters.visitor_id is not None:
        visitor = filters.visitor_id.encode()
        return [(EVENTS_BY_VISITOR, [(visitor, level) for level in every_level]), *facets]
    if filters.level is not None or not facets:
        return [*facets, (EVENTS_BY_LEVEL, [(level,) for level in every_level])]
    return list(facets)


def _just_above(position: Position) -> Position:
    """The position that is newer than this one and older than all others that are."""
    arrival_ms, request_id = position
    following = int.from_bytes(request_id) + 1
    if following >> 128:
        return Position(arrival_ms + 1, bytes(16))
    return Position(arrival_ms, following.to_bytes(16))


def read(snapshot: Snapshot, wanted: Sequence[EventPosition], filters: Filters) -> list[EventMatch]:
    """The events of these index rows, in their order; events deleted since are left out, and those of another value
    than `filters` ask for with the same digest. Raises `CorruptionError` for an index row that names no event, or
    another one.
    """
    found = [(UUID(bytes=place.request_id), _indexed(snapshot, place)) for place in wanted]
    return [
        EventMatch(request_id, event) for request_id, event in found if event is not None and filters.matches(event)
    ]


def event_by_request(
    snapshot: Snapshot, number: int, environment: Environment, request_id: UUID, now_ms: int
) -> Event | None:
    """An event of the organization and environment; `None` where there is none, or where it is over 30 days old
    (interface 8).
    """
    event = snapshot.get(EVENTS, number, request_id.bytes)
    if event is None or event.environment != environment or event.occurred_at_ms < now_ms - RETENTION_MS:
        return None
    return event


def is_row_of(table: Table[bytes], key: tuple[Any, ...], event: Event) -> bool:
    """Whether an index row is one that this event has."""
    number, *_, raw_id = key
    stems = next(stems for indexed, stems in _STEMS if indexed is table)
    return key in _keys(stems, number, raw_id, event)


def _indexed(snapshot: Snapshot, place: EventPosition) -> Event | None:
    """The event that an index row names, `None` where the row is gone too. Raises `CorruptionError` where it is none,
    or one that belongs elsewhere.
    """
    table, key = place
    number, *_, raw_id = key
    event = snapshot.get(EVENTS, number, raw_id)
    if event is None and not snapshot.has(table, *key):
        return None
    if event is None or not is_row_of(table, key, event):
        raise CorruptionError(f"{table.name} has request {UUID(bytes=raw_id)} where it does not belong")
    return event
