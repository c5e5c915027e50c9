"""Supervision of peripheral actors: those whose failure must not stop identification.

The actors of the pipeline are not supervised: when one of them fails the process ends and the machine's own supervisor
starts it again, because the disk has the truth. A peripheral actor is restarted a few times, then its failure counts as
the process's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import structlog
import trio

log = structlog.get_logger()

RESTARTS = 3
WITHIN_S = 60.0


async def supervise(name: str, run: Callable[[], Awaitable[None]], restarts: Counter[str] | None = None) -> None:
    """Run an actor to its end, restarting it after a failure at most three times a minute; the fourth failure is
    raised.

    `restarts` counts the restarts by `name`.
    """
    failures: list[float] = []
    while True:
        try:
            await run()
        except Exception:
            now = trio.current_time()
            failures = [at for at in failures if now - at < WITHIN_S] + [now]
            if len(failures) > RESTARTS:
                raise
            log.exception("actor crashed, restarting", actor=name, failures=len(failures))
            if restarts is not None:
                restarts[name] += 1
        else:
            return
