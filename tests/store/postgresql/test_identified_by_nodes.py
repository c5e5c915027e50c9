"""Identifications of one organization by several nodes at the same instant, whose jobs run before they have its fence.

One visitor for a device, one outcome for a key, no credit spent twice, every sum exact.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from bench.reports import submitted
from svc.features.checks.invariants import violations
from svc.features.erasure.visitors import continue_erasure, erase_visitor
from svc.features.identification import hints
from svc.features.identification.transaction import Recorded, identify
from svc.features.organizations.jobs import create_organization
from svc.identify.identification import Duplicate, Identified, Refused, assess
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.recording.visitors import ANY_NUMBER, NextNumber, VisitorNumbers
from svc.identify.tables import EVENTS, IDEMPOTENCY
from svc.identify.velocity.counts import LONGEST_S
from svc.kernel.limits.quotas import Quotas
from svc.kernel.store.group import Write
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.jobs import add_credit
from svc.kernel.tenants.tables import BALANCES
from svc.world import World
from tests.store.postgresql.test_groups import made, node
from tests.support.live import report
from tests.support.postgresql import Cluster
from tests.support.worlds import Everywhere

__all__ = ["made"]
PRICE, AT_MS = 3_000, 1_767_225_600_000
WORLD = World.real()


def visit(
    device: int,
    next_number: NextNumber = ANY_NUMBER,
    *,
    key: bytes | None = None,
    environment: str = "production",
    at_ms: int = AT_MS,
    **quotas: int,
) -> Write[Recorded]:
    signals = {**report(device % 200), "client_token": f"{device:032x}"}
    facts = RequestFacts(ip=f"81.{device >> 8 & 255}.{device & 255}.160")
    submission = submitted(WORLD, signals, facts, at_ms=at_ms, environment=environment, idempotency=key)
    assessment = assess(submission, Everywhere())
    job = partial(
        identify, assessment=assessment, statistics=Statistics(), quotas=Quotas(**quotas), next_number=next_number
    )
    return Write(job, 1, hint=partial(hints.identification, assessment=assessment))


@asynccontextmanager
async def nodes(
    cluster: Cluster, database: str, count: int, credit: int = 10**12
) -> AsyncGenerator[list[PostgresqlStore]]:
    """So many that know of each other; afterwards every sum is what its rows add up to."""

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
        add_credit(transaction, 1, entry_id=WORLD.request_id(0), micros=credit, now_ms=0, note="")

    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(node(cluster, database)) for _ in range(count)]
        assert await stores[0].write([Write(prepare)]) == [None]
        for store in (*stores, *stores, *stores):
            await store.write([visit(0, environment="development")])
        assert all(store.exchanges().ahead for store in stores)
        yield stores
        assert await stores[0].query(lambda snapshot: list(violations(snapshot))) == []


async def at_once(stores: list[PostgresqlStore], given: list[list[Write[Recorded]]]) -> list[list[Any]]:
    """What each node's came to, all handed over at the same instant."""
    found: list[list[Any]] = [[] for _ in given]

    async def write(number: int) -> None:
        found[number] = await stores[number].write(given[number], urgent=True)

    async with trio.open_nursery() as nursery:
        for number in range(len(given)):
            nursery.start_soon(write, number)
    return found


def visitor(recorded: Any) -> str:
    assert isinstance(recorded, Recorded), recorded
    assert isinstance(recorded.outcome, Identified), recorded
    return recorded.outcome.verdict.visitor_id


@pytest.mark.slow
@pytest.mark.parametrize("tries", [25, pytest.param(10_000, marks=pytest.mark.long)])
async def test_two_first_visits_of_a_device_at_the_same_instant_are_one_visitor(
    cluster: Cluster, made: str, tries: int
):
    """On two nodes, each with numbers of its own in hand, beside a visit of another new device on each."""
    hands, ids = (VisitorNumbers(32), VisitorNumbers(32)), list[str]()
    async with nodes(cluster, made, 2) as stores:
        for number in range(1, tries + 1):
            handed_out = [hand.hand_out([1, 1]) for hand in hands]
            devices = [(number, 20_000 + number), (number, 40_000 + number)]
            given = [
                [visit(*each) for each in zip(own, numbers, strict=True)]
                for own, numbers in zip(devices, handed_out, strict=True)
            ]
            found = await at_once(stores, given)
            first, second = ([visitor(each) for each in own] for own in found)
            assert first[0] == second[0], number
            ids += [first[0], first[1], second[1]]
            for hand, numbers, own in zip(hands, handed_out, found, strict=True):
                for next_number, each in zip(numbers, own, strict=True):
                    hand.give_back(1, next_number, each.new_number)
        assert len(set(ids)) == len(ids) == 3 * tries


