"""The credit watch: says when credit of an organization is used up, or covers less than seven days (decisions 16.4).

Owns what it found at its last look. Each few minutes it reads how far the credit of each organization goes, some of
them at a time, and logs what has changed since; metrics show how many there are. It refuses nothing: that is the
identification's own transaction.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import structlog
import trio

from svc.domain.billing import CreditState
from svc.store.credit_views import ORGANIZATIONS_A_STEP, Outlook, outlooks
from svc.store.store import Store
from svc.world import World

log = structlog.get_logger()

INTERVAL_S = 300.0


class CreditWatch:
    """What is known of the credit of all organizations of a store."""

    def __init__(self, store: Store, world: World) -> None:
        self._store = store
        self._world = world
        self._states: dict[int, CreditState] = {}
        """Organization number -> its state at the last look, where that is not `enough`."""

    def statistics(self) -> Counter[CreditState]:
        """How many organizations were in each state at the last look; those with enough credit are not counted."""
        return Counter(self._states.values())

    async def run(self, interval_s: float = INTERVAL_S) -> None:
        """Look every `interval_s` seconds until cancelled."""
        while True:
            await self.look()
            await trio.sleep(interval_s)

    async def look(self) -> None:
        """Look at every organization once."""
        found: dict[int, CreditState] = {}
        after, now_ms = 0, self._world.now_ms()
        while True:
            some = await self._store.query(partial(outlooks, after=after, now_ms=now_ms))
            for each in some:
                if each.credit is not None and each.credit.state != "enough":
                    found[each.number] = each.credit.state
                    self._tell(each)
            if len(some) < ORGANIZATIONS_A_STEP:
                break
            after = some[-1].number
            await trio.lowlevel.checkpoint()
        self._states = found

    def _tell(self, outlook: Outlook) -> None:
        credit = outlook.credit
        if credit is None or self._states.get(outlook.number) == credit.state:
            return
        if credit.state == "used_up":
            log.warning("credit used up: production traffic is refused (402)", organization=outlook.organization_id)
        elif credit.days is not None:
            days = round(credit.days, 1)
            log.warning("credit covers less than 7 days", organization=outlook.organization_id, days=days)
