"""Groups of jobs on a real PostgreSQL: two nodes on one database against a dict on which the jobs run in turn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from svc.features.tables import TABLES
from svc.identify.tables import DELETED_VISITORS, VISITOR_COUNTS
from svc.kernel.store.engine import StoreFullError, UnavailableError
from svc.kernel.store.postgresql import store as serving
from svc.kernel.store.postgresql.connection.errors import ConnectionLostError, SqlError
from svc.kernel.store.postgresql.connection.values import int4s
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.rows import FIRST_PAGE
from svc.kernel.store.postgresql.statements import BEGIN, COMMIT, TAKE_FENCES
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.tables import META
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.jobs import enter
from svc.kernel.tenants.tables import BALANCES, HOLDINGS, LEDGER
from svc.world import World
from tests.store.postgresql.nodes import fill_disk, until
from tests.support.postgresql import MISSING, Cluster, programs
from tests.support.writes import give_balances, writes

pytestmark = pytest.mark.slow(2)

ROWS = DELETED_VISITORS
"""A table of numbers by organization and number."""


@pytest.fixture
def made(cluster: Cluster, database: str) -> str:
    """A database with an empty store."""
    url = cluster.url(database)
    engine = PostgresqlEngine.open(url)
    engine.open_tables([table.name for table in TABLES], create=True)
    engine.close()
    return database


@pytest.fixture
def funded(cluster: Cluster, made: str) -> str:
    """A database with a store that has balances of 0."""
    engine = PostgresqlEngine.open(cluster.url(made))
    engine.open_tables([table.name for table in TABLES])
    give_balances(engine, 99)
    engine.close()
    return made


@asynccontextmanager
async def node(cluster: Cluster, database: str, port: int | None = None, **how: Any) -> AsyncGenerator[PostgresqlStore]:
    """A serving store; `port` of a proxy, if not the server's own."""
    engine = PostgresqlEngine.open(cluster.url(database))
    engine.open_tables([table.name for table in TABLES])
    store = PostgresqlStore(engine, cluster.url(database, port), World.real(), **how)
    try:
        yield store
    finally:
        store.close()


def add(number: int, amount: int, transaction: Transaction) -> int:
    """Add to a balance, and say what it was."""
    before = transaction.get(BALANCES, number) or 0
    transaction.put(BALANCES, (number,), before + amount)
    return before


def balance(number: int, snapshot: Snapshot) -> int:
    return snapshot.get(BALANCES, number) or 0


