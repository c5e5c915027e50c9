"""A loop that does not run leaves in the log where it stands, whoever ends its process then."""

from __future__ import annotations

import time

import trio
from structlog.testing import capture_logs

from svc.hang_watch import HangWatch
from svc.world import World


async def run_beside(seconds: float) -> None:
    """The watch, and something on its loop that does not let it run for so long, twice."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(HangWatch(World.real(), hang_s=0.2, look_s=0.02).run)
        for _ in range(2):
            await trio.sleep(0.1)
            stand_still(seconds)
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel()


def stand_still(seconds: float) -> None:
    time.sleep(seconds)


def test_a_loop_that_stands_still_says_where_once_each_time():
    with capture_logs() as logs:
        trio.run(run_beside, 0.6)
    assert [one["event"] for one in logs] == ["the event loop hangs"] * 2
    assert logs[0]["stack"][0].endswith(" stand_still")
    assert logs[0]["seconds"] >= 0.2


def test_a_loop_that_runs_says_nothing():
    with capture_logs() as logs:
        trio.run(run_beside, 0.0)
    assert logs == []
