"""What each type of event says in its `data` (decisions 8.10), and which types an identification causes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.webhooks.records import EventType
from svc.identify.events.event_row import EventBody, EventLabel, EventLabelReason, event_row
from svc.identify.records import Event
from svc.kernel.tenants.billing import BillingStatus, BlockedReason
from svc.kernel.values.fields import (
    A_KEY_ID,
    A_MEMBER_ID,
    A_REVIEW_ID,
    SUSPECT_SCORE,
    AccountId,
    Environment,
    RequestId,
    Timestamp,
    VisitorId,
    about,
    id_form,
    open_to,
)

ReviewId = Annotated[str, about("Id of the review; it sorts by time.", A_REVIEW_ID, form=id_form("rev_"))]


_Member = Annotated[str, about("Id of the member.", A_MEMBER_ID, form=id_form("mem_"))]


class ReviewBody(msgspec.Struct, frozen=True, kw_only=True):
    """A review (decisions 14.4), also the `data` of `review.opened` and `review.closed`."""

    id: ReviewId
    state: Annotated[str, about("`open` or `closed`.", "open", form=open_to("open", "closed"))]
    environment: Annotated[str, about("Of its event.", "production")]
    request_id: RequestId
    visitor_id: VisitorId
    account_id: AccountId | UnsetType = UNSET
    suspect_score: Annotated[int | None, SUSPECT_SCORE]
    suspect_level: Annotated[str, about("Of its event; left out when not scored.", "medium")] | UnsetType = UNSET
    rule_id: (
        Annotated[str, about("Id of the rule that opened it; left out where a person did.", "rul_0qppzPLvL54VURDkQrfS")]
        | UnsetType
    ) = UNSET
    rule: Annotated[str, about("Name of that rule then.", "Fifth account of a browser")] | UnsetType = UNSET
    opened_at: Annotated[Timestamp, about("When it was opened.")]
    opened_by: Annotated[_Member, about("The member who opened it by hand.")] | UnsetType = UNSET
    reopened_at: (
        Annotated[Timestamp, about("When it was last opened again after it was closed; left out if never.")] | UnsetType
    ) = UNSET
    reopened_by: Annotated[_Member, about("The member who opened it again.")] | UnsetType = UNSET
    assignee: Annotated[_Member | None, about("The member who takes care of it; `null` = nobody.", None)]
    closed_at: Annotated[Timestamp, about("When it was closed; left out while it is open.")] | UnsetType = UNSET
    closed_by: Annotated[_Member, about("The member who closed it.")] | UnsetType = UNSET
    label: EventLabel | UnsetType = UNSET
    label_reason: EventLabelReason | UnsetType = UNSET
    note: Annotated[str, about("What the person who closed it wrote.", "Same card as yesterday.")] | UnsetType = UNSET


class Suspect(EventBody, frozen=True, kw_only=True):
    """`visitor.suspect`: the event row of interface 2.3, and the threshold that the score has reached."""

    suspect_threshold: Annotated[int, about("The threshold that the score has reached.", 30)]


class RefusedIdentification(msgspec.Struct, frozen=True, kw_only=True):
    """`identification.refused`: the first refusal of its kind, or the number of refusals since the previous event."""

    request_id: Annotated[
        str, about("Of the latest refusal, like the fields below.", "019b8d2f-3c40-7a51-9d0e-6f1b2c3d4e5f")
    ]
    occurred_at: Annotated[str, about("When it was refused.", "2026-01-05T10:00:00.000Z")]
    code: Annotated[str, about("The error code of the response.", "unauthorized")]
    status: Annotated[int, about("The status of the response.", 401)]
    environment: Annotated[Environment, about("Of the key.", "production")]
    key_id: Annotated[str, about("Id of the key.", A_KEY_ID)]
    origin: Annotated[
        str | UnsetType, about("As it was sent, if the request was refused for it.", "https://other.example")
    ] = UNSET
    ip_address: Annotated[
        str | UnsetType, about("Of the visitor; of the sender if the key itself was refused.", "81.2.69.160")
    ] = UNSET
    reason: Annotated[
        str | UnsetType,
        about(
            "Why the key was refused. The caller of a production or staging key does not see it.",
            "the origin is not in the key's list: 'https://other.example'",
        ),
    ] = UNSET
    count: Annotated[int, about("Refusals of this key and code since the event before.", 1)]


class BillingStatusChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The `data` of `billing.status_changed` (interface 6)."""

    previous_status: Annotated[BillingStatus, about("Before the change.", "active")]
    current_status: Annotated[BillingStatus, about("From now on.", "past_due")]
    accepting_traffic: Annotated[bool, about("Whether identifications are accepted.", True)]
    blocked_reason: Annotated[BlockedReason | None, about("Why not; `null` while they are accepted.", None)]


