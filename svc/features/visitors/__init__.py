"""Visitors for people and servers: listed, shown and erased."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    routes=("routes",),
    commands={
        "visitor": Command("Read and export", "Show, list, export and erase visitors; revoke browser keys."),
    },
)
