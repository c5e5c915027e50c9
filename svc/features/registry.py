"""FEATURES: the only list of what the service is made of. Tables, routes, invariants, erasure, retention and commands
are loops over it.
"""

from __future__ import annotations

from svc.features import (
    accounts,
    audit,
    billing,
    browser_keys,
    changes,
    erasure,
    events,
    exports,
    identification,
    keys,
    labels,
    lists,
    members,
    organizations,
    retention,
    reviews,
    rules,
    statistics,
    views,
    visitors,
    webhooks,
    weights,
)
from svc.features.feature import Feature

FEATURES: tuple[Feature, ...] = (
    Feature("svc.kernel", tables=("store.tables", "tenants.tables", "access.tables")),
    Feature("svc.identify", tables=("tables",), invariants=("invariants",)),
    identification.FEATURE,
    organizations.FEATURE,
    events.FEATURE,
    changes.FEATURE,
    accounts.FEATURE,
    visitors.FEATURE,
    exports.FEATURE,
    erasure.FEATURE,
    keys.FEATURE,
    browser_keys.FEATURE,
    weights.FEATURE,
    lists.FEATURE,
    rules.FEATURE,
    labels.FEATURE,
    reviews.FEATURE,
    members.FEATURE,
    billing.FEATURE,
    audit.FEATURE,
    webhooks.FEATURE,
    statistics.FEATURE,
    views.FEATURE,
    retention.FEATURE,
)
"""In the order in which tables and routes are documented."""
