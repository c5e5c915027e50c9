"""Rules: conditions over an event, and what they decide (decisions 13)."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    tables=("tables",),
    routes=("routes", "console_routes", "example_routes"),
    checks=("checks",),
    commands={
        "rule": Command("Manage access", "Show, export and set rules."),
    },
)
