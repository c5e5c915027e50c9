"""Following: the operation log of one store, copied into a folder of backups within a second of each commit.

A batch is cut off the log only when it is on disk in a segment and the record of what was copied names it, so the
follower may be killed at any moment and goes on where its segments end, and a segment that is lost is missed. When it
cannot go on (the log was dropped, the folder is another one) it begins a new timeline, which needs a new snapshot. The
record is made every ten seconds, too, while nothing is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from svc.features.backup import copied_up_to, segments, snapshots
from svc.features.backup.copied_up_to import CopiedUpTo
from svc.kernel.store import operations
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.operation_log import Following, batch_time_ms
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import Store

DEFAULT_LIMIT_BYTES = 1 << 30
INTERVAL_S = 0.25
"""Between two polls of the log: with the time to copy, well within the second that may be lost."""
BYTES_A_STEP = 16 << 20
"""Copied at once, so that memory is bounded however far behind the follower is."""
BATCHES_UNCUT = 64
BYTES_UNCUT = 4 << 20
POLLS_UNCUT = 4
"""The log is cut off after this number of batches, bytes, or polls: each cut is a commit of the store."""


class NotResumed(NamedTuple):
    """The folder cannot be continued, `because` of this: a new timeline must begin with a snapshot."""

    because: str


def resume(store: Store, folder: Path) -> segments.SegmentWriter | NotResumed:
    """Return what appends to a folder if the store's log still has the batch after its last segment, else why not. The
    last copied batch is compared, so that the log of another store is never mistaken for this one's. Raises
    `DirectoryError`.
    """
    with store.read() as snapshot:
        following = operations.follower(snapshot)
    if following is None:
        return NotResumed("nobody has followed this store")
    if following.lost_at_ms is not None:
        return NotResumed(f"the operation log was dropped: {following.lost_because}")
    if all(known.manifest.timeline != following.timeline.hex() for known in snapshots.listed(folder)):
        return NotResumed(
            f"{folder} has no snapshot that the log continues; it was followed to {following.destination}"
        )
    try:
        writer, raw = segments.resume(folder, following.timeline)
    except CorruptionError as error:
        return NotResumed(str(error))
    with store.read() as snapshot:
        fits = _continues(snapshot, writer.copied, raw)
    if not fits:
        writer.close()
        return NotResumed(f"the segments in {folder} end at batch {writer.copied}, where the log does not go on")
    return writer


def _continues(snapshot: Snapshot, copied: int, raw: bytes | None) -> bool:
    """Return whether the log goes on after `copied`. It keeps that batch: another store's log has a different one."""
    if not operations.oldest(snapshot) <= copied <= operations.newest(snapshot):
        return False
    sequence, kept = next(operations.batches(snapshot, copied))
    return sequence == copied and (kept == raw or not copied)


def begin(store: Store, folder: Path, timeline: bytes, now_ms: int, limit_bytes: int) -> None:
    """Record the store's changes from now on as a new timeline (16 bytes). The log is given up when it takes more than
    `limit_bytes` in the store.
    """
    following = Following(timeline, now_ms, str(folder.resolve()), limit_bytes)
    store.change_log(partial(operations.begin, following=following))


class Follower:
    """Copies the operation log of one store into segments. `batches` and `bytes` count what was copied since the object
    was created; `now_ms` is the clock by which it records how far it has copied.
    """

    def __init__(self, store: Store, writer: segments.SegmentWriter, now_ms: Callable[[], int]) -> None:
        self.batches = 0
        self.bytes = 0
        self._store = store
        self._writer = writer
        self._now_ms = now_ms
        self._noted: CopiedUpTo | None = None
        self._copied_ms = 0
        self._uncut_batches = self._uncut_bytes = self._polls = 0

    def step(self, *, is_last: bool = False) -> bool:
        """Copy what the log has gained since the last step, and record when it is due, or after the last step, how far
        that is. `False` = this timeline has ended, or its segment is gone or was cut, and a new one must begin with a
        snapshot. Raises `OSError` if the copy cannot be written, `UnavailableError` if the store is not what was
        committed (`Store.lost`): what is copied would continue another one.
        """
        more = True
        if (problem := self._store.lost()) is not None:
            raise UnavailableError(problem)
        mark = self._mark() if is_last or self._is_due() else None
        while more:
            with self._store.read() as snapshot:
                following = operations.recorded(snapshot)
                if following is None or following.timeline != self._writer.timeline:
                    return False
                more = self._copy(snapshot)
            self._writer.sync()
            if not self._writer.is_in_place():
                self._uncut_batches = 0  # what it held stays in the store
                return False
            self._cut_when_due()
        if mark is not None and (self._noted is None or mark[0] >= self._noted.sequence):
            self._note(*mark)
        return True

    def _is_due(self) -> bool:
        return self._noted is None or abs(self._now_ms() - self._noted.at_ms) >= copied_up_to.INTERVAL_MS

    def _note(self, sequence: int, at_ms: int) -> None:
        self._noted = CopiedUpTo(timeline=self._writer.timeline.hex(), sequence=sequence, at_ms=at_ms)
        copied_up_to.write(self._writer.folder, self._noted)

    def _mark(self) -> tuple[int, int]:
        """Return the batch and the moment up to which this step copies. They are read while no commit is under way: one
        that took its time before and ended later would be missing from the copies that this claims.
        """

        def position(transaction: Transaction) -> tuple[int, int]:
            return operations.newest(transaction), self._now_ms()

        return self._store.change_log(position)

    def close(self) -> None:
        """Make the copy durable, and cut the copied part off the log."""
        self._writer.close()
        if self._uncut_batches:
            self._cut()

    def _copy(self, snapshot: Snapshot) -> bool:
        """Copy some batches; return whether the step was full, so that there may be more."""
        copied = 0
        for sequence, raw in operations.batches(snapshot, self._writer.copied + 1):
            self._writer.append(sequence, raw)
            self._copied_ms = batch_time_ms(raw)
            self.batches += 1
            self._uncut_batches += 1
            copied += len(raw)
            if copied >= BYTES_A_STEP:
                break
        self.bytes += copied
        self._uncut_bytes += copied
        return copied >= BYTES_A_STEP

    def _cut_when_due(self) -> None:
        self._polls += 1
        if self._uncut_batches and (
            self._uncut_batches >= BATCHES_UNCUT or self._uncut_bytes >= BYTES_UNCUT or self._polls >= POLLS_UNCUT
        ):
            self._cut()

    def _cut(self) -> None:
        if self._noted is None or self._writer.copied > self._noted.sequence:
            self._note(self._writer.copied, self._copied_ms)
        cut = partial(operations.cut, timeline=self._writer.timeline, copied=self._writer.copied)
        self._store.change_log(cut)
        self._uncut_batches = self._uncut_bytes = self._polls = 0
