"""Events for people and servers: read, listed, changed, and watched as they come in."""

from svc.features.feature import Command, Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    routes=("routes", "console_routes"),
    refusals={
        "supplement_conflict": ErrorCode(409, "Another deferred report was accepted for this request, and stays."),
        "invalid_supplement": ErrorCode(
            422,
            "The token does not hold for this request, key and origin, or is over 24 hours old, or signals.tier is "
            "not 'deferred'.",
        ),
    },
    commands={
        "events": Command("Read and export", "List, explain and follow identifications."),
    },
)
