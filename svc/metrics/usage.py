"""What the store says of all its organizations at a scrape: how their webhooks stand, and who holds most.

Some rows are read at a time, with checkpoints in between, so that a scrape delays nobody.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from heapq import nlargest
from typing import NamedTuple

import trio

from svc.domain.webhooks.records import EndpointKey, EndpointStatus
from svc.store.store import Store
from svc.store.transactions.holdings import holdings
from svc.store.views.lookups import organization
from svc.store.views.webhooks import endpoint_overviews

ENDPOINTS_A_STEP = 64
"""Endpoints looked at without a pause: about half a millisecond."""
ORGANIZATIONS_A_STEP = 256
ORGANIZATIONS_SHOWN = 10


class UsageCounts(NamedTuple):
    """Webhook endpoints by status, and how far behind each status is."""

    endpoints: Counter[EndpointStatus]
    oldest_due_ms: dict[EndpointStatus, int]
    """By what they are sent to as; absent where nothing is due."""


async def count_usage(store: Store, now_ms: int) -> UsageCounts:
    """Webhook endpoints by status, and when the oldest due delivery of each status fell due. All times are Unix
    milliseconds. Reads some endpoints at a time, each time in a snapshot of its own, with checkpoints in between.
    """
    usage, after = UsageCounts(Counter(), {}), EndpointKey(0, 0)
    while True:
        found = await store.query(partial(endpoint_overviews, after=after, limit=ENDPOINTS_A_STEP, now_ms=now_ms))
        for endpoint in found:
            usage.endpoints[endpoint.status] += 1
            if endpoint.due_ms is not None:
                oldest = usage.oldest_due_ms.get(endpoint.sent_to_as, endpoint.due_ms)
                usage.oldest_due_ms[endpoint.sent_to_as] = min(oldest, endpoint.due_ms)
        if len(found) < ENDPOINTS_A_STEP:
            return usage
        after = found[-1].queue
        await trio.lowlevel.checkpoint()


async def largest_holdings(store: Store) -> dict[str, int]:
    """Bytes held, by organization id, of the `ORGANIZATIONS_SHOWN` that hold most. Reads some organizations at a time,
    with checkpoints in between.
    """
    largest: list[tuple[int, int]] = []
    after = 0
    while True:
        found = await store.query(partial(holdings, after=after, count=ORGANIZATIONS_A_STEP))
        held = [(holding.held_bytes, number) for number, holding in found]
        largest = nlargest(ORGANIZATIONS_SHOWN, [*largest, *held])
        if len(found) < ORGANIZATIONS_A_STEP:
            break
        after = found[-1][0]
        await trio.lowlevel.checkpoint()
    return await store.query(
        lambda snapshot: {organization(snapshot, number).id: held_bytes for held_bytes, number in largest}
    )
