"""The free space of LMDB's file and disk: what is kept for deletes, and which writes are rejected for want of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from svc.kernel.store.engine import EngineError, StoreFullError
from svc.kernel.values.errors import NO_SPACE

RESERVE_SHARE = 4
RESERVE_MOST_BYTES = 64 << 20
"""A quarter of map or disk, at most so much, is kept for deletes: ten times what the largest batch changes."""

NEAR_SHARE = 64
"""The store counts as full while less than one part in `NEAR_SHARE` of the reserve is left above it: what is large is
refused there, and what is small succeeds now and then, which would make the store ready and unready by turns."""

MAP_FULL = "the store has reached map_gib: raise the setting, or delete what is not needed"
DISK_FULL = "the disk of the data directory is full: free some space"


class _File(NamedTuple):
    page_bytes: int
    size: int
    may_grow: int
    """Bytes by which the file may grow, within the map and the disk."""
    reserve: int


class FreeSpace:
    """What the map and the disk still allow one open environment to write."""

    def __init__(self, environment: lmdb.Environment, tables: Collection[Any]) -> None:
        """Take the handles of all tables; they may be opened later."""
        self._environment = environment
        self._tables = tables

    def has_headroom(self, transaction: Any) -> bool:
        """Return whether the pages in use in this transaction, committed or not, leave the reserve untouched. Takes
        about five microseconds; when space is nearly used up, one more per table.
        """
        file = self._file()
        return self._left(file, transaction) >= file.reserve

    def is_low(self, transaction: Any) -> bool:
        """Return whether so little is left above the reserve that ordinary writes are rejected, or soon will be."""
        file = self._file()
        return self._left(file, transaction) < file.reserve + file.reserve // NEAR_SHARE

    def full(self) -> str:
        """Return an error message that says whether the map or the disk is full, and what to do."""
        info = self._environment.info()
        in_map = info["map_size"] - self._environment.stat()["psize"] * (info["last_pgno"] + 1)
        disk = disk_of(self._environment)
        return DISK_FULL if disk.f_bavail * disk.f_frsize < in_map else MAP_FULL

    def _left(self, file: _File, transaction: Any) -> int:
        """Return the free bytes, at most twice the reserve."""
        if file.may_grow >= 2 * file.reserve:
            return 2 * file.reserve  # a transaction takes less than the other half
        return file.may_grow + file.size - file.page_bytes * pages_in_use(self._environment, transaction, self._tables)

    def _file(self) -> _File:
        info = self._environment.info()
        page_bytes = self._environment.stat()["psize"]
        disk = disk_of(self._environment)
        size = page_bytes * (info["last_pgno"] + 1)
        may_grow = min(info["map_size"] - size, disk.f_bavail * disk.f_frsize)
        most = min(info["map_size"], disk.f_blocks * disk.f_frsize)
        return _File(page_bytes, size, may_grow, min(most // RESERVE_SHARE, RESERVE_MOST_BYTES))


def disk_of(environment: lmdb.Environment) -> os.statvfs_result:
    """Return the sizes of the disk, also where the directory was removed. Raises `OSError`."""
    path = Path(environment.path())
    return os.statvfs(next(each for each in (path, *path.absolute().parents) if each.exists()))


def pages_in_use(environment: lmdb.Environment, transaction: Any, tables: Collection[Any]) -> int:
    """Return the pages of these tables and of their list; LMDB reports none of the list of free pages."""
    stats = [environment.stat(), *map(transaction.stat, tables)]
    return 2 + sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)


def may_grow(environment: lmdb.Environment) -> bool:
    """Return whether the disk gives the file a page, by taking one: a page behind the last changes nothing."""
    with (Path(environment.path()) / "data.mdb").open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, environment.stat()["psize"])
        except OSError as error:
            return error.errno not in NO_SPACE
    return True


def write_failure(environment: lmdb.Environment, error: lmdb.Error) -> EngineError | StoreFullError:
    """Return the exception for a failed write: `StoreFullError` if the map or the disk is full, else `EngineError`.
    LMDB reports an input/output error if only a part of its writes found space, so the free space of the disk is
    checked.
    """
    if isinstance(error, lmdb.MapFullError):
        return StoreFullError(MAP_FULL)
    code = getattr(error, "code", None)
    if code in NO_SPACE or (code == errno.EIO and not may_grow(environment)):
        return StoreFullError(DISK_FULL)
    return EngineError(str(error))
