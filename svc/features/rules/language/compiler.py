"""Compiles conditions: a checked tree becomes a function of Python, which is several times as fast as a closure a node.

What may live here: `Node` -> an expression of Python's syntax tree. What is an operator in both languages is written as
such, and whatever else is a call of its closure (`evaluators.py`).

In the language `&&` and `||` absorb an error where the other side decides, and in Python they do not: where a part
fails, the closures evaluate the condition again from its start, so that their result is the one that counts.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from svc.features.rules.language.evaluators import evaluator, is_of_values
from svc.features.rules.language.language import VARIABLES
from svc.features.rules.language.tree import Node
from svc.features.rules.language.values import FUNCTIONS, EvaluationError, Evaluator

_FUNCTION: Final = """
def evaluate(of):
    units, value = of.units, of.values
    try:
        return ...
    except FAILURES:
        of.units = units
        return closures(of)
"""
_LOGICAL: Final[dict[str, type[ast.boolop]]] = {"_&&_": ast.And, "_||_": ast.Or}
_COMPARISONS: Final[dict[str, type[ast.cmpop]]] = {
    "equals": ast.Eq,
    "not_equals": ast.NotEq,
    "less": ast.Lt,
    "less_equals": ast.LtE,
    "greater": ast.Gt,
    "greater_equals": ast.GtE,
}


def compiled_evaluator(tree: Node) -> Evaluator:
    """Return the function that evaluates a tree, with the results of `evaluator`."""
    closures = evaluator(tree)
    writer = _Writer()
    module = ast.parse(_FUNCTION)
    (definition,) = module.body
    assert isinstance(definition, ast.FunctionDef)
    (attempt,) = (each for each in definition.body if isinstance(each, ast.Try))
    attempt.body = [ast.Return(writer.of(tree))]
    space: dict[str, Any] = {**writer.called, "closures": closures, "FAILURES": (EvaluationError, KeyError)}
    # Texts of the condition are constants of the tree: no word of it becomes code.
    exec(compile(ast.fix_missing_locations(module), "<condition>", "exec"), space)  # noqa: S102
    return space["evaluate"]


class _Writer:
    def __init__(self) -> None:
        self.called: dict[str, Callable[..., Any]] = {}
        """What the expression calls, by name."""

    def of(self, node: Node) -> ast.expr:
        """Return a node as an expression over `of`, an evaluation, and `value`, the variables of its event."""
        if node.kind == "constant":
            return ast.Constant(node.value)
        if node.kind == "name" and node.name in VARIABLES:
            return _item(_name("value"), ast.Constant(node.name))
        if node.kind == "call" and node.name in _LOGICAL:
            return ast.BoolOp(_LOGICAL[node.name](), [self.of(part) for part in node.parts])
        if node.overload == "in_list_of_event" and node.parts[0].kind == "constant":
            return ast.Call(ast.Attribute(_name("of"), "in_list", ast.Load()), [ast.Constant(node.parts[0].value)], [])
        if is_of_values(node):
            return self._of_values(node.overload, [self.of(part) for part in node.parts])
        return self._call(evaluator(node), [_name("of")])

    def _of_values(self, overload: str, values: list[ast.expr]) -> ast.expr:
        comparison = _COMPARISONS.get(overload) or _COMPARISONS.get(overload.rpartition("_")[0])
        if comparison is not None:
            return ast.Compare(values[0], [comparison()], values[1:])
        if overload == "logical_not":
            return ast.UnaryOp(ast.Not(), *values)
        return _item(*values) if overload == "index_map" else self._call(FUNCTIONS[overload], values)

    def _call(self, function: Callable[..., Any], values: list[ast.expr]) -> ast.expr:
        name = f"function_{len(self.called)}"
        self.called[name] = function
        return ast.Call(_name(name), values, [])


def _name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load())


def _item(mapping: ast.expr, key: ast.expr) -> ast.expr:
    return ast.Subscript(mapping, key, ast.Load())
