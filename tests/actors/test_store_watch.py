"""When a write is tried after one that failed (decisions 17.4), and how late the event loop is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from trio.testing import MockClock

from svc.kernel.store.engine import EngineError
from svc.kernel.store.local import LocalStore
from svc.kernel.store.opening import open_store
from svc.kernel.store.store import Write
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.work.clock import ServiceClock
from svc.kernel.work.store_watch import LAG_INTERVAL_S, EventLoopLag, StoreWatch
from svc.workers.pulse import PulseBoard
from tests.support.backup import put
from tests.support.worlds import EPOCH_MS, inline

T = TypeVar("T")


class SlowDisk:
    """Each commit takes 1.5 seconds; those that begin while `is_broken` fail."""

    is_broken = False

    async def run(self, function: Callable[[], T], /, **_: Any) -> T:
        is_broken = self.is_broken
        await trio.sleep(1.5)
        if is_broken:
            raise EngineError("EIO")
        return function()


async def test_a_busy_disk_does_not_put_off_a_trial_write(tmp_path: Path, autojump_clock: Any):
    """Changes follow each other without a pause, and prove nothing: others use other tables."""
    disk = SlowDisk()
    opened = open_store(tmp_path, inline, durable=False, map_bytes=16 << 20)
    store = LocalStore(opened.engine, disk.run, lambda: EPOCH_MS, trio.current_time)
    watch = StoreWatch(store, ServiceClock(lambda: EPOCH_MS, trio.current_time), PulseBoard(1), 0)

    async def change() -> None:
        while True:
            await store.write([Write(put(BALANCES, 1, value=5), None)])

    async with trio.open_nursery() as nursery:
        disk.is_broken = True
        with pytest.raises(EngineError):
            await store.write([Write(put(BALANCES, 1, value=5), None)], urgent=True)
        disk.is_broken = False
        for _ in range(3):
            nursery.start_soon(change)
        nursery.start_soon(watch.run)
        await trio.sleep(6)
        assert not store.needs_trial_write
        assert watch.state() == "ok"
        nursery.cancel_scope.cancel()
    opened.close()


async def test_a_stall_is_counted_by_how_long_it_blocked_the_event_loop(mock_clock: MockClock):
    watch = EventLoopLag()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        for late_s in (0, 0, 0.4):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(LAG_INTERVAL_S + late_s)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    found = watch.statistics()
    assert sum(found.counts) == 3
    assert found.counts[found.bounds.index(0.5)] == 1
    assert found.total == pytest.approx(0.4)
