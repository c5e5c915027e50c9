"""The leader: of all processes over one store, the one that runs what must run once.

Owns the keeping while this process has it. Tells nobody: another process finds the keeping free and takes it. The lock
of a kernel (`flock`) is lost with the process alone; a lease in a database may be lost while the process runs, and then
what it kept is cancelled, and it stands by again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog
import trio

log = structlog.get_logger()

INTERVAL_S = 0.25
"""Between two attempts to take the leadership: for so long at most nobody has it after a death."""


class Leadership(NamedTuple):
    """The right to be the leader, which one process has at a time."""

    acquire: Callable[[], bool]
    """Take it where nobody has it; whether this process has it now. Never waits."""
    lost: Callable[[], Awaitable[None]] = trio.sleep_forever
    """Returns when this process no longer has it."""


ONLY_PROCESS = Leadership(lambda: True)
"""Where there is nobody to share it with."""


async def run(
    leadership: Leadership, stand_by: Callable[[], Awaitable[None]], keep: Callable[[], Awaitable[None]]
) -> None:
    """Until cancelled: run `keep` while this process has the leadership, `stand_by` while it has not. It tries to take
    it now and every `INTERVAL_S`.
    """
    while True:
        if not leadership.acquire():
            async with trio.open_nursery() as waiting:
                waiting.start_soon(stand_by)
                while not leadership.acquire():  # noqa: ASYNC110  nobody says that it is free
                    await trio.sleep(INTERVAL_S)
                waiting.cancel_scope.cancel()
            log.info("leader from now on")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep)
            await leadership.lost()
            nursery.cancel_scope.cancel()
        log.warning("no longer the leader")
