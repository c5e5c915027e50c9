"""The store: snapshots to read, group commits to write, over an engine that keeps the bytes (`engine.py`).

    found = await store.query(function_of_a_snapshot)   inline on the loop, in one snapshot
    with store.read() as snapshot: ...                  the same for a program without a loop; holds no await
    outcomes = await store.write([job, job, ...])       one thread call, one commit, one fsync for all jobs

A job is a function of the transaction: from rows read to rows written. It runs on the loop, against a snapshot and
without the writer's lock, and again inside the lock only where another process changed what it read (`group.py`, ADR
41): so it changes nothing but through its transaction. One that raises undoes only itself, and its exception is its
outcome. Nothing may be acknowledged before `write` has returned.

Jobs that may use the reserve delete many rows, and run in the lock alone.

The loop stands still while rows are written in the lock, and goes on while they are committed (ADR 74).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from svc.domain.histogram import GROUPS, WAIT_S, Histogram, HistogramStatistics
from svc.store import operations
from svc.store.engine import (
    OUTSIDE,
    CheckDepth,
    Engine,
    MissingTableError,
    OpenEngine,
    StoreFullError,
    UnavailableError,
    Writer,
)
from svc.store.group import Group, Hint, Job, Settled, write_changes
from svc.store.lease import LeaseEpoch
from svc.store.lmdb.engine import LmdbEngine
from svc.store.lmdb.environment import DEFAULT_MAP_BYTES
from svc.store.postgresql.connection.url import StoreUrl
from svc.store.schema.codec import CorruptionError
from svc.store.schema.migrations import FORMER_TABLES, MIGRATIONS, Migration, OlderStoreError, migrate, refuse_newer
from svc.store.schema.tables import META, TABLES
from svc.store.snapshot import Snapshot, Transaction, check_row
from svc.store.turn import WriteTurn
from svc.world import RunSync, Undisturbed, elapsed_s, wall_clock_ms

T = TypeVar("T")


class ReadTransaction:
    """The context manager of `store.read()`. Synchronous on purpose: no `await` can hold a snapshot open unnoticed."""

    __slots__ = ("_engine", "_reader")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Snapshot:
        self._reader = self._engine.read()
        return Snapshot(self._reader)

    def __exit__(self, *_: object) -> None:
        self._reader.close()


class StoreStatistics(msgspec.Struct, frozen=True):
    """What the writer has done since the store was opened, and the store's size now."""

    commits: int
    jobs: int
    """Jobs in those commits: jobs / commits is the size of a group."""
    repeated: int
    """Jobs of those that ran again, because another process changed what they had read."""
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
    """How large the store is, and what makes it grow."""

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

    groups_at_once = 1
    """Calls of `write` by one caller that are worth having on the way at the same time."""
    is_shared = False
    """Whether other nodes use it: what `query` gave may have changed before it is used, and a job has to look again."""

    def __init__(
        self,
        engine: Engine,
        run_sync: RunSync,
        now_ms: Callable[[], int],
        elapsed_s: Callable[[], float] = elapsed_s,
    ) -> None:
        """`engine` has the tables of this version open."""
        self.elapsed_s = elapsed_s
        self.commit_since_s: float | None = None
        """Since when a commit is under way, on the monotonic clock; `None` while none is."""
        self.engine = engine
        self._run_sync = run_sync
        self._now_ms = now_ms
        self._writing = WriteTurn()
        self._commits = 0
        self._jobs = 0
        self._repeated = 0
        self._full = False
        self._waits_s, self._commits_s, self._groups = Histogram(WAIT_S), Histogram(WAIT_S), Histogram(GROUPS)

    @classmethod
    def open(
        cls,
        location: Path | StoreUrl,
        run_sync: RunSync,
        *,
        map_bytes: int = DEFAULT_MAP_BYTES,
        durable: bool = True,
        migrations: Sequence[Migration] = MIGRATIONS,
        upgrade: bool = True,
        now_ms: Callable[[], int] = wall_clock_ms,
        open_engine: OpenEngine | None = None,
    ) -> Store:
        """Open, or create, the store in a directory or a database. An older one is upgraded, unless `upgrade` is false.

        `durable=False` leaves out the fsync: for stores that are thrown away. `now_ms` is asked for the moment of a
        commit while its changes are written down for a follower.
        Raises `migrations.NewerStoreError` when a later version of the service has written it,
        `migrations.OlderStoreError`, `EngineError` and `CorruptionError`.
        """
        engine = engine_at(location, map_bytes=map_bytes, durable=durable, open_engine=open_engine)
        try:
            version = version_of(engine)
            _refuse_other_versions(version, len(migrations), upgrade=upgrade)
            _refuse_missing_tables(engine, version, len(migrations))
            engine.open_tables([table.name for table in TABLES], create=True)
            if version < len(migrations):
                engine.open_tables(engine.tables().intersection(FORMER_TABLES))
            store = cls(engine, run_sync, now_ms)
            store._migrate(migrations)
        except BaseException:
            engine.close()
            raise
        return store

    def close(self) -> None:
        """Close the engine. No snapshot and no write may be open."""
        self.engine.close()

    def read(self) -> ReadTransaction:
        """A snapshot for a `with` block, about a microsecond to begin. Never await inside: a forgotten reader makes the
        file grow.
        """
        return ReadTransaction(self.engine)

    async def query(self, read: Callable[[Snapshot], T], *, recent: bool = False) -> T:
        """What `read` returns, or raises, of one snapshot. It is a pure function, which another store may have to call
        more than once: it awaits nothing, changes nothing, and does not keep the snapshot. `recent`: rows may be as
        they were a second ago.

        Here it runs inline and at once, without a checkpoint. Another store raises `UnavailableError`.
        """
        del recent
        with self.read() as snapshot:
            return read(snapshot)

    async def write(
        self,
        jobs: Sequence[Job[T]],
        *,
        may_use_reserve: bool = False,
        urgent: bool = False,
        organizations: Sequence[int] = (),
        hints: Sequence[Hint] = (),
        leases: Sequence[LeaseEpoch | None] = (),
    ) -> list[T | Exception]:
        """Commit the jobs together; one outcome each, in order: what the job returned (of a `Late`, what it makes), or
        the exception it raised.

        `may_use_reserve`: these jobs delete more than they add, or are an operator's, and may use the reserve for
        such. `urgent`: before others that wait to write. Raises `StoreFullError` when nothing could be stored; any
        other failure of the commit is a broken machine.

        For each job, `organizations` says whose rows it reads and writes, and `hints` which: where several nodes share
        a store, jobs of different organizations need not wait for each other, and `UnavailableError` may be raised, or
        be the outcome of some. `leases` says under which lease each was made: where one of them is lost, its jobs, and
        those that share a commit with them, come to `LeaseLostError`.
        """
        del organizations, hints, leases
        handed_over_at = trio.current_time()
        async with self._writing.held(urgent=urgent):
            began_at, self.commit_since_s = trio.current_time(), self.elapsed_s()
            self._waits_s.observe(began_at - handed_over_at)
            self._groups.observe(len(jobs))
            group = Group(jobs)
            try:
                if not may_use_reserve:
                    with closing(self.engine.read()) as reader:
                        group.run(reader)
                pause = Undisturbed()
                write = partial(self._write_now, group, may_use_reserve=may_use_reserve, inside=pause)
                return await self._run_sync(write, undisturbed=pause)
            finally:
                self.commit_since_s = None
                self._commits_s.observe(trio.current_time() - began_at)

    async def write_one(self, job: Job[T], organization: int, *, may_use_reserve: bool = False) -> T:
        """`write` of one job, which reads and writes rows of this organization: what it returned. Raises what it
        raised.
        """
        return _only(await self.write([job], may_use_reserve=may_use_reserve, organizations=[organization]))

    def write_now(self, jobs: Sequence[Job[T]], *, may_use_reserve: bool = False) -> list[T | Exception]:
        """As `write`, on the calling thread and without a turn, all inside the lock: for the command line."""
        return self._write_now(Group(jobs), may_use_reserve=may_use_reserve)

    def write_one_now(self, job: Job[T], *, may_use_reserve: bool = False) -> T:
        """`write_now` of one job: what it returned. Raises what it raised."""
        return _only(self.write_now([job], may_use_reserve=may_use_reserve))

    def _write_now(
        self, group: Group[T], *, may_use_reserve: bool, inside: AbstractContextManager[object] = OUTSIDE
    ) -> list[T | Exception]:
        settle = partial(self._settle, group)
        self._refuse_if_lost()
        try:
            settled = self.engine.write(settle, may_use_reserve=may_use_reserve, inside=inside)
        except StoreFullError:
            self._full = True
            self._drop_log()
            raise
        self._refuse_if_lost()  # again: what was written to a file that is gone must not be acknowledged
        self._full = self._full and may_use_reserve
        self._commits += 1
        self._jobs += len(settled.outcomes)
        self._repeated += settled.repeated
        return settled.outcomes

    def _settle(self, group: Group[T], writer: Writer) -> Settled[T]:
        settled = group.settle(writer)
        write_changes(writer, settled.changes)
        whole = Transaction(writer)
        if operations.recorded(whole) is not None:
            operations.append_changes(whole, settled.changes, self._now_ms())
        return settled

    def _refuse_if_lost(self) -> None:
        if (problem := self.lost()) is not None:
            raise UnavailableError(problem)

    def lost(self) -> str | None:
        """Why what is written now is stored nowhere: the file was replaced, removed or cut. `None` = it is there."""
        return self.engine.lost()

    def why_stalled(self) -> str:
        """What is known of a commit that does not end, in one line."""
        return self.engine.why_stalled()

    @property
    def commits(self) -> int:
        """How many there were since the store was opened."""
        return self._commits

    async def probe(self) -> None:
        """Take the lock of the store and release it; nothing is written. Raises `EngineError`."""
        async with self._writing.held(urgent=False):
            self.commit_since_s = self.elapsed_s()
            try:
                await self._run_sync(partial(self.engine.write, _nothing))
            finally:
                self.commit_since_s = None

    @property
    def is_full(self) -> bool:
        """Whether the last write did not fit, or the next ones will not."""
        if self._full:
            return True
        return self.engine.is_low()

    def capacity_bytes(self) -> int:
        """How large the store can become: the size of its map, or of the whole disk where that is smaller."""
        return self.engine.capacity_bytes()

    def clear_full_flag(self) -> None:
        """Let the next write find out whether the store is full. The cause may be invisible from here, such as a disk
        quota, and clients that see "not ready" send nothing that could find out.
        """
        self._full = False

    def check_pages(self, depth: CheckDepth = CheckDepth.BRANCHES) -> None:
        """Check, to this depth, that the engine's pages lead to the rows of the last commit. Raises `CorruptionError`;
        see `lmdb/pages.py`.
        """
        self.engine.check(depth)

    def reader_check(self) -> int:
        """Free the reader slots of processes that died; returns how many there were."""
        return self.engine.clear_stale_readers()

    def statistics(self) -> StoreStatistics:
        """A copy of the counts, with the size as it is now; reads every reader slot."""
        space = self.engine.space()
        return self._statistics(self._commits, self._jobs, self._repeated, space.used_bytes, space.limit_bytes)

    def _statistics(self, commits: int, jobs: int, repeated: int, used_bytes: int, map_bytes: int) -> StoreStatistics:
        return StoreStatistics(
            commits=commits,
            jobs=jobs,
            repeated=repeated,
            full=self.is_full,
            used_bytes=used_bytes,
            map_bytes=map_bytes,
            waits_s=self._waits_s.statistics(),
            commits_s=self._commits_s.statistics(),
            groups=self._groups.statistics(),
        )

    def space(self) -> StoreSpace:
        """Free disk, readers and row counts, as they are now; reads every reader slot and asks every table."""
        space = self.engine.space()
        with self.read() as snapshot:
            rows = {table.name: snapshot.count(table) for table in TABLES}
        return StoreSpace(space.disk_free_bytes, space.readers, space.reader_lag, rows)

    async def measured(self) -> StoreSpace:
        """`space`, for a caller that can wait."""
        return self.space()

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        """In place, since a migration may change every row; through memory where a follower has to have its changes."""
        job = partial(migrate, migrations=migrations)
        if self._is_recorded():
            self.write_one_now(job, may_use_reserve=True)
        else:
            self.change_log(job)

    def change_log(self, job: Callable[[Transaction], T]) -> T:
        """Run one change of the operation log itself, durable on return, and not recorded in the log. Raises what the
        job raises.
        """
        return self.engine.write(lambda writer: job(Transaction(writer)), may_use_reserve=True)

    def _drop_log(self) -> None:
        """Identifications come before their backup: give up the operation log, whose pages the next commit can use."""
        if self._is_recorded():
            with suppress(StoreFullError):
                self.change_log(partial(operations.drop, now_ms=self._now_ms(), because="the store was full"))

    def _is_recorded(self) -> bool:
        with self.read() as snapshot:
            return operations.recorded(snapshot) is not None


