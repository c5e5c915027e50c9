"""Events as they are found again: where each one is indexed, and the queries over those indexes.

There is no index of all events: the levels, merged, are one. So an identification writes two index rows, and a page
reads the keys before it and the events on it, whatever the filter and however many events there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from svc.domain.listing import LEVELS, Listing
from svc.domain.model import ENVIRONMENTS, Environment, Level
from svc.domain.records import RETENTION_MS, Event
from svc.store.codec import CorruptionError
from svc.store.snapshot import Snapshot, Transaction
from svc.store.tables import EVENTS, EVENTS_BY_LEVEL, EVENTS_BY_VISITOR, Table

INDEXES: tuple[Table[bytes], ...] = (EVENTS_BY_LEVEL, EVENTS_BY_VISITOR)
_PLACES: dict[Level | None, int] = {None: 0, **{level: place for place, level in enumerate(LEVELS, start=1)}}
"""Level -> its place in the keys. On disk: append, never move."""
_by_arrival = attrgetter("arrival", "request_id")


class EventMatch(NamedTuple):
    """An event with its id."""

    request_id: UUID
    event: Event


def put_event(transaction: Transaction, number: int, request_id: UUID, event: Event) -> None:
    """Write a new event of the organization (by its number in the store) and its index rows."""
    transaction.put(EVENTS, (number, request_id.bytes), event)
    for table, key in index_keys(number, request_id.bytes, event):
        transaction.put(table, key, b"")


def index_keys(number: int, request_id: bytes, event: Event) -> tuple[tuple[Table[bytes], tuple[Any, ...]], ...]:
    """(table, key) of every index row of an event: to be deleted together with it."""
    environment, level = ENVIRONMENTS.index(event.environment), _PLACES[event.verdict.suspect_level]
    arrival = event.occurred_at_ms
    return (
        (EVENTS_BY_LEVEL, (number, environment, level, arrival, request_id)),
        (EVENTS_BY_VISITOR, (number, environment, event.verdict.visitor_id.encode(), level, arrival, request_id)),
    )


class EventPosition(NamedTuple):
    """An index row of an event: where it stands in one of `INDEXES`."""

    table: Table[bytes]
    key: tuple[Any, ...]

    @property
    def request_id(self) -> bytes:
        """The 16 bytes of the event's id, the last part of every index key."""
        *_, request_id = self.key
        return request_id


def event_page(snapshot: Snapshot, number: int, environment: Environment, listing: Listing) -> list[EventMatch]:
    """The events that the listing asks for, newest first; of one millisecond, the larger request id first.

    Reads `offset + limit` keys, at most one more of each level, and no event that it does not return.
    """
    return read(snapshot, places(snapshot, number, environment, listing))


def places(snapshot: Snapshot, number: int, environment: Environment, listing: Listing) -> list[EventPosition]:
    """The index rows of a page of events, in its order, for `read`, which may take them some at a time. No event is
    read.
    """
    place = ENVIRONMENTS.index(environment)
    visitor = listing.visitor_id
    table, stem = (
        (EVENTS_BY_LEVEL, (number, place))
        if visitor is None
        else (EVENTS_BY_VISITOR, (number, place, visitor.encode()))
    )
    levels = _PLACES.values() if listing.level is None else (_PLACES[listing.level],)
    keys = (
        snapshot.scan_keys_reverse(table, (*stem, level, listing.from_ms), (*stem, level, listing.to_ms))
        for level in levels
    )
    newest_first = merge(*keys, key=_by_arrival, reverse=True)
    shown = islice(newest_first, listing.offset, listing.offset + listing.limit)
    return [EventPosition(table, key) for key in shown]


def read(snapshot: Snapshot, wanted: Sequence[EventPosition]) -> list[EventMatch]:
    """The events of these index rows, in their order; events deleted since are left out. Raises `CorruptionError` for
    an index row that names no event, or another one.
    """
    found = [(UUID(bytes=place.request_id), _indexed(snapshot, place)) for place in wanted]
    return [EventMatch(request_id, event) for request_id, event in found if event is not None]


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


def _indexed(snapshot: Snapshot, place: EventPosition) -> Event | None:
    """The event that an index row names, `None` where the row is gone too. Raises `CorruptionError` where it is none,
    or one that belongs elsewhere.
    """
    table, key = place
    number, *_, raw_id = key
    event = snapshot.get(EVENTS, number, raw_id)
    if event is None and not snapshot.has(table, *key):
        return None
    if event is None or (table, key) not in index_keys(number, raw_id, event):
        raise CorruptionError(f"{table.name} has request {UUID(bytes=raw_id)} where it does not belong")
    return event
