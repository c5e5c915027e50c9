"""The part of an identification's transaction that remembers visitors, addresses and reports (`domain.history`).

Bounds, whatever the size of the store and however busy the visitor or the address: at most 5 rows are read (the
visitor's day and, when that is new, the day before; the address's day; the report's period and the one before) and 3
are written. An address that is fully sampled, and a report that was known, are read and not written.
"""

from __future__ import annotations

from typing import Any, TypeVar

from svc.domain.history import (
    DAY_S,
    REPLAY_MEMORY_S,
    AddressHistory,
    Sending,
    Trace,
    VisitorHistory,
    is_crossroads,
    is_remembered,
    met,
    rare_device,
    replay,
    velocity,
    visited,
    with_crossroads,
)
from svc.domain.identification import Assessment
from svc.domain.matching import Statistics
from svc.domain.model import Observation
from svc.store.snapshot import Transaction
from svc.store.tables import ADDRESS_HISTORY, SENDINGS, VISITOR_HISTORY, Table

V = TypeVar("V")


def remember(
    transaction: Transaction, assessment: Assessment, statistics: Statistics, visitor_number: int | None
) -> tuple[Observation, ...]:
    """Write the identification into the histories it belongs to; the observations, with what those show.

    `visitor_number=None` is a visitor who cannot be known again: its address and its report are remembered all the
    same.
    """
    organization = assessment.submission.organization
    seen, features = assessment.trace, assessment.features
    observations = list(assessment.observations)
    if visitor_number is not None:
        observations += velocity(_visitor(transaction, organization, visitor_number, seen))
        rare = rare_device(statistics, features)
        if rare is not None:
            observations.append(rare)
    replayed = _replayed(transaction, organization, seen)
    if replayed is not None:
        observations.append(replayed)
    # Without a number, equal poor reports pass for one visitor: else one person would look like many.
    who = features.exact if visitor_number is None else visitor_number
    shared = _crossroads(transaction, organization, who, seen)
    return with_crossroads(tuple(observations)) if shared else tuple(observations)


def _visitor(transaction: Transaction, organization: int, number: int, seen: Trace) -> VisitorHistory:
    day = seen.at_s // DAY_S
    before = _of_period(transaction, VISITOR_HISTORY, organization, day, number) or VisitorHistory()
    after = visited(before, seen)
    transaction.put(VISITOR_HISTORY, (organization, day, number), after)
    return after


def _replayed(transaction: Transaction, organization: int, seen: Trace) -> Observation | None:
    if seen.mark is None:
        return None
    period = seen.at_s // REPLAY_MEMORY_S
    first = _of_period(transaction, SENDINGS, organization, period, seen.mark.digest)
    if first is None or not is_remembered(first, seen.at_s):
        transaction.put(SENDINGS, (organization, period, seen.mark.digest), Sending(seen.at_s, seen.address))
        return None
    return replay(first, seen)


def _crossroads(transaction: Transaction, organization: int, who: int, seen: Trace) -> bool:
    if seen.homeland is None:
        return False
    key = (organization, seen.at_s // DAY_S, seen.address)
    before = transaction.get(ADDRESS_HISTORY, *key) or AddressHistory()
    after = met(before, who, seen.homeland)
    if after is not before:
        transaction.put(ADDRESS_HISTORY, key, after)
    return is_crossroads(after)


def _of_period(transaction: Transaction, table: Table[V], organization: int, period: int, key: Any) -> V | None:
    """The row of this period, else of the one before."""
    found = transaction.get(table, organization, period, key)
    return transaction.get(table, organization, max(period - 1, 0), key) if found is None else found