async def test_jobs_on_two_nodes_have_serializable_outcomes(cluster: Cluster, made: str):
    """Each job says what it found: in whatever order they were committed, no two of an organization found the same."""
    chance, found = random.Random(7), Counter[tuple[int, int]]()

    async def work(store: PostgresqlStore, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(6):
            numbers = [chance.randint(1, 3) for _ in range(chance.randint(1, 5))]
            jobs = [partial(add, number, 1) for number in numbers]
            outcomes = await store.write(writes(jobs, organizations=numbers if chance.random() < 0.8 else ()))
            for number, outcome in zip(numbers, outcomes, strict=True):
                assert isinstance(outcome, int)
                found[number, outcome] += 1

    async with node(cluster, made) as first, node(cluster, made) as second:
        async with trio.open_nursery() as nursery:
            for worker in range(8):
                nursery.start_soon(work, (first, second)[worker % 2], chance.randrange(1 << 30))
        for number in (1, 2, 3):
            outcomes = sorted(outcome for of, outcome in found if of == number)
            assert outcomes == list(range(await first.query(partial(balance, number))))
        assert max(found.values()) == 1
        assert first.exchanges().uncertain == second.exchanges().uncertain == 0


async def test_a_row_that_is_written_as_it_was_is_a_commit(cluster: Cluster, made: str):
    """As in a data directory: who writes one asks whether the store takes a commit (ADR 163)."""
    async with node(cluster, made) as store:
        await store.write_one(partial(add, 1, 5), 1)
        version = "select xmin from svc.balances where organization = 1"
        before, commits = cluster.execute(version, made), store.statistics().commits
        assert await store.write_one(partial(add, 1, 0), 1) == 5
        assert store.statistics().commits == commits + 1
        assert cluster.execute(version, made) != before
        await store.write_one(lambda transaction: transaction.get(BALANCES, 1), 1)
        assert store.statistics().commits == commits + 1, "what only reads commits nothing"


async def test_a_group_has_the_same_result_as_on_a_dict(cluster: Cluster, made: str):
    """Reads, writes, deletes and ranges in both directions that nothing foretold."""
    chance, model = random.Random(11), dict[int, int]()
    async with node(cluster, made) as store:
        for _ in range(25):
            group = [
                [(chance.choice("gpdrsu"), chance.randint(1, 40), chance.randint(0, 99)) for _ in range(6)]
                for _ in range(chance.randint(1, 4))
            ]
            expected = [[on_model(*step, model) for step in steps] for steps in group]
            jobs = [partial(take_steps, steps) for steps in group]
            assert await store.write(writes(jobs, organizations=[5] * len(group))) == expected
            assert await store.query(contents) == model


def take_steps(steps: list[tuple[str, int, int]], transaction: Transaction) -> list[Any]:
    return [on_store(*step, transaction) for step in steps]


def contents(snapshot: Snapshot) -> dict[int, int]:
    return {key[1]: value for key, value in snapshot.scan(ROWS, 5)}


def on_store(what: str, key: int, value: int, transaction: Transaction) -> Any:
    match what:
        case "g":
            return transaction.get(ROWS, 5, key)
        case "p":
            transaction.put(ROWS, (5, key), value)
        case "d":
            return transaction.delete(ROWS, 5, key)
        case "r":
            return [found for _, found in islice(transaction.scan_keys_reverse(ROWS, (5,), (5, key)), 3)]
        case "s":
            return [found for (_, found), _ in islice(transaction.scan(ROWS, 5, start=(5, key)), 3)]
        case _:
            transaction.update(ROWS, (5, key), lambda row: (row or 0) + 1)
    return None


def on_model(what: str, key: int, value: int, model: dict[int, int]) -> Any:
    match what:
        case "g":
            return model.get(key)
        case "p":
            model[key] = value
        case "d":
            return model.pop(key, None) is not None
        case "r":
            return sorted((other for other in model if other < key), reverse=True)[:3]
        case "s":
            return sorted(other for other in model if other >= key)[:3]
        case _:
            model[key] = model.get(key, 0) + 1
    return None


async def test_a_hinted_group_takes_three_round_trips_and_one_run_per_job(cluster: Cluster, made: str):
    def hint(key: int, snapshot: Snapshot) -> Iterator[None]:
        snapshot.has(ROWS, 5, key)
        yield
        snapshot.has(BALANCES, 5)

    def job(key: int, transaction: Transaction) -> int:
        found = transaction.get(ROWS, 5, key)
        transaction.put(ROWS, (5, key), key)
        return add(5, found or 1, transaction)

    async with node(cluster, made) as store:
        await store.write(writes([partial(add, 5, 0)], organizations=[5]))
        before = store.exchanges()
        jobs, hints = [partial(job, key) for key in range(8)], [partial(hint, key) for key in range(8)]
        assert await store.write(writes(jobs, organizations=[5] * 8, hints=hints)) == list(range(8))
        after = store.exchanges()
    assert after.round_trips - before.round_trips == 3
    assert after.runs - before.runs == 8


async def test_a_job_can_read_more_than_was_hinted(cluster: Cluster, made: str):
    def follow(transaction: Transaction) -> list[int]:
        found = [transaction.get(ROWS, 5, 1) or 0]
        while found[-1]:
            found.append(transaction.get(ROWS, 5, found[-1]) or 0)
        return found

    async with node(cluster, made) as store:
        chain = [partial(on_store, "p", key, key + 1) for key in range(1, 6)]
        await store.write(writes(chain, organizations=[5] * 5))
        assert await store.write(writes([follow], organizations=[5])) == [[2, 3, 4, 5, 6, 0]]


async def test_a_long_range_is_read_to_its_end(cluster: Cluster, made: str):
    count = 5 * FIRST_PAGE + 3
    async with node(cluster, made) as store:
        await store.write(writes([partial(on_store, "p", key, key) for key in range(count)], organizations=[5] * count))
        assert await store.query(contents) == {key: key for key in range(count)}
        assert store.exchanges().query_round_trips <= 3

        def clear(transaction: Transaction) -> int:
            keys = list(transaction.scan_keys_reverse(ROWS, (5,), (6,)))
            return sum(transaction.delete(ROWS, *key) for key in keys)

        assert await store.write(writes([clear], organizations=[5])) == [count]
        assert await store.query(contents) == {}


async def test_an_undeclared_fence_is_taken_too(cluster: Cluster, made: str):
    """Two nodes add to the same balances, and each declares another organization than it changes."""

    async def work(store: PostgresqlStore, declared: tuple[int, ...]) -> None:
        for _ in range(10):
            await store.write(writes([move], organizations=declared))

    def move(transaction: Transaction) -> None:
        add(1, -1, transaction)
        add(2, 1, transaction)

    async with node(cluster, made) as first, node(cluster, made) as second:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, first, (1,))
            nursery.start_soon(work, second, (2,))
            nursery.start_soon(work, second, ())
        assert await first.query(lambda snapshot: (balance(1, snapshot), balance(2, snapshot))) == (-30, 30)
        assert first.exchanges().unfenced == 10
        assert second.exchanges().unfenced == 20
        assert first.exchanges().retries == second.exchanges().retries == 0, "fences do not deadlock"


