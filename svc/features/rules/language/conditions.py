"""Conditions: compiled from text, with what they name and what they may cost (decisions 13.4).

What may live here: text -> `Condition`. The language is in `language.py`, its checked tree in `tree.py`; whether
literals can be used is said in `literals.py`, what a tree costs in `cost.py`, what it comes to in `evaluators.py` and
`compiler.py`.

A condition is either compiled to be saved, and refused where it cannot be used, or as one that was saved, maybe by an
earlier version: then what cannot be evaluated any more fails, and is counted as an error of its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Final, NamedTuple

from svc.features.rules.language.compiler import compiled_evaluator
from svc.features.rules.language.cost import BUDGET, UNITS_A_MS, in_ms, units_of
from svc.features.rules.language.evaluation import Evaluation, Evaluator, TooExpensiveError, Values
from svc.features.rules.language.evaluators import evaluator, failing, is_known
from svc.features.rules.language.language import MAX_LENGTH, VARIABLES, ConditionError, checked_tree
from svc.features.rules.language.literals import PatternError, faults, read_pattern, readable
from svc.features.rules.language.tree import Node, Type, called
from svc.features.rules.language.values import EvaluationError

COMPILED_UNITS: Final = 200
"""Of a condition that is compiled, at most: one whose evaluation fails is evaluated twice."""
OVER_BUDGET: Final = "ask fewer questions of long texts and of lists, in shorter patterns"


FAILURES: Final = (EvaluationError, TooExpensiveError)
"""An evaluation without a result, in words."""


class Condition(NamedTuple):
    """A condition that is ready. It has no state: any number of evaluations may go on at once."""

    tree: Node | None
    """`None` of one that was saved: only who saves or tries it asks."""
    evaluate: Callable[[Evaluation], bool]
    """Returns whether it is true of an event. Raises `FAILURES`, and what the evaluation's `in_list` raises."""
    names: frozenset[str]
    """The variables that it names: those of `VARIABLES`."""
    lists: frozenset[str]
    """The lists that it names."""
    units: int
    """What an evaluation costs at most (`cost.BUDGET`), without the variables and lists that it names."""
    is_any_of_lists: bool = False
    """Whether it asks whether a value is in any of some lists, and nothing else."""
    sufficient_lists: frozenset[str] = frozenset()
    """Those of `lists` of which any makes it true, whatever else it asks."""

    def ask(self, evaluation: Evaluation) -> bool | str:
        """Return whether it is true of an event; if its evaluation fails, the reason in words. Raises what the
        evaluation's `in_list` raises.
        """
        try:
            return self.evaluate(evaluation)
        except FAILURES as error:
            return str(error)


def compiled(text: str) -> Condition:
    """Return the compiled condition. Raises `ConditionError` if it cannot be saved."""
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"the condition has more than {MAX_LENGTH} characters")
    tree = checked_tree(text)
    for words, at in _problems(tree):
        raise ConditionError(words, at)
    for node in _named(tree, frozenset()):
        if node.name not in VARIABLES:
            raise ConditionError(f"there is no variable {node.name!r}", node.at)
    if tree.type.name != "bool":
        raise ConditionError("the condition is not true or false: compare its value with another", (1, 1))
    _look_at_patterns(tree)
    for at, words in faults(tree):
        raise ConditionError(words, at)
    for name in called("present", tree):
        if name.parts[0].value not in VARIABLES:
            raise ConditionError(f"there is no variable {name.parts[0].value!r}", name.parts[0].at)
    condition = _condition(tree)
    _look_at_units(condition.units)
    return condition


def _look_at_units(units: int) -> None:
    if units > BUDGET:
        allowed = f"{BUDGET / UNITS_A_MS:g} are allowed"
        words = f"the condition could take {in_ms(units)} ms of an event, and {allowed}: {OVER_BUDGET}"
        raise ConditionError(words, too_expensive=True)


def _look_at_patterns(tree: Node) -> None:
    """Add up patterns and stop at the first that exceeds the limit: each takes some milliseconds to compile."""
    units = 0
    for pattern in (call.parts[-1] for call in called("matches", tree)):
        if pattern.kind == "constant":
            try:
                units += read_pattern(pattern.value).units(0)
            except PatternError:
                return  # refused at its place
            _look_at_units(units)


