"""Segments of the index of events: which of a run of events have a value, by digest (ADR 63).

A segment has slots, one for each event in the order of arrival, and postings: digest of a value -> the slots (their
indexes, from 0) of the events that have it. Both are written once, in the background. An event that is erased leaves
its slot as a copy of the one before (or zeros), so that slots stay in order and no other posting changes.

What may live here: the values of the two tables of the index, and how segments are put together. No store.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

from svc.identify.events.listing import Position

SLOT_BYTES = 24
GONE = bytes(SLOT_BYTES)
"""The slot of an erased event that no other event precedes. No event is at this position."""
_SLOT = struct.Struct(">Q16s")
_COUNT = struct.Struct("<I")


def slot(position: tuple[int, bytes]) -> bytes:
    """Return 24 bytes that are ordered as positions are."""
    return _SLOT.pack(*position)


def position(raw: bytes) -> Position:
    """Return the position whose slot this is."""
    return Position(*_SLOT.unpack(raw))


class Digests(msgspec.Struct, frozen=True):
    """What an event is found by while it is in no segment: the digests of its values, in ascending order."""

    values: tuple[int, ...]

    def shown(self) -> dict[str, int]:
        """Return what the inspector shows: no digest, by which a value that is guessed could be confirmed."""
        return {"digests": len(self.values)}

    def pack(self) -> bytes:
        """Return 8 bytes each, little-endian."""
        return struct.pack(f"<{len(self.values)}Q", *self.values)

    @staticmethod
    def unpack(raw: bytes) -> Digests:
        """Return the digests in these bytes. Raises `struct.error` for an invalid length."""
        return Digests(struct.unpack(f"<{len(raw) // 8}Q", raw))


class Slots(Sequence[bytes]):
    """The slots of a segment over their bytes."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def __len__(self) -> int:
        return len(self.raw) // SLOT_BYTES

    def __getitem__(self, index: int) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]  no slices
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.raw[index * SLOT_BYTES : (index + 1) * SLOT_BYTES]

    def below(self, bound: bytes) -> int:
        """Return how many slots are below this one."""
        return bisect_left(self, bound)

    def find(self, wanted: bytes) -> int | None:
        """Return the index of an event's slot; `None` if it has none."""
        index = bisect_left(self, wanted)
        return index if index < len(self) and self[index] == wanted else None

    def living(self) -> Iterator[tuple[int, bytes]]:
        """Yield (index, slot) of the events that were not erased."""
        before = GONE
        for index in range(len(self)):
            found = self[index]
            if found != before:
                yield index, found
            before = found

    def living_between(self, low: int, high: int) -> Sequence[int]:
        """Return the indexes from `low` to `high`, exclusive, of the events that were not erased, in ascending order.
        Where none was, no slot is looked at by itself.
        """
        ends = array("Q", self.raw)[2::3]  # the last third of each slot: of the random bits of its request id
        if self.raw and self[0] != GONE and len(set(ends)) == len(ends):
            return range(low, high)
        return [index for index in range(low, high) if self[index] != (self[index - 1] if index else GONE)]

    def without(self, index: int) -> Slots:
        """Return the slots with the event at this index erased."""
        before = self[index - 1] if index else GONE
        end = bisect_right(self, self[index])
        return Slots(self.raw[: index * SLOT_BYTES] + before * (end - index) + self.raw[end * SLOT_BYTES :])

    @property
    def is_empty(self) -> bool:
        """Whether all events were erased."""
        return not self.raw or self[len(self) - 1] == GONE