def bill(number: int, which: int, transaction: Transaction) -> int:
    """What the balance was. It makes a line of the ledger under an id of its own; every seventh fails after that."""
    before = transaction.get(BALANCES, number) or 0
    enter(transaction, number, UUID(int=which), LedgerEntry("identification", 1, which))
    if which % 7 == 0:
        raise LookupError(which)
    return before


def hint_bill(number: int, snapshot: Snapshot) -> Iterator[None]:
    snapshot.has(BALANCES, number)
    snapshot.has(HOLDINGS, number)
    yield
    next(snapshot.scan(LEDGER, number), None)


async def billed(store: PostgresqlStore, whiches: dict[int, int]) -> list[int | Exception]:
    """`whiches`: number of a line -> organization; as a batch of identifications is written."""
    return await store.write(
        writes(
            [partial(bill, number, which) for which, number in whiches.items()],
            organizations=list(whiches.values()),
            hints=[partial(hint_bill, number) for number in whiches.values()],
        ),
        urgent=True,
    )


def lines(number: int, snapshot: Snapshot) -> list[int]:
    return sorted(entry.amount_micros for _, entry in snapshot.scan(LEDGER, number))


@pytest.mark.slow
async def test_groups_of_overlapping_organizations_on_three_nodes_do_each_job_once(cluster: Cluster, funded: str):
    """Beside others that take one fence, or all. Nothing deadlocks; each job finds what those before it have left."""
    organizations, batches, chance = 12, 12, random.Random(23)
    found: dict[int, list[int]] = {number: [] for number in range(1, organizations + 1)}
    failed, sent = list[int](), Counter[int]()

    async def identify(store: PostgresqlStore, worker: int, chance: random.Random) -> None:
        for batch in range(batches):
            first = 1000 * (1 + worker * batches + batch)
            whiches = {first + place: chance.randint(1, organizations) for place in range(chance.randint(1, 12))}
            for which, outcome in zip(whiches, await billed(store, whiches), strict=True):
                sent[whiches[which]] += 1
                if isinstance(outcome, LookupError):
                    failed.append(which)
                else:
                    assert isinstance(outcome, int)
                    found[whiches[which]].append(outcome)

    async def disturb(store: PostgresqlStore, chance: random.Random) -> None:
        for _ in range(10):
            number = chance.randint(1, organizations)
            job = partial(add, number, 0)
            await store.write(writes([job], organizations=() if chance.random() < 0.3 else (number,)))

    async with node(cluster, funded) as one, node(cluster, funded) as two, node(cluster, funded) as three:
        nodes = (one, two, three)
        async with trio.open_nursery() as nursery:
            for worker in range(9):
                nursery.start_soon(identify, nodes[worker % 3], worker, random.Random(chance.random()))
            for store in nodes:
                nursery.start_soon(disturb, store, random.Random(chance.random()))
        for number, outcomes in found.items():
            assert sorted(outcomes) == list(range(len(outcomes)))
            assert await one.query(partial(balance, number)) == len(outcomes)
            assert len(await one.query(partial(lines, number))) == len(outcomes)
        assert all(which % 7 == 0 for which in failed)
        assert sum(map(len, found.values())) + len(failed) == sent.total()
        done = [store.exchanges() for store in nodes]
        assert sum(each.retries + each.uncertain for each in done) == 0
        assert sum(each.groups for each in done) < sent.total() / 2, "organizations have shared groups"


