"""Retention: what has expired, and when it is deleted."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    commands={
        "retention": Command("Maintain the store", "Confirm the clock that retention goes by."),
    },
)
