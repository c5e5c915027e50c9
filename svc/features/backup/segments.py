"""Segments: files into which a follower copies the operation log, batch after batch, on disk before it is cut off.

A segment is a head and then records. The head: `svc log 1`, the timeline (16 bytes) and the sequence of the first batch
(8). A record: the sequence (8), the length of the batch (4), the CRC-32 of the timeline and these twelve bytes (4), and
the batch, which carries its own check. All numbers are big-endian.

A machine that stops may leave the last record of a timeline torn: its end is missing, or was never written. Anything
else that does not fit is corruption, which is refused: what comes after it would be lost without a word.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

from svc.kernel.store.files import durable_files as files
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.operation_log import TIMELINE_BYTES, Batch, batch_time_ms, unpack_batch

MAGIC = b"svc log 1"
SEGMENT_BYTES = 64 << 20
"""A segment that has reached this is followed by another."""
SEGMENT_MS = 3_600_000
"""Or one that began so long ago: what is no longer needed goes by whole segments."""

_HEAD = struct.Struct(f">{len(MAGIC)}s{TIMELINE_BYTES}sQ")
_RECORD = struct.Struct(">QII")
_NAME = re.compile(r"operations-([0-9a-f]{32})-(\d{16})\.log")


class SegmentFile(NamedTuple):
    """A segment file, as its name describes it: `first` is the sequence of its first batch."""

    path: Path
    timeline: bytes
    first: int


class SegmentRecord(NamedTuple):
    """One whole batch of a segment, unpacked and as it was packed (`raw`)."""

    sequence: int
    batch: Batch
    raw: bytes
    end: int
    """Where it ends in the file."""


class Torn(NamedTuple):
    """The end of a file after its last whole record: what a crash left of an unfinished write."""

    path: Path
    end: int
    bytes: int


class CorruptBackupError(CorruptionError):
    """Bytes of a segment are not what was written; the message names the file and the byte."""


def listed(folder: Path, timeline: bytes | None = None) -> list[SegmentFile]:
    """Return the segments of a folder, or of one timeline in it, by timeline and sequence. Other files are left alone.
    Raises `DirectoryError` if the folder cannot be read.
    """
    found: list[SegmentFile] = []
    with files.reporting("cannot read", folder):
        names = sorted(path.name for path in folder.iterdir())
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None and timeline in (None, bytes.fromhex(match[1])):
            found.append(SegmentFile(folder / name, bytes.fromhex(match[1]), int(match[2])))
    return found


def records(segment: SegmentFile, *, last: bool) -> Iterator[SegmentRecord | Torn]:
    """Yield the records of a segment in order. Only the `last` segment of its timeline may end in a `Torn` one;
    anything else that does not fit raises `CorruptBackupError`.
    """
    size = segment.path.stat().st_size
    with segment.path.open("rb") as file:
        if file.read(_HEAD.size) != _HEAD.pack(MAGIC, segment.timeline, segment.first):
            if last and size < _HEAD.size:
                yield Torn(segment.path, 0, size)
                return
            raise CorruptBackupError(f"{segment.path} does not begin as its name says")
        expected, end = segment.first, _HEAD.size
        while end < size:
            record = _record(file, segment, expected, end, size)
            if record is None:
                if not last:
                    raise CorruptBackupError(
                        f"{segment.path} ends with half a record at byte {end}, and another segment follows"
                    )
                yield Torn(segment.path, end, size - end)
                return
            yield record
            expected, end = record.sequence + 1, record.end


def _record(file: BinaryIO, segment: SegmentFile, expected: int, at: int, size: int) -> SegmentRecord | None:
    """Return the next record; `None` where the file ends before the record does. Raises `CorruptBackupError`."""
    head = file.read(_RECORD.size)
    if len(head) < _RECORD.size:
        return None
    sequence, length, check = _RECORD.unpack(head)
    if check != _check(segment.timeline, sequence, length):
        if not any(head) and _only_zeros(file):  # the length of the file was on disk before its content
            return None
        raise CorruptBackupError(f"{segment.path} is corrupt at byte {at}: the head of a record fails its check")
    if sequence != expected:
        raise CorruptBackupError(
            f"{segment.path} is corrupt at byte {at}: batch {sequence} stands where {expected} belongs"
        )
    raw, end = file.read(length), at + _RECORD.size + length
    if len(raw) < length:
        return None
    try:
        return SegmentRecord(sequence, unpack_batch(raw), raw, end)
    except ValueError as error:
        if end == size:
            return None
        raise CorruptBackupError(f"{segment.path} is corrupt at byte {at}: {error}") from error


def _check(timeline: bytes, sequence: int, length: int) -> int:
    return zlib.crc32(timeline + struct.pack(">QI", sequence, length))


def _only_zeros(file: BinaryIO) -> bool:
    while block := file.read(files.BLOCK_BYTES):
        if any(block):
            return False
    return True


class SegmentWriter:
    """Appends batches of one timeline to the segments of a folder. Nothing is buffered: after an error the file has
    what was written, and `resume` finds its end.
    """

    def __init__(
        self, folder: Path, timeline: bytes, copied: int, begun: Path | None = None, began_at_ms: int = 0
    ) -> None:
        """Go on after `copied`, the folder's last batch, in the segment `begun`, begun at `began_at_ms`."""
        self.timeline = timeline
        self.copied = copied
        self.folder = folder
        self._descriptor = None if begun is None else os.open(begun, os.O_WRONLY | os.O_APPEND)
        self._bytes = 0 if self._descriptor is None else os.fstat(self._descriptor).st_size
        self._began_at_ms = began_at_ms

    def append(self, sequence: int, raw: bytes) -> None:
        """Append one packed batch, the next after `copied` by its sequence; durable after `sync`. Raises `OSError`."""
        assert sequence == self.copied + 1, "a follower never leaves a batch out"
        head = _RECORD.pack(sequence, len(raw), _check(self.timeline, sequence, len(raw)))
        files.write_all(self._segment_for(sequence, batch_time_ms(raw)), head + raw)
        self._bytes += len(head) + len(raw)
        self.copied = sequence

    def is_in_place(self) -> bool:
        """Return whether the segment being written is still in its folder, with every byte that was written."""
        if self._descriptor is None:
            return True
        status = os.fstat(self._descriptor)
        return status.st_nlink > 0 and status.st_size == self._bytes

    def sync(self) -> None:
        """Make everything that was appended durable. Raises `OSError`."""
        if self._descriptor is not None:
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Make everything that was appended durable and close the segment. A second call does nothing."""
        if self._descriptor is not None:
            self.sync()
            os.close(self._descriptor)
            self._descriptor = None

    def _segment_for(self, sequence: int, at_ms: int) -> int:
        if self._descriptor is not None and (
            os.fstat(self._descriptor).st_size >= SEGMENT_BYTES or at_ms - self._began_at_ms >= SEGMENT_MS
        ):
            self.close()
        if self._descriptor is None:
            path = self.folder / f"operations-{self.timeline.hex()}-{sequence:016}.log"
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            files.write_all(self._descriptor, _HEAD.pack(MAGIC, self.timeline, sequence))
            self._bytes = _HEAD.size
            self._began_at_ms = at_ms
            files.sync(self.folder)
        return self._descriptor


def resume(folder: Path, timeline: bytes) -> tuple[SegmentWriter, bytes | None]:
    """Return a writer that goes on after the last whole record of the timeline, and that record's packed batch (`None`
    without any). A torn end is cut off the file. Raises `CorruptBackupError` and `OSError`.
    """
    found = listed(folder, timeline)
    if not found:
        return SegmentWriter(folder, timeline, 0), None
    segment = found[-1]
    first = last = None
    for record in records(segment, last=True):
        if isinstance(record, Torn):
            os.truncate(segment.path, record.end)
            files.sync(segment.path)
        else:
            first, last = first or record, record
    if first is None or last is None:  # nothing whole in it: its place is taken by the next
        segment.path.unlink()
        return resume(folder, timeline)
    return SegmentWriter(folder, timeline, last.sequence, segment.path, first.batch.at_ms), last.raw


def prune(folder: Path, needed: dict[bytes, int], following: bytes | None) -> list[Path]:
    """Remove the segments that continue no snapshot; return their paths. `needed`: the earliest batch that a snapshot
    contains, by timeline. The last segment of the timeline `following` is always kept.
    """
    gone: list[Path] = []
    for segment, after in with_next(listed(folder)):
        if after is None and segment.timeline == following:
            continue
        held = needed.get(segment.timeline)
        if held is None or (after is not None and after.first <= held + 1):
            segment.path.unlink()
            gone.append(segment.path)
    return gone


def with_next(found: list[SegmentFile]) -> Iterator[tuple[SegmentFile, SegmentFile | None]]:
    """Yield each segment with the next one, `None` for the last of its timeline. `found` is as from `listed`."""
    for segment, after in pairwise([*found, None]):
        if segment is not None:
            yield segment, after if after is not None and after.timeline == segment.timeline else None
