"""The serving store over PostgreSQL: what `Store` promises, for any number of nodes on one database.

A query runs over rows that are fetched for it: each round trip is one transaction of one statement snapshot, which has
everything that the query is known to read. Jobs are committed in groups (`groups.py`), one organization each: those of
one organization follow one another, and what waits meanwhile shares the next group; those of others run at the same
time. What fails before its commit is tried again for `GIVE_UP_S`; of a commit whose answer was lost, it is found out
first whether it has happened.

Reading and writing at once (`read`, `write_now`) blocks the loop, and is for tests and for what runs before the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import trio

from svc.store.engine import EngineError, StoreFullError, UnavailableError
from svc.store.group import Hint, Job
from svc.store.overlay import Raw
from svc.store.postgresql import statements
from svc.store.postgresql.engine import PostgresqlEngine
from svc.store.postgresql.errors import DISK_FULL, READ_ONLY, ConnectionLostError, DatabaseError, SqlError
from svc.store.postgresql.groups import MOST_FETCHES, Transactions, UncertainCommitError, UnfencedError, Written
from svc.store.postgresql.leases import Fence, Lease, LeaseLostError
from svc.store.postgresql.pool import Pool
from svc.store.postgresql.rows import Place, Rows, TooMuchMissingError
from svc.store.postgresql.turns import Turns, Waiting
from svc.store.postgresql.url import StoreUrl
from svc.store.postgresql.values import integer
from svc.store.postgresql.wire import Result, Statement, Timeouts, Wire
from svc.store.snapshot import Snapshot
from svc.store.store import Store, StoreSpace, StoreStatistics
from svc.store.tables import TABLES
from svc.world import World

T = TypeVar("T")

WRITERS, READERS = 4, 4
"""Connections."""
RECENT_S = 1.0
"""How old at most rows are that a `recent` query is given."""
GIVE_UP_S = 4.0
"""After so long a group or a query fails that the database has not taken: clients give up after five seconds."""
FIRST_PAUSE_S = 0.02
"""Before the second attempt; doubled for each further one."""
SERVING = Timeouts(statement_s=10.0, lock_s=5.0, idle_s=15.0, answer_s=12.0)
_PASSING = frozenset(("53300", "55P03", "57014", READ_ONLY))
"""What may be otherwise in a moment, beside conflicts: no connection left, a timeout, a standby."""

_BEGIN_READING, _COMMIT = Statement(statements.BEGIN_READING), Statement(statements.COMMIT)


class PostgresqlStatistics(NamedTuple):
    """What the serving side has done since the store was opened."""

    groups: int
    jobs: int
    runs: int
    """Of jobs: as many as jobs where the hints know everything."""
    round_trips: int
    """Of groups."""
    unfenced: int
    """Groups that began again because a fence was not declared."""
    retries: int
    """Groups and queries that were tried again after a conflict or a lost connection."""
    uncertain: int
    """Commits whose answer was lost."""
    queries: int
    query_round_trips: int
    waiting: int
    """Groups and queries that wait for a connection now."""


class _Done(msgspec.Struct):
    """Counts since the store was opened."""

    commits: int = 0
    jobs: int = 0
    retries: int = 0
    queries: int = 0
    query_round_trips: int = 0


class PostgresqlStore(Store):
    """An open store, with the interface of `Store`."""

    groups_at_once = 2 * WRITERS
    is_shared = True

    def __init__(
        self,
        engine: PostgresqlEngine,
        url: StoreUrl,
        world: World,
        *,
        writers: int = WRITERS,
        readers: int = READERS,
        recent_s: float = RECENT_S,
    ) -> None:
        """`engine` has the tables of this version open."""
        super().__init__(engine, world.run_sync, world.now_ms)
        connect = partial(Wire.connect, url, SERVING)
        self._writers, self._readers = Pool(connect, writers), Pool(connect, readers)
        self._transactions = Transactions()
        self._turns = Turns()
        self._recent = _RecentRows(recent_s)
        self._space = self._space_with({})
        self._used_bytes = 0
        self._lease: Lease | None = None
        self._done = _Done()

    def kept_by(self, lease: Lease) -> PostgresqlStore:
        """The same store for what only the holder of a lease does: what it writes is refused in its transaction where
        another node has the lease, with `LeaseLostError`. It shares connections and counts; only this one is closed.
        """
        kept = copy(self)
        kept._lease = lease  # noqa: SLF001  of this class
        kept._turns = Turns()  # noqa: SLF001  of this class; else jobs that need the lease might share a group with others
        return kept

    def close(self) -> None:
        """Close the connections and the engine."""
        self._writers.close()
        self._readers.close()
        super().close()

    async def query(self, read: Callable[[Snapshot], T], *, recent: bool = False) -> T:
        """See `Store.query`. Each round trip fetches, of one state, all that the function is known to read."""
        self._done.queries += 1
        rows = Rows(self._recent_row if recent else self._transactions.immutable.get)
        for _ in range(MOST_FETCHES):
            try:
                found = read(Snapshot(rows))
            except TooMuchMissingError:
                pass
            except Exception:
                if not rows.is_missing:  # else it rests on what was taken as absent
                    raise
            else:
                if not rows.is_missing:
                    if recent:
                        self._recent.add(rows)
                    return found
            rows = rows.again()
            rows.take(await self._patiently(partial(self._fetched, rows)))
        raise EngineError(f"a query has fetched {MOST_FETCHES} times, and asks for more")

    async def write(
        self,
        jobs: Sequence[Job[T]],
        *,
        may_use_reserve: bool = False,
        urgent: bool = False,
        organizations: Sequence[int] = (),
        hints: Sequence[Hint] = (),
    ) -> list[T | Exception]:
        """See `Store.write`. Jobs of one organization are committed together; where there are several, what a commit
        raises is the outcome of its jobs. Without `organizations`, all jobs are one group whose fences are found out.
        """
        del may_use_reserve
        if not organizations:
            return list(await self._group(jobs, hints, frozenset()))
        parts: defaultdict[int, list[int]] = defaultdict(list)
        for place, organization in enumerate(organizations):
            parts[organization].append(place)
        if len(parts) == 1:
            return list(await self._part(organizations[0], Waiting(jobs, hints), urgent=urgent))
        outcomes: list[Any] = [None] * len(jobs)

        async def write_part(organization: int, places: list[int]) -> None:
            waiting = Waiting([jobs[place] for place in places], [hints[place] for place in places] if hints else [])
            found: Sequence[Any]
            try:
                found = await self._part(organization, waiting, urgent=urgent)
            except (EngineError, StoreFullError) as error:
                found = [error] * len(places)
            for place, outcome in zip(places, found, strict=True):
                outcomes[place] = outcome

        async with trio.open_nursery() as nursery:
            for organization, places in parts.items():
                nursery.start_soon(write_part, organization, places)
        return outcomes

    async def _part(self, organization: int, waiting: Waiting[T], *, urgent: bool) -> Sequence[T | Exception]:
        began = trio.current_time()

        async def run(jobs: Sequence[Job[T]], hints: Sequence[Hint]) -> Sequence[T | Exception]:
            self._waits_s.observe(trio.current_time() - began)
            return await self._group(jobs, hints, frozenset((organization,)))

        return await self._turns.outcomes(organization, waiting, run, urgent=urgent)

    async def _group(
        self, jobs: Sequence[Job[T]], hints: Sequence[Hint], fences: frozenset[int]
    ) -> Sequence[T | Exception]:
        """Commit jobs together, whatever happens to the connection. Raises `UnavailableError`, `StoreFullError`."""
        began = trio.current_time()
        self._groups.observe(len(jobs))
        attempt = _Attempt(self._transactions, jobs, hints, fences, self._held())
        written = await self._patiently(partial(self._lent, attempt))
        self._commits_s.observe(trio.current_time() - began)
        self._done.commits += bool(written.rows)
        self._done.jobs += len(jobs)
        self._full = False
        self._recent.forget(written.rows)
        return written.outcomes

    def _held(self) -> Fence | None:
        if self._lease is None:
            return None
        if (fence := self._lease.fence) is None:
            raise LeaseLostError(f"this node does not have the lease {self._lease.name}")
        return fence

    async def _lent(self, attempt: _Attempt[T]) -> Written[T]:
        while True:
            async with self._writers.wire() as wire:
                try:
                    return await attempt.run(wire)
                except UnfencedError:
                    continue
                except SqlError as error:
                    if error.state == READ_ONLY:
                        wire.close()  # the next connection finds the primary
                    raise

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until it succeeds, for `GIVE_UP_S` at most. Raises `UnavailableError` and `StoreFullError`."""
        give_up_at, pause_s = trio.current_time() + GIVE_UP_S, FIRST_PAUSE_S
        while True:
            try:
                return await attempt()
            except (UncertainCommitError, ConnectionLostError) as error:
                cause: Exception = error
            except SqlError as error:
                if error.state == DISK_FULL:
                    self._full = True
                    raise StoreFullError(str(error)) from error
                if not error.is_repeatable and error.state not in _PASSING:
                    raise UnavailableError(str(error)) from error
                cause = error
            except DatabaseError as error:
                raise UnavailableError(str(error)) from error
            if trio.current_time() + pause_s > give_up_at:
                raise UnavailableError(str(cause)) from cause
            self._done.retries += 1
            await trio.sleep(pause_s)
            pause_s *= 2

    async def _fetched(self, rows: Rows) -> list[Result]:
        async with self._readers.wire() as wire:
            self._done.query_round_trips += 1
            return (await wire.exchange([_BEGIN_READING, *rows.fetches(), _COMMIT]))[1:-1]

    def _recent_row(self, place: Place) -> Raw:
        return self._recent.get(place) or self._transactions.immutable.get(place)

    @property
    def is_full(self) -> bool:
        """Whether the disk of the database was full at the last write."""
        return self._full

    async def measured(self) -> StoreSpace:
        """See `Store.measured`. Rows are the database's own estimates."""
        size, rows = await self._patiently(self._measure)
        self._used_bytes = integer(size.rows[0][0])
        known = {table.name for table in TABLES}
        counts = {name.decode(): max(0, integer(count)) for name, count in rows.rows if name.decode() in known}
        self._space = self._space_with(counts)
        return self._space

    def space(self) -> StoreSpace:
        """As it was last `measured`."""
        return self._space

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`. The size is that of the whole database, as it was last `measured`."""
        return StoreStatistics(
            commits=self._done.commits,
            jobs=self._done.jobs,
            repeated=self._transactions.counts.runs - self._transactions.counts.jobs,
            full=self._full,
            used_bytes=self._used_bytes,
            map_bytes=self.capacity_bytes(),
            waits_s=self._waits_s.statistics(),
            commits_s=self._commits_s.statistics(),
            groups=self._groups.statistics(),
        )

    def exchanges(self) -> PostgresqlStatistics:
        """A copy of the counts of what went to the database."""
        counts = self._transactions.counts
        return PostgresqlStatistics(
            groups=counts.groups,
            jobs=counts.jobs,
            runs=counts.runs,
            round_trips=counts.round_trips,
            unfenced=counts.unfenced,
            retries=self._done.retries,
            uncertain=counts.uncertain,
            queries=self._done.queries,
            query_round_trips=self._done.query_round_trips,
            waiting=self._writers.waiting + self._readers.waiting,
        )

    async def _measure(self) -> list[Result]:
        async with self._readers.wire() as wire:
            return await wire.exchange([Statement(statements.DATABASE_SIZE), Statement(statements.ROW_ESTIMATES)])

    def _space_with(self, rows: dict[str, int]) -> StoreSpace:
        return StoreSpace(self.capacity_bytes(), 0, 0, {table.name: rows.get(table.name, 0) for table in TABLES})


class _Attempt(Generic[T]):
    """A group on its way to be committed once, over as many connections as that takes."""

    def __init__(
        self,
        transactions: Transactions,
        jobs: Sequence[Job[T]],
        hints: Sequence[Hint],
        fences: frozenset[int],
        lease: Fence | None,
    ) -> None:
        self._lease = lease
        self._transactions = transactions
        self._jobs = jobs
        self._hints = hints
        self._fences = fences
        self._uncertain: Written[T] | None = None

    async def run(self, wire: Wire) -> Written[T]:
        """Commit the jobs, unless an earlier attempt turns out to have done so. Raises what `Transactions.run` does."""
        if self._uncertain is not None and await self._transactions.has_happened(wire, self._uncertain):
            return self._uncertain
        self._uncertain = None
        try:
            return await self._transactions.run(wire, self._jobs, self._hints, self._fences, self._lease)
        except UnfencedError as error:
            self._fences = error.fences
            self._transactions.counts.unfenced += 1
            raise
        except UncertainCommitError as error:
            self._uncertain = error.written
            raise


class _RecentRows:
    """Rows that were fetched lately, for `for_s` seconds at most. That there is no row is not remembered."""

    def __init__(self, for_s: float) -> None:
        self._half_s = for_s / 2
        self._new: dict[Place, bytes] = {}
        self._old: dict[Place, bytes] = {}
        self._since_s = 0.0

    def get(self, place: Place) -> Raw:
        self._turn_over()
        raw = self._new.get(place)
        return self._old.get(place) if raw is None else raw

    def add(self, rows: Rows) -> None:
        self._turn_over()
        self._new.update(rows.found_everywhere())

    def forget(self, places: Iterable[Place]) -> None:
        for place in places:
            self._new.pop(place, None)
            self._old.pop(place, None)

    def _turn_over(self) -> None:
        """What was added in one half is kept to the end of the next one."""
        now_s = trio.current_time()
        if now_s - self._since_s >= self._half_s:
            self._old = self._new if now_s - self._since_s < 2 * self._half_s else {}
            self._new, self._since_s = {}, now_s
