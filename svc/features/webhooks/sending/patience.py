"""Reads and writes that wait for the store, for actors that must not lose what they have in hand.

What may live here: what an actor does while the store is full or away. Requests of clients do not wait: they get a 503.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import trio

from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.group import LeaseEpoch, LeaseLostError, Write
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store, StoreFullError

T = TypeVar("T")

RETRY_S = 1.0
"""Between two tries while the store is full or away."""


async def read(store: Store, query: Callable[[Snapshot], T]) -> T:
    """Return the result of the query; wait for the store as long as it is unavailable."""
    while True:
        try:
            return await store.query(query)
        except UnavailableError as error:
            await wait_for_store(store, error)


async def wait_for_store(store: Store, error: UnavailableError) -> None:
    """Note why a read failed, and wait until the next try."""
    store.outage.stopped("webhooks", error)
    await trio.sleep(RETRY_S)


async def write(
    store: Store, jobs: Sequence[Write[T]], drop: Callable[[Iterable[LeaseEpoch]], None]
) -> list[T | LeaseLostError | CorruptionError]:
    """Commit the jobs and return their outcomes; wait as long as the store is full or unavailable. The outcome of a job
    whose lease is lost is `LeaseLostError`, and `drop` gets the lost leases; that of a job that met a corrupt row is
    `CorruptionError`. Raises any other exception of a job.
    """
    written: dict[int, T | LeaseLostError | CorruptionError] = {}
    while left := {index: job for index, job in enumerate(jobs) if index not in written}:
        outcomes: Sequence[T | Exception]
        try:
            outcomes = await store.write(list(left.values()))
        except (StoreFullError, UnavailableError) as error:
            outcomes = [error] * len(left)
        rejected: StoreFullError | UnavailableError | None = None
        for (index, job), outcome in zip(left.items(), outcomes, strict=True):
            if isinstance(outcome, LeaseLostError):
                drop(outcome.lost)
                if job.lease in outcome.lost:
                    written[index] = outcome
            elif isinstance(outcome, StoreFullError | UnavailableError):
                rejected = outcome
            elif isinstance(outcome, CorruptionError):
                written[index] = outcome
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                written[index] = outcome
        if rejected is not None:
            store.outage.stopped("webhooks", rejected)
            await trio.sleep(RETRY_S)
    return [written[index] for index in range(len(jobs))]
