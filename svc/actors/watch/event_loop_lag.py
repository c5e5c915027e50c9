"""Event-loop lag: how late the loop runs a task that is due.

Owns the count of how late it woke. Hears and says nothing. While it sleeps the loop serves everybody else; what makes
it wake late has held everybody up.
"""

from __future__ import annotations

import trio

from svc.domain.histogram import WAIT_S, Histogram, HistogramStatistics

INTERVAL_S = 0.1


class EventLoopLag:
    """Measures every `INTERVAL_S` how late the event loop wakes a task that is due."""

    def __init__(self) -> None:
        self._lag_s = Histogram(WAIT_S)

    async def run(self) -> None:
        """Measure every `INTERVAL_S` until cancelled."""
        while True:
            due = trio.current_time() + INTERVAL_S
            await trio.sleep_until(due)
            self._lag_s.observe(trio.current_time() - due)

    def statistics(self) -> HistogramStatistics:
        """Histogram of the lag since the start, in seconds."""
        return self._lag_s.statistics()
