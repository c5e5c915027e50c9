"""Test verdicts: what a report of a development key asks for, so that a customer's tests reach each branch (decisions
13.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from svc.identify.model import Observation
from svc.identify.scoring.signals import CATALOGUE
from svc.identify.velocity.counts import MOST
from svc.kernel.values.refusals import Issue, Refusal, invalid

FIELD = "test"
"""Field of a report. With a key of another environment it is ignored, as any unknown content is."""


class TestVerdict(msgspec.Struct, frozen=True):
    """The verdict that the report of a development key asks for."""

    __test__ = False
    signals: tuple[str, ...] = ()
    """Signals that fire."""
    account_velocity: int = 0
    """The least number of accounts of the visitor, in every window."""

    def added_to(self, observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
        """Return the observations with those that are asked for and were not made."""
        made = {observation.signal for observation in observations}
        asked = (name for name in dict.fromkeys(self.signals) if name not in made)
        return (*observations, *(Observation(name, "high", ("test_verdict",)) for name in asked))


NONE = TestVerdict()


def read_test_verdict(signals: Mapping[str, Any]) -> TestVerdict | Refusal:
    """Return what a report asks for; `422 validation_error` for a field of another shape, `unknown_signal` for one that
    is not in the catalog.
    """
    if FIELD not in signals:
        return NONE
    asked = signals[FIELD]
    for name, issue in _faults(asked):
        return invalid(f"signals.{FIELD}{name}", issue)
    return TestVerdict(tuple(asked.get("signals", ())), asked.get("account_velocity", 0))


def _faults(asked: Any) -> Iterator[tuple[str, Issue]]:
    if not isinstance(asked, dict):
        yield "", "wrong_type"
        return
    fields = cast("dict[str, Any]", asked)
    for name in sorted(fields.keys() - {"signals", "account_velocity"}):
        yield f".{name}", "unknown_field"
    names, accounts = fields.get("signals", []), fields.get("account_velocity", 0)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[Any]", names)):
        yield ".signals", "wrong_type"
    elif any(name not in CATALOGUE for name in cast("list[str]", names)):
        yield ".signals", "unknown_signal"
    if type(accounts) is not int:
        yield ".account_velocity", "wrong_type"
    elif not 0 <= accounts <= MOST:
        yield ".account_velocity", "invalid_value"