class Segment(msgspec.Struct, frozen=True):
    """A row of a segment: its slots, its postings, or both."""

    slots: bytes = b""
    digests: array[int] = array("Q")
    """In ascending order."""
    ends: array[int] = array("I")
    """Where the indexes of each digest end in `indexes`."""
    indexes: array[int] = array("H")
    """Indexes of the events with each digest, in ascending order."""

    def shown(self) -> dict[str, int]:
        """Return what the inspector shows, as of `Digests`; `events` are those that were not deleted."""
        return {"events": sum(1 for _ in Slots(self.slots).living()), "digests": len(self.digests)}

    def pack(self) -> bytes:
        """Return number of slots, slots, number of digests, digests, ends, indexes; numbers are little-endian."""
        return b"".join(
            (
                _COUNT.pack(len(self.slots) // SLOT_BYTES),
                self.slots,
                _COUNT.pack(len(self.digests)),
                *map(_little, (self.digests, self.ends, self.indexes)),
            )
        )

    @staticmethod
    def unpack(raw: bytes) -> Segment:
        """Return the segment in these bytes. Raises `ValueError` and `struct.error` for other bytes."""
        (slots,) = _COUNT.unpack_from(raw)
        at = _COUNT.size + slots * SLOT_BYTES
        (count,) = _COUNT.unpack_from(raw, at)
        digests_at = at + _COUNT.size
        ends_at, places_at = digests_at + 8 * count, digests_at + 12 * count
        found = Segment(
            raw[_COUNT.size : at],
            _array("Q", raw[digests_at:ends_at]),
            _array("I", raw[ends_at:places_at]),
            _array("H", raw[places_at:]),
        )
        if len(found.ends) != count or len(found.indexes) != (found.ends[-1] if count else 0):
            raise ValueError("indexes of other digests than there are")
        return found

    def having(self, digest: int) -> Sequence[int]:
        """Return the indexes of the events that have a value, in ascending order."""
        at = bisect_left(self.digests, digest)
        if at == len(self.digests) or self.digests[at] != digest:
            return ()
        return self.indexes[self.ends[at - 1] if at else 0 : self.ends[at]]

    def postings(self) -> Iterator[tuple[int, array[int]]]:
        """Yield (digest, indexes) in ascending order."""
        start = 0
        for digest, end in zip(self.digests, self.ends, strict=True):
            yield digest, self.indexes[start:end]
            start = end

    def without(self, gone: Mapping[int, Iterable[int]]) -> Segment:
        """Return the segment with the events at these indexes, which have these digests, erased; others are ignored."""
        lost: defaultdict[int, set[int]] = defaultdict(set)
        for index, digests in gone.items():
            for digest in digests:
                lost[digest].add(index)
        postings: dict[int, Sequence[int]] = dict(self.postings())
        for digest in lost.keys() & postings.keys():
            postings[digest] = [index for index in postings[digest] if index not in lost[digest]]
        slots = Slots(self.slots)
        for index in gone if self.slots else ():
            slots = slots.without(index)
        return packed(slots.raw, postings)


def packed(slots: bytes, postings: Mapping[int, Sequence[int]]) -> Segment:
    """Return a segment of these postings; digests without indexes are left out."""
    digests = array("Q", sorted(digest for digest, indexes in postings.items() if indexes))
    indexes = array("H")
    for digest in digests:
        indexes.extend(postings[digest])
    return Segment(slots, digests, array("I", accumulate(len(postings[digest]) for digest in digests)), indexes)


class Run(NamedTuple):
    """A segment that is being made, or one that was read as a whole."""

    slots: bytes
    postings: Mapping[int, Sequence[int]]

    def __len__(self) -> int:
        return len(self.slots) // SLOT_BYTES

    def __bool__(self) -> bool:
        return bool(self.slots)


def of_one(wanted: tuple[int, bytes], digests: Digests) -> Run:
    """Return an event that was in no segment."""
    return Run(slot(wanted), dict.fromkeys(digests.values, (0,)))


def joined(runs: Sequence[Run]) -> Run:
    """Return all their events that were not erased, each once, in the order of arrival."""
    order = sorted((raw, number, index) for number, run in enumerate(runs) for index, raw in Slots(run.slots).living())
    moved: list[dict[int, int]] = [{} for _ in runs]
    for index, (_, number, before) in enumerate(order):
        moved[number][before] = index
    postings: dict[int, list[int]] = {}
    for run, to in zip(runs, moved, strict=True):
        for digest, indexes in run.postings.items():
            found = postings.get(digest)
            if found is None:
                postings[digest] = [to[index] for index in indexes]
            else:
                found += [to[index] for index in indexes]
    filled = [tuple(to.values()) for to in moved if to]
    if any(after[0] < before[-1] for before, after in pairwise(filled)):
        for indexes in postings.values():
            indexes.sort()
    return Run(b"".join([raw for raw, _, _ in order]), postings)


def cut(run: Run, most: int) -> list[Run]:
    """Return the fewest parts of at most `most` events each, about equally large, in the order of arrival."""
    count = -(-len(run) // most)
    if count <= 1:
        return [run] if run else []
    bounds = [len(run) * part // count for part in range(count + 1)]
    return [_between(run, low, high) for low, high in pairwise(bounds)]


def _between(run: Run, low: int, high: int) -> Run:
    postings: dict[int, Sequence[int]] = {}
    for digest, indexes in run.postings.items():
        own = indexes[bisect_left(indexes, low) : bisect_left(indexes, high)]
        if own:
            postings[digest] = [index - low for index in own]
    return Run(run.slots[low * SLOT_BYTES : high * SLOT_BYTES], postings)


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "little":
        return numbers.tobytes()
    swapped = numbers[:]
    swapped.byteswap()
    return swapped.tobytes()


def _array(kind: str, raw: bytes) -> array[int]:
    numbers = array(kind, raw)
    if sys.byteorder != "little":
        numbers.byteswap()
    return numbers
