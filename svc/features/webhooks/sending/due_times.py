"""When deliveries are due, moved: what a clock that ran ahead has put off (decisions 17.1), and what waits for an
endpoint that accepts again (17.7). Some rows in each commit, so that nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from svc.features.webhooks.jobs.deliveries import bring_forward, make_due
from svc.features.webhooks.queries import queues_ahead
from svc.features.webhooks.sending.partitions import Partitions
from svc.features.webhooks.sending.patience import read, write
from svc.kernel.store.group import Write
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.values.partitions import EndpointKey

QUEUES_A_LOOK = 256
"""Queues looked at without a pause: about a millisecond."""
MAX_ROWS = 100
"""Deliveries moved in one commit, each with three rows."""


async def bring_all_forward(store: Store, partitions: Partitions, clock_ms: Callable[[], int]) -> None:
    """Make due after one step from now what is due later than anything may be."""
    after: EndpointKey | None = EndpointKey(0, 0)
    while after is not None:
        now_ms = clock_ms()
        found, after = await read(store, partial(queues_ahead, after=after, now_ms=now_ms, limit=QUEUES_A_LOOK))
        for queue in filter(partitions.sends, found):
            await _move(store, partitions, queue, partial(bring_forward, queue=queue, now_ms=now_ms, limit=MAX_ROWS))


async def make_all_due(store: Store, partitions: Partitions, queue: EndpointKey, now_ms: int) -> None:
    """Make due now whatever is due later. What an attempt puts off meanwhile may come along once."""
    await _move(store, partitions, queue, partial(make_due, queue=queue, now_ms=now_ms, limit=MAX_ROWS))


async def _move(store: Store, partitions: Partitions, queue: EndpointKey, job: Callable[[Transaction], int]) -> None:
    """Repeat a job until it has moved fewer rows than it may, or the endpoint is another process's."""
    moved: object = MAX_ROWS
    while moved == MAX_ROWS and partitions.sends(queue):
        one = Write(job, queue.organization, lease=partitions.lease(queue))
        (moved,) = await write(store, [one], partitions.drop)