async def test_an_organization_whose_fence_is_taken_delays_no_other(cluster: Cluster, made: str):
    async with node(cluster, made) as store:
        await store.write(writes([partial(add, number, 0) for number in range(1, 6)], organizations=range(1, 6)))
        other = await Wire.connect(cluster.url(made))
        await other.exchange([Statement(BEGIN), Statement(TAKE_FENCES, (int4s([3]),))])
        ended: list[int] = []

        async def one(number: int) -> None:
            assert await billed(store, {50 + number: number}) == [0]
            ended.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(1, 6):
                nursery.start_soon(one, number)
            await until(lambda: len(ended) == 4)
            assert await billed(store, {60 + number: number for number in (1, 2, 4, 5)}) == [1, 1, 1, 1]
            assert 3 not in ended
            await other.exchange([Statement(COMMIT)])
        assert sorted(ended) == [1, 2, 3, 4, 5]
        other.close()


async def test_a_job_that_fails_a_shared_group_is_run_in_a_group_of_its_own(cluster: Cluster, funded: str):
    """One that touches what it has not said: the others are committed without it, and it once its fences are held."""

    def stray(transaction: Transaction) -> int:
        return add(9, 1, transaction)

    def unsaid(_: Snapshot) -> Iterator[None]:
        yield

    async with node(cluster, funded) as store:
        await store.write(writes([partial(add, number, 0) for number in (1, 2, 9)], organizations=[1, 2, 9]))
        before = store.exchanges()
        assert await store.write(
            writes(
                [partial(bill, 1, 1), stray, partial(bill, 3, 3)],
                organizations=[1, 2, 3],
                hints=[partial(hint_bill, 1), unsaid, partial(hint_bill, 3)],
            ),
            urgent=True,
        ) == [0, 0, 0]
        assert store.exchanges().unfenced - before.unfenced == 1
        assert [await store.query(partial(balance, number)) for number in (1, 3, 9)] == [1, 1, 1]


async def test_rows_of_several_organizations_are_fetched_as_those_of_one(cluster: Cluster, made: str):
    """By key and by range, in both directions, in one statement for each table."""
    chance, organizations = random.Random(5), range(1, 9)

    def read(number: int, transaction: Transaction) -> list[Any]:
        forward = [row for row, _ in zip(transaction.scan(ROWS, number), range(3), strict=False)]
        keys = transaction.scan_keys_reverse(ROWS, (number,), (number + 1,))
        back = [key for key, _ in zip(keys, range(2), strict=False)]
        return [forward, back, transaction.get(ROWS, number, 7), transaction.get(BALANCES, number)]

    def hint(number: int, snapshot: Snapshot) -> Iterator[None]:
        snapshot.has(ROWS, number, 7)
        snapshot.has(BALANCES, number)
        next(snapshot.scan(ROWS, number), None)
        yield

    async with node(cluster, made) as store:
        for number in organizations:
            keys = chance.sample(range(20), chance.randint(0, 9))
            jobs = [partial(put_row, number, key) for key in keys] + [partial(add, number, number)]
            await store.write(writes(jobs, organizations=[number] * len(jobs)))
        alone = [
            (await store.write(writes([partial(read, number)], organizations=[number])))[0] for number in organizations
        ]
        before = store.exchanges()
        together = await store.write(
            writes(
                [partial(read, number) for number in organizations],
                organizations=list(organizations),
                hints=[partial(hint, number) for number in organizations],
            ),
            urgent=True,
        )
        assert together == alone
        assert store.exchanges().groups - before.groups == 1


def put_row(number: int, key: int, transaction: Transaction) -> None:
    transaction.put(ROWS, (number, key), key)


async def test_a_job_across_organizations_takes_the_fences_of_all(cluster: Cluster, made: str):
    def sum_up(transaction: Transaction) -> int:
        total = sum(value for _, value in transaction.scan(BALANCES))
        transaction.put(META, ("total",), total)
        return total

    async with node(cluster, made) as store:
        await store.write(writes([partial(add, number, number) for number in (1, 2, 3)], organizations=[1, 2, 3]))
        assert await store.write(writes([sum_up])) == [6]
        assert await store.query(lambda snapshot: snapshot.get(META, "total")) == 6


async def test_a_failing_job_rolls_back_only_itself(cluster: Cluster, made: str):
    def fail(transaction: Transaction) -> None:
        add(1, 100, transaction)
        raise LookupError("not this one")

    async with node(cluster, made) as store:
        first, failed, last = await store.write(
            writes([partial(add, 1, 1), fail, partial(add, 1, 1)], organizations=[1] * 3)
        )
        assert (first, last) == (0, 1)
        assert isinstance(failed, LookupError)
        assert await store.query(partial(balance, 1)) == 2


