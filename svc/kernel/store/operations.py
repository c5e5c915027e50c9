"""The operation log in the store: written by each commit while somebody follows it, copied and cut off by the follower.

A batch lies in the same transaction as the changes that it records, so that it is on disk exactly when they are,
whichever process made them. The log is bounded: past the follower's limit, or when it stands in the way of a commit,
it is dropped, and the row in `FOLLOWING` says so until following begins again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from svc.kernel.store.schema.operation_log import Batch, Changes, Following, batch_time_ms, pack_batch
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.tables import FOLLOWING, OPERATIONS

PART_BYTES = 4076
"""What fits on one page of 4 KiB beside its header and its checksum: pages of their own are found and freed one by
one, and a batch needs no run of free pages that lie together."""
_BEYOND = 2**64 - 1


class LogPosition(NamedTuple):
    """A position in an operation log: after the batch `sequence` of this timeline."""

    timeline: bytes
    sequence: int


def follower(snapshot: Snapshot) -> Following | None:
    """Return the follower, even if its log was dropped; `None` if the log has no follower."""
    return snapshot.get(FOLLOWING, "log")


def recorded(snapshot: Snapshot) -> Following | None:
    """Return the follower for which commits are recorded now: `None` also if the log was dropped. Takes 1 µs."""
    following = follower(snapshot)
    return following if following is not None and following.lost_at_ms is None else None


def position(snapshot: Snapshot) -> LogPosition | None:
    """Return where the log of this state ends; `None` if none is recorded."""
    following = recorded(snapshot)
    return None if following is None else LogPosition(following.timeline, newest(snapshot))


def newest(snapshot: Snapshot) -> int:
    """Return the sequence of the latest batch; 0 if there is none."""
    return next((sequence for sequence, _ in snapshot.scan_keys_reverse(OPERATIONS, (0,), (_BEYOND,))), 0)


def oldest(snapshot: Snapshot) -> int:
    """Return the sequence of the earliest batch that was not cut off; 0 if there is none."""
    return next((sequence for (sequence, _), _ in snapshot.scan(OPERATIONS)), 0)


def batches(snapshot: Snapshot, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield (sequence, packed batch) of the log from the sequence `start` on, in order. `unpack_batch` reads one."""
    rows = ((sequence, part) for (sequence, _), part in snapshot.scan(OPERATIONS, start=(start,)))
    for sequence, parts in groupby(rows, key=itemgetter(0)):
        yield sequence, b"".join(part for _, part in parts)


def behind_ms(snapshot: Snapshot, now_ms: int) -> int:
    """Return the ms since the oldest commit that may not be copied, or since the log was dropped; else 0."""
    following = follower(snapshot)
    if following is None:
        return 0
    if following.lost_at_ms is not None:
        return max(0, now_ms - following.lost_at_ms)
    first = oldest(snapshot)
    if first == newest(snapshot):
        return 0
    return max(0, now_ms - batch_time_ms(snapshot.get(OPERATIONS, first + 1, 0) or b""))


def append_changes(transaction: Transaction, changes: Changes, now_ms: int) -> None:
    """Append the changes of a commit, if any, as the next batch. Drop the log if it takes more than its limit."""
    if not changes:
        return
    sequence, packed = newest(transaction) + 1, pack_batch(Batch(now_ms, changes))
    for part, start in enumerate(range(0, len(packed), PART_BYTES)):
        transaction.put(OPERATIONS, (sequence, part), packed[start : start + PART_BYTES])
    following = follower(transaction)
    if following is not None and transaction.size(OPERATIONS) > following.limit_bytes:
        drop(transaction, now_ms, f"it took more than the {following.limit_bytes >> 20} MiB that it may")


def drop(transaction: Transaction, now_ms: int, because: str) -> None:
    """Delete the log, if any, and record when and why: its follower has to begin again with a new snapshot."""
    following = recorded(transaction)
    if following is not None:
        row = msgspec.structs.replace(following, lost_at_ms=now_ms, lost_because=because)
        transaction.put(FOLLOWING, ("log",), row)
        transaction.clear(OPERATIONS)


def begin(transaction: Transaction, following: Following) -> None:
    """Start an empty log: changes are recorded from the next commit on. An earlier log is deleted."""
    transaction.clear(OPERATIONS)
    transaction.put(OPERATIONS, (0, 0), b"")
    transaction.put(FOLLOWING, ("log",), following)


def allow(transaction: Transaction, limit_bytes: int) -> None:
    """Set how many bytes the log may take before it is dropped; do nothing if there is no follower."""
    following = follower(transaction)
    if following is not None:
        transaction.put(FOLLOWING, ("log",), msgspec.structs.replace(following, limit_bytes=limit_bytes))


def end(transaction: Transaction) -> None:
    """Delete the log and its follower's row: nothing is recorded any more."""
    transaction.delete(FOLLOWING, "log")
    transaction.clear(OPERATIONS)


def cut(transaction: Transaction, timeline: bytes, copied: int) -> None:
    """Delete the batches of the present timeline before `copied`, from which the next number follows."""
    following = recorded(transaction)
    if following is not None and following.timeline == timeline:
        for key in list(transaction.scan_keys_reverse(OPERATIONS, (0,), (copied,))):
            transaction.delete(OPERATIONS, *key)
