"""The settler: settles each day of production traffic once, and blocks organizations that are past due for too long.

Owns nothing: what was settled and which organizations are past due is in the store. Receives no messages; wakes the
outbox. It looks at the start, so that a service that restarts often settles too, and then once a minute. It does not
sleep until the next day is due, since the operator's command line, a process of its own, may begin a term at any
moment. Closes a day, reads its lines in steps on the loop, some each, and writes one small transaction for each fact.
While the wall clock is not trusted nobody is blocked (decisions 17.3); days are settled, since what comes later counts
for the next one.
"""

from __future__ import annotations

from functools import partial

import structlog
import trio

from svc.features.billing.jobs import DueDay, block_overdue, due_day, is_overdue, read_usage, settle
from svc.features.organizations.jobs import Author
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.tenants.billing import Usage
from svc.kernel.tenants.jobs import close_day, holding
from svc.kernel.tenants.queries import organizations
from svc.kernel.values.partitions import Wake
from svc.kernel.work.clock import ClockWatch, is_ahead
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World

log = structlog.get_logger()

INTERVAL_S = 60.0
NAME = "settler"
"""The author of a change of billing status, on the record of the change."""


async def run(
    store: Store,
    world: World,
    wake: Wake,
    watch: ClockWatch,
    corrupt: CorruptRows | None = None,
    interval_s: float = INTERVAL_S,
) -> None:
    """Settle every `interval_s` seconds until cancelled. `wake` is called with the endpoint queues that a commit added
    to; `watch` tells whether the clock is trusted. If the store is full, log it and try again; any other exception is
    raised after `interval_s`.
    """
    while True:
        try:
            may_block = not await is_ahead(store, world, watch)
            await settle_all(store, world, wake, corrupt, may_block=may_block)
        except StoreFullError as error:
            store.outage.stopped("settlement", error)
        except Exception:
            await trio.sleep(interval_s)  # the supervisor restarts at once, and a few times a minute at most
            raise
        await trio.sleep(interval_s)


async def settle_all(
    store: Store, world: World, wake: Wake, corrupt: CorruptRows | None = None, *, may_block: bool = True
) -> None:
    """Settle every day that is due, and block every organization that is overdue (decisions 5.3, 5.4) if `may_block`.
    An organization with a corrupt row is noted in `corrupt` and tried again at the next call. Raises `StoreFullError`.
    """
    corrupt = corrupt or CorruptRows()
    now_ms = world.now_ms()
    for number in await store.query(organizations):
        try:
            if may_block:
                await _block_overdue(store, world, wake, number, now_ms)
            await _settle(store, wake, number, now_ms)
        except CorruptionError as error:
            corrupt.note("settlement", number, error)
        await trio.lowlevel.checkpoint()


async def _block_overdue(store: Store, world: World, wake: Wake, number: int, now_ms: int) -> None:
    if not await store.query(partial(is_overdue, number=number, now_ms=now_ms)):
        return
    author = Author(world.request_id(now_ms), now_ms, NAME)
    queues = await store.write_one(partial(block_overdue, number=number, author=author), number)
    if queues is not None:
        log.info("blocked an organization: its payment is overdue", organization=number)
        wake(queues)


async def _settle(store: Store, wake: Wake, number: int, now_ms: int) -> None:
    while (due := await store.query(partial(due_day, number=number, now_ms=now_ms))) is not None:
        if (await store.query(partial(holding, number=number))).day <= due.day:
            await store.write_one(partial(close_day, number=number, day=due.day), number)
        usage = await _read(store, number, due)
        job = partial(settle, number=number, due=due, usage=usage, now_ms=now_ms)
        queues = await store.write_one(job, number)
        if queues is not None:
            log.info("day settled", organization=number, day=due.day, identifications=usage.identifications)
            wake(queues)


async def _read(store: Store, number: int, due: DueDay) -> Usage:
    usage, resume = Usage(), None
    while True:
        step = await store.query(partial(read_usage, number=number, due=due, resume=resume))
        usage += step.usage
        if step.resume is None:
            return usage
        resume = step.resume
        await trio.lowlevel.checkpoint()
