"""State of an evaluation: all that it knows and changes, so that any number of them may go on at once, on any threads.

What may live here: the state, its errors, and the type of what evaluates. `evaluators.py` makes evaluators of trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc.features.rules.language.values import EvaluationError

InList = Callable[[str], bool]
"""Whether this event's value of the kind of the list with this name is in it."""


class AbsentError(EvaluationError):
    """A variable without a value."""


class TooExpensiveError(Exception):
    """An evaluation that has used up its units. Nothing absorbs it."""


class Values(dict[str, Any]):
    """Variables of an event, each read when it is first asked for; `None` = it has no value."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._read(name)
        return value


class Evaluation:
    """One evaluation, or several of one event after another. `units`: what it may still cost (`cost.BUDGET`)."""

    __slots__ = ("elements", "in_list", "units", "values")

    def __init__(self, values: Values, in_list: InList, units: int) -> None:
        self.values = values
        self.in_list = in_list
        self.units = units
        self.elements: list[Any] = []
        """Of the macros that are open, the outermost first."""

    def spend(self, units: int) -> None:
        """Count down. Raises `TooExpensiveError`."""
        self.units -= units
        if self.units < 0:
            raise TooExpensiveError


Evaluator = Callable[[Evaluation], Any]
"""Returns a value. Raises `EvaluationError`, `TooExpensiveError`, and what `in_list` raises."""
