"""Upkeep: small periodic duties of the store.

Owns nothing. Each minute it frees the reader slots of processes that died, since a forgotten reader makes the file
grow for good. Never touches a record.
"""

from __future__ import annotations

import structlog
import trio

from svc.store.store import Store

log = structlog.get_logger()

INTERVAL_S = 60.0


async def run(store: Store) -> None:
    """Until cancelled."""
    while True:
        await trio.sleep(INTERVAL_S)
        freed = store.reader_check()
        if freed:
            log.info("freed reader slots of processes that have ended", slots=freed)
