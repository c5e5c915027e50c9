"""Memory that all workers share: their token buckets, in one table, and the counts of each.

The table of buckets has sets of 16 slots; the name of a bucket says which set it is in. A set is read and written under
a lock on its byte of the file, which the kernel releases when its holder dies. Several sets are locked in ascending
order, so that nobody waits in a ring. A slot that a process left half written does not match its checksum, and counts
as empty: a full bucket.

Bounds. A bucket that nobody has used for a second is full, whatever it was before: its slot can be used again and
nothing is lost. So the table is exact as long as no set has more than 16 buckets in use within one second. Buckets of
organizations and of addresses have sets of their own; addresses never evict an organization. There are 4,096 sets of
each: with 5,000 buckets in use a second, one set in 10^13 has more than 16, and then the bucket that was used least
lately is refilled. The names are hashed with a key that no client knows. Buckets of accounts have sets of their own as
well, since their clock may be a slower one, by which a second is as long as it takes to fill them.

Counts. Each worker leaves its own for the one that reports for all. Its slot has two halves that it writes in turn, so
that a worker that is killed while it writes leaves the half before that whole. What a dead worker of the slot had
counted is its successor's to begin with: sums never fall.

Connections. Each worker says how many it has, so that the one with fewest takes the next (docs/adr/0229).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple
from zlib import crc32

from svc.kernel.limits.ratelimit import Bucket, BucketName, Taken, take_all
from svc.kernel.store.contention import Bell
from svc.kernel.store.files.durable_files import temporary_folder

SETS: Final = 4_096
"""Of each kind."""
_KINDS: Final = {"organization": 0, "address": 1, "account": 2}
"""Of sets; buckets of another bound are in those of organizations."""
WAYS: Final = 16
"""Slots of a set."""
_SLOT: Final = struct.Struct("<12sIqq")
"""Digest of the name, CRC-32 of all the rest, thousandths, Unix milliseconds."""
_BODY: Final = struct.Struct("<12sqq")
_SET_BYTES: Final = WAYS * _SLOT.size
LOCK_TRIES: Final = 50_000
"""A fifth of a second: longer than a process that holds a lock waits for a core."""
STUCK_MS: Final = 1_000
"""How long nobody waits for the lock of a set again after it did not come: its holder was stopped."""
FULL_AFTER_MS: Final = 1_000
"""Without use for so long, any bucket is full."""


class _SetKey(NamedTuple):
    number: int
    """Of the set, over all kinds."""
    digest: bytes


class SharedBuckets:
    """Buckets in an open file that all processes map, as `Buckets`. To be made before the fork; the file is in memory,
    so that a restart of all refills.
    """

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._stuck_at_ms: dict[int, int] = {}
        self._hash = partial(blake2b, digest_size=16, key=entropy(32))
        self._file = memory_file("svc-buckets")
        size = len(_KINDS) * SETS * _SET_BYTES
        os.ftruncate(self._file, size)
        self._table = mmap.mmap(self._file, size)

    def take(self, wanted: Mapping[BucketName, int], now_ms: int, tokens: int = 1) -> list[Taken]:
        """Take as `Buckets` does. Wait for another process that takes from the same set, some microseconds.

        One that was stopped meanwhile is not waited for, or it would stop all others with it: without its lock, a token
        that two take at the same time may count once, and a slot that two write is a full bucket.
        """
        set_keys = [self._set_key(name) for name in wanted]
        locked = [number for number in sorted({set_key.number for set_key in set_keys}) if self._lock(number, now_ms)]
        try:
            return self._take(set_keys, list(wanted.values()), now_ms, tokens)
        finally:
            for number in locked:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)

    def _lock(self, number: int, now_ms: int) -> bool:
        """Lock the set within `LOCK_TRIES`; return whether it is. After a failure none is tried for a second."""
        if abs(now_ms - self._stuck_at_ms.get(number, -STUCK_MS)) < STUCK_MS:
            return False
        for _ in range(LOCK_TRIES):
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except BlockingIOError:
                os.sched_yield()
            else:
                self._stuck_at_ms.pop(number, None)
                return True
        self._stuck_at_ms[number] = now_ms
        return False

    def _set_key(self, name: BucketName) -> _SetKey:
        use, organization, bound, address = name
        digest = self._hash(f"{use}/{organization}/{bound}/{address}".encode()).digest()
        number = int.from_bytes(digest[:4], "little") % SETS
        return _SetKey(number + SETS * _KINDS.get(bound, 0), digest[4:])

    def _take(self, set_keys: Sequence[_SetKey], limits: Sequence[int], now_ms: int, tokens: int) -> list[Taken]:
        slots: list[int] = []
        wanted: list[tuple[Bucket | None, int]] = []
        for set_key, limit_per_s in zip(set_keys, limits, strict=True):
            slot, bucket = self._find(set_key, slots, now_ms)
            slots.append(slot)
            wanted.append((bucket, limit_per_s))
        taken = take_all(wanted, now_ms, tokens)
        for set_key, slot, one in zip(set_keys, slots, taken, strict=True):
            body = set_key.digest, *one.bucket
            _SLOT.pack_into(self._table, slot, set_key.digest, crc32(_BODY.pack(*body)), *one.bucket)
        return taken

    def _find(self, set_key: _SetKey, others: Iterable[int], now_ms: int) -> tuple[int, Bucket | None]:
        """Return the place of a bucket and the bucket, or of a slot that is none of `others`, and `None`."""
        start = set_key.number * _SET_BYTES
        held = self._table[start : start + _SET_BYTES]
        at = held.find(set_key.digest)
        if at >= 0 and at % _SLOT.size == 0:
            bucket = _bucket_in(held, at)
            if bucket is not None:
                return start + at, bucket
        free, oldest_ms = start, None
        for at in range(0, _SET_BYTES, _SLOT.size):
            bucket = _bucket_in(held, at)
            used_ms = -1 if bucket is None or abs(now_ms - bucket.at_ms) >= FULL_AFTER_MS else bucket.at_ms
            if start + at not in others and (oldest_ms is None or used_ms < oldest_ms):
                free, oldest_ms = start + at, used_ms
        return free, None


def _bucket_in(held: bytes, at: int) -> Bucket | None:
    """Return the bucket in a slot, `None` if the slot is empty or was left half written."""
    digest, checksum, thousandths, at_ms = _SLOT.unpack_from(held, at)
    if not checksum or crc32(_BODY.pack(digest, thousandths, at_ms)) != checksum:
        return None
    return Bucket(thousandths, at_ms)


def memory_file(name: str) -> int:
    """Return the descriptor of an empty file in memory, without a path; it is inherited by a fork, and not by a program
    that is started. Where the system has no such files, it is a temporary one.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile(dir=temporary_folder()) as file:
        return os.dup(file.fileno())


