"""A group of jobs in one transaction of the database, in three round trips whatever its size.

1. Begin, take the fences, read the store's version, and fetch what the hints know at once.
2. Fetch what follows from that: the visitors whom the blocks name, and their history. Then the jobs run.
3. Write all rows and commit.

A fence is a row of `writers`, one for each organization and one for what belongs to none. Who writes rows, or decides
by them, holds their fence; so groups of one organization follow one another over all nodes, and rows that were fetched
stay as they are until the commit. A group takes its fences at once and in ascending order: it may wait for another
group, and never two for each other. Where jobs touch rows whose fence is not held, the group begins again with it.
A group of several organizations takes only fences that nobody has, and waits for none.

Where other nodes write for the same organization, the fence is taken last: rows are fetched and jobs run before it
(`ahead`). Then one round trip takes the fence, looks at the version (`version.py`), and asks for every row that was
read, as far as it has another version now; the jobs that would have read something else run again, and sums are added
up again. So a group has its fence for two round trips and the commit, and not while it reads and computes.

Outcomes are those of the jobs run one after the other. A job that read what was not fetched runs again after one more
round trip, and so does each one behind it that what it wrote concerns (`svc.kernel.store.group`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import inf
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import trio

from svc.kernel.store.engine import EngineError, UnavailableError
from svc.kernel.store.group import Group, Hint, Job, LeaseEpoch, LeaseLostError, Settled
from svc.kernel.store.overlay import Raw
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.cluster.leases import lease_fence, lost_leases
from svc.kernel.store.postgresql.connection.errors import READ_ONLY, ConnectionLostError, SqlError
from svc.kernel.store.postgresql.connection.values import int4s, integer
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire
from svc.kernel.store.postgresql.rows import (
    EVERY,
    MAX_FETCHES,
    NOTHING,
    OWNER,
    RowKey,
    Rows,
    fence_of,
    is_immutable,
    plain_columns,
    run_over,
    writes,
)
from svc.kernel.store.postgresql.statements import split_by_organization
from svc.kernel.store.postgresql.statistics import PostgresqlStatistics
from svc.kernel.store.postgresql.turns import OtherWriters
from svc.kernel.store.postgresql.version import READ_VERSION, OtherVersionError, refuse_other
from svc.kernel.store.schema.operation_log import Changes
from svc.kernel.store.schema.table import installed
from svc.kernel.store.snapshot import Snapshot

T = TypeVar("T")

_IMMUTABLE_HELD = 4096
FEW = 4
"""Jobs of a group that may run again before the next groups take their fence first."""

_BEGIN, _COMMIT, _ROLLBACK = Statement(statements.BEGIN), Statement(statements.COMMIT), Statement(statements.ROLLBACK)


class UnfencedError(Exception):
    """Jobs touched rows whose fence the transaction does not hold. Nothing was written."""

    def __init__(self, fences: frozenset[int]) -> None:
        super().__init__("rows were touched whose fence is not held")
        self.fences = fences
        """The fences that the jobs need: those that were held, and those that were missing."""


class Part(NamedTuple, Generic[T]):
    """Jobs of a group for one organization, and what they need."""

    jobs: Sequence[Job[T]]
    hints: Sequence[Hint]
    fences: frozenset[int]


class Written(NamedTuple, Generic[T]):
    """The result of a group, and what its commit writes."""

    outcomes: list[T | Exception]
    rows: dict[RowKey, Raw]
    """The rows that differ from before; if none does, one that jobs wrote as it was."""
    proof_rows: tuple[RowKey, ...]
    """Those of them that exist only if the transaction was committed."""
    turns: dict[int, int]
    """Fence -> its turn in this transaction."""


class UncertainCommitError(Exception):
    """The connection was lost during the commit, so it is unknown whether it happened. `has_happened` finds out."""

    def __init__(self, written: Written[Any]) -> None:
        super().__init__("the connection was lost during the commit")
        self.written = written


class _Ran(NamedTuple, Generic[T]):
    """A group whose fences are held, and the results of its jobs."""

    group: Group[T]
    settled: Settled[T]
    turns: dict[int, int]
    fences: frozenset[int]
    early: Mapping[RowKey, Raw] = MappingProxyType({})
    """Rows that were written before the fences were held."""


class Transactions:
    """Runs groups of jobs on connections that it is given."""

    def __init__(self, *, may_run_ahead: bool = True) -> None:
        """Set `may_run_ahead` if the database says of each row which transaction wrote it."""
        self.may_run_ahead = may_run_ahead
        self.others = OtherWriters()
        self.counts = PostgresqlStatistics()
        """Statistics of groups; the store counts the rest."""
        self.immutable: dict[RowKey, bytes] = {}
        """Rows that never change, of those that were read or written lately."""

    async def run(
        self,
        wire: Wire,
        parts: Sequence[Part[T]],
        leases: frozenset[LeaseEpoch] = frozenset(),
        *,
        free: bool = False,
        ahead: bool = False,
        limit: trio.CancelScope | None = None,
    ) -> Written[T]:
        """Run jobs and commit their writes; with `leases`, only while this node holds them. `free`: run only the parts
        whose fences are free; the others are left out, as `Written.turns` tells. `ahead`: run the jobs before the
        fences are taken. The deadline of `limit` applies until the commit is sent.

        Raises `UnfencedError`, `LeaseLostError`, `OtherVersionError`, `SqlError` and `ConnectionLostError`, after which
        nothing is written; and `UncertainCommitError`. Afterwards the connection has no open transaction, or is closed.
        """
        rows = Rows(self.immutable.get, of_several=free, versioned=ahead)
        try:
            run = self._run_ahead if ahead else partial(self._run_fenced, free=free)
            ran = await run(wire, rows, parts, leases)
            _refuse_unfenced(rows, ran.settled.changes, ran.fences)
            changed = _changed(rows, ran.settled.changes)
            written = Written(ran.settled.outcomes, changed, _proof_rows(rows, changed), ran.turns)
            if limit is not None:
                limit.deadline = inf
                await trio.lowlevel.checkpoint_if_cancelled()  # it may have passed while the answer came
            await self._end(wire, written, ran.early, sql_events=rows.has_sql_events)
        except BaseException:
            await _undo(wire)
            raise
        counts = self.counts
        counts.groups += bool(written.outcomes)
        counts.jobs += len(written.outcomes)
        counts.runs += ran.group.runs
        counts.ahead += ahead
        if changed:
            repeated = ran.group.runs - len(written.outcomes)
            self.others.note(ran.turns, clashed=ahead and repeated > max(FEW, len(written.outcomes) // 2))
        self._remember(rows, written.rows)
        return written

    async def _run_fenced(
        self, wire: Wire, rows: Rows, parts: Sequence[Part[T]], leases: frozenset[LeaseEpoch], *, free: bool
    ) -> _Ran[T]:
        """Take the fences first, so that nothing that is read changes any more."""
        fences = _fences_of(parts)
        steps = [[hint(Snapshot(rows)) for hint in part.hints] for part in parts]
        turns = await self._begin(wire, rows, [step for each in steps for step in each], fences, leases, free=free)
        if free:
            fences = frozenset(turns)
            kept = [row_key for row_key, part in enumerate(parts) if part.fences <= fences]
            parts, steps = [parts[row_key] for row_key in kept], [steps[row_key] for row_key in kept]
        group = Group([job for part in parts for job in part.jobs])
        settled = await self._settled(wire, rows, group, [step for each in steps for step in each])
        return _Ran(group, settled, turns, fences)

    async def _run_ahead(
        self, wire: Wire, rows: Rows, parts: Sequence[Part[T]], leases: frozenset[LeaseEpoch]
    ) -> _Ran[T]:
        """Take the fences last. Once they are held, fetch again what has changed meanwhile, and repeat jobs that would
        have read something else. Rows that nobody else can write or see are written before that.
        """
        fences = _fences_of(parts)
        group = Group([job for part in parts for job in part.jobs])
        hints = [hint for part in parts for hint in part.hints]
        settled = await self._settled(wire, rows, group, [hint(Snapshot(rows)) for hint in hints])
        _refuse_unfenced(rows, settled.changes, fences)
        changed = _changed(rows, settled.changes)
        early = {row_key: changed[row_key] for row_key in _proof_rows(rows, changed)}
        rows.look_again()
        turns = await self._begin(wire, rows, [], fences, leases, before=list(writes(early)))
        if rows.has_changed:
            settled = await self._settled(wire, rows, group, [], partial(_must_wait, rows, hints))
        return _Ran(group, settled, turns, fences, early)

    async def has_happened(self, wire: Wire, written: Written[Any]) -> bool:
        """Return whether a transaction was committed although the answer to its commit was lost.

        It takes the transaction's fences, and so waits until that has ended. If a fence then has the turn that the
        transaction had, it was rolled back. Otherwise another transaction may have held the fence since, and rows with
        unique ids decide: everything that is billed or answered has one. Raises `UnavailableError` if there is no such
        row: then nobody knows.
        """
        rows = Rows()
        for row_key in written.proof_rows:
            rows.get(*row_key)
        try:
            turns = await self._begin(wire, rows, [], frozenset(written.turns))
        finally:
            await _undo(wire)
        if any(turns[fence] == turn for fence, turn in written.turns.items()):
            return False
        if not written.proof_rows:
            raise UnavailableError("the response to a commit was lost, and nothing tells whether it was committed")
        return any(rows.found(*row_key) == written.rows[row_key] for row_key in written.proof_rows)

    async def _begin(
        self,
        wire: Wire,
        rows: Rows,
        steps: list[Iterator[None]],
        fences: frozenset[int],
        leases: frozenset[LeaseEpoch] = frozenset(),
        *,
        free: bool = False,
        before: Sequence[Statement] = (),
    ) -> dict[int, int]:
        """Begin a transaction and fetch rows. Return fence -> its turn; nothing if all fences are taken (`EVERY`).
        `free`: take only fences that nobody holds, and their rows. `before`: statements to send first.
        """
        _advance(steps)
        taking = [_BEGIN, *before, *_taking(fences, free=free)]
        opening = [*taking, READ_VERSION, *([lease_fence(leases)] if leases else [])]
        while True:
            results = await self._exchange(wire, [*opening, *rows.fetches()])
            rows.has_sql_events = refuse_other(results[len(taking)])
            if leases and (gone := lost_leases(leases, results[len(opening) - 1])):
                raise LeaseLostError(gone)
            if EVERY in fences:
                turns = dict[int, int]()
                break
            taken = results[len(taking) - 1].rows if fences else []
            turns = {integer(fence): integer(turn) for fence, turn in taken}
            if free or len(turns) == len(fences):
                break
            added = Statement(statements.ADD_FENCES, (int4s(sorted(fences - turns.keys())),))
            await self._exchange(wire, [_ROLLBACK, added])
        rows.take(results[len(opening) :], fences - turns.keys() if free else frozenset())
        return turns

    async def _settled(
        self,
        wire: Wire,
        rows: Rows,
        group: Group[T],
        steps: list[Iterator[None]],
        must_wait: Callable[[int], bool] = lambda _: False,
    ) -> Settled[T]:
        while steps:
            _advance(steps)
            if rows.is_missing:
                await self._fetch(wire, rows)
        for _ in range(MAX_FETCHES):
            changed = rows.begin_reading()
            settled = run_over(rows, partial(group.run, rows, changed, must_wait))
            if settled is not None:
                return settled[0]
            await self._fetch(wire, rows)
        raise EngineError(f"a group of jobs has fetched {MAX_FETCHES} times, and asks for more")

    async def _fetch(self, wire: Wire, rows: Rows) -> None:
        rows.take(await self._exchange(wire, rows.fetches()))

    async def _end(self, wire: Wire, written: Written[Any], early: Mapping[RowKey, Raw], *, sql_events: bool) -> None:
        if not written.rows:
            await self._exchange(wire, [_ROLLBACK])  # which takes back the turns, too
            return
        try:
            left = {row_key: raw for row_key, raw in written.rows.items() if early.get(row_key) != raw or raw is None}
            left.update(dict.fromkeys(early.keys() - written.rows.keys()))
            also = plain_columns(partial(_rows_of, written.rows)) if sql_events else []
            await self._exchange(wire, [*writes(left), *also, _COMMIT])
        except ConnectionLostError as error:
            self.counts.uncertain += 1
            raise UncertainCommitError(written) from error

    async def _exchange(self, wire: Wire, sent: Sequence[Statement]) -> list[Result]:
        self.counts.round_trips += 1
        return await wire.exchange(sent)

    def _remember(self, rows: Rows, written: dict[RowKey, Raw]) -> None:
        if len(self.immutable) > _IMMUTABLE_HELD:
            self.immutable.clear()
        self.immutable.update(rows.found_everywhere(is_immutable))
        new = ((row_key, raw) for row_key, raw in written.items() if raw is not None and is_immutable(row_key[0]))
        self.immutable.update(new)


class GroupAttempt(Generic[T]):
    """A group that is to be committed once, over as many connections as that takes. A group that organizations share is
    repeated only if it lost its connection: any other failure may be due to one of them.
    """

    def __init__(
        self, transactions: Transactions, parts: Sequence[Part[T]], leases: frozenset[LeaseEpoch], *, shared: bool
    ) -> None:
        self._transactions = transactions
        self._parts = parts
        self._leases = leases
        self._is_shared = shared
        self._uncertain: Written[T] | None = None

    async def run(self, wire: Wire, limit: trio.CancelScope | None = None) -> Written[T] | None:
        """Commit the jobs, unless an earlier attempt turns out to have done so. Return `None` if a shared group failed
        and nothing was written. Raises as `Transactions.run`; for a shared group only errors that another attempt may
        avoid, and `OtherVersionError`. `limit`: see `Transactions.run`.
        """
        if self._uncertain is not None and await self._transactions.has_happened(wire, self._uncertain):
            return self._uncertain
        self._uncertain = None
        try:
            return await self._transactions.run(
                wire, self._parts, self._leases, free=self._is_shared, ahead=self._may_run_ahead(), limit=limit
            )
        except UncertainCommitError as error:
            self._uncertain = error.written
            raise
        except (ConnectionLostError, OtherVersionError):
            raise
        except (EngineError, UnfencedError) as error:
            if isinstance(error, SqlError) and error.state == READ_ONLY:
                wire.close()  # it leads to a standby: the next connection finds the primary
            if self._is_shared:
                return None
            if isinstance(error, UnfencedError):
                self._parts = [part._replace(fences=error.fences) for part in self._parts]
                self._transactions.counts.unfenced += 1
            raise

    def _may_run_ahead(self) -> bool:
        """Return whether jobs may run before their fence is held: other nodes take it, and hints say what is read."""
        if self._is_shared or len(self._parts) != 1:
            return False
        ((jobs, hints, fences),) = self._parts
        transactions, is_known = self._transactions, len(hints) == len(jobs) and len(fences) == 1
        return transactions.may_run_ahead and is_known and transactions.others.may_pass(*fences)


def _must_wait(rows: Rows, hints: Sequence[Hint], index: int) -> bool:
    """Return whether a job that has to run again waits for missing rows. Request what its hint knows, too."""
    if rows.is_missing:
        for _ in hints[index](Snapshot(rows)):
            pass
    return rows.is_missing


def _advance(steps: list[Iterator[None]]) -> None:
    """Let each hint continue until it needs what it has read; remove those that have ended."""
    steps[:] = [step for step in steps if next(step, _END) is not _END]


def _taking(fences: frozenset[int], *, free: bool) -> list[Statement]:
    if EVERY in fences:
        taking = (statements.LOCK_ROWS_OF_NONE, statements.ADD_EVERY_FENCE, statements.TAKE_EVERY_FENCE)
        return [Statement(sql) for sql in taking]
    take = statements.TAKE_FREE_FENCES if free else statements.TAKE_FENCES
    return [Statement(take, (int4s(sorted(fences)),))] if fences else []


def _fences_of(parts: Sequence[Part[Any]]) -> frozenset[int]:
    return frozenset[int]().union(*(part.fences for part in parts))


def _fences(changes: Changes) -> set[int]:
    return {
        fence_of(table, organization)
        for table, rows in changes.items()
        for organization, _ in split_by_organization(table, rows)
    }


def _refuse_unfenced(rows: Rows, changes: Changes, held: frozenset[int]) -> None:
    missing = _missing(rows.fences | _fences(changes), held)
    if missing:
        raise UnfencedError(held | missing)


def _missing(touched: set[int], held: frozenset[int]) -> set[int]:
    """Return the missing fences. For rows whose key does not name the owner, any organization's will do."""
    if EVERY in held:
        return set()
    missing = touched - held - {OWNER, NOTHING}
    if OWNER in touched and not any(fence > 0 for fence in held | missing):
        missing.add(EVERY)
    return missing


