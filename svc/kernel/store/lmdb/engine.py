"""`LmdbEngine`: the store's engine over one LMDB environment.

One fixed large map, never resized while the service runs; all tables opened at the start, since opening one while a
write transaction runs, and not in it, would freeze the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import lmdb

from svc.kernel.store.engine import (
    OUTSIDE,
    CheckDepth,
    CheckRow,
    Engine,
    EngineError,
    MissingTableError,
    Space,
    StoreFullError,
    Writer,
)
from svc.kernel.store.files.durable_files import Lock
from svc.kernel.store.lmdb import witness
from svc.kernel.store.lmdb.environment import DEFAULT_MAP_BYTES, FILE, open_read_only, open_writable
from svc.kernel.store.lmdb.free_space import FreeSpace, disk_of, pages_in_use, write_failure
from svc.kernel.store.lmdb.meta_pages import check_meta_pages, last_commit
from svc.kernel.store.lmdb.pages import check_pages
from svc.kernel.store.lmdb.transaction import LmdbReader, LmdbWriter
from svc.kernel.store.lmdb.witness import why_stalled
from svc.kernel.store.schema.codec import CorruptionError, CorruptPageError
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.values.errors import cause

T = TypeVar("T")


class FileSize(NamedTuple):
    """The size of a store's file, in pages."""

    page_bytes: int
    pages: int
    """Pages in use, or free inside the file."""
    free_pages: int
    """Of those, pages of no table: free, or of the list of free ones, of which LMDB tells nothing."""
    map_bytes: int
    """What the file may grow to, as its last writer set it."""
    commit: int
    """The number of the last commit."""


class ReaderSlot(NamedTuple):
    """A slot of LMDB's reader table, which a thread keeps after its read."""

    process: int
    thread: str
    commit: int | None
    """The commit that it sees; `None` = it reads nothing now."""


def _believe(table: str, key: bytes, value: bytes) -> None:
    """Accept a row of a table without checksums."""