async def test_jobs_that_wait_for_an_organization_share_its_next_group(cluster: Cluster, made: str):
    async with node(cluster, made) as store:
        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(partial(store.write, writes([partial(add, 1, 1)], organizations=[1])))
        assert await store.query(partial(balance, 1)) == 60
        assert store.exchanges().groups <= 4


async def test_jobs_that_wait_for_a_connection_share_a_group(cluster: Cluster, made: str):
    async with node(cluster, made, writers=1) as store:
        await store.write(writes([partial(add, 1, 1)], organizations=[1]))
        before = store.exchanges().groups
        other = await Wire.connect(cluster.url(made))
        await other.exchange(
            [Statement(b"begin"), Statement(b"select from svc.writers where organization = 1 for update")]
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(store.write, writes([partial(add, 1, 1)], organizations=[1])))
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(5):
                nursery.start_soon(partial(store.write, writes([partial(add, 2, 1)], organizations=[2])))
            await trio.testing.wait_all_tasks_blocked()
            assert store.exchanges().waiting == 1, "one for all of them"
            other.close()
        assert store.exchanges().groups - before == 2
        assert await store.query(partial(balance, 2)) == 5


async def test_a_cancelled_waiting_caller_does_not_affect_others(cluster: Cluster, made: str):
    async with node(cluster, made) as store:
        async with trio.open_nursery() as nursery:
            for place in range(20):
                scope = trio.CancelScope()

                async def work(scope: trio.CancelScope, amount: int) -> None:
                    with scope:
                        await store.write(writes([partial(add, 1, amount)], organizations=[1]))

                nursery.start_soon(work, scope, 1000 if place % 2 else 1)
                if place % 2:
                    scope.cancel()
        assert await store.query(partial(balance, 1)) % 1000 == 10, "nobody else is lost, and of theirs all or nothing"


def enter_once(limit: int, which: int, transaction: Transaction) -> None:
    """A line of the ledger under an id of its own, and the sum: a second one would be found in the sum."""
    enter(transaction, 1, UUID(int=limit * 10 + which), LedgerEntry("identification", 1, limit))


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("happened", [True, False])
async def test_the_result_of_a_commit_with_a_lost_response_is_determined(
    cluster: Cluster, funded: str, *, happened: bool, others: int
):
    """Whether or not somebody else has written for the organization since."""
    lost = LostResponse(happened=happened)
    async with node(cluster, funded) as store, node(cluster, funded) as other:
        await store.write(writes([partial(enter_once, 0, 1)], organizations=[1]))

        async def interfere() -> None:
            for number in range(others):
                await other.write(writes([partial(enter_once, 7, number)], organizations=[1]))

        lost.then = interfere
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Wire, "exchange", lost.exchange)
            await store.write(writes([partial(enter_once, 5, 1)], organizations=[1]))
        assert store.exchanges().uncertain == 1
        lines = await other.query(lambda snapshot: len(list(snapshot.scan(LEDGER, 1))))
        assert lines == await other.query(partial(balance, 1)) == 2 + others


class LostResponse:
    """Loses the answer to the first commit, which has happened or has not."""

    def __init__(self, *, happened: bool) -> None:
        self._happened = happened
        self._exchange = Wire.exchange
        self._is_over = False
        self.then: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint

    @property
    def exchange(self) -> Callable[[Wire, Sequence[Statement]], Awaitable[list[Result]]]:
        async def exchange(wire: Wire, sent: Sequence[Statement]) -> list[Result]:
            if self._is_over or sent[-1].sql != COMMIT:
                return await self._exchange(wire, sent)
            self._is_over = True
            if self._happened:
                await self._exchange(wire, sent)
            wire.close()
            await self.then()
            raise ConnectionLostError("cut by the test")

        return exchange


async def test_conflicts_are_retried_a_limited_number_of_times(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch
):
    exchange, left = Wire.exchange, 2

    async def conflicting(wire: Wire, sent: Sequence[Statement]) -> list[Result]:
        nonlocal left
        if sent[-1].sql == COMMIT and left:
            left -= 1
            raise SqlError("40001", "could not serialize access")
        return await exchange(wire, sent)

    async with node(cluster, made) as store:
        monkeypatch.setattr(Wire, "exchange", conflicting)
        assert await store.write(writes([partial(add, 1, 1)], organizations=[1])) == [0]
        assert store.exchanges().retries == 2
        left = 1 << 30
        monkeypatch.setattr(serving, "GIVE_UP_S", 1.0)
        with pytest.raises(UnavailableError, match="could not serialize"):
            await store.write(writes([partial(add, 1, 1)], organizations=[1]))
        left = 0
        assert await store.query(partial(balance, 1)) == 1


