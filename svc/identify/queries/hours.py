"""The counters of events by hour: read, and added to with each event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice

from svc.identify.events.hour_counts import NOTHING, HourCounts
from svc.identify.records import Event
from svc.identify.tables import HOURS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import HOUR_MS

HourKey = tuple[int, int, int]
"""Organization, index of the environment, hour since 1970."""


def hours(
    snapshot: Snapshot, number: int, environment: Environment, from_ms: int, to_ms: int
) -> list[tuple[int, HourCounts]]:
    """Return (start of the hour in Unix ms, its counts) of the hours from `from_ms` to before `to_ms`, oldest first.
    Leave out hours without events. At most one row is read for each hour.
    """
    return list(_from_hour(snapshot, number, environment, max(from_ms, 0) // HOUR_MS, to_ms))


def hours_behind(
    snapshot: Snapshot, behind_ms: int, count: int, *, number: int, environment: Environment, to_ms: int
) -> Iterator[tuple[int, HourCounts]]:
    """Yield up to `count` of the same hours, of those that begin after `behind_ms`, which is not negative."""
    return islice(_from_hour(snapshot, number, environment, behind_ms // HOUR_MS + 1, to_ms), count)


def _from_hour(
    snapshot: Snapshot, number: int, environment: Environment, first: int, to_ms: int
) -> Iterator[tuple[int, HourCounts]]:
    place, beyond = ENVIRONMENTS.index(environment), -(-to_ms // HOUR_MS)
    for (_, _, hour), counts in snapshot.scan(HOURS, number, place, start=(number, place, first)):
        if hour >= beyond:
            return
        yield hour * HOUR_MS, counts


def hour_key(number: int, event: Event) -> HourKey:
    """Return the key of the row whose counters include an event."""
    return number, ENVIRONMENTS.index(event.environment), event.occurred_at_ms // HOUR_MS


def count(transaction: Transaction, number: int, event: Event) -> None:
    """Add a new event to the counters of its hour."""
    transaction.update(HOURS, hour_key(number, event), lambda counts: (counts or NOTHING).plus(event))


def uncount(transaction: Transaction, number: int, events: Iterable[Event]) -> None:
    """Subtract events that are being deleted from the counters of their hours; delete a row with its last event."""
    by_hour: defaultdict[HourKey, list[Event]] = defaultdict(list)
    for event in events:
        by_hour[hour_key(number, event)].append(event)
    for key, own in by_hour.items():
        counts = transaction.get(HOURS, *key)
        if counts is None:
            continue  # the store is corrupt, which must not prevent an erasure; `svc check` reports it
        if counts.identifications <= len(own):
            transaction.delete(HOURS, *key)
        else:
            transaction.put(HOURS, key, reduce(HourCounts.minus, own, counts))