def _changed(rows: Rows, changes: Changes) -> dict[RowKey, Raw]:
    """Return the rows that a commit writes: those that differ. If none does, one is written as it was: a job that
    writes a row has it committed, as in a data directory (ADR 163).
    """
    changed: dict[RowKey, Raw] = {}
    for table, own in changes.items():
        before = rows.found_in(table)
        changed.update(((table, key), raw) for key, raw in own.items() if raw is None or before.get(key) != raw)
    put = (((table, key), raw) for table, own in changes.items() if not is_immutable(table) for key, raw in own.items())
    return changed or dict(islice(put, 1))


def _proof_rows(rows: Rows, changed: dict[RowKey, Raw]) -> tuple[RowKey, ...]:
    """Return new rows with unique ids: others, such as sums, may be the same in another transaction."""
    return tuple(
        row_key
        for row_key, raw in changed.items()
        if raw is not None and row_key[0] in installed().by_own_id and rows.found(*row_key) is None
    )


def _rows_of(changed: Mapping[RowKey, Raw], name: str) -> Iterator[tuple[bytes, bytes]]:
    return ((key, raw) for (table, key), raw in changed.items() if table == name and raw is not None)


async def _undo(wire: Wire) -> None:
    if wire.is_open and wire.is_in_transaction:
        try:
            await wire.exchange([_ROLLBACK])
        except EngineError:
            wire.close()


_END = object()
