"""The tables of rules."""

from __future__ import annotations

from svc.features.rules.ruleset import PROPOSAL_MS, Proposal, Ruleset
from svc.identify.velocity.counts import KINDS
from svc.kernel.store.schema.codec import Key, Record
from svc.kernel.store.schema.key_parts import (
    ORDERED_ID,
    U32,
    index_of,
)
from svc.kernel.store.schema.table import (
    WITH_ORGANIZATION,
    Aged,
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
"""In force, of live or of test environments; no row = the initial ruleset."""
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
RULE_PROPOSALS = Table(
    "rule_proposals",
    Key(organization=U32, kind=index_of(KINDS), proposal=ORDERED_ID),
    Record(Proposal),
    Aged(PROPOSAL_MS, since="created_at_ms"),
    NotPersonal("rules are the customer's own text; erasure takes ids out of the note (`features/erasure/texts.py`)"),
    since=9,
)
"""Rulesets that wait for an admin, oldest first."""
