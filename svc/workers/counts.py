"""The counts of all workers: memory in which each leaves its own, for the one that reports for all.

Each slot has two halves and writes them in turn, so that a worker that is killed while it writes leaves the half before
that whole. What a dead worker of the slot had counted is its successor's to begin with: sums never fall.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from typing import Final, NamedTuple
from zlib import crc32

from svc.workers.buckets import SharedBuckets


class WorkerSlot(NamedTuple):
    """Which worker this process is, of how many that serve one data directory."""

    index: int = 0  # pyright: ignore[reportIncompatibleMethodOverride]  nobody looks for a slot in a slot
    workers: int = 1


HALF_BYTES: Final = 1 << 18
"""Of one set of counts, its head included. Memory that is not written takes none."""
_HEAD: Final = struct.Struct("<QII")
"""Number of the writing, length and CRC-32 of the content."""


class Counts:
    """A place for the counts of each worker, in memory that processes share. To be made before the fork."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, 2 * workers * HALF_BYTES)

    def write(self, index: int, content: bytes) -> bool:
        """Replace what a worker has left; for that worker alone. `False` where it is too long: nothing changes then."""
        if len(content) > HALF_BYTES - _HEAD.size:
            return False
        number, _ = max(self._halves(index), default=(0, b""))
        start = (2 * index + (number + 1) % 2) * HALF_BYTES
        after = start + _HEAD.size
        self._memory[after : after + len(content)] = content
        _HEAD.pack_into(self._memory, start, number + 1, len(content), crc32(content))
        return True

    def read(self, index: int) -> bytes:
        """What a worker, or the one before it at its slot, has left last; empty where that is nothing yet."""
        return max(self._halves(index), default=(0, b""))[1]

    def _halves(self, index: int) -> list[tuple[int, bytes]]:
        """Those that are whole, with their numbers."""
        whole: list[tuple[int, bytes]] = []
        for half in range(2):
            start = (2 * index + half) * HALF_BYTES
            number, length, checksum = _HEAD.unpack_from(self._memory, start)
            if not number or length > HALF_BYTES - _HEAD.size:
                continue
            content = self._memory[start + _HEAD.size : start + _HEAD.size + length]
            if crc32(content) == checksum:
                whole.append((number, content))
        return whole


class SharedMemory:
    """What is made before the fork and shared by all workers: their buckets and their counts."""

    def __init__(self, workers: int, entropy: Callable[[int], bytes]) -> None:
        self.buckets = SharedBuckets(entropy)
        self.counts = Counts(workers)
