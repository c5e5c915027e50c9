"""What a visitor did before and after an event. Queries over a snapshot; they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from svc.domain.listing import Position
from svc.domain.records import Event
from svc.store.event_index import Search, digest_of, later, scope_of
from svc.store.snapshot import Snapshot
from svc.store.tables import EVENTS


class Neighbours(NamedTuple):
    """The events beside one, of the same visitor and environment, in the order of arrival."""

    previous: UUID | None
    """`None` = there is none that is still readable."""
    next: UUID | None


def neighbours(snapshot: Snapshot, number: int, request_id: UUID, event: Event, oldest_ms: int) -> Neighbours:
    """The events of the visitor just before and after this one; those that arrived before `oldest_ms` count as gone.

    Looks into the segments between them, however many events the visitor has.
    """
    scope, visitor_id = scope_of(number, event), event.verdict.visitor_id
    digest, here = digest_of("visitor", visitor_id), (event.occurred_at_ms, request_id.bytes)

    def first(found: Iterator[Position]) -> UUID | None:
        """The first event of this visitor: another may have its digest."""
        for place in found:
            other = snapshot.get(EVENTS, number, place.request_id)
            if other is None or other.verdict.visitor_id == visitor_id:
                return UUID(bytes=place.request_id)
        return None

    before = Search(snapshot, scope, (digest,), (max(oldest_ms, 0), bytes(16)), here)
    return Neighbours(first(iter(before)), first(later(snapshot, scope, digest, here)))
