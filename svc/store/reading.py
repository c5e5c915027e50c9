"""A store that is only read: the one a service is running on, from another process, or a file that nobody writes.

Nothing is made, migrated or locked by reading, so that looking at a store cannot change it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from svc.store.codec import Corrupted
from svc.store.directory import Unusable
from svc.store.meta_pages import check_meta_pages
from svc.store.migrations import MIGRATIONS, NewerStore
from svc.store.pages import Reach, check_pages
from svc.store.snapshot import Snapshot
from svc.store.steps import Steps
from svc.store.store import MAX_TABLES, Reading
from svc.store.tables import META, TABLES


class FileSize(NamedTuple):
    """What a store's file is made of."""

    page_bytes: int
    pages: int
    """In use, or free inside the file."""
    free_pages: int
    """Of those, pages of no table: free, or of the list of free ones, of which LMDB tells nothing."""
    map_bytes: int
    """What the file may grow to, as its last writer set it."""
    commit: int
    """The number of the last one."""


class Reader(NamedTuple):
    """A slot that a thread of another process has taken to read."""

    process: int
    thread: str
    commit: int | None
    """The one that it sees; `None` = it reads nothing now."""


class ReadOnlyStore:
    """An open store. Close it; and read briefly where a service writes: its file grows meanwhile."""

    def __init__(self, environment: lmdb.Environment, tables: dict[str, Any]) -> None:
        self._environment = environment
        self._tables = tables

    def read(self) -> Reading:
        return Reading(self._environment, self._tables)

    def copy(self, directory: Path, now_ms: Callable[[], int]) -> int:
        """Copy one state, without its free pages, into an empty directory as `data.mdb`; a moment that is not before
        any commit in it, and not after any commit that is not. Raises `Unusable`, and `codec.Corrupted` where the copy
        would hide that the original is damaged.
        """
        check_pages(self._environment, Reach.BRANCHES)
        with self._environment.begin() as handle:
            taken_at_ms = now_ms()
            try:
                self._environment.copy(str(directory), compact=True, txn=handle)
            except lmdb.Error as error:
                raise Unusable(f"cannot copy the store to {directory}: {error}") from error
        return taken_at_ms

    def damaged_pages(self, steps: Steps) -> list[str]:
        """A sentence where a page is used twice, or used and free: then no row should be looked for."""
        try:
            check_pages(self._environment, Reach.EVERYTHING, steps)
        except Corrupted as error:
            return [str(error)]
        return []

    @property
    def used_bytes(self) -> int:
        """Pages in use, free pages inside the file included."""
        return (self._environment.info()["last_pgno"] + 1) * self._environment.stat()["psize"]

    def size(self) -> FileSize:
        info, own = self._environment.info(), self._environment.stat()
        with self._environment.begin() as handle:
            stats = [own, *map(handle.stat, self._tables.values())]
        used = 2 + sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
        pages = info["last_pgno"] + 1
        return FileSize(own["psize"], pages, max(0, pages - used), info["map_size"], info["last_txnid"])

    def readers(self) -> list[Reader]:
        """Of every process but this one, which reads too; none where nobody else may write."""
        lines = [line.split() for line in self._environment.readers().splitlines()[1:]]
        found = [Reader(int(row[0]), row[1], None if row[2] == "-" else int(row[2])) for row in lines if len(row) == 3]
        return [reader for reader in found if reader.process != os.getpid()]


@contextmanager
def read_only(path: Path, *, live: bool) -> Generator[ReadOnlyStore]:
    """The store in a directory, or in a file `data.mdb`. `live`: another process may be writing to it.

    Raises `Unusable` where there is none that this program could read, `NewerStore`, and `codec.Corrupted`.
    """
    file = path / "data.mdb" if path.is_dir() else path
    if not file.is_file():
        raise Unusable(f"{file} is not there")
    try:
        environment = lmdb.open(
            str(file.parent if live else file),
            subdir=live,
            readonly=True,
            lock=live,
            create=False,
            max_dbs=MAX_TABLES,
            map_size=0,  # as the file says
        )
    except lmdb.Error as error:
        raise Unusable(f"{file} cannot be read as a store: {error}") from error
    try:
        check_meta_pages(file)
        yield ReadOnlyStore(environment, _tables(environment, file))
    finally:
        environment.close()


def _tables(environment: lmdb.Environment, file: Path) -> dict[str, Any]:
    pages = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    if file.stat().st_size < pages:  # reading on would end the process
        raise Unusable(f"{file} is cut short: it has {file.stat().st_size} bytes and names {pages}")
    older = Unusable(
        f"{file} was written by an older program: start the service on it once, or restore it, which brings it up to "
        "date"
    )
    tables: dict[str, Any] = {}
    try:
        tables[META.name] = environment.open_db(META.name.encode(), create=False)
        with environment.begin() as handle:
            version = Snapshot(handle, tables).get(META, "version") or 0
        if version > len(MIGRATIONS):
            raise NewerStore(f"{file} has version {version} and this program knows {len(MIGRATIONS)}: use a newer one")
        if version < len(MIGRATIONS):
            raise older
        for table in TABLES:
            tables[table.name] = environment.open_db(table.name.encode(), create=False)
    except lmdb.NotFoundError:
        if META.name in tables:
            raise Unusable(f"{file} is damaged: it has lost a table; restore it from a backup") from None
        raise older from None
    except lmdb.Error as error:
        raise Unusable(f"{file} cannot be read as a store: {error}") from error
    return tables
