"""Bodies of the console about an organization's money and its audit log. As in `svc.http.schema`."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.audit.queries import AuditMatch
from svc.http.schema import CursorOn, Limit, WindowEnd
from svc.kernel.access.audit import ActorKind, AuditRecord
from svc.kernel.access.roles import Role
from svc.kernel.tenants.billing import BillingStatus, BlockedReason, RefusedForMoney, Settlement
from svc.kernel.values.fields import A_KEY_ID, OBJECT_FORM, TIME_FORM, PageCursor, RequestId, Timestamp, about, open_to
from svc.kernel.values.struct_fields import body_of
from svc.kernel.values.timestamps import iso_day

Identifications = Annotated[int, about("Identifications in production.", 1500)]
Identifiable = Annotated[int, about("Charged as identifiable.", 1400)]
Unidentifiable = Annotated[int, about("Charged as not identifiable.", 80)]
Free = Annotated[int, about("Free, since the network look-up could not run.", 20)]
Amount = Annotated[int, about("Charged, in millionths of a US dollar.", 4240000)]
AccountStatus = Annotated[BillingStatus, about("Billing status.", "active", form=open_to(*get_args(BillingStatus)))]
Refused = Annotated[RefusedForMoney, about("An error code.", "no_credit", form=open_to(*get_args(RefusedForMoney)))]
Blocked = Annotated[BlockedReason, about("Why traffic is blocked.", "operator", form=open_to(*get_args(BlockedReason)))]

Sought = Annotated[str, Meta(max_length=200)]


class UsageBody(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of the identifications of a day so far."""

    identifications: Identifications
    identifiable: Identifiable
    unidentifiable: Unidentifiable
    free: Free
    amount_micros: Amount


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
    """Query of the audit log. Without a filter every change is listed. The window is checked by
    `svc.features.billing.console_routes`.
    """

    limit: Limit = 50
    cursor: PageCursor | UnsetType = UNSET
    action: Annotated[Sought, about("Only this operation id or command.", "issueSdkKey")] | UnsetType = UNSET
    actor: Annotated[Sought, about("Only changes by the actor with this id or name.", A_KEY_ID)] | UnsetType = UNSET
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
