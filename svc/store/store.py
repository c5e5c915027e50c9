"""The store: one LMDB environment, snapshots to read, group commits to write.

    with store.read() as snapshot: ...                  inline on the loop; holds no await
    outcomes = await store.write([job, job, ...])       one thread call, one commit, one fsync for all jobs

A job is a function of the transaction and runs in a child transaction of its own: one that raises undoes only itself,
and its exception is its outcome. Nothing may be acknowledged before `write` has returned.

py-lmdb ties a write transaction to the thread that began it and says nothing when that is broken, so begin to commit
happen inside one call. The loop stands still while the thread runs the jobs, and goes on while it commits: two threads
that compete for the interpreter take up to twice the CPU of one after the other (ADR 17).

What leaves this package is ordered keys, ranges and transactions; nothing of LMDB's own.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import lmdb
import msgspec
import trio

from svc.domain.errors import OperatorError
from svc.domain.histogram import GROUPS, WAIT_S, Histogram, HistogramStatistics
from svc.domain.operations import Changes
from svc.store import operations
from svc.store.codec import Corrupted
from svc.store.meta_pages import check_meta_pages
from svc.store.migrations import MIGRATIONS, Migration, OlderStore, migrate, refuse_newer
from svc.store.pages import Reach, check_pages
from svc.store.room import NO_ROOM, Room, may_grow
from svc.store.snapshot import RecordedTransaction, Snapshot, Transaction
from svc.store.tables import META, TABLES
from svc.store.turn import WriteTurn
from svc.world import RunSync, wall_clock_ms

T = TypeVar("T")

DEFAULT_MAP_BYTES = 64 << 30
MAX_TABLES = 64
_MAX_READERS = 126
_FULL = "the store has reached map_gib, or its disk is full; raise the setting, or delete what is not needed"


class StoreFull(OperatorError):  # noqa: N818  a state of the disk rather than a mistake of the caller
    """The map or the disk is full, but for what is kept for deletes; nothing of the batch was stored."""


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
    """As of `Store.is_full`."""
    used_bytes: int
    """Pages in use, free pages inside the file included."""
    map_bytes: int
    waits_s: HistogramStatistics
    """From when a group was handed over until it was its turn. Groups of `write` alone, as in the two that follow."""
    commits_s: HistogramStatistics
    """From then until it was on disk, or was found not to fit."""
    groups: HistogramStatistics
    """Jobs in a group."""


class StoreSpace(msgspec.Struct, frozen=True):
    """What the store holds, and what could make it grow."""

    disk_free_bytes: int
    """Left on the disk of the data directory, for this user."""
    readers: int
    """Reader slots taken, by any process. A thread keeps its slot after its read."""
    reader_lag: int
    """Commits since the oldest snapshot that is still being read: pages that they freed cannot be used again."""
    rows: dict[str, int]
    """Per table."""


class Store:
    """An open store. `run_sync` runs the commit on a thread (in simulation, inline)."""

    def __init__(
        self, environment: lmdb.Environment, tables: dict[str, Any], run_sync: RunSync, now_ms: Callable[[], int]
    ) -> None:
        self._environment = environment
        self._tables = tables
        self._run_sync = run_sync
        self._now_ms = now_ms
        self._writing = WriteTurn()
        self._commits = 0
        self._jobs = 0
        self._full = False
        self._room = Room(environment, tables.values())
        self._waits_s, self._commits_s, self._groups = Histogram(WAIT_S), Histogram(WAIT_S), Histogram(GROUPS)

    @classmethod
    def open(
        cls,
        directory: Path,
        run_sync: RunSync,
        *,
        map_bytes: int = DEFAULT_MAP_BYTES,
        durable: bool = True,
        migrations: Sequence[Migration] = MIGRATIONS,
        upgrade: bool = True,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> Store:
        """Open, or create, the store in a directory. An older one is upgraded, unless `upgrade` is false.

        Every table is opened here, once: opening one while a write transaction runs, and not in it, would freeze the
        process.
        `durable=False` leaves out the fsync: for stores that are thrown away. `now_ms` is asked for the moment of a
        commit while its changes are written down for a follower.
        Raises `migrations.NewerStore` when a later version of the service has written it, and `migrations.OlderStore`.
        """
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (directory / "data.mdb").exists():
            check_meta_pages(directory / "data.mdb")
        environment = lmdb.open(
            str(directory),
            map_size=map_bytes,
            max_dbs=MAX_TABLES,
            max_readers=_MAX_READERS,
            mode=0o600,
            sync=durable,
            metasync=durable,
        )
        try:
            environment.reader_check()
            check_pages(environment, Reach.COMMIT)
            version = version_of(environment)
            _refuse_other_versions(version, len(migrations), upgrade=upgrade)
            _refuse_missing_tables(environment, version, len(migrations))
            with environment.begin(write=True) as handle:  # one for all: each of its own would be a commit for each
                tables = {table.name: environment.open_db(table.name.encode(), txn=handle) for table in TABLES}
            store = cls(environment, tables, run_sync, now_ms)
            store._migrate(migrations)
        except BaseException:
            environment.close()
            raise
        return store

    def close(self) -> None:
        self._environment.close()

    def read(self) -> Reading:
        """A snapshot, about a microsecond to begin. Never await inside: a forgotten reader makes the file grow."""
        return Reading(self._environment, self._tables)

    async def write(
        self, jobs: Sequence[Callable[[Transaction], T]], *, into_reserve: bool = False, urgent: bool = False
    ) -> list[T | Exception]:
        """Commit the jobs together; one outcome each, in order: what the job returned, or the exception it raised.

        `into_reserve`: these jobs delete more than they add, or are an operator's, and may use the room that is kept
        for such. `urgent`: before others that wait to write. Raises `StoreFull` when nothing could be stored; any other
        failure of the commit is a broken machine.
        """
        handed_over_at = trio.current_time()
        async with self._writing.held(urgent=urgent):
            began_at = trio.current_time()
            self._waits_s.observe(began_at - handed_over_at)
            self._groups.observe(len(jobs))
            has_run = threading.Event()
            try:
                return await self._run_sync(
                    partial(self._write_now, jobs, into_reserve=into_reserve, has_run=has_run.set), until=has_run
                )
            finally:
                self._commits_s.observe(trio.current_time() - began_at)

    def write_now(
        self, jobs: Sequence[Callable[[Transaction], T]], *, into_reserve: bool = False
    ) -> list[T | Exception]:
        """As `write`, on the calling thread: for the command line."""
        return self._write_now(jobs, into_reserve=into_reserve, has_run=_nobody_waits)

    def _write_now(
        self, jobs: Sequence[Callable[[Transaction], T]], *, into_reserve: bool, has_run: Callable[[], None]
    ) -> list[T | Exception]:
        """`has_run` is called when the jobs have run, or will not: then only the commit is left."""
        try:
            outcomes = self._commit(jobs, into_reserve=into_reserve, has_run=has_run)
        except StoreFull:
            self._full = True
            raise
        self._full = self._full and into_reserve
        self._commits += 1
        self._jobs += len(jobs)
        return outcomes

    @property
    def is_full(self) -> bool:
        """Whether the last write found no room, or the next ones will find none."""
        if self._full:
            return True
        with self._environment.begin() as handle:
            return self._room.is_scarce(handle)

    def capacity_bytes(self) -> int:
        """How large the store can become: by its map, or by the whole disk where that is smaller."""
        disk = os.statvfs(self._environment.path())
        return min(self._environment.info()["map_size"], disk.f_blocks * disk.f_frsize)

    def try_again(self) -> None:
        """Forget that a write found no room: the next one finds out anew. What took it may not be seen from here, as a
        quota, and who is told that the store is full sends nothing that could find out.
        """
        self._full = False

    def check_pages(self, reach: Reach = Reach.BRANCHES) -> None:
        """That what leads to the rows leads to those of the last commit. Raises `Corrupted`; see `pages.py`."""
        check_pages(self._environment, reach)

    def reader_check(self) -> int:
        """Free the reader slots of processes that died; how many there were."""
        return self._environment.reader_check()

    def statistics(self) -> StoreStatistics:
        info = self._environment.info()
        page_bytes = self._environment.stat()["psize"]
        return StoreStatistics(
            commits=self._commits,
            jobs=self._jobs,
            full=self.is_full,
            used_bytes=(info["last_pgno"] + 1) * page_bytes,
            map_bytes=info["map_size"],
            waits_s=self._waits_s.statistics(),
            commits_s=self._commits_s.statistics(),
            groups=self._groups.statistics(),
        )

    def space(self) -> StoreSpace:
        """Asks the disk and looks at every reader slot and table."""
        disk = os.statvfs(self._environment.path())
        readers, oldest = _readers(self._environment.readers())
        with self.read() as snapshot:
            rows = {table.name: snapshot.count(table) for table in TABLES}
        return StoreSpace(
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            readers=readers,
            reader_lag=0 if oldest is None else max(0, self._environment.info()["last_txnid"] - oldest),
            rows=rows,
        )

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        (failure,) = self._commit([partial(migrate, migrations=migrations)], into_reserve=True, has_run=_nobody_waits)
        if failure is not None:
            raise failure

    def change_log(self, job: Callable[[Transaction], T]) -> T:
        """Commit one change of the operation log itself, which is not written down. Raises what the job raises."""
        with full_is_told(self._environment), self._environment.begin(write=True) as handle:
            return job(Transaction(handle, self._tables))

    def _commit(
        self, jobs: Sequence[Callable[[Transaction], T]], *, into_reserve: bool, has_run: Callable[[], None]
    ) -> list[T | Exception]:
        try:
            with full_is_told(self._environment), self._environment.begin(write=True) as parent:
                try:
                    outcomes = self._run_jobs(parent, jobs)
                finally:
                    has_run()
                if not into_reserve:
                    self._keep_reserve(parent)
                return outcomes
        except StoreFull:
            self._make_room()
            raise

    def _run_jobs(self, parent: lmdb.Transaction, jobs: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        whole = Transaction(parent, self._tables)
        changes: Changes | None = {} if operations.is_recording(whole) else None
        outcomes = [self._run_job(parent, job, changes) for job in jobs]
        if changes is not None:
            operations.write_down(whole, changes, self._now_ms())
        return outcomes

    def _run_job(
        self, parent: lmdb.Transaction, job: Callable[[Transaction], T], changes: Changes | None
    ) -> T | Exception:
        """`changes` gathers what the batch changed, `None` where nobody follows."""
        child = self._environment.begin(write=True, parent=parent)
        kind = Transaction if changes is None else RecordedTransaction
        transaction = kind(child, self._tables)
        try:
            result = job(transaction)
        except lmdb.Error:
            child.abort()
            raise
        except Exception as error:  # noqa: BLE001  a job's failure is its outcome, and undoes only itself
            child.abort()
            return error
        child.commit()
        if changes is not None and isinstance(transaction, RecordedTransaction):
            for table, rows in transaction.changes.items():
                changes.setdefault(table, {}).update(rows)
        return result

    def _keep_reserve(self, parent: lmdb.Transaction) -> None:
        if not self._room.is_left(parent):
            raise StoreFull(_FULL)

    def _make_room(self) -> None:
        """Identifications come before their backup: give up the operation log, whose pages the next commit can use."""
        with self.read() as snapshot:
            recording = operations.is_recording(snapshot)
        if recording:
            with suppress(StoreFull):
                self.change_log(partial(operations.drop, now_ms=self._now_ms(), because="the store was full"))


def _nobody_waits() -> None:
    pass


def version_of(environment: lmdb.Environment) -> int:
    """The version of an open store, without making anything in it; 0 = nothing has ever been committed."""
    try:
        meta = environment.open_db(META.name.encode(), create=False)
    except lmdb.NotFoundError:
        return 0
    with environment.begin() as handle:
        return Snapshot(handle, {META.name: meta}).get(META, "version") or 0


def _refuse_other_versions(version: int, known: int, *, upgrade: bool) -> None:
    """Before a table is opened, which would make it in a store that has none of that name."""
    refuse_newer(version, known)
    if 0 < version < known and not upgrade:
        raise OlderStore(
            f"the store has version {version} and this program writes {known}: stop what is using it and start "
            "`svc serve` on it, which keeps a copy and upgrades it"
        )


def _refuse_missing_tables(environment: lmdb.Environment, version: int, known: int) -> None:
    """LMDB makes the table that it is asked for and does not find: one whose name is damaged would come back empty."""
    with environment.begin() as handle:
        names = {bytes(name) for name in handle.cursor().iternext(values=False)}
    listed = environment.stat()["entries"]
    if len(names) != listed:
        raise Corrupted(f"the list of tables has {listed} and shows {len(names)}")
    if not version:  # new, or given up while its tables were made
        tables = [environment.open_db(name, create=False) for name in names]
        with environment.begin() as handle:
            if any(handle.stat(table)["entries"] for table in tables):
                raise Corrupted("the store has rows, and nothing says of which version they are")
    if version == known:
        missing = sorted({table.name for table in TABLES} - {name.decode(errors="replace") for name in names})
        if missing:
            raise Corrupted(f"the store has lost the table {missing[0]}")


@contextmanager
def full_is_told(environment: lmdb.Environment) -> Generator[None]:
    """LMDB calls it an input/output error where a part of what it wrote found room, and a part did not."""
    try:
        yield
    except lmdb.MapFullError as error:
        raise StoreFull(_FULL) from error
    except lmdb.Error as error:
        code = getattr(error, "code", None)
        if code in NO_ROOM or (code == errno.EIO and not may_grow(environment)):
            raise StoreFull("the disk of the data directory is full") from error
        raise


def _readers(listed: str) -> tuple[int, int | None]:
    """(slots taken, the oldest commit that one of them sees) from LMDB's own list: process, thread, commit or `-`."""
    rows = [line.split() for line in listed.splitlines()[1:]]
    seen = [int(row[2]) for row in rows if len(row) == 3 and row[2] != "-"]
    return len(rows), min(seen, default=None)