def compile_once(text: str) -> Condition:
    """Compile like `compiled`, for texts that are saved or tried; those of one request are compiled once."""
    found = _outcome(text)
    if isinstance(found, ConditionError):
        raise found.with_traceback(None)
    return found


@lru_cache(maxsize=256)
def _outcome(text: str) -> Condition | ConditionError:
    try:
        return compiled(text)
    except ConditionError as error:
        return error.with_traceback(None)


def is_valid(text: str) -> bool:
    """Return whether a condition can be saved; afterwards it is compiled for all who ask (`compile_once`, `known`)."""
    return isinstance(_outcome(text), Condition)


@lru_cache(maxsize=4096)
def known(text: str) -> Condition:
    """Return the condition of a text that was saved: each is compiled once in a process. What cannot be evaluated fails
    when it is asked.
    """
    found = _outcome(text)
    try:
        if isinstance(found, Condition):
            return found._replace(tree=None)
        found = _condition(checked_tree(text))
        return found._replace(tree=None, evaluate=partial(_truth, found.evaluate))
    except ConditionError:
        nothing = frozenset[str]()
        return Condition(None, failing("this version cannot read the condition: save it again"), nothing, nothing, 1)


def _truth(evaluate: Evaluator, of: Evaluation) -> bool:
    """Evaluate a condition that could not be saved now: nothing promises the type of its value."""
    found = evaluate(of)
    if not isinstance(found, bool):
        raise EvaluationError("its value is neither true nor false")
    return found


def _condition(tree: Node) -> Condition:
    tree = readable(tree)
    lists, units = frozenset(_literals("in_list", tree)), units_of(tree)
    evaluate = (compiled_evaluator if units <= COMPILED_UNITS else evaluator)(tree)
    alternatives = tuple(_alternatives(tree))
    sufficient = frozenset(each.parts[0].value for each in alternatives if _asks_list(each))
    return Condition(tree, evaluate, variables_in(tree), lists, units, all(map(_asks_list, alternatives)), sufficient)


def variables_in(tree: Node) -> frozenset[str]:
    """Return the variables that a tree names: those of `VARIABLES`."""
    return (
        frozenset(node.name for node in _named(tree, frozenset()))
        .union(_literals("present", tree))
        .intersection(VARIABLES)
    )


def _alternatives(node: Node) -> Iterator[Node]:
    """Yield the parts of which any makes a condition true."""
    if node.kind == "call" and node.name == "_||_":
        for part in node.parts:
            yield from _alternatives(part)
    else:
        yield node


def is_true_of_all(tree: Node) -> bool:
    """Return whether a condition is true whatever an event has: something that asks nothing of it makes it true."""
    return any(map(_is_true, _alternatives(tree)))


def _is_true(node: Node) -> bool:
    if variables_in(node) or any(_literals("in_list", node)):
        return False
    try:
        return evaluator(node)(Evaluation(Values(lambda _: None), lambda _: False, BUDGET)) is True
    except FAILURES:
        return False


def _asks_list(node: Node) -> bool:
    return node.kind == "call" and node.name == "in_list"


def _literals(function: str, tree: Node) -> Iterator[str]:
    for call in called(function, tree):
        if isinstance(call.parts[0].value, str):
            yield call.parts[0].value


def _named(node: Node, elements: frozenset[str]) -> Iterator[Node]:
    if node.kind == "name" and node.name not in elements:
        yield node
    for index, part in enumerate(node.parts):
        yield from _named(part, elements | {node.variable} if node.kind == "macro" and index else elements)


def _problems(tree: Node) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield what CEL has and conditions do not: messages, types as values, and values of any type."""
    for node in tree.walk():
        if node.kind == "message":
            yield f"conditions have no {node.name}", node.at
        elif node.kind == "call" and node.name == "type":
            yield "type() is not needed: each variable has one type", node.at
        elif (_has_other(node.type) and (node.parts or node.kind == "name")) or not is_known(node):
            yield "the values here are of different types, or of one that conditions do not have", node.at


def _has_other(of: Type) -> bool:
    return of.name == "other" or any(map(_has_other, of.parameters))
