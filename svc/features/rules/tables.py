"""The tables of rules."""

from __future__ import annotations

from svc.features.rules.ruleset import Ruleset
from svc.identify.velocity.counts import KINDS
from svc.kernel.store.schema.codec import Key, Record
from svc.kernel.store.schema.key_parts import (
    U32,
    index_of,
)
from svc.kernel.store.schema.table import (
    WITH_ORGANIZATION,
    NotPersonal,
    Table,
    Until,
)

RULESETS = Table(
    "rulesets",
    Key(organization=U32, kind=index_of(KINDS)),
    Record(Ruleset, remembered=256),
    WITH_ORGANIZATION,
    NotPersonal("conditions are the customer's own text"),
    invariants=("rulesets",),
    since=6,
)
"""In force, of live or of test environments; no row = that of the start."""
RULESET_HISTORY = Table(
    "ruleset_history",
    Key(organization=U32, kind=index_of(KINDS), revision=U32),
    Record(Ruleset),
    Until("`MAX_REVISIONS` later ones were saved (`features/rules/jobs.py`)"),
    NotPersonal("conditions are the customer's own text"),
    invariants=("rulesets",),
    since=6,
)
"""The latest revisions that were in force, and revision 0 for good: it tells that others were saved."""
