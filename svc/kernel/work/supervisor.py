"""Supervision of peripheral actors: those whose failure must not stop identification.

The actors of the pipeline are not supervised: when one of them fails the process ends and the machine's own supervisor
starts it again, because the disk has the truth. A peripheral actor is restarted a few times, then its failure counts as
the process's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import cast

import structlog
import trio

from svc.kernel.limits.lasting import SAY_S
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.work.store_watch import CorruptRows

log = structlog.get_logger()

RESTARTS = 3
WITHIN_S = 60.0
PAUSE_S = 1.0
"""Time between two attempts while the store is not available."""
CORRUPT_S = 15.0
"""Pause after a corrupt row that an actor could not skip."""


async def supervise(
    name: str,
    run: Callable[[], Awaitable[None]],
    restarts: Counter[str] | None = None,
    corrupt: CorruptRows | None = None,
) -> None:
    """Run an actor to its end; restart it after a failure, counted in `restarts`, three times a minute. The fourth is
    raised. Not counted as failures: while the store is unavailable it is restarted every `PAUSE_S`, and after a corrupt
    row, which would fail every new process too, after `CORRUPT_S`.
    """
    failures: list[float] = []
    said_s = float("-inf")
    while True:
        try:
            await run()
        except Exception as error:
            if is_unavailable(error):
                if (now_s := trio.current_time()) - said_s >= SAY_S:
                    said_s = now_s
                    log.warning("actor waits for the store", actor=name, reason=str(_first(error)))
                await trio.sleep(PAUSE_S)
                continue
            if (of_row := corruption_in(error)) is not None:
                (corrupt or CorruptRows()).note(name, None, of_row)
                await trio.sleep(CORRUPT_S)
                continue
            now = trio.current_time()
            failures = [at for at in failures if now - at < WITHIN_S] + [now]
            if len(failures) > RESTARTS:
                raise
            log.exception("actor crashed, restarting", actor=name, failures=len(failures))
            if restarts is not None:
                restarts[name] += 1
        else:
            return


def corruption_in(error: BaseException) -> CorruptionError | None:
    """Return the `CorruptionError` if it is the only cause of an exception; `None` if there is another cause."""
    if isinstance(error, BaseExceptionGroup):
        of_rows, others = cast("BaseExceptionGroup[BaseException]", error).split(CorruptionError)
        first = None if of_rows is None or others is not None else _first(of_rows)
        return first if isinstance(first, CorruptionError) else None
    return error if isinstance(error, CorruptionError) else None


def is_unavailable(error: BaseException) -> bool:
    """Return whether the only cause of an exception is that the store is unavailable."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).split(UnavailableError)[1] is None
    return isinstance(error, UnavailableError)


def _first(error: BaseException) -> BaseException:
    """Return the first error of a group, as a nursery raises it: the group's own text says nothing."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
