"""Reviews: a case that a person decides, and notes about visitors and accounts (decisions 14.4, 14.5).

What may live here: the records, their ids and limits, and a review as everybody outside reads it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, Literal
from uuid import UUID

import msgspec

from svc.features.webhooks.content.payloads import ReviewBody
from svc.identify.model import Label, Level
from svc.identify.records import Event
from svc.kernel.values.fields import Environment
from svc.kernel.values.ids import DAY_MS, ordered_id
from svc.kernel.values.struct_fields import body_of

ReviewState = Literal["open", "closed"]
REVIEW_MS: Final = 400 * DAY_MS
"""How long a review is kept from when it was opened: after that its event cannot be labeled any more."""
NOTE_MS: Final = 400 * DAY_MS
"""How long a note is kept."""
LONGEST_NOTE: Final = 2000
"""Characters, also of the note of a review."""
MAX_NOTIFIED: Final = 20
"""Times of closing and opening again within 30 days: their webhooks are erased in one step."""
MAX_NOTES: Final = 100
"""Of a visitor or an account."""

MEMBER_ID_FORM: Final = r"^mem_[0-9A-Za-z]{20}$(?!\n)"


class Review(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A case of one visitor and account. Append fields with defaults, never move them."""

    id: str
    request_id: bytes
    """Of its event: 16 bytes."""
    environment: Environment
    visitor_id: str
    account_id: str | None
    suspect_score: int | None
    suspect_level: Level | None
    rule_id: str | None
    """Of the rule that opened it; `None` where a person did."""
    rule: str | None
    opened_at_ms: int
    opened_by: str | None = None
    """The member who opened it."""
    assignee: str | None = None
    """A member."""
    closed_at_ms: int | None = None
    closed_by: str | None = None
    label: Label | None = None
    """Its result, which stays if it is opened again; `None` before it was closed."""
    label_reason: str | None = None
    note: str | None = None
    reopened_at_ms: int | None = None
    """When it was last opened again."""
    reopened_by: str | None = None
    notified_ms: tuple[int, ...] = ()
    """When it was closed, and opened again, before the last closing, each with a webhook; those of 30 days."""

    @property
    def state(self) -> ReviewState:
        """Return `open` while it is still to be decided."""
        return "open" if self.closed_at_ms is None else "closed"

    @property
    def raw_id(self) -> bytes:
        """Return the 20 bytes in keys."""
        return self.id.partition("_")[2].encode()

    @property
    def case(self) -> bytes:
        """Return 16 bytes that stand for its visitor and account, of which one review is open at a time."""
        return case_of(self.environment, self.visitor_id, self.account_id)


def case_of(environment: Environment, visitor_id: str, account_id: str | None) -> bytes:
    """Return the case of a review (see `Review.case`). Production is separate from the other environments."""
    kind = "live" if environment == "production" else "test"
    return blake2b(msgspec.json.encode((kind, visitor_id, account_id)), digest_size=16).digest()


def review_of(event: Event, request_id: bytes, opened_at_ms: int, entropy: bytes, opened_by: str | None) -> Review:
    """Return a new review of an event: by the rule that decided it where nobody opened it by hand."""
    verdict = event.verdict
    by_rule = verdict.decision is not None and verdict.decision.action == "review"
    return Review(
        id=ordered_id("rev", opened_at_ms, entropy),
        request_id=request_id,
        environment=event.environment,
        visitor_id=verdict.visitor_id,
        account_id=event.account_id,
        suspect_score=verdict.suspect_score,
        suspect_level=verdict.suspect_level,
        rule_id=verdict.decision.rule_id if verdict.decision is not None and by_rule else None,
        rule=verdict.decision.rule if verdict.decision is not None and by_rule else None,
        opened_at_ms=opened_at_ms,
        opened_by=opened_by,
    )


class Note(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What a person wrote about a visitor or an account. Append fields with defaults, never move them."""

    id: str
    text: str
    created_at_ms: int
    author: str | None = None
    """The member who wrote it."""


def review_row(review: Review) -> ReviewBody:
    """Return a stored review."""
    return body_of(ReviewBody, review, request_id=str(UUID(bytes=review.request_id)))
