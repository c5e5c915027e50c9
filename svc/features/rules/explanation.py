"""Why a condition is true or false of an event: its terms, each with the values that it compares.

What may live here: the checked tree of a condition taken apart at `&&`, `||` and `!`, and what each part comes to.
Every part is evaluated as the whole is; nothing is concluded here from its parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, cast

from svc.features.rules.language.conditions import variables_in
from svc.features.rules.language.evaluation import Evaluation, TooExpensiveError
from svc.features.rules.language.evaluators import evaluator
from svc.features.rules.language.language import ConditionError, checked_tree
from svc.features.rules.language.literals import readable
from svc.features.rules.language.tree import Node, Type
from svc.features.rules.language.values import EvaluationError, written_duration, written_timestamp

LONGEST_VALUE: Final = 200
"""Characters of a value that are shown."""
_RELATIONS: Final = {
    "_==_": "==",
    "_!=_": "!=",
    "_<=_": "<=",
    "_>=_": ">=",
    "_<_": "<",
    "_>_": ">",
    "@in": "in",
}
TermKind = Literal["all", "any", "not", "term"]


class Operand(NamedTuple):
    """One side of a comparison."""

    text: str
    value: str | None
    """As a condition would write it; `None` for a literal, which says so itself, and for one without a value."""


class Term(NamedTuple):
    """A part of a condition."""

    kind: TermKind
    """`all` and `any` of `terms`; `not` the one of `terms`; or a `term` that has no parts."""
    text: str
    result: bool | None
    """`None` where its evaluation fails."""
    terms: tuple[Term, ...] = ()
    operator: str | None = None
    """Of a comparison."""
    left: Operand | None = None
    right: Operand | None = None
    absent: tuple[str, ...] = ()
    """Variables that it names and the event has no value of; of a `term` alone."""


def explain(condition: str, evaluation: Evaluation) -> Term | None:
    """Return the terms of a condition for an event; `None` for one that this version cannot read. Blocks for about a
    tenth of a millisecond a term.
    """
    try:
        tree = readable(checked_tree(condition))
    except ConditionError:
        return None
    return _Explanation(evaluation).of(tree)


class _Explanation:
    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._units = evaluation.units

    def of(self, node: Node) -> Term:
        text, found = written(node), self._value(node)
        result = found if isinstance(found, bool) else None
        match node.name if node.kind == "call" else "":
            case "_&&_" | "_||_" as name:
                return Term("all" if name == "_&&_" else "any", text, result, tuple(map(self.of, _joined(node, name))))
            case "!_":
                return Term("not", text, result, (self.of(node.parts[0]),))
            case name:
                absent = tuple(sorted(each for each in variables_in(node) if not self._evaluation.values.has(each)))
                if name not in _RELATIONS:
                    return Term("term", text, result, absent=absent)
                left, right = map(self._operand, node.parts)
                return Term("term", text, result, (), _RELATIONS[name], left, right, absent)

    def _value(self, node: Node) -> Any:
        self._evaluation.units = self._units
        try:
            return evaluator(node)(self._evaluation)
        except (EvaluationError, TooExpensiveError):
            return None

    def _operand(self, node: Node) -> Operand:
        if node.kind == "constant":
            return Operand(written(node), None)
        found = self._value(node)
        return Operand(written(node), None if found is None else shown(found, node.type))


def _joined(node: Node, name: str) -> Iterator[Node]:
    """Yield the operands of one operator, however the parser has nested them."""
    for part in node.parts:
        if part.kind == "call" and part.name == name:
            yield from _joined(part, name)
        else:
            yield part


def shown(value: Any, of: Type) -> str:
    """Return a value of a type as a condition would write it; what is longer than `LONGEST_VALUE` is cut."""
    text = _shown(value, of)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _shown(value: Any, of: Type) -> str:  # noqa: PLR0911  a case for each type
    match of.name, value:
        case "timestamp", int():
            return written_timestamp(value)
        case "duration", int():
            return written_duration(value)
        case "uint", int():
            return f"{value}u"
        case _, bool():
            return "true" if value else "false"
        case _, None:
            return "null"
        case _, str():
            return json.dumps(value, ensure_ascii=False)
        case _, bytes():
            return "b" + json.dumps(value.decode("latin-1"))
        case _, list():
            (element,) = of.parameters or (Type("other"),)
            return "[" + ", ".join(_shown(one, element) for one in cast("list[Any]", value)) + "]"
        case _, dict():
            key, entry = of.parameters or (Type("other"), Type("other"))
            entries = cast("dict[Any, Any]", value).items()
            return "{" + ", ".join(f"{_shown(name, key)}: {_shown(each, entry)}" for name, each in entries) + "}"
        case _:
            return str(value)


_BINDING: Final = {
    "_?_:_": 1,
    "_||_": 2,
    "_&&_": 3,
    **dict.fromkeys(_RELATIONS, 4),
    "_+_": 5,
    "_-_": 5,
    "_*_": 6,
    "_/_": 6,
    "_%_": 6,
    "!_": 7,
    "-_": 7,
}
"""Operator -> how tightly it binds; what is not here binds tightest."""
_TIGHTEST: Final = 9


def written(node: Node, around: int = 0) -> str:
    """Return a condition as text: what its author wrote, in one spelling. `around`: how tightly binds what it is a part
    of (`_BINDING`).
    """
    binding = _BINDING.get(node.name, _TIGHTEST) if node.kind == "call" else _TIGHTEST
    text = _bare(node, binding)
    return f"({text})" if binding < around else text


def _bare(node: Node, binding: int) -> str:  # noqa: PLR0911  a case for each kind
    parts = node.parts
    match node.kind:
        case "constant":
            return _shown(node.value, node.type)
        case "name":
            return node.name
        case "select":
            return f"{written(parts[0], _TIGHTEST)}.{node.name}"
        case "has":
            return f"has({written(parts[0], _TIGHTEST)}.{node.name})"
        case "list":
            return "[" + ", ".join(map(written, parts)) + "]"
        case "map":
            pairs = zip(parts[::2], parts[1::2], strict=True)
            return "{" + ", ".join(f"{written(key)}: {written(value)}" for key, value in pairs) + "}"
        case "macro":
            asked = ", ".join((node.variable, *map(written, parts[1:])))
            return f"{written(parts[0], _TIGHTEST)}.{node.name}({asked})"
        case "message":
            return f"{node.name}{{}}"
        case "call":
            return _called(node, binding)


def _called(node: Node, binding: int) -> str:
    parts = node.parts
    if node.name == "_?_:_":
        return f"{written(parts[0], 2)} ? {written(parts[1], 2)} : {written(parts[2], 1)}"
    if node.name == "_[_]":
        return f"{written(parts[0], _TIGHTEST)}[{written(parts[1])}]"
    if node.name in ("!_", "-_"):
        text = written(parts[0], binding)
        is_read_as_other = text[0] in "!-" or text[0].isdecimal()  # two signs as none, a number as a negative one
        return f"{node.name[0]}({text})" if is_read_as_other else node.name[0] + text
    if node.name in _BINDING:
        sign = _RELATIONS.get(node.name) or node.name.strip("_")
        return f"{written(parts[0], binding)} {sign} {written(parts[1], binding + (node.name not in ('_&&_', '_||_')))}"
    if node.is_member:
        return f"{written(parts[0], _TIGHTEST)}.{node.name}({', '.join(map(written, parts[1:]))})"
    return f"{node.name}({', '.join(map(written, parts))})"
