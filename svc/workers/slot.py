"""A worker's place among the processes that serve one data directory."""

from __future__ import annotations

from typing import NamedTuple


class WorkerSlot(NamedTuple):
    """Which worker of how many this process is."""

    index: int = 0  # pyright: ignore[reportIncompatibleMethodOverride]  nobody looks for a slot in a slot
    workers: int = 1
