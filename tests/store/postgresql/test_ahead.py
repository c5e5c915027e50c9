"""Groups whose jobs run before they have their fence, while other nodes write for the same organization."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import pytest
import trio

from svc.identify.tables import DELETED_VISITORS
from svc.kernel.store.group import Job, Write
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire
from svc.kernel.store.postgresql.statements import TAKE_FENCES
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.postgresql.turns import REMEMBERED, OtherWriters
from svc.kernel.store.snapshot import Late, Snapshot, Transaction
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.tables import BALANCES, LEDGER
from svc.world import World
from tests.store.postgresql.test_groups import made, node
from tests.support.pgbouncer import pgbouncer, program
from tests.support.postgresql import Cluster

__all__ = ["made"]
pytestmark = pytest.mark.slow(2)

ONE = 5
"""The organization."""
ROWS = DELETED_VISITORS
KEYS = 24
Step = tuple[str, int, int]


class Done(NamedTuple):
    """What a job came to: its place among all that were committed, and what its steps gave."""

    place: int
    steps: list[Step]
    given: list[Any]


def job(steps: list[Step]) -> Job[Done]:
    """One that takes steps, and learns its place in the end: it depends on no other by that."""

    def run(transaction: Transaction) -> Late[Done]:
        given = [taken(transaction, *step) for step in steps]
        transaction.update(BALANCES, (ONE,), lambda place: (place or 0) + 1)
        return Late(lambda snapshot: Done(snapshot.get(BALANCES, ONE) or 0, steps, given))

    return run


def taken(transaction: Transaction, what: str, key: int, value: int) -> Any:
    given: Any = None
    match what:
        case "get":
            given = transaction.get(ROWS, ONE, key)
        case "has":
            given = transaction.has(ROWS, ONE, key)
        case "put":
            transaction.put(ROWS, (ONE, key), value)
        case "delete":
            given = transaction.delete(ROWS, ONE, key)
        case "add":
            transaction.update(ROWS, (ONE, key), lambda row: (row or 0) + value)
        case "ask":
            given = transaction.ask(ROWS, (ONE, key), lambda row: (row or 0) > value)
        case "copy":
            transaction.put(ROWS, (ONE, key), transaction.get(ROWS, ONE, value) or 0)
        case "below":
            given = [found for _, found in islice(transaction.scan_keys_reverse(ROWS, (ONE,), (ONE, key)), 2)]
        case _:
            given = [(found, row) for (_, found), row in islice(transaction.scan(ROWS, ONE, start=(ONE, key)), 2)]
    return given


def on_model(model: dict[int, int], what: str, key: int, value: int) -> Any:
    """As `taken`, on a dict."""
    given: Any = None
    match what:
        case "get":
            given = model.get(key)
        case "has":
            given = key in model
        case "put":
            model[key] = value
        case "delete":
            given = model.pop(key, None) is not None
        case "add":
            model[key] = model.get(key, 0) + value
        case "ask":
            given = model.get(key, 0) > value
        case "copy":
            model[key] = model.get(value, 0)
        case "below":
            given = sorted((other for other in model if other < key), reverse=True)[:2]
        case _:
            given = sorted((other, row) for other, row in model.items() if other >= key)[:2]
    return given


def hint(chance: random.Random, snapshot: Snapshot) -> Iterator[None]:
    """Fetches some rows that the job may read, write without reading, or leave."""
    snapshot.has(BALANCES, ONE)
    for key in chance.sample(range(KEYS), 8):
        snapshot.has(ROWS, ONE, key)
    yield
    list(islice(snapshot.scan(ROWS, ONE, start=(ONE, chance.randrange(KEYS))), 2))


def hint_all(steps: list[Step], snapshot: Snapshot) -> Iterator[None]:
    """Fetches what the job will read, and every row beside it."""
    snapshot.has(BALANCES, ONE)
    for key in range(KEYS):
        snapshot.has(ROWS, ONE, key)
    for what, key, _ in steps:
        if what == "below":
            next(snapshot.scan_keys_reverse(ROWS, (ONE,), (ONE, key)), None)
        elif what == "above":
            next(snapshot.scan(ROWS, ONE, start=(ONE, key)), None)
    yield


def write(steps: list[Step]) -> Write[Done]:
    return Write(job(steps), ONE, hint=partial(hint_all, steps))


ROUNDS = 20
"""Of work, at most, until nodes have met."""
_KINDS = ("get", "has", "put", "delete", "add", "ask", "copy", "below", "above")


def drawn(chance: random.Random) -> Write[Done]:
    """Some steps; keys are few, so that jobs meet. One without a hint has its group take the fence first."""
    steps = [(chance.choice(_KINDS), chance.randrange(KEYS), chance.randrange(3)) for _ in range(chance.randint(1, 6))]
    known = partial(hint, random.Random(chance.random())) if chance.random() < 0.95 else None
    return Write(job(steps), ONE, hint=known)


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("writers", "pooled"),
    [
        (2, False),
        (3, False),
        (4, False),
        pytest.param(2, True, marks=pytest.mark.skipif(program() is None, reason="no pgbouncer: install its package")),
    ],
)
async def test_what_nodes_do_at_once_is_what_one_would_have_done_in_the_order_of_commits(
    cluster: Cluster, made: str, *, writers: int, pooled: bool
):
    """Also where each exchange may find itself in another session."""
    chance, done = random.Random(writers), list[Done]()

    async def work(store: PostgresqlStore, chance: random.Random) -> None:
        for _ in range(25):
            group = [drawn(chance) for _ in range(chance.randint(1, 9))]
            for outcome in await store.write(group, urgent=chance.random() < 0.9):
                assert isinstance(outcome, Done), outcome
                done.append(outcome)

    async with AsyncExitStack() as stack:
        port = stack.enter_context(pgbouncer(cluster, "transaction", 4)) if pooled else None
        nodes = [await stack.enter_async_context(node(cluster, made, port)) for _ in range(writers)]
        for _ in range(ROUNDS):
            async with trio.open_nursery() as nursery:
                for store in nodes:
                    for _ in range(2):
                        nursery.start_soon(work, store, random.Random(chance.random()))
            counts = [store.exchanges() for store in nodes]
            if all(each.ahead for each in counts) and sum(each.runs - each.jobs for each in counts):
                break  # on a busy machine one may be through before the other begins
        model = dict[int, int]()
        done.sort()
        assert [each.place for each in done] == list(range(1, len(done) + 1))
        for each in done:
            assert each.given == [on_model(model, *step) for step in each.steps], each
        assert await nodes[0].query(contents) == model
        assert all(each.ahead for each in counts)
        assert sum(each.runs - each.jobs for each in counts), "some have met, and ran again"
        assert sum(each.retries + each.uncertain + each.unfenced for each in counts) == 0


def contents(snapshot: Snapshot) -> dict[int, int]:
    return {key[1]: value for key, value in snapshot.scan(ROWS, ONE)}


class Meanwhile:
    """Lets something happen once between what a group reads and its fence, or before another statement."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Awaitable[object]], before: bytes = TAKE_FENCES
    ) -> None:
        self._exchange, self._act, self._before, self.happened = Wire.exchange, act, before, 0
        monkeypatch.setattr(Wire, "exchange", self._exchanging())

    def _exchanging(self) -> Callable[[Wire, Sequence[Statement]], Awaitable[list[Result]]]:
        async def exchange(wire: Wire, sent: Sequence[Statement]) -> list[Result]:
            if not self.happened and any(statement.sql.startswith(self._before) for statement in sent):
                self.happened += 1
                await self._act()
            return await self._exchange(wire, sent)

        return exchange


