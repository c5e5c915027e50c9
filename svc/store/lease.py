"""Leases as jobs carry them: what a job writes is refused once another process has the lease under which it was made.

A store that one machine serves has no leases: there a lock of the kernel says who may.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from svc.store.engine import UnavailableError


class LeaseEpoch(NamedTuple):
    """A lease as it was held: the next holder has another epoch."""

    name: str
    epoch: int


class LeaseLostError(UnavailableError):
    """Another process has the lease. Nothing was written."""

    def __init__(self, lost: Iterable[LeaseEpoch]) -> None:
        self.lost = frozenset(lost)
        super().__init__(f"another node has the lease {', '.join(sorted(lease.name for lease in self.lost))}")
