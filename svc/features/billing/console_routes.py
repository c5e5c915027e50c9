"""An organization's money and its audit log, for reading (decisions 5; docs/audit.md).

Nothing here grows with the traffic: today's sum is kept beside what the organization holds, and credits have an index
of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Annotated, Any, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.audit import queries as audit_views
from svc.features.audit.queries import BEYOND_MS, AuditMatch, Sought
from svc.features.billing.credit_queries import credit_of
from svc.http.change import caller_of
from svc.http.listing import encoded, read_page
from svc.http.route import Call, Route, Services, console_route
from svc.http.schema import CursorOn, Limit, WindowEnd
from svc.kernel.access.audit import ActorKind, AuditRecord
from svc.kernel.access.roles import Role, may
from svc.kernel.limits.quotas import Holding
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.billing import (
    IDENTIFIABLE_MICROS,
    BillingStatus,
    BlockedReason,
    RefusedForMoney,
    Settlement,
    refused_for_money,
)
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.tables import SETTLEMENTS
from svc.kernel.values.encodings import Cursors
from svc.kernel.values.fields import A_KEY_ID, OBJECT_FORM, TIME_FORM, PageCursor, RequestId, Timestamp, about, open_to
from svc.kernel.values.ids import first_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of, present, sent
from svc.kernel.values.timestamps import iso_day, read_timestamp

DAYS_SHOWN = 90
LINES_SHOWN = 100


AccountStatus = Annotated[BillingStatus, about("Billing status.", "active", form=open_to(*get_args(BillingStatus)))]
Refused = Annotated[RefusedForMoney, about("An error code.", "no_credit", form=open_to(*get_args(RefusedForMoney)))]
Blocked = Annotated[BlockedReason, about("Why traffic is blocked.", "operator", form=open_to(*get_args(BlockedReason)))]

SoughtText = Annotated[str, Meta(max_length=200)]


class UsageBody(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of the identifications of a day so far."""

    identifications: Annotated[int, about("Identifications in production.", 1500)]
    identifiable: Annotated[int, about("Charged as identifiable.", 1400)]
    unidentifiable: Annotated[int, about("Charged as not identifiable.", 80)]
    free: Annotated[int, about("Free, since the network look-up could not run.", 20)]
    amount_micros: Annotated[int, about("Charged, in millionths of a US dollar.", 4240000)]


class BilledDayBody(UsageBody, frozen=True, kw_only=True):
    """One UTC day that has ended (decisions 5.4)."""

    date: Annotated[str, about("UTC day.", "2026-01-05", form={"format": "date"})]
    balance_micros: Annotated[int, about("Balance at the end of that day.", 20760000)]
    is_settled: Annotated[bool, about("Whether the day is settled: from five minutes after its end.", True)]


class CreditBody(msgspec.Struct, frozen=True):
    """One credit on the ledger."""

    at: Annotated[Timestamp, about("When it was entered.")]
    amount_micros: Annotated[int, about("Millionths of a US dollar; negative where credit was taken back.", 25000000)]
    note: Annotated[str, about("Who did it and why.", "invoice 7")]


