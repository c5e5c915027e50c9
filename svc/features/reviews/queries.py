"""Read queries about reviews and notes (decisions 14.4, 14.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from svc.features.accounts.queries import has_events
from svc.features.labels.performance import LabelCounts
from svc.features.labels.queries import NO_LABELS, account_number, labels_of
from svc.features.reviews.reviews import Note, Review
from svc.features.reviews.tables import NOTES, OPEN_REVIEWS, REVIEWS, SUBJECT_REVIEWS
from svc.identify.model import SUBJECTS, Subject
from svc.identify.records import Event
from svc.identify.tables import ACCOUNT_ERASURES, ERASURES, VISITOR_IDS
from svc.identify.velocity.counts import ACCOUNT_ID, EnvironmentKind, account_digest
from svc.kernel.store.snapshot import Snapshot, all_present
from svc.kernel.values.ids import is_visitor_id, ordered_id_ms, raw_ordered_id

BEYOND_ALL = b"\xff" * 20
"""Above the 20 bytes of every id."""


def subject_digest(number: int, subject: Subject, subject_id: str) -> int:
    """Return the 64-bit digest that stands in keys for the id of a visitor or an account of the organization."""
    if subject == "account":
        return account_digest(number, subject_id)
    return int.from_bytes(blake2b(subject_id.encode(), digest_size=8).digest())


def subject_stem(number: int, subject: Subject, subject_id: str) -> tuple[int, int]:
    """Return the two key parts that stand for a visitor or an account: `subject` and `id`."""
    return SUBJECTS.index(subject), subject_digest(number, subject, subject_id)


def find_review(snapshot: Snapshot, number: int, review_id: str) -> Review | None:
    """Return a review of the organization by its id; `None` if there is none."""
    raw_id = raw_ordered_id("rev", review_id)
    return None if raw_id is None else snapshot.get(REVIEWS, number, raw_id)


def opened_review(snapshot: Snapshot, number: int, raw_id: bytes) -> Review:
    """Return a review that another row names as open. Raises `CorruptionError` if it is missing."""
    ((_, review),) = _opened_reviews(snapshot, number, [raw_id])
    return review


def _opened_reviews(snapshot: Snapshot, number: int, raw_ids: Iterable[bytes]) -> list[tuple[bytes, Review]]:
    rows = ((raw_id, snapshot.get(REVIEWS, number, raw_id)) for raw_id in raw_ids)
    return all_present(rows, lambda raw_id: f"the review {raw_id.decode()} is missing, and it is among the open ones")


def first_open_reviews(snapshot: Snapshot, after: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield (organization, when its oldest open review was opened in Unix ms) of the next `limit` organizations that
    have one, above the number `after`. Each costs one seek.
    """
    for _ in range(limit):
        key = next((key for key, _ in snapshot.scan(OPEN_REVIEWS, start=(after + 1,))), None)
        if key is None:
            return
        after, raw_id = key
        yield after, ordered_id_ms(raw_id)


def reviews_below(
    snapshot: Snapshot, number: int, below: bytes, limit: int, *, only_open: bool
) -> list[tuple[bytes, Review]]:
    """Return (20 bytes of its id, review) of the newest `limit` reviews older than the one with the id `below`, newest
    first; with `only_open`, only open ones, and then raise `CorruptionError` if one of them is missing.
    """
    if not only_open:
        rows = snapshot.scan_reverse(REVIEWS, (number,), (number, below))
        return [(raw_id, review) for (_, raw_id), review in islice(rows, limit)]
    keys = islice(snapshot.scan_keys_reverse(OPEN_REVIEWS, (number,), (number, below)), limit)
    return _opened_reviews(snapshot, number, (raw_id for _, raw_id in keys))


def open_reviews_above(snapshot: Snapshot, number: int, above: bytes, limit: int) -> list[tuple[bytes, Review]]:
    """Return (20 bytes of its id, review) of the oldest `limit` open reviews newer than the one with the id `above`,
    which may be empty, oldest first. Raises `CorruptionError` if one of them is missing.
    """
    keys = (raw_id for _, raw_id in snapshot.scan_keys(OPEN_REVIEWS, (number, above.ljust(20, b"\0")), (number + 1,)))
    return _opened_reviews(snapshot, number, islice((raw_id for raw_id in keys if raw_id > above), limit))


def reviews_of(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> Iterator[Review]:
    """Yield the reviews of a visitor or an account, oldest first."""
    stem = (number, *subject_stem(number, subject, subject_id))
    for *_, raw_id in snapshot.keys_of(SUBJECT_REVIEWS, *stem):
        review = snapshot.get(REVIEWS, number, raw_id)
        named = None if review is None else review.visitor_id if subject == "visitor" else review.account_id
        if review is not None and named == subject_id:  # another may have its digest
            yield review


def notes_of(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> list[Note]:
    """Return the notes about a visitor or an account, oldest first: at most 100."""
    stem = (number, *subject_stem(number, subject, subject_id))
    return [note for _, note in snapshot.scan(NOTES, *stem)]


def count_notes(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> int:
    """Return the number of notes about a visitor or an account, without reading them."""
    return sum(1 for _ in snapshot.keys_of(NOTES, number, *subject_stem(number, subject, subject_id)))


def is_known(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> bool:
    """Return whether a visitor or an account with this id exists: it has events, labels or notes, and is not being
    erased. `subject_id` may be any text.
    """
    if subject == "visitor":
        if not is_visitor_id(subject_id) or snapshot.has(ERASURES, number, subject_id.encode()):
            return False
        is_numbered = snapshot.has(VISITOR_IDS, number, subject_id.encode())
    else:
        if not ACCOUNT_ID.fullmatch(subject_id):
            return False
        if snapshot.has(ACCOUNT_ERASURES, number, account_digest(number, subject_id)):
            return False
        is_numbered = bool(account_number(snapshot, number, subject_id))
    return (
        is_numbered
        or has_events(snapshot, number, subject, subject_id)
        or count_notes(snapshot, number, subject, subject_id) > 0
    )


class Judged(NamedTuple):
    """The labels and notes that people gave a visitor or an account."""

    labels: LabelCounts
    notes_count: int


def judged(
    snapshot: Snapshot,
    number: int,
    kind: EnvironmentKind,
    subject: Subject,
    subject_id: str,
    events: Iterable[Event],
) -> Judged:
    """Return the labels in the environments of a kind, and the notes. `events`: the events that were found; a visitor
    who is not identifiable has no others, so its labels are counted from them.
    """
    labels = labels_of(snapshot, number, kind, subject, subject_id)
    if labels == NO_LABELS and subject == "visitor":
        for event in events:
            if event.label is not None:
                labels = labels.adding(event.label, 1)
    return Judged(labels, count_notes(snapshot, number, subject, subject_id))
