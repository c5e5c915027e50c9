"""What follows from the events, made again from them: their index and the counters of the hours.

What may live here: the one function that an upgrade and `svc store rebuild-indexes` share. It is part of one
transaction, so that an interruption leaves the store as it was. In memory are the digests of some thousand events and
the counters of one organization.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import msgspec

from svc.domain.events.hour_counts import NOTHING, HourCounts
from svc.store import operations
from svc.store.schema.segments import Digests, joined, of_one
from svc.store.schema.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS, HOURS
from svc.store.snapshot import Transaction
from svc.store.steps import QUIET, Steps, counted
from svc.store.transactions.indexing import EVENTS_A_LARGE, step
from svc.store.views.event_index import FIRST, Scope, digests, scope_of, write_run
from svc.store.views.hours import HourKey, hour_key

INDEX = (EVENT_TAIL, EVENT_SEGMENTS)
_ALWAYS_MS = 2**64 - 1


class Rebuilt(msgspec.Struct, frozen=True):
    """How many rows there are after a rebuild."""

    events: int
    index_rows: int
    hours: int


def rebuild(transaction: Transaction, now_ms: int, steps: Steps = QUIET) -> Rebuilt:
    """As `rebuild_indexes`, for a transaction that is not recorded (`Store.change_log`): the operation log ends."""
    operations.drop(transaction, now_ms, "the indexes of the store were rebuilt")
    events = rebuild_indexes(transaction, steps)
    return Rebuilt(events, sum(transaction.count(table) for table in INDEX), transaction.count(HOURS))


def rebuild_indexes(transaction: Transaction, steps: Steps = QUIET) -> int:
    """Delete the index and every counter, unread, and make those that the events have; returns the number of events.
    `steps` gets how many were read. Raises `CorruptionError` for an event that cannot be read.
    """
    for table in (*INDEX, HOURS):
        transaction.clear(table)
    steps.stage("rebuilding the indexes", transaction.count(EVENTS))
    rebuilt = 0
    rows = counted(transaction.scan(EVENTS), steps)
    for number, of_organization in groupby(rows, key=lambda row: row[0][0]):
        hours: dict[HourKey, HourCounts] = {}
        indexes: dict[Scope, _Index] = {}
        for (_, request_id), event in of_organization:
            hour = hour_key(number, event)
            hours[hour] = hours.get(hour, NOTHING).plus(event)
            scope = scope_of(number, event)
            if scope not in indexes:
                indexes[scope] = _Index(transaction, scope)
            indexes[scope].add((event.occurred_at_ms, request_id), digests(event))
            rebuilt += 1
        for index in indexes.values():
            index.end()
        for hour, counts in hours.items():
            transaction.put(HOURS, hour, counts)
    return rebuilt


class _Index:
    """The index of one environment while its events come in the order of their ids, which is almost that of arrival:
    what is in order goes into large segments at once, and the rest goes into the tail.
    """

    def __init__(self, transaction: Transaction, scope: Scope) -> None:
        self._transaction, self._scope = transaction, scope
        self._newest = FIRST
        self._waiting: list[tuple[tuple[int, bytes], Digests]] = []

    def add(self, here: tuple[int, bytes], values: Digests) -> None:
        if here <= self._newest:
            self._transaction.put(EVENT_TAIL, (*self._scope, *here), values)
            return
        self._waiting.append((here, values))
        if len(self._waiting) == 2 * EVENTS_A_LARGE:
            self._waiting.sort(key=itemgetter(0))
            self._write()

    def _write(self) -> None:
        full, self._waiting = self._waiting[:EVENTS_A_LARGE], self._waiting[EVENTS_A_LARGE:]
        self._newest = full[-1][0]
        run = joined([of_one(*each) for each in full])
        write_run(self._transaction, self._scope, run, self._newest, large=True)

    def end(self) -> None:
        self._waiting.sort(key=itemgetter(0))
        while len(self._waiting) >= EVENTS_A_LARGE:
            self._write()
        for here, values in self._waiting:
            self._transaction.put(EVENT_TAIL, (*self._scope, *here), values)
        while step(self._transaction, self._scope, _ALWAYS_MS):
            pass
