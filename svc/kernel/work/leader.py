"""The leader: of all processes over one store, the one that runs what must run once.

A process that dies announces nothing: the others try to acquire the leadership until it is free. The lock
of a kernel (`flock`) is lost with the process alone; a lease in a database may be lost while the process runs, and then
what it ran as the leader is cancelled, and it stands by again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import structlog
import trio

log = structlog.get_logger()

LEADER: Final = "keeper"
"""In names of the leader's lease, channel, socket and lock file, as in nodes of earlier releases beside this one."""
INTERVAL_S = 0.25
"""Time between two attempts to acquire the leadership: after a death there is no leader for at most this long."""


class Leadership(NamedTuple):
    """The right to be the leader, which one process has at a time."""

    acquire: Callable[[], bool]
    """Acquire it if no process has it; return whether this process has it now. Never waits."""
    lost: Callable[[], Awaitable[None]] = trio.sleep_forever
    """Return when this process no longer has it."""


ONLY_PROCESS = Leadership(lambda: True)
"""For a process that has no others to share the leadership with."""


async def run(
    leadership: Leadership, stand_by: Callable[[], Awaitable[None]], keep: Callable[[], Awaitable[None]]
) -> None:
    """Run `keep` while this process leads, else `stand_by` and an attempt every `INTERVAL_S`, until cancelled."""
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