def _only(outcomes: list[T | Exception]) -> T:
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def engine_at(
    location: Path | StoreUrl,
    *,
    map_bytes: int = DEFAULT_MAP_BYTES,
    durable: bool = True,
    open_engine: OpenEngine | None = None,
) -> Engine:
    """The engine of the store in a directory, opened by `open_engine` if given, or in a database. Raises as it does."""
    if isinstance(location, Path):
        return (open_engine or LmdbEngine.open)(location, map_bytes=map_bytes, durable=durable, check_row=check_row)
    from svc.store.postgresql.engine import PostgresqlEngine  # noqa: PLC0415  commands start faster without

    return PostgresqlEngine.open(location, map_bytes=map_bytes, durable=durable, check_row=check_row)


def version_of(engine: Engine) -> int:
    """The version of the store in an engine; 0 = nothing was ever committed. Creates nothing. Raises `EngineError` and
    `CorruptionError`.
    """
    try:
        engine.open_tables([META.name])
    except MissingTableError:
        return 0
    with ReadTransaction(engine) as snapshot:
        return snapshot.get(META, "version") or 0


def _refuse_other_versions(version: int, known: int, *, upgrade: bool) -> None:
    """Before a table is opened, which would make it in a store that has none of that name."""
    refuse_newer(version, known)
    if 0 < version < known and not upgrade:
        raise OlderStoreError(
            f"the store has version {version} and this program writes {known}: stop what is using it and start "
            "`svc serve` on it, which keeps a copy and upgrades it"
        )


def _refuse_missing_tables(engine: Engine, version: int, known: int) -> None:
    """Opening a store makes the tables that are not there: one whose name is corrupt would come back empty."""
    names = engine.tables()
    if not version:  # new, or given up while its tables were made
        engine.open_tables(names)
        with ReadTransaction(engine) as snapshot:
            made_meanwhile = META.name in names and snapshot.has(META, "version")
            if not made_meanwhile and any(snapshot.reader.count(name) for name in names):
                raise CorruptionError("the store has rows, and nothing says of which version they are")
    if version == known:
        missing = sorted({table.name for table in TABLES} - names)
        if missing:
            raise CorruptionError(f"the store has lost the table {missing[0]}")


def _nothing(_: Writer) -> None:
    """The job of a probe."""