async def in_company(one: PostgresqlStore, other: PostgresqlStore) -> None:
    """Both have found that they write for the same organization."""
    for store in (one, other, one, other):
        await store.write([write([])])


@pytest.mark.parametrize(
    ("reads", "change", "runs"),
    [
        ([("get", 1, 0)], [("put", 1, 7)], 2),
        ([("get", 1, 0)], [("delete", 1, 0)], 2),
        ([("get", 9, 0)], [("put", 9, 7)], 2),
        ([("has", 9, 0), ("put", 9, 2)], [("put", 9, 7)], 2),
        ([("delete", 1, 0)], [("delete", 1, 0)], 2),
        ([("ask", 1, 5)], [("put", 1, 7)], 2),
        ([("ask", 1, 5)], [("put", 1, 4)], 1),
        ([("add", 1, 5)], [("add", 1, 30)], 1),
        ([("put", 1, 5)], [("put", 1, 7)], 1),
        ([("put", 1, 1)], [("put", 1, 7)], 1),
        ([("above", 0, 0)], [("put", 0, 7)], 2),
        ([("above", 0, 0), ("get", 2, 0)], [("put", 2, 9)], 2),
        ([("below", 9, 0)], [("delete", 2, 0)], 2),
        ([("below", 9, 0)], [("put", 20, 1)], 1),
        ([("get", 1, 0), ("get", 9, 0), ("above", 9, 0)], [("put", 5, 1)], 1),
        ([("get", 1, 0), ("put", 3, 1)], [("put", 1, 7), ("put", 1, 1)], 1),
    ],
)
async def test_a_job_runs_again_if_what_it_has_read_was_written_before_its_fence(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch, reads: list[Step], change: list[Step], runs: int
):
    """In whatever way it was read, absent rows and ranges too; else it stands, and so does a row that it writes unseen.

    In the last case the row was written, and is what it was.
    """
    start = [("put", 1, 1), ("put", 2, 2)]
    async with node(cluster, made) as one, node(cluster, made) as other:
        await in_company(one, other)
        await one.write([write(start)])
        Meanwhile(monkeypatch, lambda: other.write([Write(job(change), ONE)]))
        before = one.exchanges()
        (outcome,) = await one.write([write(reads)])
        after = one.exchanges()
        assert after.ahead - before.ahead == 1
        model = {key: value for _, key, value in start}
        for step in change:
            on_model(model, *step)
        assert isinstance(outcome, Done)
        assert outcome.given == [on_model(model, *step) for step in reads]
        assert await other.query(contents) == model
        assert after.runs - before.runs == runs


