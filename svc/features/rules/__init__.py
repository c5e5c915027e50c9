"""Rules: conditions over an event, and what they decide (decisions 13)."""

from svc.features.feature import Command, Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    tables=("tables",),
    routes=("routes", "proposal_routes", "console_routes"),
    invariants=("invariants",),
    refusals={"proposal_limit": ErrorCode(409, "There are 20 proposals, and may not be more. Dismiss one first.")},
    commands={
        "rule": Command("Manage access", "Show, export and set rules."),
    },
)
