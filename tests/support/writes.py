"""Jobs as a store takes them, for tests that say what stands beside them in lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from svc.store.group import Job, LeaseEpoch, Write


def writes(
    jobs: Sequence[Job[Any]],
    organizations: Sequence[int] = (),
    hints: Sequence[Any] = (),
    leases: Sequence[LeaseEpoch | None] = (),
) -> list[Write[Any]]:
    """For each job what stands at its place in the other lists; a list may be empty."""
    return [Write(*each) for each in zip_longest(jobs, organizations, hints, leases)]