async def test_what_a_job_wrote_that_ran_again_is_seen_by_those_behind_it(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch
):
    async with node(cluster, made) as one, node(cluster, made) as other:
        await in_company(one, other)
        Meanwhile(monkeypatch, lambda: other.write([Write(job([("put", 1, 7)]), ONE)]))
        group = [write([("get", 9, 0)]), write([("copy", 2, 1)]), write([("get", 2, 0)])]
        before = one.exchanges().runs
        given = [outcome.given for outcome in await one.write(group) if isinstance(outcome, Done)]
        assert given == [[None], [None], [7]]
        assert one.exchanges().runs - before == 3 + 2


async def test_jobs_behind_one_that_asks_for_more_wait_for_its_rows(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch
):
    """What that has written meanwhile is a guess: they run again once, and not once for each that is before them."""

    def follow(transaction: Transaction) -> int:
        found = transaction.get(ROWS, ONE, transaction.get(ROWS, ONE, 0) or 0) or 0
        transaction.put(ROWS, (ONE, 0), found)
        return found

    def hint(snapshot: Snapshot) -> Iterator[None]:
        first = snapshot.get(ROWS, ONE, 0) or 0
        yield
        for key in range(first, first + 6):
            snapshot.has(ROWS, ONE, key)

    async with node(cluster, made) as one, node(cluster, made) as other:
        await in_company(one, other)
        await one.write([write([("put", 0, 1)] + [("put", key, key + 1) for key in range(1, KEYS)])])
        Meanwhile(monkeypatch, lambda: other.write([Write(job([("put", 0, 10)]), ONE)]))
        before = one.exchanges()
        assert await one.write([Write(follow, ONE, hint=hint) for _ in range(5)]) == [11, 12, 13, 14, 15]
        after = one.exchanges()
        assert after.runs - before.runs <= 5 + 5 + 1


async def test_rows_that_only_a_hint_has_fetched_are_fetched_again_for_a_job_that_then_reads_them(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch
):
    def follow(transaction: Transaction) -> list[int | None]:
        first = transaction.get(ROWS, ONE, 1) or 0
        return [first, transaction.get(ROWS, ONE, first)]

    def know_all(snapshot: Snapshot) -> Iterator[None]:
        for key in range(KEYS):
            snapshot.has(ROWS, ONE, key)
        yield

    async with node(cluster, made) as one, node(cluster, made) as other:
        await in_company(one, other)
        await one.write([write([("put", 1, 2), ("put", 2, 20), ("put", 3, 30)])])
        Meanwhile(monkeypatch, lambda: other.write([Write(job([("put", 1, 3), ("put", 3, 31)]), ONE)]))
        assert await one.write([Write(follow, ONE, hint=know_all)]) == [[3, 31]]


@pytest.mark.parametrize("jobs", [[[("add", 1, 1)], [("above", 1, 0)]], [[("add", 1, 1), ("above", 1, 0)]]])
async def test_a_range_is_read_again_where_a_row_in_it_went_before_its_page_was_fetched(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch, jobs: list[list[Step]]
):
    """The page stays as it was then; what the job, or an earlier one of the group, has added to the row does not."""

    def follow(snapshot: Snapshot) -> Iterator[None]:
        snapshot.has(ROWS, ONE, 1)
        yield
        next(snapshot.scan(ROWS, ONE, start=(ONE, 1)), None)
        yield

    async with node(cluster, made) as one, node(cluster, made) as other:
        await in_company(one, other)
        await one.write([write([("put", 1, 5)])])
        Meanwhile(monkeypatch, lambda: other.write([Write(job([("delete", 1, 0)]), ONE)]), b"select key, value")
        *_, outcome = await one.write([Write(job(steps), ONE, hint=follow) for steps in jobs])
        assert isinstance(outcome, Done)
        assert outcome.given[-1] == [(1, 1)]


