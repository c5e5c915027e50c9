"""What follows from the events, made again from them: their index rows and the counters of the hours.

What may live here: the one function that an upgrade and `svc store rebuild-indexes` share. It is part of one
transaction, so that an interruption leaves the store as it was. In memory are the rows of `EVENTS_AT_ONCE` events and
the counters of one organization.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, islice
from operator import itemgetter

import msgspec

from svc.domain.counting import NOTHING, HourCounts, hour_of
from svc.domain.model import ENVIRONMENTS
from svc.domain.records import Event
from svc.store import operations
from svc.store.events import INDEXES, index_keys
from svc.store.snapshot import Transaction
from svc.store.steps import QUIET, Steps
from svc.store.tables import EVENTS, HOURS

EVENTS_AT_ONCE = 5000
"""Their rows are written in the order of their keys: neighbours lie on one page."""


class Rebuilt(msgspec.Struct, frozen=True):
    """How many rows there are after a rebuild."""

    events: int
    index_rows: int
    hours: int


def rebuild(transaction: Transaction, now_ms: int, steps: Steps = QUIET) -> Rebuilt:
    """As `rebuild_indexes`, for a transaction that is not recorded (`Store.change_log`): the operation log ends."""
    operations.drop(transaction, now_ms, "the indexes of the store were rebuilt")
    events = rebuild_indexes(transaction, steps)
    return Rebuilt(events, sum(transaction.count(table) for table in INDEXES), transaction.count(HOURS))


def rebuild_indexes(transaction: Transaction, steps: Steps = QUIET) -> int:
    """Delete every index row and every counter, unread, and write those that the events have; returns the number of
    events. `steps` gets how many were read. Raises `CorruptionError` for an event that cannot be read.
    """
    for table in (*INDEXES, HOURS):
        transaction.clear(table)
    steps.stage("rebuilding the indexes", transaction.count(EVENTS))
    rebuilt = 0
    rows = ((number, request_id, event) for (number, request_id), event in transaction.scan(EVENTS))
    for number, of_organization in groupby(rows, key=itemgetter(0)):
        hours: dict[tuple[int, int], HourCounts] = {}
        while events := list(islice(of_organization, EVENTS_AT_ONCE)):
            _write_rows(transaction, events)
            for _, _, event in events:
                hour = (ENVIRONMENTS.index(event.environment), hour_of(event))
                hours[hour] = hours.get(hour, NOTHING).plus(event)
            rebuilt += len(events)
            steps.step(len(events))
        for hour, counts in hours.items():
            transaction.put(HOURS, (number, *hour), counts)
    return rebuilt


def _write_rows(transaction: Transaction, events: Iterable[tuple[int, bytes, Event]]) -> None:
    rows = [(table.name, key, table) for given in events for table, key in index_keys(*given)]
    for _, key, table in sorted(rows, key=itemgetter(0, 1)):
        transaction.put(table, key, b"")
