"""Jobs as a store takes them, for tests that say what stands beside them in lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from svc.kernel.store.group import Job, LeaseEpoch, Write
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.tenants.tables import BALANCES


def writes(
    jobs: Sequence[Job[Any]],
    organizations: Sequence[int] = (),
    hints: Sequence[Any] = (),
    leases: Sequence[LeaseEpoch | None] = (),
) -> list[Write[Any]]:
    """For each job what stands at its place in the other lists; a list may be empty."""
    return [Write(*each) for each in zip_longest(jobs, organizations, hints, leases)]


def give_balances(engine: PostgresqlEngine, most: int) -> None:
    """A balance of 0 for the organizations 1 to `most`, which have nothing else."""
    keys = map(BALANCES.key.pack, range(1, most + 1))
    rows = [(key, BALANCES.encode(key, 0)) for key in keys]
    engine.write(lambda writer: writer.put_many(BALANCES.name, rows))
