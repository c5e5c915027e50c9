"""Reviews of an organization: listed, opened, assigned and closed; and notes about visitors and accounts, whose routes
differ in their path alone (decisions 14.4, 14.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

from msgspec import UNSET

from svc.features.events.routes import read_request_id
from svc.features.reviews.bodies import (
    AssignReviewBody,
    CloseReviewBody,
    CountReviewsQuery,
    NewNoteBody,
    NoteBody,
    NotesBody,
    OpenReviewBody,
    OpenReviewsBody,
    OpenReviewsQuery,
    ReviewAnswer,
    ReviewsBody,
    ReviewsQuery,
    note_row,
)
from svc.features.reviews.jobs import (
    Closing,
    Reviewed,
    add_note,
    assign_review,
    close_review,
    delete_note,
    open_review,
    reopen_review,
)
from svc.features.reviews.queries import (
    BEYOND_ALL,
    find_review,
    is_known,
    notes_of,
    open_reviews_above,
    reviews_below,
)
from svc.features.reviews.reviews import Note, Review, review_row
from svc.http.change import change, member_of
from svc.http.listing import counted, encoded, read_page
from svc.http.route import ORGANIZATION, Call, Outcome, Route, Services, console_route
from svc.http.schema import TotalBody
from svc.identify.model import Subject
from svc.identify.queries.events import readable_event
from svc.kernel.access.audit import Audited
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.encodings import Cursors, bound_to
from svc.kernel.values.fields import A_REVIEW_ID, Environment, about
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import sent

MAX_REVIEWS = 5000
"""Reviews that are looked at for one page: with an assignee who has few, it may be short and have a cursor."""
NOBODY = "none"


async def list_reviews(services: Services, call: Call) -> ReviewsBody | Refusal:
    """`GET .../reviews`: a page of reviews, the one that was opened last first. `422` (`invalid_cursor`)."""
    query: ReviewsQuery = call.query
    number, state, assignee = call.organization.number, sent(query.state), sent(query.assignee)
    cursors = Cursors(services.webhooks.cursors_key, "reviews", number, bound_to(state, assignee, size=8))

    scan = partial(_scan, number=number, state=state, assignee=assignee)
    page = await read_page(services, call.turn, cursors, query, encoded(scan, review_row), BEYOND_ALL, most=MAX_REVIEWS)
    return page if isinstance(page, Refusal) else ReviewsBody(page.rows, page.next_cursor)


async def list_queue(services: Services, call: Call) -> OpenReviewsBody | Refusal:
    """`GET /console/api/reviews`: a page of the open reviews of an environment, the one that was opened first, first:
    it waits longest. `422` (`invalid_cursor`).
    """
    query: OpenReviewsQuery = call.query
    number, environment, assignee = call.organization.number, query.environment, sent(query.assignee)
    cursors = Cursors(services.webhooks.cursors_key, "open_reviews", number, bound_to(environment, assignee, size=8))

    def scan(snapshot: Snapshot, above: bytes, count: int) -> Iterator[tuple[bytes, Review | None]]:
        for raw_id, review in open_reviews_above(snapshot, number, above, count):
            is_meant = review.environment == environment and _is_meant(review, "open", assignee)
            yield raw_id, review if is_meant else None

    page = await read_page(services, call.turn, cursors, query, encoded(scan, review_row), most=MAX_REVIEWS)
    return page if isinstance(page, Refusal) else OpenReviewsBody(page.rows, page.next_cursor)


async def count_reviews(services: Services, call: Call) -> TotalBody:
    """`GET /console/api/reviews/count`: how many reviews a list has."""
    query: CountReviewsQuery = call.query
    number, state, assignee = call.organization.number, sent(query.state), sent(query.assignee)
    environment: Environment | None = sent(query.environment)
    scan = partial(_scan, number=number, state=state, assignee=assignee, environment=environment)
    return await counted(services, scan, BEYOND_ALL, call.turn)


def _scan(
    snapshot: Snapshot,
    below: bytes,
    count: int,
    *,
    number: int,
    state: str | None,
    assignee: str | None,
    environment: Environment | None = None,
) -> Iterator[tuple[bytes, Review | None]]:
    for raw_id, review in reviews_below(snapshot, number, below, count, only_open=state == "open"):
        is_meant = environment in (None, review.environment) and _is_meant(review, state, assignee)
        yield raw_id, review if is_meant else None


def _is_meant(review: Review, state: str | None, assignee: str | None) -> bool:
    wanted = None if assignee == NOBODY else assignee
    return state in (None, review.state) and (assignee is None or review.assignee == wanted)


async def get_review(services: Services, call: Call) -> ReviewAnswer | Refusal:
    """`GET .../reviews/{review_id}`: one review. `404 not_found`."""
    number = call.organization.number
    found = await services.store.query(partial(find_review, number=number, review_id=call.path["review_id"]))
    return Refusal("not_found") if found is None else ReviewAnswer(review_row(found))


async def open_by_hand(services: Services, call: Call) -> ReviewAnswer | Outcome | Refusal:
    """`POST .../reviews`: `201` with a review of an event, of any environment, or `200` with the open one of its
    visitor and account. `404 event_not_found`.
    """
    body: OpenReviewBody = call.body
    request_id = read_request_id(body.request_id)
    if isinstance(request_id, Refusal):
        return invalid("request_id", "invalid_value")
    number, entropy = call.organization.number, services.world.entropy(16)

    def job(transaction: Transaction) -> Reviewed | Refusal:
        event = readable_event(transaction, number, request_id, call.at_ms, services.event_retention_ms)
        if event is None:
            return Refusal("event_not_found", explanation="The organization has no such event that is readable.")
        by, trace = member_of(call), call.trace
        return open_review(transaction, number, request_id.bytes, event, call.at_ms, entropy, by, trace=trace)

    opened = await _changed(services, call, job)
    is_other = isinstance(opened, Reviewed) and not opened.is_new
    return Outcome(_row(opened)) if is_other else _row(opened)


async def assign(services: Services, call: Call) -> ReviewAnswer | Refusal:
    """`PATCH .../reviews/{review_id}`: who takes care of it. `404 not_found`, `409 review_closed`."""
    body: AssignReviewBody = call.body
    if body.assignee is UNSET:
        return await get_review(services, call)
    number, assignee = call.organization.number, body.assignee

    def job(transaction: Transaction) -> Reviewed | Refusal:
        assigned = assign_review(transaction, number, call.path["review_id"], assignee)
        return assigned if isinstance(assigned, Refusal) else Reviewed(assigned)

    return _row(await _changed(services, call, job))


async def close(services: Services, call: Call) -> ReviewAnswer | Refusal:
    """`POST .../reviews/{review_id}/close`: its event, and no other, has the label then. `404 not_found`, `409
    review_closed`.
    """
    body: CloseReviewBody = call.body
    closing = Closing(body.label, sent(body.label_reason), sent(body.note), member_of(call), call.trace)
    job = partial(
        close_review,
        number=call.organization.number,
        review_id=call.path["review_id"],
        closing=closing,
        now_ms=call.at_ms,
    )
    return _row(await _changed(services, call, job))


async def reopen(services: Services, call: Call) -> ReviewAnswer | Refusal:
    """`POST .../reviews/{review_id}/reopen`: it is open, and its label stays until it is closed again. `404 not_found`,
    `409 review_open`.
    """
    job = partial(
        reopen_review,
        number=call.organization.number,
        review_id=call.path["review_id"],
        now_ms=call.at_ms,
        reopened_by=member_of(call),
        trace=call.trace,
    )
    return _row(await _changed(services, call, job))


async def _changed(
    services: Services, call: Call, job: Callable[[Transaction], Reviewed | Refusal]
) -> Reviewed | Refusal:
    reviewed = await change(services, call, job)
    if not isinstance(reviewed, Refusal):
        services.webhooks.due(reviewed.queues)
    return reviewed


def _row(reviewed: Reviewed | Refusal) -> ReviewAnswer | Refusal:
    return reviewed if isinstance(reviewed, Refusal) else ReviewAnswer(review_row(reviewed.review))


_REVIEW = ORGANIZATION + "/reviews/{review_id}"
_REVIEW_ID = {"review_id": Annotated[str, about("Id of the review.", A_REVIEW_ID)]}
_NOTE_ID = {"note_id": Annotated[str, about("Id of the note.", "note_0qppzPLvL54VURDkQrfS")]}
_route = partial(Route, tag="Management: reviews", kinds=("management",), variables=_REVIEW_ID)


async def list_notes(services: Services, call: Call) -> NotesBody | Refusal:
    """`GET .../notes`: the notes about a visitor or an account, newest first. `404 not_found` for an unknown one."""
    number, (subject, subject_id) = call.organization.number, _about(call)

    def read(snapshot: Snapshot) -> list[Note] | None:
        if not is_known(snapshot, number, subject, subject_id):
            return None
        return notes_of(snapshot, number, subject, subject_id)

    found = await services.store.query(read)
    return Refusal("not_found") if found is None else NotesBody(tuple(map(note_row, reversed(found))))


async def create_note(services: Services, call: Call) -> NoteBody | Refusal:
    """`POST .../notes`: `201` with the new note. `404 not_found`, `409 note_limit`."""
    body: NewNoteBody = call.body
    number, (subject, subject_id) = call.organization.number, _about(call)
    entropy = services.world.entropy(16)

    def job(transaction: Transaction) -> Note | Refusal:
        if not is_known(transaction, number, subject, subject_id):
            return Refusal("not_found")
        return add_note(transaction, number, subject, subject_id, body.text, call.at_ms, entropy, member_of(call))

    made = await change(services, call, job)
    return made if isinstance(made, Refusal) else note_row(made)


async def remove_note(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../notes/{note_id}`: `204`. `404 not_found`."""
    number, (subject, subject_id) = call.organization.number, _about(call)
    job = partial(delete_note, number=number, subject=subject, subject_id=subject_id, note_id=call.path["note_id"])
    refusal = await change(services, call, job, may_use_reserve=True)
    return refusal if isinstance(refusal, Refusal) else None


