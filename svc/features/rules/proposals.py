"""Proposals: draft rulesets that members submit for an admin's approval."""

from __future__ import annotations

from typing import Final

import msgspec

from svc.features.rules.ruleset import Rule
from svc.kernel.values.ids import DAY_MS

MAX_PROPOSALS: Final = 20
"""Of an organization and kind of environment."""
PROPOSAL_MS: Final = 90 * DAY_MS
"""How long a proposal is kept that nobody takes or dismisses."""
LONGEST_PROPOSAL_NOTE: Final = 500
"""Characters."""


class Proposal(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A whole ruleset that is submitted for approval. Append fields with defaults, never move them."""

    id: str
    revision: int
    """Of the ruleset that it was made from."""
    rules: tuple[Rule, ...]
    note: str
    created_at_ms: int
    author: str | None = None
    """The member who made it."""
