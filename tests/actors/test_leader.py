"""The leader: runs what must run once while it has the keeping, and stands by while another has."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from svc.kernel.work import leader
from svc.kernel.work.leader import INTERVAL_S, Leadership


class Work:
    """What a process runs as the leader and beside one, and the keeping that a test gives and takes away."""

    def __init__(self, *, is_elected: bool) -> None:
        self.is_elected = is_elected
        self.running: set[str] = set()
        self._taken_away = trio.Event()

    def take_away(self) -> None:
        self.is_elected = False
        self._taken_away.set()
        self._taken_away = trio.Event()

    async def lost(self) -> None:
        await self._taken_away.wait()

    async def _run(self, name: str) -> None:
        self.running.add(name)
        try:
            await trio.sleep_forever()
        finally:
            self.running.discard(name)

    async def stand_by(self) -> None:
        await self._run("stand by")

    async def keep(self) -> None:
        await self._run("keep")

    async def run(self) -> None:
        await leader.run(Leadership(lambda: self.is_elected, self.lost), self.stand_by, self.keep)


async def test_the_leader_starts_its_periodic_work_at_once(autojump_clock: MockClock):
    work = Work(is_elected=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.run)
        await wait_all_tasks_blocked()
        assert work.running == {"keep"}
        nursery.cancel_scope.cancel()


async def test_a_free_leader_role_is_taken_within_the_interval(autojump_clock: MockClock):
    work = Work(is_elected=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.run)
        await trio.sleep(10 * INTERVAL_S)
        assert work.running == {"stand by"}
        work.is_elected = True
        await trio.sleep(1.5 * INTERVAL_S)
        assert work.running == {"keep"}
        nursery.cancel_scope.cancel()


async def test_a_worker_that_loses_the_leader_role_stops_at_once_and_waits_to_get_it_back(
    autojump_clock: MockClock,
):
    work = Work(is_elected=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.run)
        await trio.sleep(1)
        work.take_away()
        await wait_all_tasks_blocked()
        assert work.running == {"stand by"}
        work.is_elected = True
        await trio.sleep(1.5 * INTERVAL_S)
        assert work.running == {"keep"}
        nursery.cancel_scope.cancel()