def _about(call: Call) -> tuple[Subject, str]:
    """Return kind and id of the subject in the path."""
    if "visitor_id" in call.path:
        return "visitor", call.path["visitor_id"]
    return "account", call.path["account_id"]


def _routes_of_notes(whom: str, whose: str, path: str) -> tuple[Route, ...]:
    """Return the routes of notes about `whom`, such as `a visitor`; `whose` stands in the names of operations."""
    of_notes = partial(Route, tag="Management: notes", kinds=("management",), variables=_NOTE_ID)
    return (
        of_notes(
            operation_id=f"list{whose}Notes",
            path=ORGANIZATION + path,
            summary=f"List notes about {whom}",
            handler=list_notes,
        ),
        of_notes(
            operation_id=f"create{whose}Note",
            method="POST",
            path=ORGANIZATION + path,
            summary=f"Write a note about {whom}",
            description="At most 100. Notes are kept for 400 days; the erasure of their subject deletes them.",
            handler=create_note,
            needs="judge",
            body=NewNoteBody,
            status=201,
            errors=("note_limit",),
        ),
        of_notes(
            operation_id=f"delete{whose}Note",
            method="DELETE",
            path=ORGANIZATION + path + "/{note_id}",
            summary=f"Delete a note about {whom}",
            handler=remove_note,
            needs="judge",
            status=204,
        ),
    )


ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listReviews",
        path=ORGANIZATION + "/reviews",
        summary="List reviews",
        description=(
            "The one that was opened last first, for 400 days. A page with an assignee who has few may be short, or "
            "empty, and have a `next_cursor`."
        ),
        handler=list_reviews,
        query=ReviewsQuery,
    ),
    console_route(
        operation_id="listConsoleReviews",
        path="/reviews",
        summary="List the queue of open reviews",
        description=(
            "Those of an environment, the one that was opened first, first. A page may be short, or empty, and have a "
            "`next_cursor` where others have many."
        ),
        handler=list_queue,
        query=OpenReviewsQuery,
    ),
    console_route(
        operation_id="countConsoleReviews",
        path="/reviews/count",
        summary="Count the reviews of a list",
        description="Up to 10,000 are looked at.",
        handler=count_reviews,
        query=CountReviewsQuery,
    ),
    _route(
        operation_id="openReview",
        audited=Audited(made="review.id"),
        method="POST",
        path=ORGANIZATION + "/reviews",
        summary="Open a review",
        description=(
            "Of an event of any environment. A rule that decides `review` does the same. Of a visitor and account one "
            "is open at a time: where there is one, it is the response, with `200`."
        ),
        handler=open_by_hand,
        needs="judge",
        body=OpenReviewBody,
        status=201,
        other_responses=((200, ReviewAnswer),),
        errors=("event_not_found",),
    ),
    _route(
        operation_id="getReview",
        path=_REVIEW,
        summary="Read a review",
        handler=get_review,
    ),
    _route(
        operation_id="assignReview",
        method="PATCH",
        path=_REVIEW,
        summary="Assign a review",
        description="To a member, or to nobody.",
        handler=assign,
        needs="judge",
        body=AssignReviewBody,
        errors=("review_closed",),
    ),
    _route(
        operation_id="closeReview",
        method="POST",
        path=_REVIEW + "/close",
        summary="Close a review",
        description="The label goes to the event of the review, and to no other.",
        handler=close,
        needs="judge",
        body=CloseReviewBody,
        errors=("review_closed",),
    ),
    _route(
        operation_id="reopenReview",
        method="POST",
        path=_REVIEW + "/reopen",
        summary="Open a closed review again",
        description=(
            "Its label stays, on its event too, until it is closed the next time. `review.opened` is sent again. Not "
            "where another one of its visitor and account is open."
        ),
        handler=reopen,
        needs="judge",
        errors=("review_open",),
    ),
    *_routes_of_notes("a visitor", "Visitor", "/visitors/{visitor_id}/notes"),
    *_routes_of_notes("an account", "Account", "/accounts/{account_id}/notes"),
)
