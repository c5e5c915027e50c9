"""Logs the stack of an event loop that hangs, before the process is replaced and the stack is lost.

A thread checks every second, since nothing on the loop can. It needs the GIL: a call into C that holds it is not
logged, and the process is replaced all the same.
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
"""A loop that has not run for so long hangs."""


class HangWatch:
    """Watches the event loop of the thread that makes it."""

    def __init__(self, world: World, hang_s: float = HANG_S, look_s: float = LOOK_S) -> None:
        self._world, self._hang_s, self._look_s = world, hang_s, look_s
        self._beaten_at_s = world.elapsed_s()
        self._loop = threading.get_ident()
        self._is_over = threading.Event()

    async def run(self) -> None:
        """Run on the loop until cancelled; each hang is logged once, with the stack of the loop."""
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
