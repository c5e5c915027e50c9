"""Copied up to: the follower's own record of how far the log in a folder leads, so that a log that was lost is missed.

One file for each timeline, replaced before batches are cut off the store's log, and every `INTERVAL_MS` while nothing
is committed: an idle hour is no loss. Its name sorts before the segments, so that a copy of the folder that is made in
the order of names has it from before the segments and never lacks what it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import msgspec

from svc.kernel.store import operations
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.installation import NewerStoreError
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.errors import DirectoryError
from svc.kernel.values.timestamps import timestamp

INTERVAL_MS = 10_000
FORMAT = 1
_NAME = re.compile(r"copied-[0-9a-f]{32}\.json")


class CopiedUpTo(msgspec.Struct, frozen=True, kw_only=True):
    """`copied-TIMELINE.json`. Fields are added with defaults; a changed meaning is a new `format`."""

    format: int = FORMAT
    timeline: str
    """Hexadecimal, as in a manifest."""
    sequence: int
    """Every batch up to this one was on disk in a segment; 0 = there was none yet."""
    at_ms: int
    """No batch after `sequence` was committed before this moment (Unix ms)."""


class Loss(NamedTuple):
    """What a restore does not reach of what was copied or asked for."""

    because: str
    reached_ms: int
    """All that was committed by then is there."""
    wanted_ms: int | None
    """The last moment that was copied, or that was asked for; `None` = unknown, and later than `reached_ms`."""
    commits: int = 0
    """That are known to have been copied, and are not there."""

    @property
    def short_s(self) -> float | None:
        """Return the seconds from `reached_ms` to `wanted_ms`; `None` = unknown."""
        return None if self.wanted_ms is None else max(0, self.wanted_ms - self.reached_ms) / 1000

    @property
    def text(self) -> str:
        """Return how much is missing, and why, as a part of a sentence."""
        reached = timestamp(self.reached_ms)
        if self.wanted_ms is None:
            return f"the backup ends at {reached}, and what was committed later is lost: {self.because}"
        commits = f" ({self.commits} commit{'s' * (self.commits != 1)})" if self.commits else ""
        return (
            f"the backup ends at {reached}, {self.short_s:,.12g} s before {timestamp(self.wanted_ms)}, and what was "
            f"committed between is lost{commits}: {self.because}"
        )


def write(folder: Path, copied: CopiedUpTo) -> None:
    """Replace the record of a timeline; durable on return. Raises `OSError`."""
    content = msgspec.json.format(msgspec.json.encode(copied)) + b"\n"
    files.replace(folder / f"copied-{copied.timeline}.json", content)


def listed(folder: Path) -> list[CopiedUpTo]:
    """Return the records of a folder by name. Raises `DirectoryError`, `NewerStoreError` for one of a later form."""
    with files.reporting("cannot read", folder):
        paths = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    return [_read(path) for path in paths]


def of_timeline(folder: Path, timeline: str) -> CopiedUpTo | None:
    """Return the record of one timeline; `None` if there is none. Raises as `listed` does."""
    return next((copied for copied in listed(folder) if copied.timeline == timeline), None)


def beyond(following: Following, read: Callable[[], AbstractContextManager[Snapshot]]) -> str | None:
    """Return a sentence if the follower of a store has copied batches after the store's last one; `None` if not, or if
    its folder has no record. `read`: takes a snapshot of the store, which may be in use, after the record was read.
    Raises as `listed` does.
    """
    copied = of_timeline(Path(following.destination), following.timeline.hex())
    with read() as snapshot:
        end = operations.position(snapshot)
    if copied is None or end is None or end.timeline != following.timeline or copied.sequence <= end.sequence:
        return None
    return (
        f"the store ends with batch {end.sequence}, and batch {copied.sequence} was copied to {following.destination} "
        f"before {timestamp(copied.at_ms)}: what was acknowledged between them is gone here, and `svc restore` has it"
    )


def _read(path: Path) -> CopiedUpTo:
    with files.reporting("cannot read", path):
        content = path.read_bytes()
    try:
        copied = msgspec.json.decode(content, type=CopiedUpTo)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise DirectoryError(
            f"{path} does not say how far the log was copied ({error}): take it from another copy of the folder, or "
            "remove it to restore what is there"
        ) from error
    if copied.format > FORMAT:
        raise NewerStoreError(f"{path} has the form {copied.format} and this program knows {FORMAT}: use a newer one")
    return copied


def prune(folder: Path, needed: set[str]) -> list[Path]:
    """Remove the records of all timelines but those `needed`; return their paths. Raises `OSError`."""
    gone = [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.stem[7:] not in needed]
    for path in gone:
        path.unlink()
    return sorted(gone)
