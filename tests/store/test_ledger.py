"""Organizations, their money and what a day came to, as transactions: each boundary, without a service around it."""

from __future__ import annotations

import json
from collections.abc import Generator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from svc.features.billing import jobs as settlement
from svc.features.billing.jobs import AccountStatement, DueDay, LinePosition, SettlementStep, StatementDay
from svc.features.organizations import jobs as organizations
from svc.features.organizations.jobs import Author
from svc.identify.records import RetentionPass
from svc.identify.tables import RETENTION_PASSES
from svc.kernel.store.steps import STEP_LOOKS
from svc.kernel.tenants import jobs as ledger
from svc.kernel.tenants.billing import BILLING_STATUSES, TRANSITIONS, BillingChange, LedgerEntry, Usage
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.queries import balance, organization
from svc.kernel.tenants.tables import BILLING_CHANGES, PAST_DUE
from svc.kernel.values.ids import DAY_MS, first_id
from tests.support.outbox import OutboxWorld, outbox_world
from tests.support.worlds import EPOCH_MS

FIRST_DAY = EPOCH_MS // DAY_MS
EVENTS = ("billing.status_changed", "usage.daily_settled")


class Books:
    """One organization and its ledger. Whatever happens has the first id of its millisecond."""

    def __init__(self, world: OutboxWorld) -> None:
        self.world = world
        self.number = world.organization()

    def do(self, job: Any, **given: Any) -> Any:
        return self.world.do(partial(job, number=self.number, **given))

    def read(self, query: Any, **given: Any) -> Any:
        return self.world.read(partial(query, number=self.number, **given))

    def credit(self, micros: int, at_ms: int, note: str = "") -> int:
        entry_id = UUID(bytes=first_id(at_ms))
        return self.do(ledger.add_credit, entry_id=entry_id, micros=micros, now_ms=at_ms, note=note)

    def visits(self, *at: int, price: int = 3_000) -> None:
        """Charged at these times."""
        for at_ms in at:
            entry = LedgerEntry("identification", -price, at_ms)
            self.do(ledger.enter, entry_id=UUID(bytes=first_id(at_ms)), entry=entry)

    def set_status(self, status: str, at_ms: int = EPOCH_MS) -> Any:
        author = Author(UUID(bytes=first_id(at_ms)), at_ms, "operator", "why")
        return self.do(organizations.set_billing_status, status=status, author=author)

    def account(self) -> Organization:
        return self.read(organization)

    def changes(self) -> list[BillingChange]:
        rows = self.world.read(lambda snapshot: list(snapshot.scan(BILLING_CHANGES, self.number)))
        return [change for _, change in rows]

    def past_due(self) -> int | None:
        return self.world.read(lambda snapshot: snapshot.get(PAST_DUE, self.number))

    def is_overdue(self, now_ms: int) -> bool:
        return self.read(settlement.is_overdue, now_ms=now_ms)

    def subscribe(self) -> None:
        self.world.endpoint(self.number, "https://receiver.example/", events=EVENTS)

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(body)["data"] for body in self.world.bodies(self.number).values()]

    def due_day(self, now_ms: int) -> DueDay | None:
        return self.read(settlement.due_day, now_ms=now_ms)

    def settle(self, due: DueDay, usage: Usage) -> bool:
        self.do(ledger.close_day, day=due.day)
        return self.do(settlement.settle, due=due, usage=usage, now_ms=(due.day + 2) * DAY_MS) is not None

    def usage(self, due: DueDay, resume: LinePosition | None = None) -> SettlementStep:
        return self.read(settlement.read_usage, due=due, resume=resume)

    def statement(self, first_day: int, beyond_day: int) -> AccountStatement:
        return self.read(settlement.statement, first_day=first_day, beyond_day=beyond_day)


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    with outbox_world(tmp_path) as world:
        yield Books(world)


# Organizations and their money


# The billing status


@pytest.mark.parametrize(("before", "after"), list(product(BILLING_STATUSES, BILLING_STATUSES)))
def test_a_status_change_follows_the_table_and_is_recorded_and_notified(books: Books, before: str, after: str):
    """Decisions 5.3, 8.9: every pair."""
    for place, step in enumerate({"free": (), "past_due": ("active", "past_due")}.get(before, (before,))):
        books.set_status(step, EPOCH_MS + place)
    books.subscribe()
    account, changes, past_due = books.account(), books.changes(), books.past_due()
    outcome = books.set_status(after, EPOCH_MS + 5)
    if after == before or after not in TRANSITIONS[account.billing_status]:
        assert outcome == (account if after == before else "not_allowed")
        assert (books.account(), books.changes(), books.past_due(), books.told()) == (account, changes, past_due, [])
        return
    reason = "operator" if after == "blocked" else None
    assert outcome == books.account()
    assert (outcome.billing_status, outcome.blocked_reason) == (after, reason)
    assert books.changes() == [*changes, BillingChange(before, after, reason, EPOCH_MS + 5, "operator", "why")]
    assert books.past_due() == (EPOCH_MS + 5 if after == "past_due" else None)
    assert books.told() == [
        {
            "previous_status": before,
            "current_status": after,
            "accepting_traffic": after != "blocked",
            "blocked_reason": reason,
        }
    ]


