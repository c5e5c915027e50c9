"""Who writes next."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from svc.kernel.store.local import WriteTurn


async def test_an_urgent_write_goes_first_and_no_write_starves():
    turn, wrote, go_on = WriteTurn(), [], trio.Event()

    async def write(name: str, *, urgent: bool) -> None:
        async with turn.held(urgent=urgent):
            await go_on.wait()
            wrote.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: write("first", urgent=False))
        await wait_all_tasks_blocked()
        for number in range(3):
            nursery.start_soon(lambda number=number: write(f"change {number}", urgent=False))
            await wait_all_tasks_blocked()
        nursery.start_soon(lambda: write("identify", urgent=True))
        await wait_all_tasks_blocked()
        with trio.move_on_after(0) as gave_up:
            await write("gone", urgent=True)
        assert gave_up.cancelled_caught
        go_on.set()
    assert wrote == ["first", "identify", "change 0", "change 1", "change 2"]
    async with turn.held(urgent=False):
        pass
