"""Reviews: cases that a person decides, and notes (decisions 14.4, 14.5)."""

from svc.features.feature import Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("jobs",),
    retention=("jobs",),
    routes=("routes",),
    invariants=("jobs",),
    refusals={
        "review_closed": ErrorCode(409, "This review is closed. Open it again to change it."),
        "review_open": ErrorCode(409, "This review, or another one of its visitor and account, is open."),
        "note_limit": ErrorCode(409, "There are 100 notes about it, and may not be more. Delete one first."),
    },
)
