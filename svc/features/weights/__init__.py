"""Risk weights: saved, previewed and compared."""

from svc.features.feature import Feature

FEATURE = Feature(
    __name__,
    routes=("routes",),
)
