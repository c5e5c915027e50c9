"""Jobs as a store takes them, for tests that say what stands beside them in lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from svc.features.erasure.visitors import purge_events
from svc.identify.tables import EVENTS
from svc.kernel.store.group import Job, LeaseEpoch, Write
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.snapshot import Transaction
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


def purge_event(transaction: Transaction, number: int, request_id: bytes) -> None:
    """Delete an event, unless it is deleted already."""
    event = transaction.get(EVENTS, number, request_id)
    purge_events(transaction, number, [] if event is None else [(request_id, event)])
