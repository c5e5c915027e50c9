"""Queries that may be answered with rows of a moment ago, over a database that responds when a test says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.postgresql.connection.errors import ConnectionLostError, SqlError
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Result
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.recent import Fetched
from svc.kernel.store.postgresql.rows import Rows
from svc.kernel.store.postgresql.store import GIVE_UP_S, RECENT_S, PostgresqlStore
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.tables import BALANCES
from svc.world import World

TICK_S = 0.001


class Store(PostgresqlStore):
    """A store whose database is a dict: balance by organization."""

    def __init__(self) -> None:
        url = StoreUrl("postgresql://127.0.0.1/none", {})
        super().__init__(PostgresqlEngine(url, 1 << 30), url, World.real())
        self.balances: dict[int, int] = {1: 10, 2: 20}
        self.fetches = 0
        self.respond: Callable[[], Awaitable[object]] = trio.lowlevel.checkpoint
        """Called after the rows were looked up, before they arrive."""

    async def _fetch(self, rows: Rows, _limit: trio.CancelScope) -> Fetched:
        self.fetches += 1
        asked_s = trio.current_time()
        keys = {number: BALANCES.key.pack(number) for number in self.balances}
        found = {key: BALANCES.encode(key, self.balances[number]) for number, key in keys.items()}
        wanted = [b"".join(filter(None, statement.parameters)) for statement in rows.fetches()]
        each = [[(key, raw) for key, raw in found.items() if key in some] for some in wanted]
        await self.respond()
        return Fetched([Result(list(some), len(some)) for some in each], asked_s)

    async def balance(self, number: int = 1) -> int | None:
        return await self.query(partial(_balance, number), recent=True)

    def change(self, number: int, value: int) -> None:
        """As a group of this node that was committed."""
        self.balances[number] = value
        self._recent.invalidate([(BALANCES.name, BALANCES.key.pack(number))])


def _balance(number: int, snapshot: Snapshot) -> int | None:
    return snapshot.get(BALANCES, number)


@pytest.fixture
def store() -> Generator[Store]:
    with closing(Store()) as store:
        yield store


class Asked:
    """Queries that run in a nursery: what each came to, and when."""

    def __init__(self, nursery: trio.Nursery, store: Store) -> None:
        self._nursery, self._store = nursery, store
        self.outcomes: list[Any] = []
        self.took_s: list[float] = []

    async def begin(self, count: int = 1, number: int = 1) -> None:
        """Return when all of them wait."""
        for _ in range(count):
            self._nursery.start_soon(self._ask, number)
        await wait_all_tasks_blocked()

    async def _ask(self, number: int) -> None:
        began_s = trio.current_time()
        try:
            self.outcomes.append(await self._store.balance(number))
        except UnavailableError as error:
            self.outcomes.append(str(error))
        self.took_s.append(trio.current_time() - began_s)


async def test_queries_that_miss_the_same_rows_share_one_round_trip(store: Store, autojump_clock: MockClock):
    store.respond = partial(trio.sleep, 0.01)
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        await asked.begin(32)
    assert asked.outcomes == [10] * 32
    assert store.fetches == 1


async def test_who_comes_while_rows_are_fetched_takes_them(store: Store, autojump_clock: MockClock):
    store.respond = partial(trio.sleep, 0.5)
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        await asked.begin()
        await trio.sleep(0.3)
        await asked.begin(5)
    assert asked.outcomes == [10] * 6
    assert max(asked.took_s) == pytest.approx(0.5)
    assert store.fetches == 1


async def test_rows_are_recent_for_a_second_from_when_they_were_asked_for(store: Store, autojump_clock: MockClock):
    store.respond = partial(trio.sleep, 0.4)
    assert await store.balance() == 10
    store.balances[1] = 11
    await trio.sleep(RECENT_S - 0.4 - TICK_S)
    assert await store.balance() == 10
    await trio.sleep(TICK_S)
    assert await store.balance() == 11
    assert store.fetches == 2


async def test_rows_that_took_longer_than_a_second_are_for_those_who_waited_from_the_start(
    store: Store, autojump_clock: MockClock
):
    store.respond = partial(trio.sleep, 1.5)
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        await asked.begin(2)
        store.balances[1] = 11
        await trio.sleep(0.2)
        await asked.begin(2)
    assert asked.outcomes == [10, 10, 11, 11]
    assert store.fetches == 2


async def test_that_there_was_no_row_holds_for_nobody_who_came_later(store: Store, autojump_clock: MockClock):
    """A key that was issued meanwhile works at once; however many come with a wrong one, two fetches are the most."""
    store.respond = partial(trio.sleep, 0.1)
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        await asked.begin(3, 3)
        store.balances[3] = 30
        await trio.sleep(0.05)
        await asked.begin(20, 3)
    assert asked.outcomes == [None] * 3 + [30] * 20
    assert max(asked.took_s) == pytest.approx(0.15)
    assert store.fetches == 2


async def test_what_this_node_writes_meanwhile_is_not_hidden(store: Store, autojump_clock: MockClock):
    store.respond = partial(trio.sleep, 0.1)
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        await asked.begin()
        await trio.sleep(TICK_S)
        store.change(1, 11)
        await asked.begin()
    assert asked.outcomes == [10, 11]
    assert await store.balance() == 11
    assert store.fetches == 2


async def test_a_query_that_is_cancelled_leaves_the_fetch_to_the_others(store: Store, autojump_clock: MockClock):
    store.respond = partial(trio.sleep, 0.1)
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        async with trio.open_nursery() as first:
            await Asked(first, store).begin()
            await asked.begin(3)
            first.cancel_scope.cancel()
    assert asked.outcomes == [10] * 3
    assert store.fetches == 1


async def test_one_organization_does_not_wait_for_the_rows_of_another(store: Store, autojump_clock: MockClock):
    store.respond = trio.sleep_forever
    async with trio.open_nursery() as nursery:
        await Asked(nursery, store).begin(30, 1)
        store.respond = trio.lowlevel.checkpoint
        assert await store.balance(2) == 20
        nursery.cancel_scope.cancel()


async def test_each_waits_for_a_silent_database_as_long_as_it_would_alone(store: Store, autojump_clock: MockClock):
    """And the database is asked once in that time, not by each in turn."""
    store.respond = trio.sleep_forever
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        for _ in range(50):
            await asked.begin(10)
            await trio.sleep(0.1)
    assert len(asked.outcomes) == 500
    assert all(outcome.endswith("did not respond for 4 seconds") for outcome in asked.outcomes)
    assert asked.took_s == pytest.approx([GIVE_UP_S] * 500)
    assert store.fetches == 3, "at 0, 4 and 8 seconds"


async def test_a_database_that_is_back_serves_all_who_still_wait(store: Store, autojump_clock: MockClock):
    async def respond() -> None:
        if trio.current_time() < back_s:
            await trio.sleep_forever()

    back_s, store.respond = trio.current_time() + GIVE_UP_S + 0.1, respond
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        await asked.begin(2)
        await trio.sleep(GIVE_UP_S / 2)
        await asked.begin(2)
        await trio.sleep(GIVE_UP_S / 2 + 0.2)
        assert len(asked.outcomes) == 2, "the others wait for the fetch that began after the first had failed"
        store.respond = trio.lowlevel.checkpoint
    assert asked.took_s == pytest.approx([GIVE_UP_S] * 4)


@pytest.mark.parametrize("error", [SqlError("42501", "permission denied"), ConnectionLostError("closed")])
async def test_a_failure_is_shared(store: Store, error: Exception, autojump_clock: MockClock):
    """By those who waited when the fetch began: who comes later has the database asked once more."""

    async def fail() -> None:
        await trio.sleep(0.1)
        raise error

    store.respond = fail
    async with trio.open_nursery() as nursery:
        asked = Asked(nursery, store)
        await asked.begin(10)
        await trio.sleep(0.05)
        await asked.begin(10)
    assert len(asked.outcomes) == 20
    assert all(str(error) in outcome for outcome in asked.outcomes[:10])
    if isinstance(error, SqlError):  # which trying again would not avoid
        assert asked.took_s == pytest.approx([0.1] * 10 + [0.15] * 10)
        assert store.fetches == 2
    else:
        assert max(asked.took_s) <= GIVE_UP_S + 0.1
        store.respond = trio.lowlevel.checkpoint
        assert await store.balance() == 10
