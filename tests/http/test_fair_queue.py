"""Which requests begin, and in which order (decisions 4)."""

from __future__ import annotations

from collections.abc import Hashable

import trio
from trio.testing import assert_no_checkpoints, wait_all_tasks_blocked

from svc.http.server.fair_queue import CONTENDED_FOR_S, KEYS_REMEMBERED, PASSES, FairQueue, KnownKeys

KEY = "svc_pk_us_production_" + "a" * 49
HEAD = b"POST /api/v1/identify HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\n\r\n"


async def test_a_single_owner_never_waits(mock_clock):
    fair_queue = FairQueue()
    with assert_no_checkpoints():
        for _ in range(100):
            await fair_queue.enter(7)
        mock_clock.jump(CONTENDED_FOR_S)
        await fair_queue.enter("81.2.69.1")


async def test_concurrent_owners_start_in_turn(mock_clock):
    fair_queue = FairQueue()
    began: list[Hashable] = []
    passes = 0

    async def ask(owner: Hashable) -> None:
        await fair_queue.enter(owner)
        began.append(owner)

    await fair_queue.enter(1)
    await ask(2)
    async with trio.open_nursery() as asking, trio.open_nursery() as regulating:
        for _ in range(20):
            asking.start_soon(ask, 1)
        for number in range(20):
            asking.start_soon(ask, f"81.2.69.{number}")
        await wait_all_tasks_blocked()
        assert began == [2], "the others wait"
        asking.start_soon(ask, 2)
        await wait_all_tasks_blocked()
        regulating.start_soon(fair_queue.run)
        while len(began) < 42:
            await trio.lowlevel.checkpoint()
            passes += 1
        regulating.cancel_scope.cancel()
    assert 2 in began[1:6], "neither one organization nor many addresses keep another organization from its turn"
    assert began.count(1) == began.count(2) + 18 == 20
    assert passes >= 19 * PASSES, "one request of an organization, and one of all addresses, in a round"


async def test_one_request_of_each_organization_begins_in_a_round(mock_clock):
    """So what many organizations send together is committed together."""
    fair_queue = FairQueue()
    began: list[int] = []

    async def ask(owner: int) -> None:
        await fair_queue.enter(owner)
        began.append(owner)

    await fair_queue.enter(1)
    await fair_queue.enter(2)
    async with trio.open_nursery() as asking, trio.open_nursery() as regulating:
        for _ in range(3):
            for organization in range(1, 9):
                asking.start_soon(ask, organization)
        await wait_all_tasks_blocked()
        regulating.start_soon(fair_queue.run)
        for _ in range(3):
            before = len(began)
            while len(began) == before:
                await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            assert sorted(began[before:]) == list(range(1, 9))
        regulating.cancel_scope.cancel()


async def test_turns_end_when_one_owner_is_left(mock_clock):
    fair_queue = FairQueue()
    await fair_queue.enter(1)
    await fair_queue.enter(2)
    mock_clock.jump(CONTENDED_FOR_S)
    with assert_no_checkpoints():
        for _ in range(3):
            await fair_queue.enter(2)


async def test_a_request_cancelled_while_it_waits_takes_no_turn(mock_clock):
    fair_queue = FairQueue()
    for owner in (1, 2):
        await fair_queue.enter(owner)
    with trio.move_on_after(0) as scope:
        await fair_queue.enter(1)
    assert scope.cancelled_caught
    async with trio.open_nursery() as regulating:
        regulating.start_soon(fair_queue.run)
        for _ in range(3):
            await fair_queue.enter(2)
        regulating.cancel_scope.cancel()


def test_a_request_belongs_to_the_organization_of_a_known_key_or_else_to_its_address():
    keys = KnownKeys()
    assert keys.owner(HEAD % KEY.encode(), "81.2.69.1") == "81.2.69.1"
    keys.note(KEY, 7)
    assert keys.owner(HEAD % KEY.encode(), "81.2.69.1") == 7
    assert keys.owner(HEAD % (KEY[:-1] + "b").encode(), "81.2.69.1") == "81.2.69.1"
    assert keys.owner(b"GET / HTTP/1.1\r\n\r\n" + HEAD[:20], "81.2.69.1") == "81.2.69.1"
    for number in range(KEYS_REMEMBERED):
        keys.note(f"other {number}", 8)
    assert keys.owner(HEAD % KEY.encode(), "81.2.69.1") == "81.2.69.1", "memory is bounded"
