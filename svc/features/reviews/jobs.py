"""Reviews and notes: opened by a rule or a person, assigned, closed with a label, opened again, erased, and deleted
after 400 days (decisions 14.4, 14.5, 15.5).

Of a visitor and account one review is open at a time. Bounds: a decision `review` reads two rows more and, where it
opens a review, writes five and its webhook event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from svc.features.contracts.cleanup import CleanupStep, CleanupTask, Pass
from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.members.jobs import find_member
from svc.features.reviews.queries import count_notes, find_review, opened_review, reviews_of, subject_stem
from svc.features.reviews.reviews import (
    MAX_NOTES,
    MAX_NOTIFIED,
    REVIEW_MS,
    Note,
    Review,
    case_of,
    review_of,
    review_row,
)
from svc.features.reviews.tables import NOTES, OPEN_CASES, OPEN_REVIEWS, REVIEWS, SUBJECT_REVIEWS
from svc.features.rules.jobs import facts_now
from svc.features.rules.ruleset import Facts
from svc.features.webhooks.content.envelope import derived_event_id, with_note, without_account
from svc.features.webhooks.jobs.cleanup import change_body, purge_webhook_event, webhook_event_rows
from svc.features.webhooks.jobs.deliveries import enqueue_about
from svc.features.webhooks.records import EventType, webhook_environment
from svc.identify.model import Label, Subject
from svc.identify.records import RETENTION_MS, Event
from svc.identify.tables import EVENTS
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import STEP_ROWS, items_of_step
from svc.kernel.tenants.queries import organization
from svc.kernel.values.ids import first_ordered_id, ordered_id, ordered_id_ms, raw_ordered_id
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import Refusal, invalid


class Reviewed(NamedTuple):
    """A review after a change."""

    review: Review
    queues: tuple[EndpointKey, ...] = ()
    """Webhook endpoints to which something is due now."""
    is_new: bool = False


def open_review(  # noqa: PLR0913  what is sent, and to whom
    transaction: Transaction,
    number: int,
    request_id: bytes,
    event: Event,
    now_ms: int,
    entropy: bytes,
    opened_by: str | None = None,
    *,
    notify: bool = True,
    notified: Sequence[EndpointKey] = (),
    trace: TraceContext | None = None,
) -> Reviewed:
    """Return the open review of the visitor and account of an event; create it for this event if there is none.
    `entropy`: random bytes for its id; `notify`: whether to send webhooks about it, with the `trace`; `notified`: see
    `enqueue_about`.
    """
    raw_id = transaction.get(OPEN_CASES, number, case_of(event.environment, event.verdict.visitor_id, event.account_id))
    if raw_id is not None:
        return Reviewed(opened_review(transaction, number, raw_id))
    review = review_of(event, request_id, now_ms, entropy, opened_by)
    _put(transaction, number, review)
    queues = _notify(transaction, number, "review.opened", review, now_ms, trace, notified) if notify else ()
    return Reviewed(review, queues, is_new=True)


def assign_review(transaction: Transaction, number: int, review_id: str, assignee: str | None) -> Review | Refusal:
    """Assign an open review to a member of the organization, or to nobody with `None`. Refusals: `404 not_found`, `409
    review_closed`, `422` (`invalid_value`) if the assignee is not a member.
    """
    review = _open_one(transaction, number, review_id)
    if isinstance(review, Refusal):
        return review
    if assignee is not None and find_member(transaction, number, assignee) is None:
        return invalid("assignee", "invalid_value")
    assigned = msgspec.structs.replace(review, assignee=assignee)
    transaction.put(REVIEWS, (number, review.raw_id), assigned)
    return assigned


class Closing(NamedTuple):
    """The result of a review."""

    label: Label
    reason: str | None
    note: str | None
    closed_by: str | None = None
    trace: TraceContext | None = None
    """Of the request, for webhooks."""


def close_review(
    transaction: Transaction, number: int, review_id: str, closing: Closing, now_ms: int
) -> Reviewed | Refusal:
    """Close a review and label its event, and no other event. Refusals: `404 not_found`, `409 review_closed`. An event
    that arrived more than 400 days ago is not labeled.
    """
    review = _open_one(transaction, number, review_id)
    if isinstance(review, Refusal):
        return review
    now_ms = max(now_ms, (review.reopened_at_ms or 0) + 1)
    closed = msgspec.structs.replace(
        review,
        closed_at_ms=now_ms,
        closed_by=closing.closed_by,
        label=closing.label,
        label_reason=closing.reason,
        note=closing.note,
    )
    label_request(transaction, number, review.request_id, LabelChange(closing.label, closing.reason), now_ms)
    transaction.put(REVIEWS, (number, review.raw_id), closed)
    transaction.delete(OPEN_REVIEWS, number, review.raw_id)
    transaction.delete(OPEN_CASES, number, review.case)
    return Reviewed(closed, _notify(transaction, number, "review.closed", closed, now_ms, closing.trace))


def reopen_review(
    transaction: Transaction,
    number: int,
    review_id: str,
    now_ms: int,
    reopened_by: str | None = None,
    *,
    trace: TraceContext | None = None,
) -> Reviewed | Refusal:
    """Open a closed review again; its label stays until it is closed the next time, on its event too. Refusals: `404
    not_found`, `409 review_open` if it or another one of its visitor and account is open, `429 rate_limited` after
    `MAX_NOTIFIED` changes within 30 days.
    """
    review = find_review(transaction, number, review_id)
    if review is None:
        return Refusal("not_found")
    if review.closed_at_ms is None or transaction.has(OPEN_CASES, number, review.case):
        return Refusal("review_open")
    at_ms = max(now_ms, review.closed_at_ms + 1)  # webhooks of one review have ids by the time
    notified_ms = tuple(each for each in review.notified_ms if each > now_ms - RETENTION_MS)
    if len(notified_ms) >= MAX_NOTIFIED:
        wait_ms = notified_ms[-MAX_NOTIFIED] + RETENTION_MS - now_ms
        return Refusal("rate_limited", retry_after_s=-(-wait_ms // 1000), explanation=_TOO_OFTEN)
    reopened = msgspec.structs.replace(
        review,
        closed_at_ms=None,
        closed_by=None,
        reopened_at_ms=at_ms,
        reopened_by=reopened_by,
        notified_ms=(*notified_ms, review.closed_at_ms, at_ms),
    )
    _put(transaction, number, reopened)
    return Reviewed(reopened, _notify(transaction, number, "review.opened", reopened, at_ms, trace))


_TOO_OFTEN = "This review was closed and opened again too often within 30 days."


def _open_one(snapshot: Snapshot, number: int, review_id: str) -> Review | Refusal:
    review = find_review(snapshot, number, review_id)
    if review is None:
        return Refusal("not_found")
    return review if review.state == "open" else Refusal("review_closed")


def _notify(
    transaction: Transaction,
    number: int,
    event_type: EventType,
    review: Review,
    at_ms: int,
    trace: TraceContext | None,
    notified: Sequence[EndpointKey] = (),
) -> tuple[EndpointKey, ...]:
    environment = webhook_environment(review.environment)
    event_id = derived_event_id(event_type, review.raw_id, at_ms)

    def facts() -> Facts | None:
        event = transaction.get(EVENTS, number, review.request_id)
        if event is None:
            return None
        judged = msgspec.structs.replace(event, label=None)  # what the review came to counts among the labels
        return facts_now(transaction, organization(transaction, number), judged, at_ms)

    row = review_row(review)
    return enqueue_about(
        transaction, number, event_id, event_type, environment, row, at_ms, facts, notified=notified, trace=trace
    )


def webhook_event_ids(review: Review) -> Iterator[bytes]:
    """Yield the ids (16 bytes) of the webhook events about a review."""
    yield derived_event_id("review.opened", review.raw_id, review.opened_at_ms).bytes
    if review.closed_at_ms is not None:
        yield derived_event_id("review.closed", review.raw_id, review.closed_at_ms).bytes
    for at_ms in review.notified_ms:
        for event_type in _NOTIFIED:
            yield derived_event_id(event_type, review.raw_id, at_ms).bytes


_NOTIFIED: tuple[EventType, ...] = ("review.closed", "review.opened")


def review_rows(number: int, review: Review) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    """Yield (table, key) of every row of a review."""
    yield REVIEWS, (number, review.raw_id)
    if review.state == "open":
        yield OPEN_REVIEWS, (number, review.raw_id)
        yield OPEN_CASES, (number, review.case)
    named: tuple[tuple[Subject, str | None], ...] = (("visitor", review.visitor_id), ("account", review.account_id))
    for subject, subject_id in named:
        if subject_id is not None:
            yield SUBJECT_REVIEWS, (number, *subject_stem(number, subject, subject_id), review.raw_id)


ROWS_OF_A_REVIEW = 8


def _put(transaction: Transaction, number: int, review: Review) -> None:
    for table, key in review_rows(number, review):
        value: Any = review if table is REVIEWS else review.raw_id if table is OPEN_CASES else b""
        transaction.put(table, key, value)


def _delete(transaction: Transaction, number: int, review: Review) -> int:
    """Delete the rows of a review; return how many there were."""
    return sum(transaction.delete(table, *key) for table, key in review_rows(number, review))


def forget_reviews(transaction: Transaction, number: int, subject: Subject, subject_id: str) -> bool:
    """Delete some reviews of a visitor that is being erased, or remove an account that is being erased from some of its
    reviews; do the same with webhooks about them that are still to be sent. Return whether none is left: else this is
    to be called again, in another transaction.

    A visitor and account have at most one open review: an open one that loses its account is deleted if the visitor has
    an open review without an account too.
    """
    rows, most = 0, STEP_ROWS // 2  # the last review of a step may have many, and each is written again
    own = transaction.keys_of(SUBJECT_REVIEWS, number, *subject_stem(number, subject, subject_id))
    _delete_unreadable(transaction, number, [raw_id for *_, raw_id in islice(own, most + 1)])
    found = list(islice(reviews_of(transaction, number, subject, subject_id), most + 1))
    for review in found:
        if rows >= most:
            return False
        rows += _delete(transaction, number, review)
        left = msgspec.structs.replace(review, account_id=None)
        is_second = review.state == "open" and transaction.has(OPEN_CASES, number, left.case)
        for event_id in webhook_event_ids(review):
            if subject == "visitor":
                rows += purge_webhook_event(transaction, number, event_id)
            else:
                rows += change_body(transaction, number, event_id, without_account)
        if subject == "account" and not is_second:
            _put(transaction, number, left)
    return True


def _delete_unreadable(transaction: Transaction, number: int, raw_ids: Iterable[bytes]) -> None:
    """Delete those of some reviews that are corrupt (`erasure/unreadable`), with what names them."""
    for raw_id in raw_ids:
        if transaction.get(REVIEWS, number, raw_id) is None and transaction.has(REVIEWS, number, raw_id):
            named = [
                (SUBJECT_REVIEWS, key) for key in transaction.keys_of(SUBJECT_REVIEWS, number) if key[-1] == raw_id
            ]
            cases = [(OPEN_CASES, key) for key, of in transaction.scan(OPEN_CASES, number) if of == raw_id]
            for table, key in (*named, *cases, (REVIEWS, (number, raw_id)), (OPEN_REVIEWS, (number, raw_id))):
                transaction.delete(table, *key)
            opened = derived_event_id("review.opened", raw_id, ordered_id_ms(raw_id))
            purge_webhook_event(transaction, number, opened.bytes)


def change_note(transaction: Transaction, number: int, review: Review, change: Callable[[str], str]) -> int:
    """Change what was written whenever a review was closed, also in webhooks; return how many rows that took."""
    note = None if review.note is None else change(review.note)
    is_changed = note != review.note
    if is_changed:
        transaction.put(REVIEWS, (number, review.raw_id), msgspec.structs.replace(review, note=note))
    sent = tuple(webhook_event_ids(review)) if is_changed or review.notified_ms else ()
    for event_id in sent:
        change_body(transaction, number, event_id, partial(with_note, change=change))
    return is_changed + len(sent)


def add_note(
    transaction: Transaction,
    number: int,
    subject: Subject,
    subject_id: str,
    text: str,
    now_ms: int,
    entropy: bytes,
    author: str | None = None,
) -> Note | Refusal:
    """Write a note about a visitor or an account; the caller has checked that it exists. Refuses with `409 note_limit`
    beyond `MAX_NOTES`.
    """
    if count_notes(transaction, number, subject, subject_id) >= MAX_NOTES:
        return Refusal("note_limit")
    note = Note(id=ordered_id("note", now_ms, entropy), text=text, created_at_ms=now_ms, author=author)
    raw_id = raw_ordered_id("note", note.id)
    assert raw_id is not None
    transaction.put(NOTES, (number, *subject_stem(number, subject, subject_id), raw_id), note)
    return note


def delete_note(
    transaction: Transaction, number: int, subject: Subject, subject_id: str, note_id: str
) -> Refusal | None:
    """Delete a note about a visitor or an account; `404 not_found` if there is no such note."""
    raw_id = raw_ordered_id("note", note_id)
    if raw_id is None or not transaction.delete(NOTES, number, *subject_stem(number, subject, subject_id), raw_id):
        return Refusal("not_found")
    return None


def _is_reviewed(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> bool:
    return any(reviews_of(snapshot, number, subject, subject_id))


def _of_subject(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> Keys:
    for review in reviews_of(snapshot, number, subject, subject_id):
        yield from review_rows(number, review)
        for event_id in webhook_event_ids(review):
            yield from webhook_event_rows(snapshot, number, event_id)


ERASED = {
    "forget_reviews": Erased((REVIEWS, OPEN_REVIEWS, OPEN_CASES, SUBJECT_REVIEWS), of_subject=_of_subject),
}
FORGET = Forgetting(is_known=_is_reviewed, step=forget_reviews)


def _delete_old(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Delete some reviews opened more than 400 days ago, oldest first."""
    (number,), most = start, items_of_step(ROWS_OF_A_REVIEW)
    keys = transaction.scan_keys(REVIEWS, start, (number, first_ordered_id(now_ms - REVIEW_MS)))
    old = [review for key in islice(keys, most) if (review := transaction.get(REVIEWS, *key))]
    for review in old:
        _delete(transaction, number, review)
    return CleanupStep(len(old), start if len(old) == most else None)


PASSES: tuple[Pass, ...] = (
    lambda sweep: CleanupTask(REVIEWS.name, partial(_delete_old, sweep.now_ms), (sweep.number,)),
)


def review_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield what is wrong with the reviews of an organization, in words."""
    rows = Counter[str]()
    for (_, raw_id), review in snapshot.scan(REVIEWS, number):
        if review.raw_id != raw_id:
            yield f"review {review.id} of organization {number} lies under another id"
        was_closed = review.state == "closed" or review.reopened_at_ms is not None
        if (review.label is not None) != was_closed:
            yield f"review {review.id} of organization {number} is {review.state} and its label says otherwise"
        for table, key in review_rows(number, review):
            rows[table.name] += 1
            if not snapshot.has(table, *key):
                yield f"review {review.id} of organization {number} has no row in {table.name}"
    for table in (OPEN_REVIEWS, OPEN_CASES, SUBJECT_REVIEWS):
        if sum(1 for _ in snapshot.scan_keys(table, (number,), (number + 1,))) != rows[table.name]:
            yield f"{table.name} of organization {number} has rows of reviews that do not say so"


RULES = {"reviews": review_faults}
