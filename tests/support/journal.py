"""Clients that keep a journal of what they were told, for comparing it with a store whose server was killed."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import httpx
import trio

from tests.support.live import repeatable, report
from tests.support.process import Served

CLIENTS = 8
FIRST_RESPONSE_S = 10
"""For the first answer, on a machine that has other things to do."""


def account_of(number: int) -> str:
    """One of a few accounts."""
    return f"user-{number % 9}"


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


async def post(url: str, body: object, headers: Mapping[str, str], timeout_s: float) -> httpx.Response:
    """One request with a JSON body, to a server that may die of it."""
    async with httpx.AsyncClient(timeout=timeout_s) as client:
        request = client.build_request("POST", url, json=body, headers=headers)
        request.stream = Whole(request.content)
        return await client.send(request)


class Journal:
    """What the clients were told: idempotency key -> the request ids of its answers."""

    def __init__(self) -> None:
        self.answers: dict[str, list[str]] = {}
        self.unanswered: list[tuple[str, int]] = []
        self.is_closed = False
        """Whether the clients of this round are to stop after the request that they are at."""
        self._more = trio.Event()

    def note(self, key: str, request_id: str) -> None:
        self.answers.setdefault(key, []).append(request_id)
        self._more.set()

    async def more(self) -> None:
        """Until the next answer."""
        self._more = trio.Event()
        await self._more.wait()


async def load(
    server: Served,
    api_key: str,
    journal: Journal,
    round_number: int,
    seconds: float,
    *,
    pause_s: float = 0,
    kill: Callable[[], None] | None = None,
    beside: Callable[[httpx.AsyncClient, Journal], Awaitable[None]] | None = None,
) -> None:
    """Clients that send until the server is killed under them, so long after the first answer, and that send again what
    was cut off before. Each waits for `pause_s` after an answer. `kill` kills less than the server; `beside` is one who
    does something else meanwhile.
    """
    again, journal.unanswered, journal.is_closed = journal.unanswered, [], False
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=10, verify=False) as client,
        trio.open_nursery() as nursery,
    ):
        if beside is not None:
            nursery.start_soon(beside, client, journal)
        for number in range(CLIENTS):
            mine = again[number::CLIENTS]
            nursery.start_soon(_client, client, api_key, journal, f"{round_number}/{number}", mine, pause_s)
        with trio.move_on_after(FIRST_RESPONSE_S):
            await journal.more()
        await trio.sleep(seconds)
        await trio.to_thread.run_sync(kill or server.kill)
        journal.is_closed = True
        nursery.cancel_scope.deadline = trio.current_time() + (5 if kill is None else 30)


async def _client(
    client: httpx.AsyncClient, api_key: str, journal: Journal, name: str, again: list[tuple[str, int]], pause_s: float
) -> None:
    pending = list(again)
    sent = 0
    while not journal.is_closed:
        if pending:
            key, device = pending.pop()
        else:
            key, device = f"{name}/{sent}", random.Random(f"{name}/{sent}").randrange(200)
            sent += 1
        headers = repeatable(api_key, key)
        body = {"sdk": {"platform": "web"}, "signals": report(device), "account_id": account_of(device)}
        try:
            request = client.build_request("POST", "/api/v1/identify", json=body, headers=headers)
            request.stream = Whole(request.content)
            response = await client.send(request)
        except httpx.TransportError:
            journal.unanswered.extend([(key, device), *pending])
            return
        assert response.status_code == 200, response.text
        journal.note(key, response.json()["request_id"])
        await trio.sleep(pause_s)
    journal.unanswered.extend(pending)


async def send_at_once(server: Served, api_key: str, journal: Journal, keys: int) -> None:
    """Every client sends the same keys at the same time, each over a connection of its own."""

    async def client() -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30, verify=False) as sender:
            for number in range(keys):
                headers = repeatable(api_key, f"at once/{number}")
                body = {"sdk": {"platform": "web"}, "signals": report(number)}
                while (
                    response := await sender.post("/api/v1/identify", json=body, headers=headers)
                ).status_code == 409:
                    pass  # another client's is under way
                journal.note(f"at once/{number}", response.json()["request_id"])

    async with trio.open_nursery() as nursery:
        for _ in range(CLIENTS):
            nursery.start_soon(client)


async def settle(server: Served, api_key: str, journal: Journal) -> None:
    """Everything that went unanswered is sent again, and once more after its answer."""
    left, journal.unanswered = journal.unanswered, []
    twice = [pair for pair in left for _ in range(2)] + [(key, 0) for key in list(journal.answers)[:50]]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=10, verify=False) as client:
        for key, device in twice:
            headers = repeatable(api_key, key)
            body = {"sdk": {"platform": "web"}, "signals": report(device)}
            response = await client.post("/api/v1/identify", json=body, headers=headers)
            journal.note(key, response.json()["request_id"])
