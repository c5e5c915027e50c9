"""The rules of reviews: each has its rows, and no others are there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from svc.features.reviews.jobs import review_rows
from svc.features.reviews.tables import OPEN_CASES, OPEN_REVIEWS, REVIEWS, SUBJECT_REVIEWS
from svc.kernel.store.snapshot import Snapshot


def review_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield what is wrong with the reviews of an organization, in words."""
    rows: defaultdict[str, int] = defaultdict(int)
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
