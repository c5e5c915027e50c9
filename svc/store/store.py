"""The store: one LMDB environment, snapshots to read, group commits to write.

    with store.read() as snapshot: ...                  inline on the loop; holds no await
    outcomes = await store.write([job, job, ...])       one thread call, one commit, one fsync for all jobs

A job is a function of the transaction and runs in a child transaction of its own: one that raises undoes only itself,
and its exception is its outcome. Nothing may be acknowledged before `write` has returned.

py-lmdb ties a write transaction to the thread that began it and says nothing when that is broken, so begin to commit
happen inside one call. What leaves this package is ordered keys, ranges and transactions; nothing of LMDB's own.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import lmdb
import msgspec
import trio

from svc.store.migrations import MIGRATIONS, Migration, migrate
from svc.store.snapshot import Snapshot, Transaction
from svc.store.tables import TABLES
from svc.world import RunSync

T = TypeVar("T")

DEFAULT_MAP_BYTES = 64 << 30
_MAX_TABLES = 64
_MAX_READERS = 126


class StoreFull(Exception):  # noqa: N818  a state of the disk rather than a mistake of the caller
    """The map or the disk is full; nothing of the batch was stored. Deletes still work once there is room for them."""


class Reading:
    """`with store.read() as snapshot`. Synchronous on purpose: no `await` can hold it open unnoticed."""

    __slots__ = ("_environment", "_handle", "_tables")

    def __init__(self, environment: lmdb.Environment, tables: dict[str, Any]) -> None:
        self._environment = environment
        self._tables = tables

    def __enter__(self) -> Snapshot:
        self._handle = self._environment.begin()
        return Snapshot(self._handle, self._tables)

    def __exit__(self, *_: object) -> None:
        self._handle.abort()


class StoreStatistics(msgspec.Struct, frozen=True):
    """What the writer has done since the store was opened, and how large it is."""

    commits: int
    jobs: int
    """Jobs in those commits: jobs / commits is the size of a group."""
    full: bool
    """The last write found the map or the disk full; cleared by the next that fits."""
    used_bytes: int
    """Pages in use, free pages inside the file included."""
    map_bytes: int


class Store:
    """An open store. `run_sync` runs the commit on a thread (in simulation, inline)."""

    def __init__(self, environment: lmdb.Environment, tables: dict[str, Any], run_sync: RunSync) -> None:
        self._environment = environment
        self._tables = tables
        self._run_sync = run_sync
        self._writing = trio.Lock()
        self._commits = 0
        self._jobs = 0
        self._full = False

    @classmethod
    def open(
        cls,
        directory: Path,
        run_sync: RunSync,
        *,
        map_bytes: int = DEFAULT_MAP_BYTES,
        durable: bool = True,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> Store:
        """Open, or create, the store in a directory.

        Every table is opened here, once: opening one inside a running write transaction would freeze the process.
        `durable=False` leaves out the fsync: for stores that are thrown away.
        Raises `migrations.NewerStore` when a later version of the service has written it.
        """
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment = lmdb.open(
            str(directory),
            map_size=map_bytes,
            max_dbs=_MAX_TABLES,
            max_readers=_MAX_READERS,
            mode=0o600,
            sync=durable,
            metasync=durable,
        )
        try:
            environment.reader_check()
            tables = {table.name: environment.open_db(table.name.encode()) for table in TABLES}
            with environment.begin(write=True) as handle:
                migrate(Transaction(handle, tables), migrations)
        except BaseException:
            environment.close()
            raise
        return cls(environment, tables, run_sync)

    def close(self) -> None:
        self._environment.close()

    def read(self) -> Reading:
        """A snapshot, about a microsecond to begin. Never await inside: a forgotten reader makes the file grow."""
        return Reading(self._environment, self._tables)

    async def write(self, jobs: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        """Commit the jobs together; one outcome each, in order: what the job returned, or the exception it raised.

        Raises `StoreFull` when nothing could be stored; any other failure of the commit is a broken machine.
        """
        async with self._writing:
            return await self._run_sync(lambda: self.write_now(jobs))

    def write_now(self, jobs: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        """As `write`, on the calling thread: for the command line, and inside `write`."""
        try:
            outcomes = self._commit(jobs)
        except StoreFull:
            self._full = True
            raise
        self._full = False
        self._commits += 1
        self._jobs += len(jobs)
        return outcomes

    def reader_check(self) -> int:
        """Free the reader slots of processes that died; how many there were."""
        return self._environment.reader_check()

    def statistics(self) -> StoreStatistics:
        info = self._environment.info()
        page_bytes = self._environment.stat()["psize"]
        return StoreStatistics(
            commits=self._commits,
            jobs=self._jobs,
            full=self._full,
            used_bytes=(info["last_pgno"] + 1) * page_bytes,
            map_bytes=info["map_size"],
        )

    def _commit(self, jobs: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        try:
            with self._environment.begin(write=True) as parent:
                return [self._run_job(parent, job) for job in jobs]
        except lmdb.MapFullError as error:
            raise StoreFull("the store has reached map_gib; raise the setting or delete what is not needed") from error
        except lmdb.Error as error:
            if getattr(error, "code", None) in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull("the disk of the data directory is full") from error
            raise

    def _run_job(self, parent: lmdb.Transaction, job: Callable[[Transaction], T]) -> T | Exception:
        child = self._environment.begin(write=True, parent=parent)
        try:
            result = job(Transaction(child, self._tables))
        except lmdb.Error:
            child.abort()
            raise
        except Exception as error:  # noqa: BLE001  a job's failure is its outcome, and undoes only itself
            child.abort()
            return error
        child.commit()
        return result
