"""Organizations as the operator manages them, and their settings."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    routes=("routes",),
    commands={
        "org": Command("Manage access", "Manage organizations, credit, billing and limits."),
    },
)