def test_a_clock_that_is_behind_does_not_shorten_the_term_of_payment(books: Books):
    """Decisions 17: retention has believed the clock of today, and the operator's shows last year."""
    books.world.do(lambda transaction: transaction.put(RETENTION_PASSES, (books.number,), RetentionPass(EPOCH_MS)))
    books.set_status("active", EPOCH_MS)
    books.set_status("past_due", EPOCH_MS - 400 * DAY_MS)
    assert books.past_due() == EPOCH_MS
    assert not books.is_overdue(EPOCH_MS + 7 * DAY_MS - 1)


# Days


def test_a_step_has_a_bounded_number_of_lines_and_returns_where_to_continue(books: Books):
    books.visits(*range(EPOCH_MS, EPOCH_MS + STEP_LOOKS))
    due = books.due_day(EPOCH_MS + 2 * DAY_MS)
    assert due is not None
    whole = Usage(identifiable=STEP_LOOKS, charged_micros=3_000 * STEP_LOOKS)
    assert books.usage(due) == SettlementStep(whole, None)
    last = EPOCH_MS + STEP_LOOKS
    books.visits(last, EPOCH_MS + DAY_MS)
    assert books.usage(due) == SettlementStep(whole, LinePosition(None, first_id(last)))
    rest = books.usage(due, LinePosition(None, first_id(last)))
    assert rest == SettlementStep(Usage(identifiable=1, charged_micros=3_000), None), "the next day is not of it"


@pytest.mark.slow(0.1)
def test_what_comes_after_a_day_was_closed_counts_for_the_next(books: Books):
    """Decisions 17.2: a clock that ran ahead had the day settled, and was set back."""
    books.credit(10_000, EPOCH_MS)
    books.visits(EPOCH_MS + 1)
    due = books.due_day(EPOCH_MS + 2 * DAY_MS)
    assert due is not None
    assert books.settle(due, books.usage(due).usage)
    late = range(EPOCH_MS + 2, EPOCH_MS + 2 + STEP_LOOKS)
    books.visits(*late)
    books.credit(70, EPOCH_MS + 2 + STEP_LOOKS)
    books.visits(EPOCH_MS + DAY_MS, price=500)
    later = books.due_day(EPOCH_MS + 3 * DAY_MS)
    assert later == DueDay(FIRST_DAY + 1, FIRST_DAY + 1, 7_000)
    first = books.usage(later)
    rest = books.usage(later, first.resume)
    assert rest.resume is None
    usage = first.usage + rest.usage
    assert usage == Usage(STEP_LOOKS, 1, 0, 3_000 * STEP_LOOKS + 500, 70)
    assert books.settle(later, usage)
    days = {day.day: day.usage for day in books.statement(FIRST_DAY, FIRST_DAY + 2).days}
    assert days == {
        FIRST_DAY: Usage(identifiable=1, charged_micros=3_000, credited_micros=10_000),
        FIRST_DAY + 1: usage,
    }
    second = books.statement(FIRST_DAY + 1, FIRST_DAY + 2)
    assert second.opening_micros == 7_000
    assert second.days[-1].balance_micros == books.read(balance)
    assert [entry.amount_micros for entry in second.credits] == [70]
    assert books.world.violations() == []


def test_a_line_whose_id_runs_ahead_counts_for_the_day_of_its_arrival(books: Books):
    """Its id is of the next day, because the clock was set back by some minutes."""
    entry = LedgerEntry("identification", -3_000, EPOCH_MS + DAY_MS - 60_000)
    books.do(ledger.enter, entry_id=UUID(bytes=first_id(EPOCH_MS + DAY_MS + 60_000)), entry=entry)
    due = books.due_day(EPOCH_MS + 2 * DAY_MS)
    assert due == DueDay(FIRST_DAY, 0, 0)
    assert books.settle(due, books.usage(due).usage)
    assert books.due_day(EPOCH_MS + 3 * DAY_MS) is None
    assert [day.day for day in books.statement(FIRST_DAY, FIRST_DAY + 2).days] == [FIRST_DAY]


def test_a_statement_has_the_lines_from_its_first_midnight_until_before_the_last(books: Books):
    first, beyond = EPOCH_MS + DAY_MS, EPOCH_MS + 2 * DAY_MS
    books.credit(10_000, EPOCH_MS)
    books.visits(first - 1, first + 1, beyond - 1, beyond + 1)
    books.credit(7, first, "in")
    books.credit(9, beyond, "out")
    books.set_status("active", first - 1)
    books.set_status("past_due", first)
    books.set_status("active", beyond)
    statement = books.statement(FIRST_DAY + 1, FIRST_DAY + 2)
    usage = Usage(identifiable=2, charged_micros=6_000, credited_micros=7)
    assert statement.opening_micros == 7_000
    assert statement.days == [StatementDay(FIRST_DAY + 1, usage, 1_007)]
    assert [entry.note for entry in statement.credits] == ["in"]
    assert [change.current for change in statement.changes] == ["past_due"]
    both = books.statement(FIRST_DAY, FIRST_DAY + 3)
    assert both.opening_micros == 0
    assert [day.balance_micros for day in both.days] == [7_000, 1_007, 1_007 - 3_000 + 9]
    assert both.days[-1].balance_micros == books.read(balance)
    nothing = books.statement(FIRST_DAY + 5, FIRST_DAY + 6)
    assert nothing == AccountStatement(books.read(balance), [], [], [])