class WorkerSlot(NamedTuple):
    """Which worker this process is, of how many that serve one data directory."""

    index: int = 0  # pyright: ignore[reportIncompatibleMethodOverride]  nobody looks for a slot in a slot
    workers: int = 1


HALF_BYTES: Final = 1 << 18
"""Of one set of counts, its head included. Memory that is not written takes none."""
_HEAD: Final = struct.Struct("<QII")
"""Number of the writing, length and CRC-32 of the content."""


class Counts:
    """The counts of each worker, in memory that processes share. To be made before the fork."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, 2 * workers * HALF_BYTES)

    def write(self, index: int, content: bytes) -> bool:
        """Replace what a worker has left; for that worker alone. `False` if it is too long: nothing changes then."""
        if len(content) > HALF_BYTES - _HEAD.size:
            return False
        number, _ = max(self._halves(index), default=(0, b""))
        start = (2 * index + (number + 1) % 2) * HALF_BYTES
        after = start + _HEAD.size
        self._memory[after : after + len(content)] = content
        _HEAD.pack_into(self._memory, start, number + 1, len(content), crc32(content))
        return True

    def read(self, index: int) -> bytes:
        """Return what a worker, or the one before it at its slot, has left last; empty if that is nothing yet."""
        return max(self._halves(index), default=(0, b""))[1]

    def _halves(self, index: int) -> list[tuple[int, bytes]]:
        """Return the halves that are whole, with their numbers."""
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


FEW: Final = 2
"""Connections that a worker may have more than another before it leaves the next one to that one."""
NO_MORE: Final = 2**32 - 1
"""Connections of a worker that takes none: it does not serve yet, or any more."""


class ConnectionShare:
    """How many connections a worker has beside the others."""

    def __init__(self, counts: memoryview, index: int) -> None:
        """`counts`: of all workers, as unsigned integers; the worker with this index begins with none."""
        self._counts, self._index = counts, index
        counts[index] = 0

    def add(self, number: int) -> None:
        """Add to the number of this worker's connections; negative where they have ended."""
        if self._counts[self._index] != NO_MORE:
            self._counts[self._index] += number

    def stop(self) -> None:
        """Say that this worker takes no more, so that nobody leaves any to it."""
        self._counts[self._index] = NO_MORE

    def is_ahead(self) -> bool:
        """Return whether another worker has so few that the next connection should be its."""
        return self._counts[self._index] >= min(self._counts) + FEW


class OpenConnections:
    """The connections of all workers, in memory that processes share. To be made before the fork."""

    def __init__(self, workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, 4 * workers)).cast("I")
        for index in range(workers):
            self._counts[index] = NO_MORE

    def of(self, index: int) -> ConnectionShare:
        """Return the share of the worker with this index, which has none yet."""
        return ConnectionShare(self._counts, index)


class SharedMemory:
    """What is made before the fork and shared by all workers: their buckets, their counts, their clock, how many
    connections each has, and what tells them that a turn to write has ended.
    """

    def __init__(self, workers: int, entropy: Callable[[int], bytes]) -> None:
        self.buckets = SharedBuckets(entropy)
        self.counts = Counts(workers)
        self.connections = OpenConnections(workers)
        self.clock = memoryview(mmap.mmap(-1, 16)).cast("d")
        """As `svc.kernel.work.clock.ClockMemory`."""
        self.bell = Bell()