class LmdbEngine(Engine):
    """An open LMDB environment. The methods are described in `Engine`, but for those that only LMDB has."""

    def __init__(self, environment: lmdb.Environment, check_row: CheckRow = _believe) -> None:
        self.environment = environment
        """For this package and its tests; nothing else may use it."""
        self._check_row = check_row
        self._tables: dict[str, Any] = {}
        self._free_space = FreeSpace(environment, self._tables.values())
        self._file = Path(environment.path())
        if self._file.is_dir():
            self._file /= FILE
        self._descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        self._page_bytes: int = environment.stat()["psize"]
        found = os.fstat(self._descriptor)
        self._identity, self._size = (found.st_dev, found.st_ino), found.st_size
        self._commit = 0
        """The last commit that this process knows of."""
        self._noted = 0

    @classmethod
    def open(
        cls,
        directory: Path,
        /,
        *,
        map_bytes: int = DEFAULT_MAP_BYTES,
        durable: bool = True,
        check_row: CheckRow = _believe,
    ) -> LmdbEngine:
        """Open or create the environment in a directory, made with mode 0700. Stale reader slots are freed and the last
        commit is checked. `durable=False`: without fsync, for stores that are thrown away. Raises `EngineError` and
        `codec.CorruptionError`.
        """
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        engine = cls(open_writable(directory, map_bytes=map_bytes, durable=durable), check_row)
        try:
            engine.clear_stale_readers()
            engine.check(CheckDepth.COMMIT)
        except BaseException:
            engine.close()
            raise
        return engine

    @classmethod
    def open_read_only(cls, path: Path, /, *, live: bool, check_row: CheckRow = _believe) -> LmdbEngine:
        """Open a directory that others may write to if it is `live`, or else one file. Nothing is created or locked, so
        that looking at a store cannot change it. Raises `EngineError`.
        """
        return cls(open_read_only(path, live=live), check_row)

    def tables(self) -> set[str]:
        """See `Engine.tables`. The list is corrupt where LMDB counts other tables than it shows."""
        with self.environment.begin() as handle:
            names = {bytes(name) for name in handle.cursor().iternext(values=False)}
        listed = self.environment.stat()["entries"]
        if len(names) != listed:
            raise CorruptionError(f"the list of tables has {listed} and shows {len(names)}")
        return {name.decode(errors="surrogateescape") for name in names}

    def open_tables(self, names: Iterable[str], /, *, create: bool = False) -> None:
        """See `Engine.open_tables`. Creates all in one commit or none. Raises `EngineError` and `StoreFullError`."""
        raw_names = {name: name.encode(errors="surrogateescape") for name in names}
        try:
            if create:
                with self.environment.begin(write=True) as handle:  # one commit for all of them
                    opened = {name: self.environment.open_db(raw, txn=handle) for name, raw in raw_names.items()}
            else:
                opened = {name: self.environment.open_db(raw, create=False) for name, raw in raw_names.items()}
        except lmdb.NotFoundError as error:
            raise MissingTableError(str(error)) from error
        except lmdb.Error as error:
            raise write_failure(self.environment, error) if create else EngineError(str(error)) from error
        self._tables.update(opened)

    def read(self) -> LmdbReader:
        """See `Engine.read`. Raises `EngineError`, also when every reader slot is taken."""
        try:
            return LmdbReader(self.environment.begin(), self._tables, self._check_row)
        except lmdb.Error as error:
            raise EngineError(str(error)) from error

    def write(
        self,
        group: Callable[[Writer], T],
        /,
        *,
        may_use_reserve: bool = False,
        inside: AbstractContextManager[object] = OUTSIDE,
    ) -> T:
        """See `Engine.write`. py-lmdb ties a write transaction to its thread, so begin to commit happen inside this one
        call. A corrupt page is an error for the job that needs it (`CorruptPageError`), but for one of the list of free
        pages, which every commit needs.
        """
        try:
            with self.environment.begin(write=True) as handle, inside:
                result = group(LmdbWriter(self.environment, handle, self._tables, self._check_row))
                if not may_use_reserve and not self._free_space.has_headroom(handle):
                    raise StoreFullError(self._free_space.full())
            self._commit = max(self._commit, self.environment.info()["last_txnid"])
        except lmdb.Error as error:
            raise write_failure(self.environment, error) from error
        except CorruptPageError as error:
            try:
                self.check(CheckDepth.COMMIT)
            except CorruptionError as found:
                raise EngineError(str(found)) from error
            raise
        return result

    def take_turn(self) -> Callable[[], None] | None:
        """See `Engine.take_turn`: an flock on the store's file, which LMDB does not use."""
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None  # what is wrong with the file, the write says
        lock = Lock(descriptor)
        if lock.acquire():
            return lock.close
        lock.close()
        return None

    def space(self) -> Space:
        """See `Engine.space`. Free pages inside the file count as used, since LMDB gives none back to the disk."""
        info = self.environment.info()
        disk = disk_of(self.environment)
        slots = self.reader_slots()
        oldest = min((slot.commit for slot in slots if slot.commit is not None), default=None)
        return Space(
            used_bytes=(info["last_pgno"] + 1) * self.environment.stat()["psize"],
            limit_bytes=info["map_size"],
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            readers=len(slots),
            reader_lag=0 if oldest is None else max(0, info["last_txnid"] - oldest),
        )

    def capacity_bytes(self) -> int:
        """Return the size of the map or, if that is smaller, of the disk, with what else is on it."""
        disk = disk_of(self.environment)
        return min(self.environment.info()["map_size"], disk.f_blocks * disk.f_frsize)

    def is_low(self) -> bool:
        """See `Engine.is_low`; what is kept in reserve is in `free_space.py`."""
        with self.environment.begin() as handle:
            return self._free_space.is_low(handle)

    def check(self, depth: CheckDepth, steps: Steps = QUIET) -> None:
        """See `Engine.check`; what is read at which depth is in `pages.py`. Raises `CorruptionError`."""
        check_pages(self.environment, depth, steps)

    def clear_stale_readers(self) -> int:
        """See `Engine.clear_stale_readers`. A slot of a living process is never freed."""
        return self.environment.reader_check()

    def close(self) -> None:
        """See `Engine.close`. A second call does nothing."""
        self.environment.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def check_file(self) -> None:
        """Check the meta pages, by which LMDB finds everything else. Raises `CorruptionError`."""
        check_meta_pages(self._file)

    def lost(self) -> str | None:
        """See `Engine.lost`. Threads may ask while the file grows: each compares with the size and commit of before."""
        size, commit = self._size, self._commit
        try:
            found = self._file.stat()
        except OSError as error:
            return f"{self._file} is gone: {error.strerror}"
        if (found.st_dev, found.st_ino) != self._identity:
            return f"{self._file} was replaced by another file"
        if found.st_size < size:  # it never shrinks; asking LMDB would read pages that are not there
            return f"{self._file} was cut from {size} to {found.st_size} bytes"
        self._size = found.st_size
        try:
            last = last_commit(self._descriptor, self._page_bytes)
        except OSError as error:
            return f"{self._file} cannot be read: {cause(error)}"
        if last is None or last < commit:
            return f"{self._file} was overwritten: it ends before commit {commit}, which was stored"
        self._commit = max(last, self._commit)
        return None

    def note_commit(self) -> None:
        """See `Engine.note_commit`. An older file in the place of this one is what the witness is for."""
        commit = self._commit
        if commit != self._noted and self._file.exists():
            witness.write(self._file.parent, commit)
            self._noted = commit

    def why_stalled(self) -> str:
        """See `Engine.why_stalled`."""
        return why_stalled(self._file.with_name("lock.mdb"))

    def file_size(self) -> FileSize:
        """Return the size of the file and its parts at the last commit."""
        info, page_bytes = self.environment.info(), self.environment.stat()["psize"]
        with self.environment.begin() as handle:
            used = pages_in_use(self.environment, handle, self._tables.values())
        pages = info["last_pgno"] + 1
        return FileSize(page_bytes, pages, max(0, pages - used), info["map_size"], info["last_txnid"])

    def reader_slots(self) -> list[ReaderSlot]:
        """Return the reader slots of every process, from LMDB's own list."""
        lines = [line.split() for line in self.environment.readers().splitlines()[1:]]
        rows = [line for line in lines if len(line) == 3]
        return [ReaderSlot(int(row[0]), row[1], None if row[2] == "-" else int(row[2])) for row in rows]

    def copy(self, directory: Path, now_ms: Callable[[], int]) -> int:
        """Copy one state, without its free pages, into an empty directory as `data.mdb`. Returns a time in Unix
        milliseconds: every commit in the copy was made by then, and every other one after it. Raises `EngineError`.
        """
        with self.environment.begin() as handle:
            taken_at_ms = now_ms()
            try:
                self.environment.copy(str(directory), compact=True, txn=handle)
            except lmdb.Error as error:
                raise EngineError(str(error)) from error
        return taken_at_ms

    def sync(self) -> None:
        """Flush an environment that was opened with `durable=False` to disk. Raises `EngineError`."""
        try:
            self.environment.sync(True)
        except lmdb.Error as error:
            raise EngineError(str(error)) from error
