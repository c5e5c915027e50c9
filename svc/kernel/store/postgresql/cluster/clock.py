"""How far the clock of this machine is from the database's, which leases and heartbeats go by.

Events and webhooks have the time of their node. So a node looks with every heartbeat, and says where it is far off.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import structlog

from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import integer
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire

log = structlog.get_logger()

FAR_S = 10.0
"""An offset that no network delay explains. Receivers refuse signatures that are 300 seconds off."""
READ_CLOCK = Statement(b"select (extract(epoch from clock_timestamp()) * 1000)::int8")
NEXT_STEP = "synchronize the clocks of this machine and the database's (NTP): webhooks are signed with this one"


class ClockOffset:
    """The offset of one node's clock. `ask` and `learn` belong to its heartbeat."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._sent_ms = 0
        self.offset_s = 0.0
        """The offset at the last heartbeat; see `offset_s`."""

    def ask(self) -> Statement:
        """Return the statement that reads the database's clock, and note the time: it must be sent at once."""
        self._sent_ms = self._now_ms()
        return READ_CLOCK

    def learn(self, answer: Result) -> None:
        """Set `offset_s` from the result of `ask`. Log once if the clock turns out to be far off, and once when it is
        right again.
        """
        was_far, self.offset_s = self.is_far, offset_s(self._sent_ms, integer(answer.rows[0][0]), self._now_ms())
        if self.is_far and not was_far:
            log.warning("the clock is far from the database's", offset_s=self.offset_s, next_step=NEXT_STEP)
        elif was_far and not self.is_far:
            log.info("the clock is the database's again", offset_s=self.offset_s)

    @property
    def is_far(self) -> bool:
        """Whether the clock is certainly wrong."""
        return abs(self.offset_s) >= FAR_S


def offset_s(sent_ms: int, database_ms: int, answered_ms: int) -> float:
    """Return the seconds by which a clock is at least ahead of the database's (negative = behind), from the times at
    which it was asked, read by the database, and answered (Unix ms). 0 if the clock may be right, since the database
    read its clock at an unknown time in between.
    """
    return (max(0, sent_ms - database_ms) + min(0, answered_ms - database_ms)) / 1000


def offset_now_s(url: StoreUrl, now_ms: Callable[[], int]) -> float:
    """Return the seconds by which the clock of this machine is ahead of the database's, as `offset_s` does, with one
    query on its own connection. Blocks the thread. Raises `EngineError` if the database does not answer.
    """
    with closing(Wire.connect_now(url)) as wire:
        sent_ms = now_ms()
        (answer,) = wire.exchange_now([READ_CLOCK])
        return offset_s(sent_ms, integer(answer.rows[0][0]), now_ms())