async def test_a_full_disk_is_reported_and_nothing_is_written(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch
):
    async with node(cluster, made) as store:
        with monkeypatch.context() as patched:
            fill_disk(patched)
            with pytest.raises(StoreFullError):
                await store.write(writes([partial(add, 1, 1)], organizations=[1]))
            assert store.is_full
        assert await store.write(writes([partial(add, 1, 1)], organizations=[1])) == [0]
        assert not store.is_full


async def test_an_unreachable_database_fails_within_seconds_and_is_used_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "GIVE_UP_S", 0.3)
    if programs() is None:
        pytest.skip(MISSING)
    cluster = Cluster(durable=True)
    try:
        with cluster.database() as database:
            engine = PostgresqlEngine.open(cluster.url(database))
            engine.open_tables([table.name for table in TABLES], create=True)
            engine.close()
            async with node(cluster, database) as store:
                assert await store.write(writes([partial(add, 1, 1)], organizations=[1])) == [0]
                cluster.kill()
                with pytest.raises(UnavailableError):
                    await store.query(partial(balance, 1))
                outcomes = await store.write(writes([partial(add, 1, 1), partial(add, 2, 1)], organizations=[1, 2]))
                assert all(isinstance(outcome, UnavailableError) for outcome in outcomes)
                cluster.start()
                assert await store.query(partial(balance, 1)) == 1
    finally:
        cluster.close()


@pytest.mark.slow
async def test_a_node_stopped_with_a_fence_does_not_block_others_for_long(cluster: Cluster, made: str):
    """As by SIGSTOP between two round trips: the database ends its session before others give up."""
    async with node(cluster, made) as store:
        await store.write(writes([partial(add, 1, 1)], organizations=[1]))
        with closing(await Wire.connect(cluster.url(made), serving.SERVING)) as stopped:
            await stopped.exchange([Statement(BEGIN), Statement(TAKE_FENCES, (int4s([1]),))])
            assert await store.write(writes([partial(add, 1, 1)], organizations=[1])) == [1]
            with pytest.raises(ConnectionLostError):
                await stopped.exchange([Statement(COMMIT)])


async def test_cached_rows_are_at_most_a_second_old_and_missing_rows_are_never_cached(cluster: Cluster, made: str):
    async with node(cluster, made, recent_s=0.2) as store, node(cluster, made) as other:
        read = partial(balance, 1)
        assert await store.query(read, recent=True) == 0
        await other.write(writes([partial(add, 1, 5)], organizations=[1]))
        assert await store.query(read, recent=True) == 5, "that there was no row is not remembered"
        await other.write(writes([partial(add, 1, 5)], organizations=[1]))
        assert await store.query(read) == 10
        await store.write(writes([partial(add, 1, 5)], organizations=[1]))
        assert await store.query(read, recent=True) == 15, "what this node writes, it knows"
        await other.write(writes([partial(add, 1, 5)], organizations=[1]))
        await trio.sleep(0.25)
        assert await store.query(read, recent=True) == 20


async def test_a_query_sees_one_consistent_state(cluster: Cluster, made: str):
    """However many round trips it takes: two balances that always add up to zero do so in each query."""

    def move(amount: int, transaction: Transaction) -> None:
        add(1, -amount, transaction)
        transaction.put(VISITOR_COUNTS, (1,), -transaction.get(BALANCES, 1) if transaction.get(BALANCES, 1) else 0)

    def read(snapshot: Snapshot) -> int:
        return balance(1, snapshot) + (snapshot.get(VISITOR_COUNTS, 1 + 0 * balance(1, snapshot)) or 0)

    async with node(cluster, made) as store, node(cluster, made) as other, trio.open_nursery() as nursery:

        async def move_on() -> None:
            for amount in range(30):
                await other.write(writes([partial(move, amount)], organizations=[1]))
            nursery.cancel_scope.cancel()

        nursery.start_soon(move_on)
        while True:
            assert await store.query(read) == 0
            await trio.lowlevel.checkpoint()