class DailySettled(msgspec.Struct, frozen=True, kw_only=True):
    """The `data` of `usage.daily_settled`: one UTC day of production traffic (decisions 8.10)."""

    date: Annotated[str, about("The UTC day.", "2026-01-05")]
    identifications: Annotated[int, about("Production identifications of that day.", 1200)]
    identifiable: Annotated[int, about("Of these, charged as identifiable.", 1150)]
    unidentifiable: Annotated[int, about("Of these, charged as not identifiable.", 40)]
    free: Annotated[int, about("Of these, not charged.", 10)]
    amount_micros: Annotated[int, about("The charge, in millionths of a US dollar.", 3_470_000)]
    balance_micros: Annotated[int, about("The balance after it, in millionths of a US dollar.", 21_530_000)]


class EndpointTest(msgspec.Struct, frozen=True):
    """The `data` of `webhook.test` (decisions 8.10)."""

    endpoint_id: Annotated[str, about("Id of the endpoint.", "whk_0qppzPLvL54VURDkQrfS")]
    message: Annotated[
        Literal["This is a test delivery."], about("Always the same text.", "This is a test delivery.")
    ] = "This is a test delivery."


DATA: dict[EventType, tuple[type[msgspec.Struct], str]] = {
    "identification.completed": (EventBody, "A visitor was identified."),
    "visitor.suspect": (Suspect, "The suspect score of an identification has reached the threshold."),
    "identification.refused": (
        RefusedIdentification,
        "An identification was refused: the first one at once, then at most one event a minute for each key and code.",
    ),
    "billing.status_changed": (BillingStatusChanged, "The billing status of the organization has changed."),
    "usage.daily_settled": (DailySettled, "A day of production traffic was settled."),
    "webhook.test": (EndpointTest, "A test of the endpoint was asked for."),
    "review.opened": (ReviewBody, "A review was opened, by a rule or by a person."),
    "review.closed": (ReviewBody, "A review was closed."),
}
"""What `data` is made of, and when there is such an event."""


class Arising(NamedTuple):
    """A type of event that an identification may cause: the condition on the stored event and the threshold in force,
    and a function that makes its `data` from these and the request id.
    """

    arises: Callable[[Event, int], bool]
    data: Callable[[Event, UUID, int], EventBody]


def _always(_: Event, __: int) -> bool:
    return True


def _is_suspect(event: Event, threshold: int) -> bool:
    score = event.verdict.suspect_score
    return score is not None and score >= threshold


def _completed(event: Event, request_id: UUID, _: int) -> EventBody:
    return event_row(event, request_id)


def suspect(event: Event, request_id: UUID, threshold: int) -> Suspect:
    """Return the `data` of `visitor.suspect` for a stored event that reached this threshold (decisions 8.10)."""
    return Suspect(**msgspec.structs.asdict(event_row(event, request_id)), suspect_threshold=threshold)


OF_IDENTIFICATION: dict[EventType, Arising] = {
    "identification.completed": Arising(_always, _completed),
    "visitor.suspect": Arising(_is_suspect, suspect),
}
"""By type (decisions 8.9), what says most last. Their ids follow from the request id, by which erasure and inspection
find them.
"""
FILTERED: frozenset[EventType] = frozenset({*OF_IDENTIFICATION, "review.opened", "review.closed"})
"""Types to which the filter of an endpoint applies; others go out whatever it says (decisions 16.2)."""
