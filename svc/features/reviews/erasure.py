"""Reviews of a visitor or an account."""

from __future__ import annotations

from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.reviews.jobs import forget_reviews, review_rows, webhook_event_ids
from svc.features.reviews.queries import reviews_of
from svc.features.reviews.tables import OPEN_CASES, OPEN_REVIEWS, REVIEWS, SUBJECT_REVIEWS
from svc.features.webhooks.jobs.deliveries import webhook_event_rows
from svc.identify.model import Subject
from svc.kernel.store.snapshot import Snapshot


def _is_reviewed(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> bool:
    return any(reviews_of(snapshot, number, subject, subject_id))


def _of_visitor(snapshot: Snapshot, number: int, _: int, raw_id: bytes) -> Keys:
    for review in reviews_of(snapshot, number, "visitor", raw_id.decode()):
        yield from review_rows(number, review)
        for event_id in webhook_event_ids(review):
            yield from webhook_event_rows(snapshot, number, event_id)


ERASED = {"forget_reviews": Erased((REVIEWS, OPEN_REVIEWS, OPEN_CASES, SUBJECT_REVIEWS), of_visitor=_of_visitor)}
FORGET = Forgetting(is_known=_is_reviewed, step=forget_reviews)
