"""Bodies and queries of reviews and notes: what decisions 14.4 and 14.5 say as types."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.events.console_bodies import InEnvironment
from svc.features.reviews.reviews import LONGEST_NOTE, MEMBER_ID_FORM, Note, ReviewState
from svc.features.webhooks.content.payloads import ReviewBody
from svc.http.schema import CursorOn, Limit
from svc.identify.model import Label, LabelReason
from svc.kernel.values.fields import A_MEMBER_ID, Environment, PageCursor, RequestId, Timestamp, about, id_form
from svc.kernel.values.struct_fields import body_of

_NoteText = Annotated[str, about("What was written.", "Asked for a refund.")]


class ReviewsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of `listReviews`."""

    state: Annotated[ReviewState, about("Only reviews of this state.", "open")] | UnsetType = UNSET
    assignee: (
        Annotated[
            str,
            Meta(max_length=64),
            about("Only those that the member with this id takes care of, or with `none` nobody does.", "none"),
        ]
        | UnsetType
    ) = UNSET
    limit: Limit = 50
    cursor: PageCursor | UnsetType = UNSET


class OpenReviewsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the console's queue of open reviews."""

    environment: InEnvironment = "production"
    assignee: Annotated[str, Meta(max_length=64), about("As of `listReviews`.", "none")] | UnsetType = UNSET
    limit: Limit = 50
    cursor: PageCursor | UnsetType = UNSET


class CountReviewsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of how many reviews there are."""

    state: Annotated[ReviewState, about("Only reviews of this state.", "open")] | UnsetType = UNSET
    assignee: Annotated[str, Meta(max_length=64), about("As of `listReviews`.", "none")] | UnsetType = UNSET
    environment: Annotated[Environment, about("Only reviews of this environment.", "production")] | UnsetType = UNSET


class ReviewsBody(msgspec.Struct, frozen=True):
    """A page of reviews."""

    reviews: Annotated[tuple[ReviewBody, ...], about("The one that was opened last first.")]
    next_cursor: CursorOn | UnsetType = UNSET


class OpenReviewsBody(msgspec.Struct, frozen=True):
    """A page of open reviews."""

    reviews: Annotated[tuple[ReviewBody, ...], about("The one that was opened first, first.")]
    next_cursor: CursorOn | UnsetType = UNSET


class ReviewAnswer(msgspec.Struct, frozen=True):
    """One review."""

    review: Annotated[ReviewBody, about("The review.")]


class OpenReviewBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `openReview`."""

    request_id: RequestId


class AssignReviewBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `assignReview`."""

    assignee: Annotated[
        _MemberId | UnsetType | None, about("The member who takes care of it; `null` = nobody.", None)
    ] = UNSET


class CloseReviewBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `closeReview`."""

    label: Annotated[Label, about("What the event turned out to be.", "fraud")]
    label_reason: Annotated[LabelReason, about("Why.", "chargeback")] | UnsetType = UNSET
    note: (
        Annotated[str, Meta(max_length=LONGEST_NOTE), about("What was found.", "Same card as yesterday.")] | UnsetType
    ) = UNSET


class NewNoteBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a new note."""

    text: Annotated[_NoteText, Meta(min_length=1, max_length=LONGEST_NOTE)]


class NoteBody(msgspec.Struct, frozen=True, kw_only=True):
    """A note about a visitor or an account (decisions 14.5)."""

    id: Annotated[str, about("Id of the note.", "note_0qppzPLvL54VURDkQrfS", form=id_form("note_"))]
    text: _NoteText
    created_at: Annotated[Timestamp, about("When it was written.")]
    author: (
        Annotated[str, about("The member who wrote it; left out where a management key did.", A_MEMBER_ID)] | UnsetType
    ) = UNSET


class NotesBody(msgspec.Struct, frozen=True):
    """The notes about a visitor or an account."""

    notes: Annotated[tuple[NoteBody, ...], about("Newest first: at most 100.")]


def note_row(note: Note) -> NoteBody:
    """Return a stored note."""
    return body_of(NoteBody, note)


_MemberId = Annotated[str, Meta(pattern=MEMBER_ID_FORM), Meta(examples=[A_MEMBER_ID])]
