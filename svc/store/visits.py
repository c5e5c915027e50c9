"""What a visitor did before and after an event. Queries over a snapshot; they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from svc.domain.listing import LEVELS
from svc.domain.model import ENVIRONMENTS
from svc.domain.records import Event
from svc.store.snapshot import Snapshot
from svc.store.tables import EVENTS_BY_VISITOR


class Neighbours(NamedTuple):
    """The events beside one, of the same visitor and environment, in the order of arrival."""

    previous: UUID | None
    """`None` = there is none that is still readable."""
    next: UUID | None


def neighbours(snapshot: Snapshot, number: int, request_id: UUID, event: Event, oldest_ms: int) -> Neighbours:
    """The events of the visitor just before and after this one; those that arrived before `oldest_ms` count as gone.

    Reads at most three index rows for each suspect level, however many events the visitor has.
    """
    stem = (number, ENVIRONMENTS.index(event.environment), event.verdict.visitor_id.encode())
    here = (event.occurred_at_ms, request_id.bytes)
    earlier: list[tuple[int, bytes]] = []
    later: list[tuple[int, bytes]] = []
    for level in range(len(LEVELS) + 1):
        before = snapshot.scan_keys_reverse(EVENTS_BY_VISITOR, (*stem, level, oldest_ms), (*stem, level, *here))
        after = snapshot.scan(EVENTS_BY_VISITOR, *stem, level, start=(*stem, level, *here))
        earlier += _first(before)
        later += _first(key for key, _ in after if key[-2:] != here)
    return Neighbours(_id_of(max(earlier, default=None)), _id_of(min(later, default=None)))


def _first(keys: Iterator[tuple[int | bytes, ...]]) -> list[tuple[int, bytes]]:
    """(arrival, request id) of the first key, if any."""
    found = next(keys, None)
    if found is None:
        return []
    *_, arrival, request_id = found
    assert isinstance(arrival, int)
    assert isinstance(request_id, bytes)
    return [(arrival, request_id)]


def _id_of(place: tuple[int, bytes] | None) -> UUID | None:
    return None if place is None else UUID(bytes=place[1])
