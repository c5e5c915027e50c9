"""The state of an evaluation: the values that it has read, and how much it may still cost.

An `Evaluation` has all that one evaluation knows and changes: any number may go on at once, on any threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc.features.rules.language.values import EvaluationError

InList = Callable[[str], bool]
"""Whether this event's value of the kind of the list with this name is in it."""


class TooExpensiveError(Exception):
    """An evaluation that has used up its units. Nothing absorbs it."""

    def __init__(self) -> None:
        super().__init__("it has used up its share of time")


class Values(dict[str, Any]):
    """Variables of an event, each read when it is first asked for. `read` returns `None` for one without a value."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, name: str) -> Any:
        """Return the value of a variable. Raises `EvaluationError` if the event has none."""
        if not self.has(name):
            raise EvaluationError(f"the event has no {name}")
        return self[name]

    def has(self, name: str) -> bool:
        """Return whether the event has a value of this variable."""
        if name in self:
            return True
        value = self._read(name)
        if value is None:
            return False
        self[name] = value
        return True


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
