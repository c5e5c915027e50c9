"""The keeper: of all workers over one store, the one that runs what must run once.

Owns the keeping, from when it could be taken until the process ends. Tells nobody; another worker takes over when this
one is dead, because the lock behind it is the kernel's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import trio

log = structlog.get_logger()

INTERVAL_S = 0.25
"""Between two attempts to take the keeping: for so long at most nobody has it after a death."""


def only_worker() -> bool:
    """Take the keeping where there is nobody to share it with."""
    return True


async def run(
    acquire: Callable[[], bool], stand_by: Callable[[], Awaitable[None]], keep: Callable[[], Awaitable[None]]
) -> None:
    """Run `stand_by` until `acquire` returns true, tried now and every `INTERVAL_S`, and `keep` from then on."""
    if not acquire():
        async with trio.open_nursery() as waiting:
            waiting.start_soon(stand_by)
            while not acquire():  # noqa: ASYNC110  the kernel tells nobody that a lock is free
                await trio.sleep(INTERVAL_S)
            waiting.cancel_scope.cancel()
        log.info("keeper from now on")
    await keep()