@pytest.mark.parametrize("then", [1, 2, 3, 4])
async def test_rows_that_were_written_before_the_fence_are_those_of_the_last_run(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch, then: int
):
    """Of a job that then writes the same, another row, none, or fails."""
    entry_id = World.real().request_id(0)

    def enter(transaction: Transaction) -> None:
        amount = transaction.get(ROWS, ONE, 1) or 0
        if amount != 3:
            transaction.put(LEDGER, (ONE, entry_id.bytes), LedgerEntry("credit", amount, 0))
        if amount == 4:
            raise LookupError

    def hint(snapshot: Snapshot) -> Iterator[None]:
        snapshot.has(ROWS, ONE, 1)
        yield

    async with node(cluster, made) as one, node(cluster, made) as other:
        await in_company(one, other)
        await one.write([write([("put", 1, 1)])])
        Meanwhile(monkeypatch, lambda: other.write([Write(job([("put", 1, then)]), ONE)]))
        given: list[Write[Any]] = [Write(enter, ONE, hint=hint), write([("put", 9, 9)])]
        outcomes = await one.write(given)
        assert isinstance(outcomes[0], LookupError) == (then == 4)
        amounts = await other.query(lambda snapshot: [entry.amount_micros for _, entry in snapshot.scan(LEDGER, ONE)])
        assert amounts == ([then] if then < 3 else [])
        assert await other.query(contents) == {1: then, 9: 9}


async def test_a_node_that_is_alone_takes_the_fence_first(cluster: Cluster, made: str):
    """Also when it had company, soon after."""
    async with node(cluster, made) as one:
        async with node(cluster, made) as other:
            for store in (one, one, one):
                await store.write([write([])])
            assert one.exchanges().ahead == 0
            await in_company(one, other)
        for _ in range(REMEMBERED + 1):
            await one.write([write([])])
        before = one.exchanges()
        assert before.ahead
        await one.write([write([])])
        after = one.exchanges()
        assert after.ahead == before.ahead
        assert after.round_trips - before.round_trips == 2


async def test_where_organizations_share_no_transaction_no_versions_are_asked_for(cluster: Cluster, made: str):
    async with (
        node(cluster, made, organizations_per_group=1) as one,
        node(cluster, made, organizations_per_group=1) as other,
    ):
        await in_company(one, other)
        await one.write([write([])])
        assert one.exchanges().ahead == 0


def test_others_are_known_by_the_turns_between_ones_own():
    others = OtherWriters()
    others.note({1: 7, 2: 3})
    assert not others.write_for(1)
    others.note({1: 8, 2: 5})
    assert not others.write_for(1)
    assert others.write_for(2)
    for turn in range(6, 6 + REMEMBERED):
        assert others.write_for(2)
        others.note({2: turn})
    assert not others.write_for(2)
    assert not others.write_for(3)


def test_where_jobs_have_met_the_fence_is_taken_first_for_some_turns():
    others = OtherWriters()
    for turn in (1, 3, 5):
        others.note({1: turn})
    assert others.may_pass(1)
    others.note({1: 7}, clashed=True)
    for turn in range(9, 9 + 2 * REMEMBERED, 2):
        assert others.write_for(1)
        assert not others.may_pass(1)
        others.note({1: turn})
    assert others.may_pass(1)


async def test_jobs_that_all_write_one_row_soon_take_the_fence_first(
    cluster: Cluster, made: str, monkeypatch: pytest.MonkeyPatch
):
    async with node(cluster, made) as one, node(cluster, made) as other:
        await in_company(one, other)
        Meanwhile(monkeypatch, lambda: other.write([Write(job([("put", 1, 7)]), ONE)]))
        group = [write([("get", 1, 0), ("copy", 1, 1), ("get", key, 0)]) for key in range(2, 6)]
        await one.write(group + group)
        before = one.exchanges()
        await other.write([write([])])
        await one.write(group)
        after = one.exchanges()
        assert (before.runs - before.jobs, after.runs - after.jobs) == (8, 8)
        assert after.ahead == before.ahead
