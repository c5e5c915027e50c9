"""Lists of visitors, accounts, addresses and more, which rules look up (decisions 12)."""

from svc.features.feature import Command, Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("jobs",),
    retention=("jobs",),
    routes=("routes", "standing_routes"),
    invariants=("invariants",),
    refusals={
        "list_exists": ErrorCode(409, "The organization has a list of this name. Choose another name."),
        "list_limit": ErrorCode(
            409,
            "The organization has 100 lists or 100,000 entries, and may not have more. Delete some first.",
        ),
        "list_permanent": ErrorCode(
            409,
            "This list is one of the six that every organization has, which are neither deleted nor renamed. Remove "
            "its entries instead.",
        ),
        "list_in_use": ErrorCode(
            409,
            "A rule, or the filter of a webhook endpoint, names this list. Take it out of that first, also where the "
            "rule is off.",
        ),
    },
    commands={
        "list": Command("Manage access", "Manage lists of visitors, accounts and addresses.", "command", "lists"),
    },
)
