"""No capacity for another connection: which one is evicted, which are left alone, and how each is answered."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import trio
import trio.testing
from trio.testing import MockClock

from svc.workers.shared_memory import FEW, OpenConnections
from tests.edge.world import JUMPS_S, Client, Running, get, post, running_edge

HALF_A_HEAD = b"GET /hello HTTP/1.1\r\nHost: "
HALF_A_BODY = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"
LONG_ENOUGH_S = 1.0
"""Longer than a request that has begun is left alone."""


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that has no event of its own, while the clock stands still."""
    for _ in range(100_000):
        if holds():
            return
        await trio.lowlevel.checkpoint()
    raise AssertionError("it does not come")


async def taken(world: Running, count: int) -> None:
    """Wait until so many connections have been accepted."""
    await until(lambda: world.edge.statistics().connections_accepted == count)


async def served(world: Running) -> Client:
    client = await world.connect()
    assert (await client.ask(get("/hello"))).status == 200
    return client


async def test_the_connection_idle_longest_is_evicted(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=3) as world:
        used = await served(world)
        mock_clock.jump(1)
        silent = await world.connect()
        await taken(world, 2)
        mock_clock.jump(1)
        assert (await used.ask(get("/hello"))).status == 200  # now it waits for a shorter time than the silent one
        third = await served(world)
        fourth = await served(world)
        await silent.ended()
        for client in (used, third, fourth):
            assert (await client.ask(get("/hello"))).status == 200
        statistics = world.edge.statistics()
        assert (statistics.connections_evicted, statistics.connections_refused) == (1, 0)
        assert (statistics.connections_open, statistics.connections_accepted) == (3, 4)


async def test_a_flood_of_silent_connections_does_not_lock_out_an_honest_client(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=4) as world:
        for number in range(10):
            for more in range(1, 6):
                await world.connect()
                await taken(world, number * 6 + more)
                mock_clock.jump(0.01)
            (await served(world)).close()
        statistics = world.edge.statistics()
        assert (statistics.connections_accepted, statistics.connections_refused) == (60, 0)


async def test_a_connection_with_a_running_request_is_never_evicted(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=1, hang_s=JUMPS_S) as world:
        first = await world.connect()
        await first.send(get("/slow"))
        await world.handlers.started.wait()
        mock_clock.jump(1_000)
        second = await world.connect()
        response = await second.response()
        assert (response.status, response.error["code"], response.closes) == (503, "service_unavailable", True)
        await second.ended()
        assert world.edge.statistics().connections_refused == 1
        world.handlers.release.set()
        assert (await first.response()).body == b"done"
        mock_clock.jump(1)  # looked for again
        await served(world)


async def test_a_connection_with_an_incomplete_head_is_evicted_with_a_503(mock_clock: MockClock) -> None:
    await _gives_way_with_a_503(mock_clock, HALF_A_HEAD)


async def test_a_connection_with_an_incomplete_body_is_evicted_with_a_503(mock_clock: MockClock) -> None:
    await _gives_way_with_a_503(mock_clock, HALF_A_BODY)


async def _gives_way_with_a_503(mock_clock: MockClock, half: bytes) -> None:
    async with running_edge(max_connections=1) as world:
        slow = await world.connect()
        await slow.send(half)
        await _has_read(world, half)
        mock_clock.jump(LONG_ENOUGH_S)
        await served(world)
        response = await slow.response()
        assert (response.status, response.error["code"], response.closes) == (503, "service_unavailable", True)
        await slow.ended()
        assert world.handlers.bodies == []


async def test_a_request_that_has_just_begun_is_not_evicted(mock_clock: MockClock) -> None:
    for half, rest in ((HALF_A_HEAD, b"a\r\n\r\n"), (HALF_A_BODY, b"gotten")):
        async with running_edge(max_connections=1) as world:
            beginner = await world.connect()
            await beginner.send(half)
            await _has_read(world, half)
            mock_clock.jump(0.1)
            assert (await (await world.connect()).response()).status == 503
            assert (await beginner.ask(rest)).status == 200