class BillingChangeBody(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the billing status (decisions 5.3)."""

    at: Annotated[Timestamp, about("When it changed.")]
    previous: Annotated[AccountStatus, about("Status before.")]
    current: Annotated[AccountStatus, about("Status since.")]
    blocked_reason: Annotated[Blocked, about("Why, where traffic was blocked.")] | UnsetType = UNSET
    by: Annotated[str, about("The operator, or `settler` where a payment was overdue.", "operator")]
    note: Annotated[str, about("What the operator noted.", "paid by invoice")]


class BillingBody(msgspec.Struct, frozen=True, kw_only=True):
    """The account of an organization."""

    status: AccountStatus
    blocked_reason: Annotated[Blocked, about("Why, where traffic is blocked.")] | UnsetType = UNSET
    refused: (
        Annotated[Refused, about("What the next identification in production would be refused for.")] | UnsetType
    ) = UNSET
    balance_micros: Annotated[int, about("Balance in millionths of a US dollar.", 24997000)]
    credit_limit_micros: Annotated[
        int | None, about("How far the balance may go below zero; `null` for one that is postpaid: without a limit.", 0)
    ]
    credit_days: (
        Annotated[
            float,
            about(
                "For how many days the credit lasts, by the charges of the last seven; left out where it has no limit, "
                "or nothing was charged.",
                12.5,
            ),
        ]
        | UnsetType
    ) = UNSET
    today: Annotated[UsageBody, about("This UTC day so far.")]
    days: Annotated[
        tuple[BilledDayBody, ...],
        about("The last 90 settled days, newest first; before them the day that has ended, until it is settled."),
    ]
    entries: Annotated[tuple[CreditBody, ...], about("The last 100 credits, newest first.")]
    changes: Annotated[tuple[BillingChangeBody, ...], about("The last 100 changes of the status, newest first.")]


class AuditQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the audit log. Without a filter every change is listed."""

    limit: Limit = 50
    cursor: PageCursor | UnsetType = UNSET
    action: Annotated[SoughtText, about("Only this operation id or command.", "issueSdkKey")] | UnsetType = UNSET
    actor: Annotated[SoughtText, about("Only changes by the actor with this id or name.", A_KEY_ID)] | UnsetType = UNSET
    start: Annotated[
        str | UnsetType,
        about(
            "Only changes from this time on; all that are kept when left out.", "2026-01-05T09:00:00Z", form=TIME_FORM
        ),
    ] = msgspec.field(default=UNSET, name="from")
    end: WindowEnd = msgspec.field(default=UNSET, name="to")


class ActorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The author of a change."""

    kind: Annotated[ActorKind, about("A management key, a member, or the operator's command line.", "management_key")]
    id: Annotated[str, about("Id of the key or member, or the operator's name on the machine.", A_KEY_ID)]
    name: Annotated[str | UnsetType, about("Name of the key or member then.", "ci")] = UNSET
    role: Annotated[Role | UnsetType, about("Role of the key or member then.", "admin")] = UNSET
    place: Annotated[str | UnsetType, about("Address that the request came from.", "203.0.113.7")] = UNSET


class AuditRecordBody(msgspec.Struct, frozen=True, kw_only=True):
    """One change that was made."""

    id: Annotated[RequestId, about("UUIDv7 of the change: of the request, where a key or member made it.")]
    at: Annotated[Timestamp, about("When it was made.")]
    action: Annotated[str, about("Operation id, or the command of the operator.", "issueSdkKey")]
    subject: Annotated[str | UnsetType, about("Id of what was changed, or a platform.", A_KEY_ID)] = UNSET
    actor: Annotated[ActorBody, about("Who made it.")]
    change: Annotated[dict[str, Any], about("What was asked for, by name.", {"name": "checkout"}, form=OBJECT_FORM)]


class AuditBody(msgspec.Struct, frozen=True):
    """A page of the audit log."""

    records: Annotated[tuple[AuditRecordBody, ...], about("Newest first.")]
    next_cursor: CursorOn | UnsetType = UNSET


def settled_row(day: int, settled: Settlement) -> BilledDayBody:
    """Return a settled day; `day` is a UTC day since 1970."""
    identifications = settled.identifiable + settled.unidentifiable + settled.free
    return body_of(BilledDayBody, settled, date=iso_day(day), identifications=identifications, is_settled=True)


def audit_row(found: AuditMatch) -> AuditRecordBody:
    """Return a record of the audit log. The machine on which the operator works is not the organization's matter."""
    record = found.record
    return body_of(AuditRecordBody, record, id=str(found.id), actor=_actor(record))


def _actor(record: AuditRecord) -> ActorBody:
    actor = record.actor
    if actor.kind == "command_line":
        return ActorBody(kind=actor.kind, id=actor.id)
    return body_of(ActorBody, actor)


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
