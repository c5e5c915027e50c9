"""`kill -9` under load: what was acknowledged is there, nothing is billed twice (decisions 3.3, 5.1)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest
import trio

from svc.store.directory import open_directory
from svc.store.tables import BALANCES, EVENTS, IDEMPOTENCY
from svc.world import World
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, report
from tests.support.process import Served, run, run_json

KILLS = 10
CLIENTS = 8
CREDIT_MICROS = 1_000_000_000
PRICE_MICROS = 3_000


class Whole(httpx.AsyncByteStream):
    """A body in one piece. httpx's own is a generator, which nobody closes when the connection breaks under it."""

    def __init__(self, body: bytes) -> None:
        self._parts = [body]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._parts:
            return self._parts.pop()
        raise StopAsyncIteration


class Journal:
    """What the clients were told: idempotency key -> the request ids of its answers."""

    def __init__(self) -> None:
        self.answers: dict[str, list[str]] = {}
        self.unanswered: list[tuple[str, int]] = []

    def note(self, key: str, request_id: str) -> None:
        self.answers.setdefault(key, []).append(request_id)


async def load(port: int, api_key: str, journal: Journal, round_number: int, seconds: float, kill: Served) -> None:
    """Clients that send until the server is killed under them; half of what was cut off before is sent again."""
    again, journal.unanswered = journal.unanswered, []
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client,
        trio.open_nursery() as nursery,
    ):
        for number in range(CLIENTS):
            mine = again[number::CLIENTS]
            nursery.start_soon(_client, client, api_key, journal, f"{round_number}/{number}", mine)
        await trio.sleep(seconds)
        await trio.to_thread.run_sync(kill.kill)
        nursery.cancel_scope.deadline = trio.current_time() + 5


async def _client(
    client: httpx.AsyncClient, api_key: str, journal: Journal, name: str, again: list[tuple[str, int]]
) -> None:
    pending = list(again)
    sent = 0
    while True:
        if pending:
            key, device = pending.pop()
        else:
            key, device = f"{name}/{sent}", random.Random(f"{name}/{sent}").randrange(200)
            sent += 1
        headers = {
            "x-api-key": api_key,
            "origin": ORIGIN,
            "idempotency-key": key,
            "user-agent": USER_AGENT,
            "x-forwarded-for": PUBLIC_ADDRESS,
        }
        body = {"sdk": {"platform": "web"}, "signals": report(device)}
        try:
            request = client.build_request("POST", "/api/v1/identify", json=body, headers=headers)
            request.stream = Whole(request.content)
            response = await client.send(request)
        except httpx.TransportError:
            journal.unanswered.extend([(key, device), *pending])
            return
        assert response.status_code == 200, response.text
        journal.note(key, response.json()["request_id"])


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
        await load(server.port, api_key, journal, round_number, chance.uniform(0.2, 0.9), server)
    await _settle(tmp_path, api_key, journal)
    run("check", "--data", str(tmp_path))
    _compare(tmp_path, journal)


async def _settle(directory: Path, api_key: str, journal: Journal) -> None:
    """A last, quiet start: everything that went unanswered is sent again, and once more after its answer."""
    server = await trio.to_thread.run_sync(Served, directory)
    left, journal.unanswered = journal.unanswered, []
    twice = [pair for pair in left for _ in range(2)] + [(key, 0) for key in list(journal.answers)[:50]]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=10) as client:
        for key, device in twice:
            headers = {
                "x-api-key": api_key,
                "origin": ORIGIN,
                "idempotency-key": key,
                "x-forwarded-for": PUBLIC_ADDRESS,
            }
            body = {"sdk": {"platform": "web"}, "signals": report(device)}
            response = await client.post("/api/v1/identify", json=body, headers=headers)
            journal.note(key, response.json()["request_id"])
    assert await trio.to_thread.run_sync(server.terminate) == 0


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
