"""How much free space the store has left, and what of it is the reserve.

LMDB never overwrites a page that is in use: a delete, too, takes pages before it frees any. A file that was filled to
its end by what came in can therefore not be emptied again. So a part of the space is kept for what deletes, the
reserve: ordinary writes are rejected where they would take from it.

Free space is what the map and the disk allow the file to grow by, and the pages inside it that nobody uses. What
another program takes from the disk is not kept back: where it has taken all, deletes wait too.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from svc.kernel.values.errors import NO_SPACE

RESERVE_SHARE = 4
RESERVE_MOST_BYTES = 64 << 20
"""A quarter of the map or of the disk, and at most so much, is kept for deletes: about ten times what the largest batch
changes."""

NEAR_SHARE = 64
"""So near the reserve, as a part of it, the store counts as full: what is large is refused from there on, and what is
small comes through now and then, which would make the store ready and unready by turns."""

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
    """Return the sizes of the disk of an environment, also where its directory was removed under the service. Raises
    `OSError`.
    """
    path = Path(environment.path())
    return os.statvfs(next(each for each in (path, *path.absolute().parents) if each.exists()))


def pages_in_use(environment: lmdb.Environment, transaction: Any, tables: Collection[Any]) -> int:
    """Return pages of these tables and of the list of tables; those of the list of free pages are not in it, LMDB does
    not tell them.
    """
    stats = [environment.stat(), *map(transaction.stat, tables)]
    return 2 + sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)


def may_grow(environment: lmdb.Environment) -> bool:
    """Return whether the disk gives the file another page. Finds out by taking it: a page behind the last one changes
    nothing.
    """
    with (Path(environment.path()) / "data.mdb").open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, environment.stat()["psize"])
        except OSError as error:
            return error.errno not in NO_SPACE
    return True
