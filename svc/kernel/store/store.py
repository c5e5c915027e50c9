"""The store: snapshots to read, group commits to write, over an engine that keeps the bytes (`engine.py`).

    found = await store.query(function_of_a_snapshot)   inline on the loop, in one snapshot
    with store.read() as snapshot: ...                  the same for a program without a loop; holds no await
    outcomes = await store.write([Write(job, org), ...])  one thread call, one commit, one fsync for all jobs

A job is a function of the transaction: from rows read to rows written. It runs on the loop, against a snapshot and
without the writer's lock, and again inside the lock only where another process changed what it read (`group.py`, ADR
41): so it changes nothing but through its transaction. One that raises undoes only itself, and its exception is its
outcome. Nothing may be acknowledged before `write` has returned.

Jobs that may use the reserve delete many rows, and run in the lock alone.

The loop is blocked while rows are written in the lock, and goes on while they are committed (ADR 74).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TypeVar

import msgspec

from svc.kernel.store import operations
from svc.kernel.store.contention import Contention, EndTurn, TurnQueue
from svc.kernel.store.engine import OUTSIDE, Engine, StoreFullError, UnavailableError, Writer
from svc.kernel.store.group import Group, Job, Settled, Write, write_changes
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.tables import META
from svc.kernel.store.write_health import Outage, WriteHealth
from svc.kernel.values.histogram import GROUPS, WAIT_S, Histogram, HistogramStatistics
from svc.world import elapsed_s

T = TypeVar("T")


class ReadTransaction:
    """The context of `store.read()`, synchronous on purpose: no `await` can hold a snapshot open unnoticed."""

    __slots__ = ("_engine", "_reader")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Snapshot:
        self._reader = self._engine.read()
        return Snapshot(self._reader)

    def __exit__(self, *_: object) -> None:
        self._reader.close()


class StoreStatistics(msgspec.Struct, frozen=True):
    """What the writer has done since the store was opened, and the present size of the store."""

    commits: int
    jobs: int
    """Jobs in those commits: jobs / commits is the size of a group."""
    repeated: int
    """Jobs of those that ran again, because another process changed what they had read."""
    full: bool
    """As `Store.is_full`."""
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
    """The size of the store, and what makes it grow."""

    disk_free_bytes: int
    """Left on the disk of the data directory, for this user."""
    readers: int
    """Reader slots taken, by any process. A thread keeps its slot after its read."""
    reader_lag: int
    """Commits since the oldest snapshot that is still being read: pages that they freed cannot be used again."""
    rows: dict[str, int]
    """Rows of each table."""


class Store(ABC):
    """An open store: what a store on one machine (`local.py`) and one that nodes share (`postgresql/store.py`) have in
    common. `read` and `write_now` block the loop if the store is on another machine.
    """

    groups_at_once = 1
    """Calls of `write` by one caller that are worth having on the way at the same time."""
    is_shared = False
    """Whether other nodes use it: what `query` gave may have changed before it is used, and a job has to look again."""

    def __init__(
        self,
        engine: Engine,
        now_ms: Callable[[], int],
        elapsed_s: Callable[[], float] = elapsed_s,
    ) -> None:
        """Use an `engine` whose tables are open."""
        self.elapsed_s = elapsed_s
        self.commit_since_s: float | None = None
        """When the present commit began, on the monotonic clock; `None` if there is none."""
        self.engine = engine
        self._now_ms = now_ms
        self._commits = 0
        self._jobs = 0
        self._repeated = 0
        self._waits_s, self._commits_s, self._groups = Histogram(WAIT_S), Histogram(WAIT_S), Histogram(GROUPS)
        self.health = WriteHealth(elapsed_s)
        self.outage = Outage(elapsed_s)
        self.contention = Contention()
        self.turns = TurnQueue(engine.take_turn, elapsed_s)
        """For groups with jobs of organizations that are `contention.among` them."""

    def close(self) -> None:
        """Close the engine. No snapshot and no write may be open."""
        self.engine.close()

    def read(self) -> ReadTransaction:
        """Return a snapshot for a `with` block, in 1 µs. Never await inside: a forgotten reader makes the file grow."""
        return ReadTransaction(self.engine)

    @abstractmethod
    async def query(self, read: Callable[[Snapshot], T], *, recent: bool = False) -> T:
        """Return the result of `read` on one snapshot, or raise its exception. `read` must be a pure function that does
        not await and does not keep the snapshot; a store may call it more than once. `recent`: rows may be up to a
        second old. Raises `UnavailableError` if the store is unavailable.
        """

    @abstractmethod
    async def write(
        self,
        writes: Sequence[Write[T]],
        *,
        may_use_reserve: bool = False,
        urgent: bool = False,
        end_turn: EndTurn | None = None,
    ) -> list[T | Exception]:
        """Commit the jobs together and return one outcome for each, in order: the return value of the job (of a `Late`,
        the result of `finish`), or the exception it raised. `may_use_reserve`: the jobs delete more than they add, or
        are an operator's, and may use the space reserved for that. `urgent`: before others that wait to write.
        `end_turn`: the caller has a turn (`contention.py`), which ends with the commit. Raises `StoreFullError` if
        nothing could be stored; any other failure of the commit means a broken machine.

        In a store that several nodes share, jobs of different organizations need not wait for each other, and
        `UnavailableError` may be raised, or be the outcome of some jobs. If the lease of a job is lost, it and those
        that share a commit with it get `LeaseLostError`.
        """

    @abstractmethod
    async def probe(self) -> None:
        """Take the lock of the store and release it; nothing is written. Raises `EngineError`."""

    async def try_write(self) -> None:
        """Write what an identification may write, commit it, and leave nothing behind; `is_full` and `health` follow
        from what comes of it. Raises `EngineError` and `StoreFullError`.
        """
        try:
            await self._try_write()
        except StoreFullError:
            self.health.note_full()
            raise
        self.health.note_trial_write()

    @abstractmethod
    async def _try_write(self) -> None:
        """Try a write. The attempt begins when it is its turn."""

    @abstractmethod
    def statistics(self) -> StoreStatistics:
        """Return a copy of the counts, with the size as it is now; may read every reader slot."""

    @abstractmethod
    def space(self) -> StoreSpace:
        """Free disk, readers and row counts, as they are now or were last measured."""

    async def measured(self) -> StoreSpace:
        """Return `space`, for a caller that can wait."""
        return self.space()

    async def write_one(self, job: Job[T], organization: int, *, may_use_reserve: bool = False) -> T:
        """Commit one job on rows of this organization, and return what it returned or raise its exception."""
        return _only(await self.write([Write(job, organization)], may_use_reserve=may_use_reserve))

    def write_now(self, jobs: Sequence[Job[T]], *, may_use_reserve: bool = False) -> list[T | Exception]:
        """Commit the jobs as `write` does, on the calling thread and entirely inside the lock."""
        return self._write_now(Group(jobs), may_use_reserve=may_use_reserve).outcomes

    def write_one_now(self, job: Job[T], *, may_use_reserve: bool = False, is_pure: bool = False) -> T:
        """Commit one job as `write_now` does. Return what the job returned, or raise its exception. `is_pure`: its
        outcome follows from what it reads, and nothing else happens, so that it may run several times
        (`Reader.evaluate`).
        """
        settled = self._write_now(Group([job]), may_use_reserve=may_use_reserve, is_pure=is_pure)
        return _only(settled.outcomes)

    def _write_now(
        self,
        group: Group[T],
        *,
        may_use_reserve: bool,
        inside: AbstractContextManager[object] = OUTSIDE,
        is_pure: bool = False,
    ) -> Settled[T]:
        settle = partial(self._settle, group, is_pure=is_pure)
        self._refuse_if_lost()
        try:
            settled = self.engine.write(settle, may_use_reserve=may_use_reserve, inside=inside)
        except StoreFullError:
            self.health.is_full = True
            self._drop_log()
            raise
        self._refuse_if_lost()  # again: a write to a file that is gone must not be acknowledged
        self.health.is_full = self.health.is_full and may_use_reserve
        self._commits += 1
        self._jobs += len(settled.outcomes)
        self._repeated += len(settled.repeated)
        return settled

    def _settle(self, group: Group[T], writer: Writer, *, is_pure: bool) -> Settled[T]:
        settled = writer.evaluate(group.settle) if is_pure else group.settle(writer)
        write_changes(writer, settled.changes)
        whole = Transaction(writer)
        if operations.recorded(whole) is not None:
            operations.append_changes(whole, settled.changes, self._now_ms())
        return settled

    def _refuse_if_lost(self) -> None:
        if (problem := self.lost()) is not None:
            raise UnavailableError(problem)

    def lost(self) -> str | None:
        """Return why writes are stored nowhere: see `Engine.lost`."""
        return self.engine.lost()

    async def note_commit(self) -> None:
        """Record which commit the store has reached, for the next one who opens it (ADR 184). Raises `OSError`."""
        self.engine.note_commit()

    @property
    def commits(self) -> int:
        """Number of commits since the store was opened."""
        return self._commits

    @property
    def is_full(self) -> bool:
        """Whether the last write did not fit, or the next ones will not."""
        return self.health.is_full or self.engine.is_low()

    def capacity_bytes(self) -> int:
        """Return how many bytes the store can hold: the size of its map, or of the whole disk if that is smaller."""
        return self.engine.capacity_bytes()

    @property
    def needs_trial_write(self) -> bool:
        """Whether only a write can tell if writes are stored; clients that see "not ready" send none."""
        return self.health.is_full or self.health.needs_trial_write()

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

    def change_log(self, job: Callable[[Transaction], T]) -> T:
        """Run a change of the operation log, which that does not record; durable on return. Raises as the job does."""
        return self.engine.write(lambda writer: job(Transaction(writer)), may_use_reserve=True)

    def _drop_log(self) -> None:
        """Give up the operation log, whose pages the next commit can use: identifications come before their backup."""
        if self.is_recorded():
            with suppress(StoreFullError):
                self.change_log(partial(operations.drop, now_ms=self._now_ms(), because="the store was full"))

    def is_recorded(self) -> bool:
        """Return whether changes are written down for a follower."""
        with self.read() as snapshot:
            return operations.recorded(snapshot) is not None


def _only(outcomes: list[T | Exception]) -> T:
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def nothing(_: Writer) -> None:
    """Do nothing: the job of a probe."""


def trial_write(writer: Writer) -> None:
    """Write and delete a row: the job of a trial write in a data directory, whose tables are in one file."""
    writer.put(META.name, _TRIED, b"")
    writer.delete(META.name, _TRIED)


_TRIED = META.key.pack("trial_write")
