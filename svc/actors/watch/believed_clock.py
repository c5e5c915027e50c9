"""Whether the wall clock is believed, as the actors that delete and block by it ask (decisions 17.3)."""

from __future__ import annotations

from svc.domain.clock_watch import ClockWatch
from svc.store.store import Store
from svc.store.transactions.retention import clock_confirmation
from svc.world import World


async def is_ahead(store: Store, world: World, watch: ClockWatch) -> bool:
    """Whether the clock has jumped ahead, and no operator has confirmed it since."""
    confirmation = await store.query(clock_confirmation)
    return watch.is_ahead(world.now_ms(), world.elapsed_s(), confirmation)
