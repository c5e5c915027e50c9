"""An organization's money and its audit log, for reading (decisions 5; docs/audit.md).

Nothing here grows with the traffic: today's sum is kept beside what the organization holds, and credits have an index
of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from msgspec import UNSET

from svc.features.audit import queries as audit_views
from svc.features.audit.queries import BEYOND_MS, AuditMatch, Sought
from svc.features.billing.console_bodies import (
    AuditBody,
    AuditQuery,
    BilledDayBody,
    BillingBody,
    BillingChangeBody,
    CreditBody,
    UsageBody,
    audit_row,
    settled_row,
)
from svc.features.billing.credit_queries import credit_of
from svc.http.change import caller_of
from svc.http.listing import encoded, read_page
from svc.http.route import Call, Route, Services, console_route
from svc.kernel.access.roles import may
from svc.kernel.limits.quotas import Holding
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.billing import IDENTIFIABLE_MICROS, refused_for_money
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.tables import SETTLEMENTS
from svc.kernel.values.encodings import Cursors
from svc.kernel.values.ids import first_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of, present, sent
from svc.kernel.values.timestamps import iso_day, read_timestamp

DAYS_SHOWN = 90
LINES_SHOWN = 100


async def read_billing(services: Services, call: Call) -> BillingBody | Refusal:
    """`GET /console/api/billing`: status, balance, today's usage, settled days, credits and changes of the status."""
    number = call.organization.number
    return await services.store.query(partial(_billing, number=number, now_ms=call.at_ms))


def _billing(snapshot: Snapshot, number: int, now_ms: int) -> BillingBody:
    account, held = lookups.organization(snapshot, number), holding(snapshot, number).on(now_ms)
    today, unsettled = held.usage, _unsettled(snapshot, number, held)
    balance_micros, credit = lookups.balance(snapshot, number), credit_of(snapshot, number, now_ms)
    refused = refused_for_money(
        environment="production",
        status=account.billing_status,
        balance_micros=balance_micros,
        credit_limit_micros=account.credit_limit_micros,
        price=IDENTIFIABLE_MICROS,
    )
    return BillingBody(
        status=account.billing_status,
        blocked_reason=present(account.blocked_reason),
        refused=present(refused),
        balance_micros=balance_micros,
        credit_limit_micros=account.credit_limit_micros,
        credit_days=UNSET if credit is None else present(credit.days),
        today=body_of(UsageBody, today, amount_micros=today.charged_micros),
        days=(*unsettled, *(settled_row(*of) for of in lookups.newest_settlements(snapshot, number, DAYS_SHOWN))),
        entries=tuple(
            body_of(CreditBody, entry) for _, entry in islice(lookups.newest_credits(snapshot, number), LINES_SHOWN)
        ),
        changes=tuple(
            body_of(BillingChangeBody, change)
            for change in lookups.newest_billing_changes(snapshot, number, LINES_SHOWN)
        ),
    )


def _unsettled(snapshot: Snapshot, number: int, held: Holding) -> Iterator[BilledDayBody]:
    """Yield the last day that has ended, if it has no settlement yet: what its lines of the ledger add up to."""
    if held.ended is None or snapshot.has(SETTLEMENTS, number, held.ended.day):
        return
    day, usage = held.ended.day, held.ended.usage
    given = lookups.newest_credits(snapshot, number, from_day=day)
    later = sum(line.amount_micros for counts_for, line in given if counts_for > day)
    yield body_of(
        BilledDayBody,
        usage,
        date=iso_day(day),
        amount_micros=usage.charged_micros,
        balance_micros=lookups.balance(snapshot, number) + held.usage.charged_micros - later,
        is_settled=False,
    )


async def list_audit(services: Services, call: Call) -> AuditBody | Refusal:
    """`GET /console/api/audit`: a page of the audit log, newest first. `422` (`invalid_cursor`, or `invalid_value` and
    `out_of_range` for a window).
    """
    query: AuditQuery = call.query
    number, is_admin = call.organization.number, may(caller_of(call).key.role, "administer")
    window = _window(query)
    if isinstance(window, Refusal):
        return window
    sought = Sought(number, *window, action=sent(query.action), actor=sent(query.actor))
    first, beyond = first_id(sought.since_ms), first_id(min(sought.until_ms, BEYOND_MS))

    def scan(snapshot: Snapshot, before: bytes, count: int) -> Iterator[tuple[bytes, AuditMatch | None]]:
        for row in audit_views.before(snapshot, number, first, min(before, beyond), count):
            is_shown = is_admin or not audit_views.is_for_admins(snapshot, number, row.record)
            yield row.id.bytes, row if is_shown and sought.fits(row.record) else None

    cursors = Cursors(services.webhooks.cursors_key, "audit", number)
    page = await read_page(services, call.turn, cursors, query, encoded(scan, audit_row), beyond)
    return page if isinstance(page, Refusal) else AuditBody(page.rows, page.next_cursor)


def _window(query: AuditQuery) -> tuple[int, int] | Refusal:
    """Return (from, to) in Unix ms: see `Sought`."""
    since_ms = 0 if query.start is UNSET else read_timestamp(query.start)
    until_ms = BEYOND_MS if query.end is UNSET else read_timestamp(query.end)
    if since_ms is None or until_ms is None:
        return invalid("from" if since_ms is None else "to", "invalid_value", "query")
    return (since_ms, until_ms) if since_ms < until_ms else invalid("from", "out_of_range", "query")


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="getConsoleBilling",
        path="/billing",
        summary="Read the account",
        description="Only production traffic is charged. Amounts are in millionths of a US dollar.",
        handler=read_billing,
    ),
    console_route(
        operation_id="listConsoleAudit",
        path="/audit",
        summary="List changes",
        description=(
            "The audit log of the organization: every change by a member, a management key or the operator, newest "
            "first, for 400 days. Records about members and keys of proxies are for admins alone. A filter that fits "
            "few changes may lead to a short or empty page with a cursor that goes on."
        ),
        handler=list_audit,
        query=AuditQuery,
    ),
)
