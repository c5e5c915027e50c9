"""Upkeep tells of a backup that is not being made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import structlog
import trio

from svc.kernel.store import operations
from svc.kernel.store.opening import open_store
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.store import Store
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.work.store_watch import BEHIND_MS, MAINTENANCE_INTERVAL_S, maintain
from tests.support.backup import put
from tests.support.worlds import inline

FOLLOWING = Following(b"t" * 16, 0, "/backup", 1 << 30)


@pytest.fixture
def clock() -> list[int]:
    return [0]


@pytest.fixture
def store(tmp_path: Path, clock: list[int]):
    opened = open_store(tmp_path, inline, durable=False, map_bytes=16 << 20, now_ms=lambda: clock[0])
    yield opened
    opened.close()


async def told(store: Store, clock: Sequence[int] = (0,)) -> list[dict]:
    """What maintenance reports in two minutes."""
    with structlog.testing.capture_logs() as logs:
        with trio.move_on_after(2.5 * MAINTENANCE_INTERVAL_S):
            await maintain(store, lambda: clock[0])
    return logs


async def test_a_follower_that_keeps_up_is_not_mentioned(store: Store, clock: list[int], autojump_clock):
    assert await told(store, clock) == []
    store.change_log(partial(operations.begin, following=FOLLOWING))
    for clock[0] in range(0, BEHIND_MS, 1000):
        store.write_now([put(BALANCES, 1, value=5)])
    assert await told(store, clock) == []
    clock[0] += 10 * BEHIND_MS
    store.change_log(partial(operations.cut, timeline=FOLLOWING.timeline, copied=60))
    store.write_now([put(BALANCES, 1, value=6)])
    assert await told(store, clock) == []


@pytest.mark.parametrize("commits", [1, 2])
async def test_a_follower_that_lags_is_reported_each_minute(
    store: Store, clock: list[int], commits: int, autojump_clock
):
    """Also where nothing was committed since it stopped but the one change that is in no copy."""
    store.change_log(partial(operations.begin, following=FOLLOWING))
    for clock[0] in range(commits):
        store.write_now([put(BALANCES, 1, value=5)])
    clock[0] = BEHIND_MS
    line = {
        "event": "the backup is behind: is its follower running?",
        "log_level": "warning",
        "seconds": 60,
        "folder": "/backup",
    }
    assert await told(store, clock) == [line, line]


async def test_a_follower_that_was_cut_off_is_reported_until_it_starts_again(store: Store, autojump_clock):
    store.change_log(partial(operations.begin, following=FOLLOWING))
    store.change_log(partial(operations.drop, now_ms=5, because="the store was full"))
    first, second = await told(store)
    assert first == second
    assert (first["log_level"], first["because"]) == ("error", "the store was full")
    with store.read() as snapshot:
        assert operations.behind_ms(snapshot, now_ms=65) == 60, "since then nothing is copied"
    store.change_log(partial(operations.begin, following=FOLLOWING))
    assert await told(store) == []
