"""Compiles conditions: a checked tree becomes a function of Python, which is several times as fast as a closure a node.

What may live here: `Node` -> an expression of Python, as text. What is an operator in both languages is written as
one, and whatever else is a call of its closure (`evaluators.py`).

In the language `&&` and `||` absorb an error where the other side decides, and in Python they do not: where a part
fails, the closures evaluate the condition again from its start, so that their result is the one that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from svc.features.rules.language.evaluation import Evaluator
from svc.features.rules.language.evaluators import evaluator, is_of_values
from svc.features.rules.language.language import VARIABLES
from svc.features.rules.language.tree import Node
from svc.features.rules.language.values import FUNCTIONS, EvaluationError

_FUNCTION: Final = """
def evaluate(of):
    units, value = of.units, of.values
    try:
        return {}
    except FAILURES:
        of.units = units
        return closures(of)
"""
_LOGICAL: Final = {"_&&_": "and", "_||_": "or"}
_COMPARISONS: Final = {
    "equals": "==",
    "not_equals": "!=",
    "less": "<",
    "less_equals": "<=",
    "greater": ">",
    "greater_equals": ">=",
}


def compiled_evaluator(tree: Node) -> Evaluator:
    """Return the function that evaluates a tree, with the results of `evaluator`. Each part of a part costs units, so
    that what is compiled (`COMPILED_UNITS`) has fewer parentheses within each other than Python can read.
    """
    closures, writer = evaluator(tree), _Writer()
    text = _FUNCTION.format(writer.of(tree))
    space: dict[str, Any] = {**writer.called, "closures": closures, "FAILURES": (EvaluationError, KeyError)}
    exec(text, space)  # noqa: S102  of the condition's own words only constants are in it, as `repr` writes them
    return space["evaluate"]


class _Writer:
    def __init__(self) -> None:
        self.called: dict[str, Callable[..., Any]] = {}
        """What the expression calls, by name."""

    def of(self, node: Node) -> str:
        """Return a node as an expression over `of`, an evaluation, and `value`, the variables of its event."""
        if node.kind == "constant" and isinstance(node.value, str | int):
            return repr(node.value)
        if node.kind == "name" and node.name in VARIABLES:
            return f"value[{node.name!r}]"
        if node.kind == "call" and node.name in _LOGICAL:
            left, right = map(self.of, node.parts)
            return f"({left} {_LOGICAL[node.name]} {right})"
        if node.overload == "in_list_of_event" and node.parts[0].kind == "constant":
            return f"of.in_list({node.parts[0].value!r})"
        if is_of_values(node):
            return self._of_values(node.overload, *map(self.of, node.parts))
        return self._call(evaluator(node), "of")

    def _of_values(self, overload: str, *values: str) -> str:
        comparison = _COMPARISONS.get(overload) or _COMPARISONS.get(overload.rpartition("_")[0])
        if comparison is not None:
            return f"({values[0]} {comparison} {values[1]})"
        if overload == "logical_not":
            return f"(not {values[0]})"
        return f"{values[0]}[{values[1]}]" if overload == "index_map" else self._call(FUNCTIONS[overload], *values)

    def _call(self, function: Callable[..., Any], *values: str) -> str:
        name = f"function_{len(self.called)}"
        self.called[name] = function
        return f"{name}({', '.join(values)})"
