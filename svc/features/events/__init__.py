"""Events for people and servers: read, listed, changed, and watched as they come in."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    routes=("routes", "console_routes"),
    commands={
        "events": Command("Read and export", "List, explain and follow identifications."),
    },
)
