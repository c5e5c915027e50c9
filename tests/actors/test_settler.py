"""The settler under virtual time: when it looks, what it does in one look, and what stops it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from svc.features.billing.settler import INTERVAL_S, run, settle_all
from svc.kernel.store.steps import STEP_LOOKS
from svc.kernel.store.store import StoreFullError
from svc.kernel.tenants.billing import SETTLED_AFTER_MS, Settlement
from svc.kernel.tenants.tables import SETTLEMENTS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.work.clock import ClockWatch
from tests.store.test_ledger import FIRST_DAY, Books
from tests.support.outbox import OutboxWorld
from tests.support.worlds import EPOCH_MS, failing


def settled(world: OutboxWorld) -> dict[tuple[int, int], Settlement]:
    with world.store.read() as snapshot:
        return {(number, day): row for (number, day), row in snapshot.scan(SETTLEMENTS)}


def watch_of(world: OutboxWorld) -> ClockWatch:
    return ClockWatch(world.world.now_ms(), world.world.elapsed_s())


async def test_the_settler_polls_at_startup_and_then_once_a_minute(world: OutboxWorld, autojump_clock: MockClock):
    assert INTERVAL_S == 60.0
    books = Books(world)
    books.visits(EPOCH_MS - 2 * DAY_MS, EPOCH_MS - DAY_MS)
    before = (books.number, FIRST_DAY - 2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, world.store, world.world, world.outbox.wake, watch_of(world))
        await trio.sleep(1)
        assert list(settled(world)) == [before]
        await trio.sleep(SETTLED_AFTER_MS / 1000 - 2)
        assert list(settled(world)) == [before], "five minutes after midnight, and not before"
        await trio.sleep(2)
        assert list(settled(world)) == [before, (books.number, FIRST_DAY - 1)]
        nursery.cancel_scope.cancel()
    row = settled(world)[books.number, FIRST_DAY - 1]
    assert 0 <= row.settled_at_ms - EPOCH_MS - SETTLED_AFTER_MS < 1_000


@pytest.mark.slow(0.2)
async def test_one_poll_settles_every_day_of_every_organization(world: OutboxWorld, autojump_clock: MockClock):
    """Also days of more lines than are read at once."""
    one, other, idle = Books(world), Books(world), Books(world)
    long_ms = EPOCH_MS - 4 * DAY_MS
    one.credit(50, long_ms - 1)
    one.visits(*range(long_ms, long_ms + 2 * STEP_LOOKS + 3))
    one.visits(EPOCH_MS - 2 * DAY_MS, price=500)
    other.visits(EPOCH_MS - 3 * DAY_MS, EPOCH_MS)
    idle.credit(7, EPOCH_MS - DAY_MS)
    await trio.sleep(SETTLED_AFTER_MS / 1000)
    await settle_all(world.store, world.world, world.outbox.wake)
    now_ms = EPOCH_MS + SETTLED_AFTER_MS
    many, charged = 2 * STEP_LOOKS + 3, 3_000 * (2 * STEP_LOOKS + 3)
    assert settled(world) == {
        (one.number, FIRST_DAY - 4): Settlement(many, 0, 0, charged, 50 - charged, now_ms, is_closed=True),
        (one.number, FIRST_DAY - 2): Settlement(0, 1, 0, 500, 50 - charged - 500, now_ms, is_closed=True),
        (other.number, FIRST_DAY - 3): Settlement(1, 0, 0, 3_000, -3_000, now_ms, is_closed=True),
    }
    before = world.store.statistics().commits
    await settle_all(world.store, world.world, world.outbox.wake)
    assert world.store.statistics().commits == before, "a look that finds nothing writes nothing"


async def test_a_full_store_delays_settlement_and_loses_nothing(world: OutboxWorld, autojump_clock: MockClock):
    books = Books(world)
    books.visits(EPOCH_MS - 2 * DAY_MS)
    async with trio.open_nursery() as nursery:
        with failing(world.store, StoreFullError("no space"), "write"):
            nursery.start_soon(run, world.store, world.world, world.outbox.wake, watch_of(world), None, 10.0)
            await trio.sleep(35)
        assert settled(world) == {}
        await trio.sleep(10)
        assert len(settled(world)) == 1
        nursery.cancel_scope.cancel()


async def test_a_failed_transaction_does_not_count_as_a_settlement(
    world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    Books(world).visits(EPOCH_MS - 2 * DAY_MS)

    async def broken(_: Any, **__: Any) -> Any:
        return [RuntimeError("nobody foresaw this")]

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "write", broken)
        with pytest.raises(RuntimeError, match="nobody foresaw this"):
            await settle_all(world.store, world.world, world.outbox.wake)
        began = trio.current_time()
        with pytest.raises(RuntimeError, match="nobody foresaw this"):
            await run(world.store, world.world, world.outbox.wake, watch_of(world))
        assert trio.current_time() - began == INTERVAL_S, "restarted at once, its failure would end the process"
    assert settled(world) == {}
