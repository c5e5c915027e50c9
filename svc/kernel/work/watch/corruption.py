"""Corrupt rows: one of them fails the work for its own organization, and nothing else (decisions 17.5).

Owns which faults are known, so that each is logged once, and the counts. An actor that works for all organizations asks
`note` after a `CorruptionError`, and goes on with the next.
"""

from __future__ import annotations

from collections import Counter

import structlog

from svc.kernel.store.schema.codec import CorruptionError

log = structlog.get_logger()


MAX_LOGGED = 10_000
"""Faults that are remembered; of a store with more, some are logged again."""


class CorruptRows:
    """The corrupt rows that were found since the start."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        """How often corruption was found, by operation."""
        self._logged: set[str] = set()

    def note(self, doing: str, organization: int | None, error: CorruptionError) -> None:
        """Count a corrupt row that was met while `doing` something for an organization; log it the first time."""
        self.found[doing] += 1
        if str(error) not in self._logged:
            if len(self._logged) < MAX_LOGGED:
                self._logged.add(str(error))
            log.error("corrupt row", doing=doing, organization=organization, because=error.line)
