"""Long reads take turns by organization: one that sends many delays no other for longer than one of them takes."""

from __future__ import annotations

import trio
import trio.testing
from trio.testing import MockClock

from svc.http.callers.limits import LongReads

BUSY, OTHER = 1, 2


async def test_an_organization_waits_for_at_most_one_search_of_another():
    reads, order, go_on = LongReads(), list[int](), trio.Event()

    async def read(organization: int) -> None:
        async with reads.turn(organization).held():
            order.append(organization)
            await go_on.wait()

    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(read, BUSY)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(read, OTHER)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert sorted(order) == [BUSY] * 30 + [OTHER]
    assert order.index(OTHER) <= 2


async def test_searches_run_one_at_a_time_and_leave_nothing_behind(autojump_clock: MockClock):
    reads, running, most = LongReads(), 0, 0

    async def read(organization: int, patience_s: float) -> None:
        nonlocal running, most
        with trio.move_on_after(patience_s):
            async with reads.turn(organization).held():
                running += 1
                most = max(most, running)
                try:
                    await trio.sleep(1)
                finally:
                    running -= 1

    async with trio.open_nursery() as nursery:
        for organization in range(4):
            for patience_s in (100, 2.5, 100):
                nursery.start_soon(read, organization, patience_s)
    assert most == 1
    with trio.fail_after(0.1):
        async with reads.turn(0).held():
            pass
    assert not reads.own


async def test_an_organization_reads_one_page_at_a_time_and_another_one_need_not_wait(autojump_clock: MockClock):
    reads, running, ended = LongReads(), 0, list[int]()

    async def page(organization: int) -> None:
        nonlocal running
        async with reads.turn(organization).page():
            running += organization == BUSY
            assert running <= 1
            await trio.sleep(1)
            running -= organization == BUSY
            ended.append(organization)

    async with trio.open_nursery() as nursery, reads.turn(BUSY).held():
        for organization in (BUSY, BUSY, BUSY, OTHER):
            nursery.start_soon(page, organization)
        await trio.sleep(1.5)
        assert sorted(ended) == [BUSY, OTHER], "nor for a long read of its own"
    assert not reads.pages
    turn = reads.turn(BUSY)
    async with reads.turn(BUSY).page(), turn.held(), turn.page():
        pass


async def test_a_request_that_holds_its_turn_waits_for_it_no_more(autojump_clock: MockClock):
    """However its reads are within each other; others wait until the outermost block ends."""
    reads, order = LongReads(), list[str]()

    async def other(organization: int) -> None:
        async with reads.turn(organization).held():
            order.append(f"other of {organization}")

    turn = reads.turn(BUSY)
    async with trio.open_nursery() as nursery:
        with trio.fail_after(1):
            async with turn.held():
                nursery.start_soon(other, BUSY)
                nursery.start_soon(other, OTHER)
                async with turn.held():
                    await trio.testing.wait_all_tasks_blocked()
                await trio.testing.wait_all_tasks_blocked()
                order.append("holder")
    assert order[0] == "holder"
    assert len(order) == 3
