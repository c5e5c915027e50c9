"""Says where the event loop stands when it does not run: whoever replaces the process cannot ask it any more.

A thread of its own looks every second, since nothing on the loop can. It needs Python's lock for that, as every thread
does: a call into C that keeps it is not seen here, and the process is replaced all the same.
"""

from __future__ import annotations

import sys
import threading
import traceback

import structlog
import trio

from svc.world import World

log = structlog.get_logger()

LOOK_S = 1.0
HANG_S = 10.0
"""A loop that does not run for so long hangs."""


class HangWatch:
    """The watch over the loop of the thread that makes it."""

    def __init__(self, world: World, hang_s: float = HANG_S, look_s: float = LOOK_S) -> None:
        self._world, self._hang_s, self._look_s = world, hang_s, look_s
        self._beaten_at_s = world.elapsed_s()
        self._loop = threading.get_ident()
        self._is_over = threading.Event()

    async def run(self) -> None:
        """Run on the loop until cancelled; say once of each hang where the loop stands."""
        thread = threading.Thread(target=self._look, name="hang watch", daemon=True)
        thread.start()
        try:
            while True:
                self._beaten_at_s = self._world.elapsed_s()
                await trio.sleep(self._look_s)
        finally:
            self._is_over.set()
            thread.join()

    def _look(self) -> None:
        said = False
        while not self._is_over.wait(self._look_s):
            silent_s = self._world.elapsed_s() - self._beaten_at_s
            hangs = silent_s > self._hang_s
            if hangs and not said:
                log.critical("the event loop hangs", seconds=round(silent_s, 1), stack=self._stack())
            said = hangs

    def _stack(self) -> list[str]:
        """Innermost first: `file:line function`."""
        frame = sys._current_frames().get(self._loop)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  documented
        return [f"{at.filename}:{at.lineno} {at.name}" for at in reversed(traceback.extract_stack(frame))]
