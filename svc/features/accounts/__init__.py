"""Accounts of a customer's site: their records, lists, links and erasure."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    routes=("routes", "console_routes", "link_routes"),
    commands={
        "account": Command("Read and export", "Show, list and erase accounts of an organization."),
    },
)
