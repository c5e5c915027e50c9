import pytest
import trio
from trio.testing import MockClock

from svc.kernel.work.store_watch import LAG_INTERVAL_S, EventLoopLag


@pytest.fixture
def mock_clock() -> MockClock:
    return MockClock()


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
