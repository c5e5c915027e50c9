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

from svc.actors.watch.corruption import CorruptRows
from svc.store.engine import UnavailableError
from svc.store.schema.codec import CorruptionError

log = structlog.get_logger()

RESTARTS = 3
WITHIN_S = 60.0
PAUSE_S = 1.0
"""Between two attempts while the store is not available."""
CORRUPT_S = 15.0
"""After a corrupt row that an actor could not pass over."""


async def supervise(
    name: str,
    run: Callable[[], Awaitable[None]],
    restarts: Counter[str] | None = None,
    corrupt: CorruptRows | None = None,
) -> None:
    """Run an actor to its end, restarting it after a failure at most three times a minute; the fourth failure is
    raised. While the store is not available it is restarted every `PAUSE_S` seconds, and that is not a failure of its
    own. Nor is a corrupt row, which would end every process that is started: after one it rests for `CORRUPT_S`.

    `restarts` counts the restarts by `name`.
    """
    failures: list[float] = []
    while True:
        try:
            await run()
        except Exception as error:
            if is_unavailable(error):
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
    """Return the corrupt row that is the only cause; `None` if there is another."""
    if isinstance(error, BaseExceptionGroup):
        of_rows, others = cast("BaseExceptionGroup[BaseException]", error).split(CorruptionError)
        first = None if of_rows is None or others is not None else _first(of_rows)
        return first if isinstance(first, CorruptionError) else None
    return error if isinstance(error, CorruptionError) else None


def is_unavailable(error: BaseException) -> bool:
    """Return whether the only cause is that the store is not available."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).split(UnavailableError)[1] is None
    return isinstance(error, UnavailableError)


def _first(error: BaseException) -> BaseException:
    """Of a group, in which a nursery raises what its tasks do, the first: its own text says nothing."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