async def test_a_connection_whose_client_does_not_read_the_response_is_evicted(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=1, write_timeout_s=600) as world:
        greedy = await world.connect()
        await greedy.send(get("/large"))
        assert await greedy.stream.receive_some(1) == b"H"
        await trio.testing.wait_all_tasks_blocked(0.01)
        mock_clock.jump(LONG_ENOUGH_S)
        await served(world)
        assert world.edge.statistics().connections_evicted == 1


async def test_a_connection_whose_unread_body_is_being_discarded_is_evicted(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=1, linger_timeout_s=600) as world:
        refused = await world.connect()
        response = await refused.ask(b"POST /unauthorized HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n")
        assert (response.status, response.closes) == (401, True)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await served(world)
        await refused.ended()


async def test_a_connection_without_a_tls_handshake_is_evicted(
    mock_clock: MockClock, tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    server_context, client_context = tls_contexts
    async with running_edge(ssl_context=server_context, max_connections=1) as world:
        silent = await world.connect()
        await taken(world, 1)
        client = await world.connect(client_context)
        assert (await client.ask(get("/hello"))).body == b"hello"
        await silent.ended()


async def test_one_connection_is_evicted_for_each_new_one(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=16) as world:
        for count in range(1, 17):
            await world.connect()
            await taken(world, count)
            mock_clock.jump(0.01)
        for count in range(1, 9):  # more than are chosen at once
            await served(world)
            statistics = world.edge.statistics()
            assert (statistics.connections_evicted, statistics.connections_open) == (count, 16)
            await world.clients[count - 1].ended()
        for client in world.clients[8:16]:
            assert (await client.ask(get("/hello"))).status == 200


async def test_a_chosen_connection_that_became_active_is_not_evicted(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=16) as world:
        for count in range(1, 17):
            await world.connect()
            await taken(world, count)
            mock_clock.jump(0.01)
        await served(world)
        first, chosen, gone, next_one = world.clients[:4]
        await first.ended()
        assert (await chosen.ask(get("/hello"))).status == 200
        gone.close()
        await until(lambda: world.edge.statistics().connections_open == 15)
        await world.connect()
        await taken(world, 18)
        await served(world)
        await next_one.ended()
        assert (await chosen.ask(get("/hello"))).status == 200
        assert world.edge.statistics().connections_evicted == 2


async def test_capacity_of_evicted_connections_is_not_counted_twice(mock_clock: MockClock) -> None:
    async with running_edge(max_connections=2) as world:
        for _ in range(50):
            assert (await (await world.connect()).ask(post("/echo", b"x"))).body == b"x"
            mock_clock.jump(0.01)
        assert world.edge.statistics().connections_open == 2
        world.shutdown.set()
        await world.returned.wait()


async def _has_read(world: Running, half: bytes) -> None:
    """Until the edge has read what was sent: its task then waits for more."""
    await taken(world, 1)
    if b"\r\n\r\n" in half:
        await until(lambda: world.handlers.paths == ["/echo"])
    else:
        await trio.testing.wait_all_tasks_blocked(0.01)


async def test_each_connection_counts_for_its_worker_until_it_ends(mock_clock: MockClock) -> None:
    connections = OpenConnections(2)
    ours, other = connections.of(0), connections.of(1)
    other.add(1)  # or ours would leave the third to it

    def count() -> int:
        """Of our connections: with two more than that the other one is ahead."""
        added = 0
        while not other.is_ahead():
            other.add(1)
            added += 1
        other.add(-added)
        return 1 + added - FEW

    async with running_edge(max_connections=2, share=ours) as world:
        first, second = [await served(world) for _ in range(2)]
        assert count() == 2
        await first.send(get("/slow"))
        await second.send(get("/slow"))
        await world.handlers.started.wait()
        refused = await world.connect()
        assert (await refused.response()).status == 503
        await refused.ended()
        await until(lambda: count() == 2)
        world.handlers.release.set()
        await first.response()
        await second.response()
        first.close()
        await until(lambda: count() == 1)
    assert not other.is_ahead()
    other.add(9)
    assert not other.is_ahead(), "nothing is left to a worker that drains"
