"""Four nodes that identify for one organization while everything else that writes for it does, too."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
import trio
import trio.lowlevel

from svc.features.billing.settler import settle_all
from svc.features.lists.jobs import NewEntry, add_entries, create_list, delete_list
from svc.features.lists.tables import LISTS
from svc.features.retention.sweeper import sweep
from svc.features.rules.jobs import ruleset_in_force, save_rules
from svc.features.rules.ruleset import Rule, Ruleset
from svc.identify.identification import Identified
from svc.identify.records import RETENTION_MS
from svc.identify.tables import EVENTS
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.tables import SETTLEMENTS
from svc.kernel.values.ids import DAY_MS, first_id
from svc.world import World, twenty_characters
from tests.store.postgresql.test_groups import made
from tests.store.postgresql.test_identified_by_nodes import AT_MS, PRICE, WORLD, balance, erase, nodes, visit
from tests.support.postgresql import Cluster

__all__ = ["made"]
ROUNDS, NODES, QUOTA = 12, 4, 30
AGES_DAYS = (0, 0, 1, 40)
"""Of visits that are handed in now; those of the last come too late to be kept."""
NEXT_DAY_MS = AT_MS + DAY_MS
NOW = World(lambda: NEXT_DAY_MS + 600_000, WORLD.entropy, WORLD.run_sync)
LATER = World(lambda: NEXT_DAY_MS + 2 * DAY_MS, WORLD.entropy, WORLD.run_sync)


class Writers:
    """What each of them does, and what came of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.production: list[Any] = []
        self.development: list[Any] = []
        self.saved = 0
        self.identifying = NODES

    async def identify(self, store: PostgresqlStore, chance: random.Random) -> None:
        """Half of them on a day that is settled meanwhile, the others on the next one, to which a quota belongs."""
        for number in range(ROUNDS):
            is_next = number >= ROUNDS // 2
            ages_ms = [DAY_MS * chance.choice(AGES_DAYS) for _ in range(chance.randint(1, 4))]
            now_ms = NEXT_DAY_MS if is_next else AT_MS
            given = [visit(chance.randrange(1, 40), at_ms=now_ms - age_ms) for age_ms in ages_ms]
            free = partial(visit, environment="development", at_ms=now_ms, nonproduction_per_day=QUOTA)
            given += map(free, chance.sample(range(60), 2 * is_next))
            recorded = await store.write(given)
            self.production += recorded[: len(ages_ms)]
            self.development += recorded[len(ages_ms) :]
        self.identifying -= 1

    async def erase(self, store: PostgresqlStore) -> None:
        while self.identifying:
            await trio.lowlevel.checkpoint()
            if self.production:
                await erase(store, self.chance.choice(self.production).outcome.verdict.visitor_id)

    async def maintain(self, store: PostgresqlStore) -> None:
        while self.identifying:
            await sweep(store, NOW.now_ms(), 365, with_passes=self.chance.random() < 0.5)
            await settle_all(store, NOW, lambda _: None)

    async def decide(self, store: PostgresqlStore, name: str) -> None:
        """A list that is made, filled and deleted, and rules of which each revision follows the last."""
        list_id = f"lst_{twenty_characters(WORLD.entropy)}"
        for at_ms in range(AT_MS, AT_MS + 6):
            make = partial(create_list, number=1, list_id=list_id, name=name, kind="country", now_ms=at_ms)
            assert getattr(await store.write_one(make, 1), "id", None) == list_id
            entries = [NewEntry("DE"), NewEntry("FR", expires_at_ms=at_ms - 1)]
            fill = partial(add_entries, number=1, list_id=list_id, entries=entries, now_ms=at_ms)
            await store.write_one(fill, 1)
            rules = [Rule(id=f"rul_{name}", name=name, condition="true", action="review" if at_ms % 2 else "block")]
            revision = await store.query(in_force)
            save = partial(save_rules, number=1, kind="live", revision=revision, rules=rules, saved_by="", now_ms=at_ms)
            came_to = await store.write_one(save, 1)
            self.saved += isinstance(came_to, Ruleset)
            assert await store.write_one(partial(delete_list, number=1, list_id=list_id), 1) is True


def in_force(snapshot: Snapshot) -> int:
    return ruleset_in_force(snapshot, 1, "live").revision


@pytest.mark.slow(12)
async def test_sums_and_quotas_are_exact_while_all_that_writes_for_an_organization_does(cluster: Cluster, made: str):
    """Erasure, retention, settlement, rules and lists. As outcomes add up, and as `violations` counts every row."""
    writers = Writers(23)
    async with nodes(cluster, made, NODES) as stores:
        before = await stores[0].query(balance)
        async with trio.open_nursery() as nursery:
            for number, store in enumerate(stores):
                nursery.start_soon(writers.identify, store, random.Random(number))
                nursery.start_soon(writers.decide, store, f"list_{number}")
            for store in stores[:2]:
                nursery.start_soon(writers.erase, store)
                nursery.start_soon(writers.maintain, store)
        assert all(isinstance(each.outcome, Identified) for each in writers.production)
        spent = PRICE * len(writers.production)
        assert await stores[0].query(balance) == before - spent
        made_free = sum(isinstance(each.outcome, Identified) for each in writers.development)
        assert made_free == QUOTA < len(writers.development)
        assert await stores[0].query(in_force) == writers.saved
        assert await stores[0].query(lambda snapshot: list(snapshot.scan(LISTS, 1))) == []

        await sweep(stores[2], NOW.now_ms(), 365, with_passes=True)
        oldest = await stores[2].query(lambda snapshot: next(snapshot.scan_keys(EVENTS, (1,), (2,)))[1])
        assert oldest >= first_id(NOW.now_ms() - RETENTION_MS)

        await settle_all(stores[3], LATER, lambda _: None)
        days = await stores[3].query(lambda snapshot: [day for _, day in snapshot.scan(SETTLEMENTS, 1)])
        assert len(days) > 1
        assert sum(day.identifiable + day.unidentifiable for day in days) == len(writers.production)
        assert (sum(day.amount_micros for day in days), days[-1].balance_micros) == (spent, before - spent)
