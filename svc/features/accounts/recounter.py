"""The recounter: counts the old events of an upgraded store, until all of the last 30 days are counted (ADR 192).

Owns the count of what it did. Receives no messages, and ends when there is nothing to count. Writes in small
transactions and rests after each for nine times as long as it took, as retention does. While the clock is not trusted
it waits: which events are of the last 30 days is not known then.
"""

from __future__ import annotations

from functools import partial

import structlog
import trio

from svc.features.accounts.jobs import Pending, pending, step
from svc.identify.velocity.counts import Recount
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.clock import ClockWatch, is_ahead
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World

log = structlog.get_logger()

REST = 9.0
RETRY_S = 60.0
"""After a step that failed, or while the clock is not trusted."""


class RecountProgress:
    """What the recounter has done since the start, and what is left."""

    def __init__(self) -> None:
        self.events = 0
        """Old events that were counted."""
        self.organizations = 0
        """Organizations whose counts are not complete."""


async def run(
    store: Store, world: World, watch: ClockWatch, progress: RecountProgress, corrupt: CorruptRows | None = None
) -> None:
    """Count the old events of every organization, and return when all are counted. A step that fails is logged and
    tried again after `RETRY_S`. `watch`: tells whether the clock is trusted.
    """
    corrupt, announced = corrupt or CorruptRows(), set[int]()
    while left := await store.query(pending):
        progress.organizations = len(left)
        for each in left:
            if each.number not in announced:
                _say("rebuilding counts from events of before the upgrade", each)
            announced.add(each.number)
            if await count(store, world, watch, progress, corrupt, each):
                progress.organizations -= 1
        if progress.organizations:
            held = await is_ahead(store, world, watch)
            why = "the clock is not trusted" if held else "see what was logged before"
            log.warning("counting waits", organizations=progress.organizations, reason=why)
            await trio.sleep(RETRY_S)


async def count(
    store: Store, world: World, watch: ClockWatch, progress: RecountProgress, corrupt: CorruptRows, of: Pending
) -> bool:
    """Count the old events of an organization; return whether all are counted now."""
    number, before = of.number, of.recount.events
    while not await is_ahead(store, world, watch):
        began = trio.current_time()
        try:
            job = partial(step, number=number, now_ms=world.now_ms())
            after: Recount | None = await store.write_one(job, number, may_use_reserve=True)
        except (StoreFullError, UnavailableError) as error:
            store.outage.stopped("counting", error)
            return False
        except CorruptionError as error:
            corrupt.note("recount", number, error)
            return False
        if after is None:
            return True
        progress.events, before = progress.events + after.events - before, after.events
        if after.is_complete:
            _say("counts are complete", Pending(number, after))
            return True
        await trio.sleep(REST * (trio.current_time() - began))
    return False


def _say(event: str, of: Pending) -> None:
    since_ms = of.recount.counted_since_ms
    since = {} if since_ms is None else {"counted_since": timestamp(since_ms)}
    log.info(event, organization=of.number, events=of.recount.events, **since)
