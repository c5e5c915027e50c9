"""What each organization holds of the store: counted in the transaction that changes it, never by a scan.

What may live here: the one row that an organization has in `holdings`, and how it is counted again where it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from svc.kernel.limits.quotas import Holding
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.tables import HOLDINGS

T = TypeVar("T")


def holding(snapshot: Snapshot, number: int) -> Holding:
    """Return what an organization holds; zeros if nothing was counted yet. For the counts of today see `Holding.on`."""
    return snapshot.get(HOLDINGS, number) or Holding()


def holdings(snapshot: Snapshot, after: int, count: int) -> list[tuple[int, Holding]]:
    """Return (organization number, what it holds of the store) of the next `count` organizations with numbers above
    `after`.
    """
    return [(number, held) for (number,), held in islice(snapshot.scan(HOLDINGS, start=(after + 1,)), count)]


def keep(transaction: Transaction, number: int, changed: Holding) -> None:
    """Write an organization's row of `HOLDINGS`, in the transaction that made the change."""
    transaction.put(HOLDINGS, (number,), changed)


def ask(transaction: Transaction, number: int, at_ms: int, question: Callable[[Holding], T]) -> T:
    """Return the answer of `question` about what the organization holds, with the counts of the UTC day of `at_ms`. As
    with `Transaction.ask`, only the answer is recorded as read.
    """
    return transaction.ask(HOLDINGS, (number,), lambda held: question((held or Holding()).on(at_ms)))


def add(transaction: Transaction, number: int, at_ms: int, change: Callable[[Holding], Holding]) -> None:
    """Change what the organization holds, with the counts of the UTC day of `at_ms`. As with `Transaction.update`,
    nothing is recorded as read.
    """
    transaction.update(HOLDINGS, (number,), lambda held: change((held or Holding()).on(at_ms)))


def close(transaction: Transaction, number: int, day: int) -> None:
    """Close a UTC day, counted since 1970: what is billed from now on counts for a later one. Nothing is recorded as
    read.
    """
    transaction.update(HOLDINGS, (number,), lambda held: (held or Holding()).closed(day))


def release(
    transaction: Transaction, number: int, *, events: int = 0, visitors: int = 0, report_bytes: int = 0
) -> None:
    """Subtract deleted rows from what an organization holds: numbers of events and visitors, and the `row_bytes` of
    reports.
    """
    transaction.update(
        HOLDINGS,
        (number,),
        lambda held: (held or Holding()).plus(events=-events, visitors=-visitors, report_bytes=-report_bytes),
    )
