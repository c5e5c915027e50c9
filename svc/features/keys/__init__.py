"""API keys: issued, changed and revoked."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    retention=("jobs",),
    routes=("routes", "verdict_key_routes"),
    commands={
        "key": Command("Manage access", "Issue, list and revoke API keys."),
    },
)
