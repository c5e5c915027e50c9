"""A store that is only read: the one a service is running on, from another process or in a database, or a file that
nobody writes.

Nothing is made, migrated or locked by reading, so that looking at a store cannot change it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

from svc.kernel.store.directory import NO_STORE
from svc.kernel.store.engine import CheckDepth, Engine, EngineError, MissingTableError
from svc.kernel.store.installation import NewerStoreError
from svc.kernel.store.lmdb.engine import FileSize, LmdbEngine, ReaderSlot
from svc.kernel.store.opening import engine_at, version_of
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import installed
from svc.kernel.store.steps import Steps
from svc.kernel.store.store import ReadTransaction
from svc.kernel.values.errors import DirectoryError, explained


class OlderFileError(DirectoryError):
    """The store was written by an earlier version of the service: the next start upgrades it."""


class ReadOnlyStore:
    """A store that is open for reading only. Close snapshots soon where a service writes: its file grows meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def read(self) -> ReadTransaction:
        """Return a snapshot of the last commit, for a `with` block."""
        return ReadTransaction(self.engine)

    def corrupt_pages(self, steps: Steps) -> list[str]:
        """Return at most one sentence, where a page is used twice, or is both used and free: then rows cannot be
        trusted to be found. Reads every page; `steps` shows the progress. Of a database, nothing: it checks its own.
        """
        try:
            self.engine.check(CheckDepth.EVERYTHING, steps)
        except CorruptionError as error:
            return [str(error)]
        return []

    @property
    def used_bytes(self) -> int:
        """Bytes of all pages in use, free pages inside the file included; of a database, its size."""
        return self.engine.space().used_bytes


class ReadOnlyFile(ReadOnlyStore):
    """A read-only store on LMDB, which is one file."""

    def __init__(self, engine: LmdbEngine) -> None:
        super().__init__(engine)
        self._file = engine

    def copy(self, directory: Path, now_ms: Callable[[], int]) -> int:
        """Copy one state, without its free pages, into an empty directory as `data.mdb`. Return a time (Unix ms) that
        separates the commits in the copy from all later ones. Raises `DirectoryError`, and `codec.CorruptionError` if
        the copy would hide that the original is corrupt.
        """
        self._file.check(CheckDepth.BRANCHES)
        try:
            return self._file.copy(directory, now_ms)
        except EngineError as error:
            cause = OSError(getattr(error.__cause__, "code", 0), str(error))
            raise DirectoryError(explained("cannot copy the store to", directory, cause)) from error

    def size(self) -> FileSize:
        """Return the size of the file and its parts, at the last commit."""
        return self._file.file_size()

    def readers(self) -> list[ReaderSlot]:
        """Return the reader slots of other processes; none if the store was opened as a file that nobody writes."""
        return [slot for slot in self._file.reader_slots() if slot.process != os.getpid()]


@contextmanager
def read_only(path: Path, *, live: bool) -> Generator[ReadOnlyFile]:
    """Open for reading, in a `with` block, the store in a directory or in a file `data.mdb`. `live`: another process
    may be writing to it. Raises `DirectoryError` if there is no store that this program can read, `NewerStoreError`,
    and `codec.CorruptionError`.
    """
    file = path / "data.mdb" if path.is_dir() else path
    if not file.is_file():
        raise DirectoryError(f"{file} is not there")
    try:
        engine = LmdbEngine.open_read_only(file.parent if live else file, live=live, check_row=installed().check_row)
    except EngineError as error:
        raise DirectoryError(f"{file} cannot be read as a store: {error}") from error
    with closing(engine):
        engine.check_file()
        used_bytes = engine.space().used_bytes
        if file.stat().st_size < used_bytes:  # reading on would end the process
            raise DirectoryError(f"{file} is cut short: it has {file.stat().st_size} bytes and names {used_bytes}")
        _open_tables(engine, file)
        yield ReadOnlyFile(engine)


@contextmanager
def read_only_database(url: StoreUrl) -> Generator[ReadOnlyStore]:
    """Open the store in a database, which may be a standby, as `read_only` does."""
    with closing(engine_at(url)) as engine:
        _open_tables(engine, url)
        yield ReadOnlyStore(engine)


def _open_tables(engine: Engine, file: Path | StoreUrl) -> None:
    try:
        version, known = version_of(engine), installed().version
        if not version:
            raise DirectoryError(NO_STORE.format(file))
        if version > known:
            raise NewerStoreError(f"{file} has version {version} and this program knows {known}: use a newer one")
        if version < known:
            raise OlderFileError(
                f"{file} was written by an older program: start the service on it once, or restore it, which brings it "
                "up to date"
            )
        engine.open_tables(installed().names)
    except MissingTableError:
        raise DirectoryError(f"{file} is corrupt: it has lost a table; restore it from a backup") from None
    except EngineError as error:
        raise DirectoryError(f"{file} cannot be read as a store: {error}") from error
