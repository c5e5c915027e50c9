"""Whether each library for servers says that a request may have been carried out, by what became of its connection.
Java is in `test_java.py`, where it is compiled.
"""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from svc_client import AsyncClient, Client, Retries, UnreachableError

from tests.clients.conftest import Library
from tests.clients.connections import TIMEOUT_MS, Servers, agrees, in_lines
from tests.clients.test_go import go

pytestmark = pytest.mark.slow(5)
LIMITS: dict[str, Any] = {"timeout_s": TIMEOUT_MS / 1000, "retries": Retries(attempts=1)}


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Servers:
    made = Servers(tmp_path)
    for variable in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"):
        monkeypatch.setenv(variable, str(made.authority))
    return made


def said(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except UnreachableError as lost:
        return lost.was_sent


def test_the_python_client_says_whether_a_request_was_sent(servers: Servers):
    def ask(place: str) -> object:
        with Client(place, "svc_mk_key", **LIMITS) as client:
            return said(lambda: client.test_webhook("org", "whk"))

    with servers.serving() as places, ThreadPoolExecutor(len(places)) as pool:
        agrees(places, dict(zip(places, pool.map(ask, places.values()), strict=True)))


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_the_asynchronous_python_client_says_whether_a_request_was_sent(servers: Servers, loop: str):
    async def ask(place: str) -> object:
        try:
            async with AsyncClient(place, "svc_mk_key", **LIMITS) as client:
                return await client.test_webhook("org", "whk")
        except UnreachableError as lost:
            return lost.was_sent

    async def in_asyncio(places: dict[str, str]) -> dict[str, object]:
        return dict(zip(places, await asyncio.gather(*map(ask, places.values())), strict=True))

    async def in_trio(places: dict[str, str]) -> dict[str, object]:
        told: dict[str, object] = {}

        async def tell(name: str) -> None:
            told[name] = await ask(places[name])

        async with trio.open_nursery() as nursery:
            for name in places:
                nursery.start_soon(tell, name)
        return told

    with servers.serving() as places:
        agrees(places, trio.run(in_trio, places) if loop == "trio" else asyncio.run(in_asyncio(places)))
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # httpcore leaves a connection open whose handshake is cancelled


async def test_the_node_client_says_whether_a_request_was_sent(servers: Servers, library: Library):
    with servers.serving() as places:
        told = await library.run(
            """
            const options = { apiKey: "svc_mk_key", timeoutMs: TIMEOUT_MS, retries: { attempts: 1 } };
            return Object.fromEntries(await Promise.all(Object.entries(PLACES).map(async ([name, baseUrl]) => {
              const client = new Client({ ...options, baseUrl });
              return [name, await client.testWebhook("org", "whk").catch((error) => error.wasSent ?? String(error))];
            })));
            """,
            PLACES=places, TIMEOUT_MS=TIMEOUT_MS,
        )  # fmt: skip
        agrees(places, told)


def test_the_go_client_says_whether_a_request_was_sent(servers: Servers, monkeypatch: pytest.MonkeyPatch):
    with servers.serving() as places:
        monkeypatch.setenv("SVC_CONNECTIONS", json.dumps({"timeout_ms": TIMEOUT_MS, "places": places}))
        agrees(places, in_lines(go("test", "-count=1", "-v", "-run", "TestConnections", "./...")))


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_failed_handshake_says_why(servers: Servers, loop: str):
    async def ask(place: str) -> str:
        with pytest.raises(UnreachableError) as lost:
            async with AsyncClient(place, "svc_mk_key", **LIMITS) as client:
                await client.get_health()
        return str(lost.value)

    with servers.serving() as places:
        place = places["another authority"]
        told = trio.run(ask, place) if loop == "trio" else asyncio.run(ask(place))
    assert "certificate verify failed" in told


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_what_waits_for_a_connection_of_the_pool_was_not_sent(servers: Servers, loop: str):
    """There are a hundred; each is taken by a call that gets no response."""
    told: Counter[tuple[str, bool]] = Counter()

    async def ask(client: AsyncClient, name: str) -> None:
        with pytest.raises(UnreachableError) as lost:
            await client.test_webhook("org", "whk")
        told[name, lost.value.was_sent] += 1

    async def ask_often(place: str) -> None:
        once = Retries(attempts=1)
        async with AsyncClient(place, "svc_mk_key", retries=once) as client:
            hasty = AsyncClient(place, "svc_mk_key", retries=once, timeout_s=0.5)
            vars(hasty)["_connections"] = vars(client)["_connections"]
            async with anyio.create_task_group() as calls:
                for _ in range(100):
                    calls.start_soon(ask, client, "sent")
                for _ in range(100):
                    assert await anyio.to_thread.run_sync(partial(servers.reached.acquire, timeout=5))
                for _ in range(20):
                    calls.start_soon(ask, hasty, "waiting")

    with servers.serving() as places:
        anyio.run(ask_often, places["hangs"], backend=loop)
    assert told == {("sent", True): 100, ("waiting", False): 20}


def test_what_a_proxy_refuses_to_connect_was_not_sent(servers: Servers, monkeypatch: pytest.MonkeyPatch):
    with servers.serving() as places:
        monkeypatch.setenv("HTTPS_PROXY", places["no TLS"].replace("https:", "http:"))
        with Client("https://id.shop.example", "svc_mk_key", **LIMITS) as client:
            assert said(lambda: client.test_webhook("org", "whk")) is False
