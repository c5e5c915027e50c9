"""Looking names up: within its time, on threads of its own, and no name at the expense of another.

The clock stands still but where a test lets the time of a name pass, so that how long a thread takes to begin decides
nothing.
"""

from __future__ import annotations

import threading
import time

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from svc.features.webhooks.transport.resolver import SystemResolver, system_lookup

LIMIT_S = 3.0


class Zone:
    """Names of which some hang until they are let go, as a name server does that drops what it is asked."""

    def __init__(self) -> None:
        self.black = {f"black{number}.test" for number in range(10)}
        self.asked: list[str] = []
        self.let_go = threading.Event()

    def __call__(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        if host in self.black:
            self.let_go.wait(10)
        return ("81.2.69.160",)


async def until_resolved(resolver: SystemResolver, host: str) -> None:
    while not await resolver(host, 1):  # the end of a thread is no event of trio's
        await trio.to_thread.run_sync(time.sleep, 0.001)


async def timed_out(
    zone: Zone, resolver: SystemResolver, clock: MockClock, *hosts: str, threads: int = 1
) -> list[tuple[str, ...]]:
    """What is found when so many threads have begun, and then the time is up that each of these names has."""
    before = len(zone.asked)
    found: list[tuple[str, ...]] = []

    async def ask(host: str) -> None:
        found.append(await resolver(host, 1))

    async with trio.open_nursery() as nursery:
        for host in hosts:
            nursery.start_soon(ask, host)
        await trio.testing.wait_all_tasks_blocked()
        while len(zone.asked) < before + threads:
            await trio.to_thread.run_sync(time.sleep, 0.001)
        clock.jump(LIMIT_S)
    return found


@pytest.fixture
def zone():
    zone = Zone()
    yield zone
    zone.let_go.set()


def test_the_system_resolves_localhost_and_literals_and_no_invalid_names():
    assert "127.0.0.1" in system_lookup("localhost")
    assert system_lookup("0x7f.1") == ("127.0.0.1",)
    assert system_lookup("::1") == ("::1",)
    assert system_lookup("does-not-exist.invalid") == ()
    assert system_lookup("x" * 70 + ".test") == ()


async def test_a_name_that_times_out_has_no_addresses(zone: Zone, mock_clock: MockClock):
    resolver = SystemResolver(zone, limit_s=LIMIT_S)
    assert await timed_out(zone, resolver, mock_clock, "black0.test") == [()]


async def test_a_name_is_not_resolved_again_while_its_thread_is_still_busy(zone: Zone, mock_clock: MockClock):
    resolver = SystemResolver(zone, limit_s=LIMIT_S)
    assert await timed_out(zone, resolver, mock_clock, "black0.test") == [()]
    assert [await resolver("black0.test", 1) for _ in range(2)] == [()] * 2
    assert zone.asked == ["black0.test"]
    zone.let_go.set()
    await until_resolved(resolver, "black0.test")


async def test_resolvable_names_are_not_delayed_by_any_number_of_silent_ones(zone: Zone, mock_clock: MockClock):
    resolver = SystemResolver(zone, limit_s=LIMIT_S, pool_threads=8)
    assert await resolver("good.test", 1)
    await timed_out(zone, resolver, mock_clock, *zone.black, threads=2)
    assert len(zone.asked) == 1 + 2  # both threads of their pool are taken; the others were never begun
    for _ in range(20):
        assert await resolver("good.test", 1)


async def test_a_name_that_stops_responding_loses_its_thread(zone: Zone, mock_clock: MockClock):
    resolver = SystemResolver(zone, limit_s=LIMIT_S, pool_threads=1)
    assert await resolver("turning.test", 1)
    assert await resolver("good.test", 1)
    zone.black.add("turning.test")
    assert await timed_out(zone, resolver, mock_clock, "turning.test") == [()]
    zone.let_go.set()
    await until_resolved(resolver, "good.test")
    zone.let_go.clear()
    assert await timed_out(zone, resolver, mock_clock, "turning.test") == [()]  # again, in the other pool
    assert await resolver("good.test", 1)


async def asked_at_once(
    resolver: SystemResolver, host: str, found: list[tuple[str, ...]], nursery: trio.Nursery
) -> None:
    """Three callers, all of whom wait."""

    async def ask() -> None:
        found.append(await resolver(host, 1))

    for _ in range(3):
        nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked()


async def test_concurrent_lookups_of_a_name_share_one_result_and_later_ones_do_not(zone: Zone, mock_clock: MockClock):
    resolver = SystemResolver(zone)
    found: list[tuple[str, ...]] = []
    async with trio.open_nursery() as nursery:
        await asked_at_once(resolver, "black0.test", found, nursery)
        zone.let_go.set()
    assert found == [("81.2.69.160",)] * 3
    assert zone.asked == ["black0.test"]
    await resolver("black0.test", 1)
    assert zone.asked == ["black0.test"] * 2


async def test_a_cancelled_caller_does_not_cancel_the_lookup_of_others(zone: Zone, mock_clock: MockClock):
    resolver = SystemResolver(zone)
    found: list[tuple[str, ...]] = []
    first = trio.CancelScope()

    async def give_up() -> None:
        with first:
            await resolver("black0.test", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await trio.testing.wait_all_tasks_blocked()
        await asked_at_once(resolver, "black0.test", found, nursery)
        first.cancel()
        await trio.testing.wait_all_tasks_blocked()
        zone.let_go.set()
    assert found == [("81.2.69.160",)] * 3


async def test_an_address_is_not_resolved(zone: Zone):
    resolver = SystemResolver(zone)
    assert await resolver("127.0.0.1", 1) == ("127.0.0.1",)
    assert await resolver("2606:2800:220::1", 1) == ("2606:2800:220::1",)
    assert zone.asked == []
    await resolver("2130706433", 1)
    assert zone.asked == ["2130706433"], "an odd spelling is a name like any other"


@pytest.mark.parametrize("answers_first", [False, True], ids=["never answer", "answer once"])
async def test_names_of_one_organization_take_no_thread_from_others(
    zone: Zone, mock_clock: MockClock, answers_first: bool
):
    resolver = SystemResolver(zone, limit_s=LIMIT_S, pool_threads=8)
    assert await resolver("known.test", 1)
    black, zone.black = zone.black, set()
    for host in black if answers_first else ():
        assert await resolver(host, 2)
    zone.black, zone.asked = black, []
    attacked: list[tuple[str, ...]] = []

    async def attack(host: str) -> None:
        attacked.append(await resolver(host, 2))

    async with trio.open_nursery() as nursery:
        for host in (*black, "known.test", "new.test"):
            nursery.start_soon(attack, host)
        await trio.testing.wait_all_tasks_blocked()
        while len(black.intersection(zone.asked)) < 2:
            await trio.to_thread.run_sync(time.sleep, 0.001)
        # The other organization is answered at once, also where a name waits for the first one's threads.
        assert await resolver("new.test", 1)
        assert await resolver("known.test", 1)
        assert len(black.intersection(zone.asked)) == 2
        mock_clock.jump(LIMIT_S)
    assert () in attacked
