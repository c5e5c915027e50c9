"""Settlement of days, credit, and the console's pages about money."""

from svc.features.feature import Feature

FEATURE = Feature(
    __name__,
    routes=("console_routes",),
)
