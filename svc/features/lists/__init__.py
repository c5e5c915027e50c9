"""Lists of visitors, accounts, addresses and more, which rules look up (decisions 12)."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("erasure",),
    retention=("retention",),
    routes=("routes",),
    checks=("checks",),
    commands={
        "list": Command("Manage access", "Manage lists of visitors, accounts and addresses.", "command", "lists"),
    },
)
