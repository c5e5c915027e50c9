"""How many events have each of some values, and which: a part of the index is read once, however many values are asked
for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

from svc.identify.events.listing import Position
from svc.identify.events.segments import Segment, Slots, position, slot
from svc.identify.index.queries import (
    SEGMENT_KEYS,
    SLOTS,
    SMALL,
    Scope,
    by_position,
    just_above,
    part_of,
    strip,
)
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot


class Tally(NamedTuple):
    """The events that have a digest: how many, and when the oldest and the newest arrived (Unix ms)."""

    events: int
    oldest_ms: int
    newest_ms: int

    def plus(self, other: Tally) -> Tally:
        """Return the tally of both; no event is in both."""
        ends = min(self.oldest_ms, other.oldest_ms), max(self.newest_ms, other.newest_ms)
        return Tally(self.events + other.events, *ends)


class _Having(NamedTuple):
    """Events of a segment that have a digest."""

    digest: int
    slots: Slots
    indexes: Sequence[int]
    """Of their slots, in ascending order: at least one."""


class Part(NamedTuple):
    """The events of a part of the index that have any of some digests."""

    having: list[_Having]
    tail: list[tuple[Position, frozenset[int]]]
    """Each with its digests of those."""
    rest: Position | None
    """Where the next part begins; `None` = there is none."""

    def tallies(self) -> dict[int, Tally]:
        """Return the counts by digest, without those that no event has."""
        found: dict[int, Tally] = {}

        def count(digest: int, tally: Tally) -> None:
            found[digest] = tally.plus(found[digest]) if digest in found else tally

        for digest, slots, indexes in self.having:
            first, last = position(slots[indexes[0]]), position(slots[indexes[-1]])
            count(digest, Tally(len(indexes), first.arrival_ms, last.arrival_ms))
        for here, own in self.tail:
            for digest in own:
                count(digest, Tally(1, here.arrival_ms, here.arrival_ms))
        return found

    def newest_of_each(self, most: int) -> dict[int, list[Position]]:
        """Return the positions of the newest events by digest, up to `most` of each, newest first."""
        found: defaultdict[int, list[Position]] = defaultdict(list)
        for here, own in self.tail:
            for digest in own:
                found[digest].append(here)
        for digest, slots, indexes in self.having:
            found[digest] += [position(slots[index]) for index in indexes[-most:]]
        return {digest: sorted(places, reverse=True)[:most] for digest, places in found.items()}


def read_part(
    snapshot: Snapshot,
    scope: Scope,
    asked: Collection[int],
    oldest: tuple[int, bytes],
    beyond: tuple[int, bytes],
    most_keys: int,
) -> Part:
    """Return the newest part of the index below `beyond` and not below `oldest`, with the events that have any of these
    digests.

    Each row is read once, however many digests are asked for, and none if none is; about `most_keys` keys of the index
    are looked at. Corrupt rows of the tail are left out.
    """
    if not asked:
        return Part([], [], None)
    rows = snapshot.scan_past_corruption(EVENT_TAIL, (*scope, *oldest), (*scope, *beyond), reverse=True)
    tail = [(Position(*key[-2:]), row) for key, row in islice(rows, most_keys)]
    end = tail[-1][0] if len(tail) == most_keys else None
    low, keys, has_looked = end or oldest, most_keys - len(tail), False
    having: list[_Having] = []
    parts: dict[int, list[int]] = {}
    for digest in asked:
        parts.setdefault(part_of(digest), []).append(digest)
    strips = (strip(snapshot, scope, part, low, beyond) for part in (SMALL, SLOTS))
    for raw, part, segment in merge(*strips, key=by_position, reverse=True):
        upper = position(raw)
        if has_looked and keys <= 0:
            end = low = just_above(upper)
            break
        has_looked = has_looked or upper < beyond
        keys -= SEGMENT_KEYS * (1 if part == SMALL else len(parts))
        having += _in_segment(snapshot, scope, part, upper, segment, parts, slot(low), slot(beyond))
    of_all = frozenset(asked)
    in_tail = [
        (here, own)
        for here, row in tail
        if here >= low and not isinstance(row, CorruptionError) and (own := of_all.intersection(row.values))
    ]
    return Part(having, in_tail, end)


def _in_segment(
    snapshot: Snapshot,
    scope: Scope,
    part: int,
    upper: Position,
    segment: Segment | None,
    parts: Mapping[int, Sequence[int]],
    low: bytes,
    beyond: bytes,
) -> Iterator[_Having]:
    """Yield the events of a segment from slot `low` to `beyond`, exclusive, by digest. `segment`: its row, if it is a
    small one; `parts`: the digests that are asked for, by the part of a large one that has their postings.
    """

    def row(each: int) -> Segment:
        return segment or snapshot.get(EVENT_SEGMENTS, *scope, each, *upper) or Segment()

    having = [
        (digest, indexes)
        for each, of_part in parts.items()
        for own in [row(each)]
        for digest in of_part
        if (indexes := own.having(digest))
    ]
    if not having:
        return
    slots = Slots(row(part).slots)
    first, end = slots.below(low), slots.below(beyond)
    for digest, indexes in having:
        inside = indexes[bisect_left(indexes, first) : bisect_left(indexes, end)]
        if inside:
            yield _Having(digest, slots, inside)