@pytest.mark.slow
async def test_an_idempotency_key_raced_by_four_nodes_has_one_outcome(cluster: Cluster, made: str):
    async with nodes(cluster, made, 4) as stores:
        for number in range(1, 16):
            key = number.to_bytes(16)
            found = await at_once(stores, [[visit(number, key=key), visit(100 + place)] for place in range(4)])
            made_once = [own[0].outcome for own in found if isinstance(own[0].outcome, Identified)]
            others = [own[0].outcome for own in found if isinstance(own[0].outcome, Duplicate)]
            assert (len(made_once), len(others)) == (1, 3)
            assert len({outcome.request_id for outcome in others}) == 1
        assert await stores[0].query(lambda snapshot: len(list(snapshot.scan(IDEMPOTENCY, 1)))) == 15


@pytest.mark.slow
async def test_prepaid_credit_is_never_spent_twice(cluster: Cluster, made: str):
    """Nor a quota: what is left goes to as many as it is enough for, whichever nodes they come to."""
    chance, bought = random.Random(5), 40
    async with nodes(cluster, made, 4, credit=bought * PRICE) as stores:
        outcomes = list[Any]()
        for _ in range(8):
            devices = [[visit(chance.randrange(30)) for _ in range(chance.randint(1, 4))] for _ in stores]
            outcomes += [each.outcome for own in await at_once(stores, devices) for each in own]
        identified = [outcome for outcome in outcomes if isinstance(outcome, Identified)]
        assert len(identified) == bought < len(outcomes)
        assert {outcome.refusal.code for outcome in outcomes if isinstance(outcome, Refused)} == {"no_credit"}
        left = sorted(outcome.balance_micros for outcome in identified)
        assert left == [PRICE * number for number in range(bought)], "each shows what it has left"
        assert await stores[0].query(lambda snapshot: snapshot.get(BALANCES, 1)) == 0
        free = [[visit(1, environment="development", nonproduction_per_day=20) for _ in range(5)] for _ in stores]
        found = [each for own in await at_once(stores, free) for each in own]
        assert sum(isinstance(each.outcome, Identified) for each in found) == 20 - 3 * len(stores)


@pytest.mark.slow
async def test_sums_and_indexes_are_exact_while_visitors_are_erased_and_credit_is_added(cluster: Cluster, made: str):
    """By four nodes at once: `violations` looks at every row at the end. Who visits while he is erased is new."""
    chance, known = random.Random(11), list[str]()

    async def identify_on(store: PostgresqlStore, chance: random.Random) -> None:
        for _ in range(10):
            for each in await store.write([visit(chance.randrange(1, 40)) for _ in range(chance.randint(1, 6))]):
                known.append(visitor(each))

    async def erase_on(store: PostgresqlStore, chance: random.Random) -> None:
        for _ in range(10):
            if known:
                await erase(store, chance.choice(known))
            await trio.sleep(0.01)

    async def pay_on(store: PostgresqlStore) -> None:
        for _ in range(10):
            paid = partial(add_credit, number=1, entry_id=WORLD.request_id(AT_MS), micros=1, now_ms=AT_MS, note="")
            await store.write_one(paid, 1)

    async with nodes(cluster, made, 4) as stores:
        before = await stores[0].query(balance)
        async with trio.open_nursery() as nursery:
            for store in stores:
                nursery.start_soon(identify_on, store, random.Random(chance.random()))
                nursery.start_soon(erase_on, store, random.Random(chance.random()))
                nursery.start_soon(pay_on, store)
        assert await stores[0].query(balance) == before - PRICE * len(known) + 10 * len(stores)
        assert await stores[0].query(lambda snapshot: len(list(snapshot.scan(EVENTS, 1)))) < len(known)


async def test_events_of_two_periods_of_velocity_may_be_committed_in_either_order(cluster: Cluster, made: str):
    """Nodes commit as they come to it: `nodes` asks at the end whether each event is counted."""
    boundary_ms = 1000 * LONGEST_S * (AT_MS // (1000 * LONGEST_S) + 1)
    async with nodes(cluster, made, 2) as stores:
        for store, after_ms in zip((*stores, stores[0]), (-5000, 1000, -1000), strict=True):
            visitor((await store.write([visit(1, at_ms=boundary_ms + after_ms)]))[0])


async def erase(store: PostgresqlStore, visitor_id: str) -> None:
    is_done = await store.write_one(partial(erase_visitor, number=1, visitor_id=visitor_id, now_ms=AT_MS), 1)
    while is_done is False:
        is_done = await store.write_one(
            partial(continue_erasure, number=1, raw_id=visitor_id.encode(), now_ms=AT_MS), 1
        )


def balance(snapshot: Snapshot) -> int:
    return snapshot.get(BALANCES, 1) or 0
