"""The tables of reviews and notes."""

from __future__ import annotations

from svc.features.reviews.reviews import NOTE_MS, Note, Review
from svc.identify.model import SUBJECTS
from svc.kernel.store.schema.codec import Key, Opaque, Record
from svc.kernel.store.schema.key_parts import (
    DIGEST_16,
    ORDERED_ID,
    U32,
    U64,
    index_of,
)
from svc.kernel.store.schema.table import (
    Aged,
    ErasedBy,
    ErasedByKey,
    Swept,
    Table,
    With,
)

REVIEWS = Table(
    "reviews",
    Key(organization=U32, review=ORDERED_ID),
    Record(Review),
    Swept("400 days after it was opened"),
    ErasedBy("forget_reviews"),
    invariants=("reviews",),
    since=6,
)
OPEN_REVIEWS = Table(
    "open_reviews",
    Key(organization=U32, review=ORDERED_ID),
    Opaque(),
    With("reviews"),
    ErasedBy("forget_reviews"),
    invariants=("reviews",),
    since=6,
)
"""Those that are open."""
OPEN_CASES = Table(
    "open_cases",
    Key(organization=U32, case=DIGEST_16),
    Opaque("bytes"),
    With("reviews"),
    ErasedBy("forget_reviews"),
    invariants=("reviews",),
    since=6,
)
"""By the digest of visitor and account (`Review.case`): 20 bytes of the id of the review that is open."""
SUBJECT_REVIEWS = Table(
    "subject_reviews",
    Key(organization=U32, subject=index_of(SUBJECTS), id=U64, review=ORDERED_ID),
    Opaque(),
    With("reviews"),
    ErasedBy("forget_reviews"),
    invariants=("reviews",),
    since=6,
)
"""By the digest of a visitor's or an account's id: its reviews."""
NOTES = Table(
    "subject_notes",
    Key(organization=U32, subject=index_of(SUBJECTS), id=U64, note=ORDERED_ID),
    Record(Note),
    Aged(NOTE_MS, since="created_at_ms"),
    ErasedByKey("subject"),
    since=6,
)
"""By the digest of the id of the visitor or account that it is about; oldest first."""
