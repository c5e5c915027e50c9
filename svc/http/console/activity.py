"""How often visitors came, and when last, by their events: the record of a visitor is written at few of its visits.

What may live here: counting by the index, some of it at a time.
"""

from __future__ import annotations

from functools import partial

import trio

from svc.domain.events.listing import Filters, Listing
from svc.domain.matching import Visitor
from svc.domain.model import ENVIRONMENTS, Environment
from svc.domain.records import RETENTION_MS
from svc.http.api.events import KEYS_AT_ONCE
from svc.http.route import Call, Services
from svc.store.views import visitors as visitor_views
from svc.store.views.visitors import Activity


async def activity_of(
    services: Services, call: Call, number: int, visitor_id: str, record: Visitor | None
) -> dict[Environment, Activity]:
    """The events of a visitor in the last 30 days, by environment. `record`: what the store has of it; `None` for one
    that cannot be recognized.
    """
    since_ms = visitor_views.counted_from_ms(record, call.at_ms - RETENTION_MS)
    listing = Listing(since_ms, call.at_ms + 1, Filters(visitor_id=visitor_id))
    return {environment: await _counted(services, number, environment, listing) for environment in ENVIRONMENTS}


async def _counted(services: Services, number: int, environment: Environment, listing: Listing) -> Activity:
    """`KEYS_AT_ONCE` are looked at between two checkpoints; what is beyond the first takes turns with other long
    reads.
    """
    read = partial(visitor_views.activity, number=number, environment=environment, most_keys=KEYS_AT_ONCE)
    found, after = await services.store.query(partial(read, listing=listing))
    if after is None:
        return found
    async with services.limits.long_reads.in_turn(number):
        while after is not None:
            await trio.lowlevel.checkpoint()
            older, after = await services.store.query(partial(read, listing=listing._replace(after=after)))
            found = found.plus(older)
    return found
