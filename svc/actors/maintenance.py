"""Maintenance: small periodic work on the store.

Owns nothing. Each minute it frees the reader slots of processes that died, since a forgotten reader makes the file
grow for good, and says so when the follower of the operation log is behind or was cut off. Every process clears its
own flag of a full store: one in which a write found no space is believed to have some again. Never touches a record.
"""

from __future__ import annotations

import structlog
import trio

from svc.domain.timestamps import timestamp
from svc.store import operations
from svc.store.snapshot import Snapshot
from svc.store.store import Store

log = structlog.get_logger()

INTERVAL_S = 60.0
BEHIND_MS = 60_000
"""Commits that nobody has copied for so long: the follower is not running, or cannot write."""


async def run(store: Store) -> None:
    """Every `INTERVAL_S` until cancelled: clear stale readers, log a follower that lags."""
    while True:
        await trio.sleep(INTERVAL_S)
        freed = store.reader_check()
        if freed:
            log.info("cleared stale readers", slots=freed)
        await _log_follower(store)


async def clear_full_flag(store: Store) -> None:
    """Every `INTERVAL_S` until cancelled: let writes try a full store again."""
    while True:
        await trio.sleep(INTERVAL_S)
        store.clear_full_flag()


async def _log_follower(store: Store) -> None:
    following, behind_ms = await store.query(lambda snapshot: (operations.follower(snapshot), _behind_ms(snapshot)))
    if following is None:
        return
    if following.lost_at_ms is not None:
        since, because = timestamp(following.lost_at_ms), following.lost_because
        log.error("nothing is being backed up: the follower was cut off", since=since, because=because)
    elif behind_ms >= BEHIND_MS:
        folder = following.destination
        log.warning("the backup is behind: is its follower running?", seconds=behind_ms // 1000, folder=folder)


def _behind_ms(snapshot: Snapshot) -> int:
    return 0 if operations.follower(snapshot) is None else operations.lag_ms(snapshot)
