"""How much the changes of one organization may add to the audit log in a day.

The log keeps them for 400 days in the store that all organizations share, and no other limit counts them: a key that
replaces its hundred origins twenty times a second would fill any disk within days. Counted in memory, by each worker
for itself: what matters is the order of magnitude.
"""

from __future__ import annotations

import msgspec

from svc.domain.access.audit import AuditRecord
from svc.domain.ids import DAY_MS
from svc.domain.limits.quotas import seconds_to_midnight
from svc.domain.refusals import Refusal, over_day

BYTES_A_DAY = 16 << 20
"""Of one organization and UTC day: some 50,000 changes, or 600 of a hundred long origins each."""


class AuditBudget:
    """What the organizations have used up today."""

    def __init__(self) -> None:
        self._used: dict[int, tuple[int, int]] = {}
        """By organization: the UTC day, and the bytes of its records."""

    def refusal(self, organization: int, at_ms: int) -> Refusal | None:
        """`429 rate_limited` until midnight where an organization has used up its budget."""
        day, used = self._used.get(organization, (0, 0))
        if day != at_ms // DAY_MS or used < BYTES_A_DAY:
            return None
        return over_day("the changes that it may make today", seconds_to_midnight(at_ms), "the audit budget")

    def note(self, record: AuditRecord) -> None:
        """Count a record that was stored."""
        today = record.at_ms // DAY_MS
        day, used = self._used.get(record.organization, (today, 0))
        length = len(msgspec.json.encode(record))  # what is stored has about as much
        self._used[record.organization] = (today, length + (used if day == today else 0))
