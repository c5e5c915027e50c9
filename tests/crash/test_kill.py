"""`kill -9` under load: what was acknowledged is there, nothing is billed twice (decisions 3.3, 5.1)."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest
import trio

from svc.store.directory import open_directory
from svc.store.tables import BALANCES, EVENTS, IDEMPOTENCY
from svc.world import World
from tests.support.journal import Journal, load, settle
from tests.support.live import ORIGIN
from tests.support.process import Served, run, run_json

KILLS = 10
CREDIT_MICROS = 1_000_000_000
PRICE_MICROS = 3_000


@pytest.mark.slow
async def test_ten_kills_under_load_lose_nothing_and_bill_nothing_twice(tmp_path: Path):
    chance = random.Random(20260105)
    organization = run_json(
        "org", "create", "shop", "--credit-usd", "1000", "--rate-limit", "0", "--data", str(tmp_path)
    )
    arguments = ["--kind", "public", "--environment", "production", "--origin", ORIGIN, "--data", str(tmp_path)]
    api_key = run_json("key", "issue", organization["organization_id"], *arguments)["secret"]
    journal = Journal()
    for round_number in range(KILLS):
        server = await trio.to_thread.run_sync(Served, tmp_path)
        await load(server, api_key, journal, round_number, chance.uniform(0.2, 0.9))
    server = await trio.to_thread.run_sync(Served, tmp_path)
    await settle(server, api_key, journal)
    assert await trio.to_thread.run_sync(server.terminate) == 0
    run("check", "--data", str(tmp_path))
    _compare(tmp_path, journal)


def _compare(directory: Path, journal: Journal) -> None:
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy)
    with found.store.read() as snapshot:
        stored = {str(UUID(bytes=raw_id)) for (_, raw_id), _ in snapshot.scan(EVENTS)}
        remembered = [str(UUID(bytes=row.request_id)) for _, row in snapshot.scan(IDEMPOTENCY)]
        balance = snapshot.get(BALANCES, 1)
    found.store.close()
    assert len(journal.answers) > 100, "the load was too light to show anything"
    for key, request_ids in journal.answers.items():
        assert len(set(request_ids)) == 1, f"the key {key} was answered by two identifications"
        assert request_ids[0] in stored, f"the answered request {request_ids[0]} is missing"
    assert max(Counter(remembered).values()) == 1
    assert sorted(remembered) == sorted(stored), "every event of this load has one idempotency key"
    assert balance == CREDIT_MICROS - PRICE_MICROS * len(stored)
