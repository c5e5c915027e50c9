"""The credit watch: says when credit of an organization is used up, or covers less than seven days (decisions 16.4).

Owns what it found at its last look. Each few minutes it reads how far the credit of each organization goes, one
after the other, and logs what has changed since; metrics show how many there are. It refuses nothing: that is the
identification's own transaction.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import structlog
import trio

from svc.features.billing.credit_queries import outlook
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store
from svc.kernel.tenants.billing import Credit, CreditState
from svc.kernel.tenants.queries import organizations
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World

log = structlog.get_logger()

INTERVAL_S = 300.0


class CreditWatch:
    """The state of the credit of all organizations of a store."""

    def __init__(self, store: Store, world: World, corrupt: CorruptRows) -> None:
        self._store = store
        self._world = world
        self._corrupt = corrupt
        self._states: dict[int, CreditState] = {}
        """Organization number -> its state at the last look, where that is not `enough`."""

    def statistics(self) -> Counter[CreditState]:
        """Return how many organizations were in each state at the last look. Those with enough credit are left out."""
        return Counter(self._states.values())

    async def run(self, interval_s: float = INTERVAL_S) -> None:
        """Check all organizations every `interval_s` seconds until cancelled."""
        while True:
            await self.look()
            await trio.sleep(interval_s)

    async def look(self) -> None:
        """Check every organization once; one with a corrupt row is noted and checked again next time."""
        found: dict[int, CreditState] = {}
        now_ms = self._world.now_ms()
        for number in await self._store.query(organizations):
            try:
                seen = await self._store.query(partial(outlook, number=number, now_ms=now_ms))
            except CorruptionError as error:
                self._corrupt.note("credit", number, error)
                continue
            if seen.credit is not None and seen.credit.state != "enough":
                found[number] = seen.credit.state
                self._tell(number, seen.organization_id, seen.credit)
            await trio.lowlevel.checkpoint()
        self._states = found

    def _tell(self, number: int, organization_id: str, credit: Credit) -> None:
        if self._states.get(number) == credit.state:
            return
        if credit.state == "used_up":
            log.warning("credit used up: production traffic is refused (402)", organization=organization_id)
        elif credit.days is not None:
            log.warning("credit covers less than 7 days", organization=organization_id, days=round(credit.days, 1))
