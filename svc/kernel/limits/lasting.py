"""How often the log tells of a fault that lasts and is met at the rate of requests.

An operator needs one line when it begins, one a minute with how often it was met, and one when it is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

SAY_S = 60.0
"""Time between two lines about a fault or a state that lasts."""
QUIET_S = 10.0
"""A fault is over if it was not met for this long: one that comes and goes is one fault."""


class LastingFault:
    """A fault of one process, from when it is first met until it is over. `elapsed_s`: the monotonic clock."""

    def __init__(self, elapsed_s: Callable[[], float]) -> None:
        self._elapsed_s = elapsed_s
        self._times: Counter[str] = Counter()
        """How often it was met since it began, by what met it."""
        self._began_s = self._said_s = self._met_s = float("-inf")

    def met(self, doing: str, times: int = 1) -> dict[str, Any] | None:
        """Note that the fault stopped this work, `times` pieces of it. Return the fields that a log line has besides
        its cause, or `None` if no line is due: it has not just begun, and there was one within `SAY_S`.
        """
        self._met_s = now_s = self._elapsed_s()
        begins = not self._times
        self._times[doing] += times
        if begins:
            self._began_s = self._said_s = now_s
            return {"doing": doing}
        if now_s - self._said_s < SAY_S:
            return None
        self._said_s = now_s
        return {"seconds": round(now_s - self._began_s), "times": dict(self._times)}

    def over(self) -> dict[str, Any] | None:
        """Return the fields of the line that says that the fault is over, once, if it was not met for `QUIET_S`; else
        `None`. The caller knows that its cause is gone.
        """
        if not self._times or self._elapsed_s() - self._met_s < QUIET_S:
            return None
        lasted = {"seconds": round(self._met_s - self._began_s), "times": dict(self._times)}
        self._times.clear()
        return lasted
