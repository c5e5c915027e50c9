"""The audit log, for reading."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "audit": Command("Manage access", "Show who changed what, when and from where."),
    },
)
