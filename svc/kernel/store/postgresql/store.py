"""The serving store over PostgreSQL: what `Store` promises, for any number of nodes on one database.

A query runs over rows that are fetched for it: each round trip is one transaction of one statement snapshot, which has
everything that the query is known to read. Jobs are committed in groups (`groups.py`): those of one organization follow
one another, what waits meanwhile shares the next group, and organizations with few jobs share one (`turns.py`). What
fails before its commit is tried again for `GIVE_UP_S`; of a commit whose answer was lost, it is found out first whether
it has happened.

Reading and writing at once (`read`, `write_now`) blocks the loop, and is for tests and for what runs before the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec
import trio

from svc.kernel.store.contention import EndTurn
from svc.kernel.store.engine import EngineError, StoreFullError, UnavailableError
from svc.kernel.store.group import Hint, Job, LeaseEpoch, LeaseLostError, Write
from svc.kernel.store.overlay import Raw
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.cluster.leases import Lease
from svc.kernel.store.postgresql.connection.errors import (
    DISK_FULL,
    READ_ONLY,
    ConnectionLostError,
    DatabaseError,
    SqlError,
)
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import integer
from svc.kernel.store.postgresql.connection.wire import Pool, Result, Statement, Timeouts, Wire
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.groups import (
    GroupAttempt,
    Part,
    Transactions,
    UncertainCommitError,
    UnfencedError,
    Written,
)
from svc.kernel.store.postgresql.recent import Fetched, RecentRows
from svc.kernel.store.postgresql.rows import MAX_FETCHES, RowKey, Rows, run_over
from svc.kernel.store.postgresql.statistics import PostgresqlStatistics
from svc.kernel.store.postgresql.trial_write import try_write
from svc.kernel.store.postgresql.turns import GroupTurns, Turn, Waiting
from svc.kernel.store.postgresql.version import READ_VERSION, OtherVersionError, refuse_other
from svc.kernel.store.schema.table import installed
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store, StoreSpace, StoreStatistics, nothing
from svc.world import World

T = TypeVar("T")

WRITERS, READERS = 4, 4
"""Numbers of connections."""
ORGANIZATIONS_PER_GROUP = 16
"""Organizations in a shared group."""
RECENT_S = 1.0
"""The greatest age of rows that a `recent` query gets."""
GIVE_UP_S = 4.0
"""A group or query fails if the database has not taken it by then: clients give up after five seconds."""
TRIAL_WRITE_S = 2.0
"""A trial write is given up after this time, and tried again."""
FIRST_PAUSE_S = 0.02
"""Before the second attempt; doubled for each further one."""
SERVING = Timeouts(statement_s=10.0, lock_s=5.0, idle_s=2.0, answer_s=12.0)
"""A node that is blocked inside a transaction holds the fence of its organization: for `idle_s`, which is less than
`GIVE_UP_S`, so that those who wait for it in other nodes outlast it."""
_PASSING = frozenset(("53300", "55P03", "57014", READ_ONLY))
"""Errors that may pass, beside conflicts: no connection left, a timeout, a standby."""

_LEASED = "leased"

_BEGIN_READING, _COMMIT = Statement(statements.BEGIN_READING), Statement(statements.COMMIT)


class PostgresqlStore(Store):
    """An open store, with the interface of `Store`."""

    groups_at_once = 8 * WRITERS
    is_shared = True

    def __init__(
        self,
        engine: PostgresqlEngine,
        url: StoreUrl,
        world: World,
        *,
        writers: int = WRITERS,
        readers: int = READERS,
        organizations_per_group: int = ORGANIZATIONS_PER_GROUP,
        recent_s: float = RECENT_S,
    ) -> None:
        """Use an `engine` whose tables are open. At most `organizations_per_group` share a transaction. With 1 the
        database may be one that spreads rows, and nothing is asked of it that such a one may lack.
        """
        super().__init__(engine, world.now_ms)
        self._run_sync = world.run_sync
        connect = partial(Wire.connect, url, SERVING)
        self._writers, self._readers = Pool(connect, writers), Pool(connect, readers)
        self._transactions = Transactions(may_run_ahead=organizations_per_group > 1)
        self._turns = GroupTurns(writers, organizations_per_group, self._transactions.others.write_for)
        self._recent = RecentRows(recent_s, self._fetched)
        self._space = self._space_with({})
        self._used_bytes = 0
        self._lease: Lease | None = None
        self._counts = self._transactions.counts
        self._other_version = _OtherVersion()

    def kept_by(self, lease: Lease) -> PostgresqlStore:
        """Return the same store for work that only the holder of a lease does: its writes fail in their transaction
        with `LeaseLostError` if another node has the lease. It shares connections and counts with this store; only this
        one has to be closed.
        """
        kept = copy(self)
        kept._lease = lease  # noqa: SLF001  of this class
        return kept

    @property
    def commits(self) -> int:
        """See `Store.commits`: those of each `kept_by` included."""
        return self._counts.commits

    async def other_version(self) -> str:
        """Wait until the store has another version, and return what to do; then nothing is read or written."""
        await self._other_version.found.wait()
        return self._other_version.problem

    def close(self) -> None:
        """Close the connections and the engine."""
        self._writers.close()
        self._readers.close()
        super().close()

    async def query(self, read: Callable[[Snapshot], T], *, recent: bool = False) -> T:
        """See `Store.query`. A round trip fetches all that is missing; `recent` queries that miss the same share it."""
        self._counts.queries += 1
        if not recent:
            return await self._read(read, self._transactions.immutable.get, self._fetched_alone)
        since_s = trio.current_time()
        with trio.move_on_after(GIVE_UP_S):
            return await self._read(read, self._recent_row, lambda rows: self._recent.fetched(rows, since_s))
        raise _silent()

    async def _read(
        self,
        read: Callable[[Snapshot], T],
        known: Callable[[RowKey], Raw],
        fetch: Callable[[Rows], Awaitable[list[Result] | None]],
    ) -> T:
        rows = Rows(known)
        for _ in range(MAX_FETCHES):
            found = run_over(rows, partial(read, Snapshot(rows)))
            if found is not None:
                return found[0]
            rows = rows.again()
            results = await fetch(rows)
            if results is None:
                rows = Rows(known)
            else:
                rows.take(results)
        raise EngineError(f"a query has fetched {MAX_FETCHES} times, and asks for more")

    async def write(
        self,
        writes: Sequence[Write[T]],
        *,
        may_use_reserve: bool = False,
        urgent: bool = False,
        end_turn: EndTurn | None = None,
    ) -> list[T | Exception]:
        """See `Store.write`. Jobs of one organization are committed together; if there are several organizations, the
        exception of a commit is the outcome of its jobs. If a job has no organization, all jobs form one group, whose
        fences are determined by running it.
        """
        del may_use_reserve, end_turn
        positions: defaultdict[int, list[int]] = defaultdict(list)
        for position, write in enumerate(writes):
            if write.organization is None:
                jobs, hints, leases = _taken_apart(writes)
                written = await self._committed([Part(jobs, hints, frozenset())], leases, shared=False)
                assert written is not None, "only a shared group fails as a whole"
                return written.outcomes
            positions[write.organization].append(position)
        if len(positions) == 1:
            return list(await self._part(next(iter(positions)), writes, urgent=urgent))
        outcomes: list[Any] = [None] * len(writes)

        async def write_part(organization: int, own: list[int]) -> None:
            found: Sequence[Any]
            try:
                found = await self._part(organization, [writes[position] for position in own], urgent=urgent)
            except (EngineError, StoreFullError) as error:
                found = [error] * len(own)
            for position, outcome in zip(own, found, strict=True):
                outcomes[position] = outcome

        async with trio.open_nursery() as nursery:
            for organization, own in positions.items():
                nursery.start_soon(write_part, organization, own)
        return outcomes

    async def _part(self, organization: int, writes: Sequence[Write[T]], *, urgent: bool) -> Sequence[T | Exception]:
        jobs, hints, leases = _taken_apart(writes)
        # Jobs that need no lease must not fail together with jobs that have lost theirs.
        lane = self._lease or (_LEASED if leases else None)
        waiting = Waiting(organization, jobs, hints, leases, urgent=urgent, lane=lane)
        return await self._turns.outcomes(waiting, self._run)

    async def _run(self, group: Sequence[Turn], shared: bool) -> Sequence[Sequence[Any] | None] | None:  # noqa: FBT001  as RunGroup
        self._waits_s.observe(trio.current_time() - group[0].waiting[0].since_s)
        parts = [Part(turn.jobs, turn.hints, frozenset((turn.organization,))) for turn in group]
        leases = frozenset[LeaseEpoch]().union(*(one.leases for turn in group for one in turn.waiting))
        written = await self._committed(parts, leases, shared=shared)
        if written is None:
            return None
        if written.rows and any(one.urgent for turn in group for one in turn.waiting):
            self.health.note_stored()
        found = iter(written.outcomes)
        return [
            [next(found) for _ in part.jobs] if not shared or turn.organization in written.turns else None
            for turn, part in zip(group, parts, strict=True)
        ]

    async def _committed(
        self, parts: Sequence[Part[T]], leases: frozenset[LeaseEpoch], *, shared: bool
    ) -> Written[T] | None:
        """Commit jobs together; `None` = a shared group has failed. Raises `UnavailableError` and `StoreFullError`."""
        began = trio.current_time()
        attempt = GroupAttempt(self._transactions, parts, leases | self._held(), shared=shared)
        began_s = self.elapsed_s()
        with self.health.attempt():
            written = await self._patiently(partial(self._lent, attempt.run))
        if written is None:
            self.health.note_failure(UnavailableError("organizations that share a transaction"), began_s)
        if written is not None and written.outcomes:
            self._note(written, began)
        return written

    def _note(self, written: Written[Any], began: float) -> None:
        self._groups.observe(len(written.outcomes))
        self._commits_s.observe(trio.current_time() - began)
        self._counts.commits += bool(written.rows)
        self._counts.outcomes += len(written.outcomes)
        self.health.is_full = False
        self._recent.invalidate(written.rows)

    def _held(self) -> frozenset[LeaseEpoch]:
        if self._lease is None:
            return frozenset()
        if (held := self._lease.held) is None:
            raise LeaseLostError([LeaseEpoch(self._lease.name, 0)])
        return frozenset((held,))

    async def _lent(self, run: Callable[[Wire, trio.CancelScope], Awaitable[T]], limit: trio.CancelScope) -> T:
        while True:
            async with self._writers.wire() as wire:
                try:
                    return await run(wire, limit)
                except UnfencedError:
                    continue

    async def _patiently(self, attempt: Callable[[trio.CancelScope], Awaitable[T]]) -> T:
        """Try until it succeeds, for `GIVE_UP_S` at most; then the scope ends the attempt. One that commits removes its
        deadline: otherwise nobody would know what came of it. Raises `UnavailableError` and `StoreFullError`.
        """
        give_up_at, pause_s = trio.current_time() + GIVE_UP_S, FIRST_PAUSE_S
        while True:
            limit = trio.CancelScope(deadline=give_up_at)
            try:
                with limit:
                    return await attempt(limit)
                raise _silent()
            except (UncertainCommitError, ConnectionLostError) as error:
                cause: Exception = error
            except SqlError as error:
                if error.state == DISK_FULL:
                    self.health.is_full = True
                    raise StoreFullError(str(error)) from error
                if not error.is_repeatable and error.state not in _PASSING:
                    raise UnavailableError(str(error)) from error
                cause = error
            except DatabaseError as error:
                raise UnavailableError(str(error)) from error
            except OtherVersionError as error:
                self._other_version.problem = str(error)
                self._other_version.found.set()
                raise
            if trio.current_time() + pause_s > give_up_at:
                raise UnavailableError(str(cause)) from cause
            self._counts.retries += 1
            await trio.sleep(pause_s)
            pause_s *= 2

    async def _fetched_alone(self, rows: Rows) -> list[Result]:
        return (await self._fetched(rows)).results

    async def _fetched(self, rows: Rows) -> Fetched:
        """Fetch what is missing of the rows. Raises as `_patiently`."""
        with self.health.attempt():
            return await self._patiently(partial(self._fetch, rows))

    async def _fetch(self, rows: Rows, _limit: trio.CancelScope) -> Fetched:
        async with self._readers.wire() as wire:
            self._counts.query_round_trips += 1
            asked_s = trio.current_time()
            _, version, *found, _ = await wire.exchange([_BEGIN_READING, READ_VERSION, *rows.fetches(), _COMMIT])
        refuse_other(version)
        return Fetched(found, asked_s)

    def _recent_row(self, row_key: RowKey) -> Raw:
        return self._recent.get(row_key) or self._transactions.immutable.get(row_key)

    async def probe(self) -> None:
        """See `Store.probe`."""
        await self._run_sync(partial(self.engine.write, nothing))

    async def _try_write(self) -> None:
        with self.health.attempt():
            try:
                with trio.move_on_after(TRIAL_WRITE_S):
                    async with self._writers.wire() as wire:
                        return await try_write(wire)
            except EngineError as error:
                if isinstance(error, SqlError) and error.state == DISK_FULL:
                    raise StoreFullError(str(error)) from error
                raise UnavailableError(str(error)) from error
            raise UnavailableError(f"the database did not take a write for {TRIAL_WRITE_S:g} seconds")

    async def measured(self) -> StoreSpace:
        """See `Store.measured`. Rows are the database's estimates, but for tables that are `exactly_counted`."""
        size, rows, *exact = await self._patiently(self._measure)
        self._used_bytes = integer(size.rows[0][0])
        known, counted = installed().names, installed().exactly_counted
        counts = {name.decode(): max(0, integer(count)) for name, count in rows.rows if name.decode() in known}
        counts |= {name: integer(found.rows[0][0]) for name, found in zip(counted, exact, strict=True)}
        self._space = self._space_with(counts)
        return self._space

    def space(self) -> StoreSpace:
        """Return the result of the last `measured`."""
        return self._space

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`. The size is that of the whole database, as it was last `measured`."""
        counts = self._counts
        repeated = counts.runs - counts.jobs
        return self._statistics(counts.commits, counts.outcomes, repeated, self._used_bytes, self.capacity_bytes())

    def exchanges(self) -> PostgresqlStatistics:
        """Return a copy of the counts of round trips and what they carried."""
        waiting = self._turns.waiting + self._writers.waiting + self._readers.waiting
        return msgspec.structs.replace(self._counts, waiting=waiting)

    async def _measure(self, _limit: trio.CancelScope) -> list[Result]:
        async with self._readers.wire() as wire:
            exact = map(statements.count, installed().exactly_counted)
            asked = (statements.DATABASE_SIZE, statements.ROW_ESTIMATES, *exact)
            return await wire.exchange([Statement(sql) for sql in asked])

    def _space_with(self, rows: dict[str, int]) -> StoreSpace:
        return StoreSpace(self.capacity_bytes(), 0, 0, {name: rows.get(name, 0) for name in installed().names})


def _silent() -> UnavailableError:
    return UnavailableError(f"the database did not respond for {GIVE_UP_S:g} seconds")


def _taken_apart(writes: Sequence[Write[T]]) -> tuple[list[Job[T]], list[Hint], frozenset[LeaseEpoch]]:
    """Return the jobs, the hints of those that have one, and all leases."""
    hints = [write.hint for write in writes if write.hint is not None]
    return [write.job for write in writes], hints, frozenset(write.lease for write in writes if write.lease is not None)


@dataclass(eq=False)
class _OtherVersion:
    """Set once the store turns out to have another version."""

    problem: str = ""
    found: trio.Event = field(default_factory=trio.Event)
