"""Counts of events that an earlier version stored without counting them (decisions 11.3).

What may live here: how far the counting of one organization's old events has come. Pure.
"""

from __future__ import annotations

import msgspec

from svc.kernel.values.ids import made_at_ms


class Recount(msgspec.Struct, frozen=True, array_like=True):
    """How far the old events of an organization are counted, newest first. Append fields with defaults, never move
    them.
    """

    counted_from: bytes
    """The lowest id (16 bytes) that is counted: velocity rows count events with this id and above, and none below."""
    events: int = 0
    """Old events that were counted."""
    is_complete: bool = False
    """Whether all old events of the last 30 days are counted."""

    @property
    def counted_since_ms(self) -> int | None:
        """Unix ms since which all events are counted; `None` once the counts are complete."""
        return None if self.is_complete else made_at_ms(self.counted_from)
