"""A store of this machine: one process or several write to it, each in its turn, with one commit for a group.

Commands open a store in a database as this, too: they have it for themselves, or write little.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import TypeVar

import trio

from svc.kernel.store.contention import EndTurn
from svc.kernel.store.engine import Engine, StoreFullError, UnavailableError
from svc.kernel.store.group import Group, Job, Settled, Write
from svc.kernel.store.schema.codec import CorruptPageError
from svc.kernel.store.schema.table import installed
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store, StoreSpace, StoreStatistics, nothing, trial_write
from svc.world import RunSync, Undisturbed, elapsed_s


class WriteTurn:
    """A lock that is given to the first urgent waiter, else to the first of the others."""

    def __init__(self) -> None:
        self._is_taken = False
        self._urgent, self._others = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()

    @asynccontextmanager
    async def held(self, *, urgent: bool) -> AsyncGenerator[None]:
        """Hold the lock for a `with` block. Waiting can be cancelled; the lock is not reentrant."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._is_taken:
            await (self._urgent if urgent else self._others).park()
        self._is_taken = True
        try:
            yield
        finally:
            following = self._urgent or self._others
            if following:
                following.unpark()  # the turn passes to them
            else:
                self._is_taken = False


T = TypeVar("T")


class LocalStore(Store):
    """Implements `Store`. A query runs on the loop, at once and without a checkpoint; a commit runs on a thread."""

    def __init__(
        self,
        engine: Engine,
        run_sync: RunSync,
        now_ms: Callable[[], int],
        elapsed_s: Callable[[], float] = elapsed_s,
    ) -> None:
        """Use an `engine` whose tables are open. `run_sync` runs a commit on a thread, or inline if simulated."""
        super().__init__(engine, now_ms, elapsed_s)
        self._run_sync = run_sync
        self._writing = WriteTurn()

    async def query(self, read: Callable[[Snapshot], T], *, recent: bool = False) -> T:
        """See `Store.query`."""
        del recent
        with self.read() as snapshot:
            return read(snapshot)

    async def write(
        self,
        writes: Sequence[Write[T]],
        *,
        may_use_reserve: bool = False,
        urgent: bool = False,
        end_turn: EndTurn | None = None,
    ) -> list[T | Exception]:
        """See `Store.write`."""
        handed_over_at = trio.current_time()
        async with self._turn(urgent=urgent):
            began_at = trio.current_time()
            self._waits_s.observe(began_at - handed_over_at)
            self._groups.observe(len(writes))
            jobs = [each.job for each in writes]
            try:
                with self.health.attempt(proves=urgent):
                    settled = await self._write_group(jobs, may_use_reserve=may_use_reserve, end_turn=end_turn)
            except CorruptPageError:  # it ended the transaction for all jobs
                return [await self._write_alone(job, may_use_reserve=may_use_reserve) for job in jobs]
            finally:
                self._commits_s.observe(trio.current_time() - began_at)
            if urgent:
                organizations = [each.organization for each in writes]
                self.contention.note(organizations, settled.repeated, in_turn=end_turn is not None)
            return settled.outcomes

    async def _write_group(
        self, jobs: Sequence[Job[T]], *, may_use_reserve: bool, end_turn: EndTurn | None = None
    ) -> Settled[T]:
        group = Group(jobs)
        if not may_use_reserve:
            with closing(self.engine.read()) as reader:
                group.run(reader)
        pause = Undisturbed()
        write = partial(self._write_now, group, may_use_reserve=may_use_reserve, inside=pause)
        if end_turn is not None:
            write = partial(_and_end, write, end_turn)
        return await self._run_sync(write, undisturbed=pause)

    async def _write_alone(self, job: Job[T], *, may_use_reserve: bool) -> T | Exception:
        """Return the outcome of a job in a commit of its own, so that a corrupt page fails only jobs that need it."""
        try:
            (outcome,) = (await self._write_group([job], may_use_reserve=may_use_reserve)).outcomes
        except (CorruptPageError, StoreFullError, UnavailableError) as error:
            return error
        return outcome

    async def note_commit(self) -> None:
        """See `Store.note_commit`: in a thread, since the disk may hang."""
        await self._run_sync(self.engine.note_commit)

    async def probe(self) -> None:
        """See `Store.probe`."""
        async with self._turn(urgent=False):
            await self._run_sync(partial(self.engine.write, nothing))

    async def _try_write(self) -> None:
        """Try a write before others: a slow and busy disk must not delay the proof that it works."""
        async with self._turn(urgent=True):
            with self.health.attempt():
                await self._run_sync(partial(self.engine.write, trial_write))
                self._refuse_if_lost()

    @asynccontextmanager
    async def _turn(self, *, urgent: bool) -> AsyncGenerator[None]:
        async with self._writing.held(urgent=urgent):
            self.commit_since_s = self.elapsed_s()
            try:
                yield
            finally:
                self.commit_since_s = None

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`; reads every reader slot."""
        space = self.engine.space()
        return self._statistics(self._commits, self._jobs, self._repeated, space.used_bytes, space.limit_bytes)

    def space(self) -> StoreSpace:
        """See `Store.space`, as it is now; reads every reader slot and asks every table."""
        space = self.engine.space()
        with self.read() as snapshot:
            rows = {table.name: snapshot.count(table) for table in installed().tables}
        return StoreSpace(space.disk_free_bytes, space.readers, space.reader_lag, rows)


def _and_end(write: Callable[[], T], end: EndTurn) -> T:
    """Write, and end the turn on the same thread: the loop may have other things to do first."""
    try:
        return write()
    finally:
        end()
