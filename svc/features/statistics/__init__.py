"""Statistics of an environment, for the console."""

from svc.features.feature import Feature

FEATURE = Feature(
    __name__,
    routes=("routes",),
)
