"""What a closed connection leaves behind is freed at once: a search for garbage would hold up everybody else."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from tests.edge.world import Running, get, post, running_edge

CONNECTIONS = 20
CUT = b"..."
"""Ends a request that the client does not wait for."""


@pytest.fixture
def garbage() -> Iterator[list[object]]:
    """What only a search finds, from here on."""
    gc.collect()
    gc.freeze()  # what other tests left is not searched again
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


async def _used(world: Running, request: bytes) -> None:
    client = await world.connect()
    if request.endswith(CUT):
        await client.send(request)
        await trio.testing.wait_all_tasks_blocked(0.01)
    elif request:
        await client.ask(request)
    client.close()


async def _all_closed(world: Running) -> None:
    while world.edge.statistics().connections_open:  # noqa: ASYNC110  it has no event of its own
        await trio.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        get("/hello"),
        post("/echo", b"x" * 100),
        b"POST /unauthorized HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\nbegun",
        b"nonsense\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHo" + CUT,
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + CUT,
        get("/slow") + b"\r\n" + CUT,
    ],
    ids=[
        "silent",
        "answered",
        "with a body",
        "answered early",
        "malformed",
        "cut in its head",
        "cut in its body",
        "cut while it is worked for",
    ],
)
async def test_a_closed_connection_is_freed_without_garbage_collection(
    garbage: list[object], request_bytes: bytes
) -> None:
    async with running_edge() as world:
        await _used(world, request_bytes)  # what is made once
        await _all_closed(world)
        gc.collect()
        garbage.clear()
        for _ in range(CONNECTIONS):
            await _used(world, request_bytes)
        await _all_closed(world)
        gc.collect()
        # trio leaves a small function and its cells behind for each nursery
        modules = {type(each).__module__.partition(".")[0] for each in garbage}
        assert not modules & {"svc", "h11", "hypercorn"}
        assert not [each for each in garbage if isinstance(each, trio.lowlevel.Task | trio.CancelScope)]
