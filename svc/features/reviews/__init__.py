"""Reviews: cases that a person decides, and notes (decisions 14.4, 14.5)."""

from svc.features.feature import Feature

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("erasure",),
    retention=("retention",),
    routes=("routes",),
)
