"""Read queries about visitors: who there is, and what a visitor did before and after an event. They change nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import reduce
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from svc.identify.events.listing import Position
from svc.identify.index.digests import digest_of
from svc.identify.index.forward_queries import SearchForward
from svc.identify.index.queries import Scope, Search, just_above, scope_of
from svc.identify.index.tally_queries import read_part
from svc.identify.matching import Visitor
from svc.identify.queries.events import KEYS_OF_A_LOOK
from svc.identify.records import Event
from svc.identify.tables import ERASURES, EVENTS, VISITOR_IDS, VISITORS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import is_visitor_id

CLOCK_MARGIN_MS = 24 * 3600 * 1000
"""An event may have arrived before its visitor was first seen, if the clock was set back: by at most this time."""
END = Position(0, bytes(16))
"""Behind all events."""


def find_visitor(snapshot: Snapshot, number: int, visitor_id: str) -> Visitor | None:
    """Return the record of a visitor of the organization; `None` if there is none, which includes visitors that cannot
    be recognized and have only events. Raises `CorruptionError` also if the index names a record that is missing.
    """
    found = snapshot.get(VISITOR_IDS, number, visitor_id.encode()) if is_visitor_id(visitor_id) else None
    record = None if found is None else snapshot.get(VISITORS, number, found)
    if found is not None and record is None:
        raise CorruptionError(f"the visitor {visitor_id} is missing, but its row of {VISITOR_IDS.name} exists")
    return record


def visitors_like(snapshot: Snapshot, number: int, beginning: str, limit: int) -> list[str]:
    """Return at most `limit` visitor ids that begin with `beginning` (1 to 20 ASCII letters or digits), in their order.
    Visitors that are being erased are left out.
    """
    first = beginning.encode()[:20]
    beyond = first[:-1] + bytes([first[-1] + 1])
    keys = snapshot.scan_keys(VISITOR_IDS, (number, first), (number, beyond))
    found = (raw_id for _, raw_id in keys if not snapshot.has(ERASURES, number, raw_id))
    return [raw_id.decode() for raw_id in islice(found, limit)]


def visitor_id_of(snapshot: Snapshot, number: int, visitor: int | None) -> str | None:
    """Return the id of the visitor with this number; `None` for `None`, or if it was or is being erased."""
    record = None if visitor is None else snapshot.get(VISITORS, number, visitor)
    if record is None or snapshot.has(ERASURES, number, record.visitor_id.encode()):
        return None
    return record.visitor_id


def visitors(snapshot: Snapshot, number: int, after: int | None, limit: int) -> list[tuple[int, Visitor]]:
    """Return (number, record) of at most `limit` visitors, the most recently created first; with `after`, only those
    created before the visitor with that number.
    """
    beyond = (number + 1,) if after is None else (number, after)
    rows = snapshot.scan_reverse(VISITORS, (number,), beyond)
    return [(visitor, record) for (_, visitor), record in islice(rows, limit)]


class Activity(NamedTuple):
    """Events of a visitor: how many, and when the oldest and the newest arrived; `None` where there are none."""

    events: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    def plus(self, other: Activity) -> Activity:
        """Return the sum of this activity and `other`, which counts other events of the same visitor."""
        times = [each for each in (self.first_ms, self.last_ms, other.first_ms, other.last_ms) if each is not None]
        return Activity(self.events + other.events, min(times, default=None), max(times, default=None))


def sum_of(parts: Iterable[Activity]) -> Activity:
    """Return the sum over all environments."""
    return reduce(Activity.plus, parts, Activity())


def counted_from_ms(record: Visitor | None, since_ms: int) -> int:
    """Return the earliest time (Unix ms) from `since_ms` on at which an event of the visitor can have arrived."""
    return since_ms if record is None else max(since_ms, record.first_seen_s * 1000 - CLOCK_MARGIN_MS)


def scan_activities(
    snapshot: Snapshot,
    after: Position,
    count: int,
    *,
    number: int,
    environment: Environment,
    visitor_ids: Collection[str],
    since_ms: int,
) -> Iterator[tuple[Position, dict[str, Activity]]]:
    """Yield the activity of some visitors, by id, in up to `count` parts of the events below `after` that arrived at
    `since_ms` or later, each with where the next one begins; that of the last part is `END`. Visitors without events
    in a part are left out of it.

    The index is read once for all of them, and no event: events of another visitor whose id has the same 64-bit digest
    are counted too.
    """
    scope = Scope(number, ENVIRONMENTS.index(environment))
    asked = {digest_of("visitor", visitor_id): visitor_id for visitor_id in visitor_ids}
    oldest = Position(max(since_ms, 0), bytes(16))
    while after != END and count > 0:
        part = read_part(snapshot, scope, asked, oldest, after, KEYS_OF_A_LOOK)
        after, count = part.rest or END, count - 1
        yield after, {asked[digest]: Activity(*tally) for digest, tally in part.tallies().items()}


class Neighbors(NamedTuple):
    """The events before and after an event, of the same visitor and environment, in the order of arrival."""

    previous: UUID | None
    """`None` = there is none that is still readable."""
    next: UUID | None


def neighbors(snapshot: Snapshot, number: int, request_id: UUID, event: Event, oldest_ms: int) -> Neighbors:
    """Return the events of the visitor just before and just after this one; those that arrived before `oldest_ms` or
    cannot be read are left out. Only the segments between them are read, however many events the visitor has.
    """
    scope, visitor_id = scope_of(number, event), event.verdict.visitor_id
    digest, here = digest_of("visitor", visitor_id), Position(event.occurred_at_ms, request_id.bytes)

    def first(found: Iterator[Position]) -> UUID | None:
        """Return the first event of this visitor: another may have its digest."""
        for position in found:
            with suppress(CorruptionError):
                other = snapshot.get(EVENTS, number, position.request_id)
                if other is None or other.verdict.visitor_id == visitor_id:
                    return UUID(bytes=position.request_id)
        return None

    before = Search(snapshot, scope, (digest,), (max(oldest_ms, 0), bytes(16)), here)
    after = SearchForward(snapshot, scope, (digest,), just_above(here))
    return Neighbors(first(iter(before)), first(iter(after)))
