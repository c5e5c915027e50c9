"""A review as it is published, in responses and in webhooks."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from svc.identify.fields import EventLabel, EventLabelReason
from svc.kernel.values.fields import (
    A_MEMBER_ID,
    A_REVIEW_ID,
    SUSPECT_SCORE,
    AccountId,
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
    assignee: Annotated[_Member | None, about("The member who takes care of it; `null` = nobody.", None)]
    closed_at: Annotated[Timestamp, about("When it was closed; left out while it is open.")] | UnsetType = UNSET
    closed_by: Annotated[_Member, about("The member who closed it.")] | UnsetType = UNSET
    label: EventLabel | UnsetType = UNSET
    label_reason: EventLabelReason | UnsetType = UNSET
    note: Annotated[str, about("What the person who closed it wrote.", "Same card as yesterday.")] | UnsetType = UNSET
