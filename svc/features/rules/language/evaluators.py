"""Evaluates conditions: a checked tree becomes a function of one event.

What may live here: `Node` -> a closure over `Evaluation`. What functions do with values is said in `values.py`.

A variable without a value is an error, which `&&` and `||` absorb where the other side decides, as the language wants
it. What could cost much counts down the units of the evaluation while it runs, so that a condition that was saved
before conditions had a price is bounded, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_network
from typing import Any, Final, NamedTuple

from svc.features.rules.language.evaluation import Evaluation, Evaluator
from svc.features.rules.language.language import VARIABLES
from svc.features.rules.language.literals import Pattern, PatternError, read_pattern
from svc.features.rules.language.tree import Node
from svc.features.rules.language.values import (
    FIELDS,
    FUNCTIONS,
    EvaluationError,
    calendar,
    entry,
    read_duration,
    read_time_zone,
    read_timestamp,
)
from svc.kernel.net.addresses import read_address


def evaluator(tree: Node) -> Evaluator:
    """Return the function that evaluates a tree. What cannot be evaluated fails when it is reached."""
    return _Builder({}, 0).of(tree)


def failing(words: str) -> Evaluator:
    """Return a function that always fails, for this reason."""

    def fail(_: Evaluation) -> Any:
        raise EvaluationError(words)

    return fail


def is_known(node: Node) -> bool:
    """Return whether a call is of a function that can be evaluated; `True` for any other node."""
    by_overload = (FUNCTIONS, _BY_LITERAL, _COUNTED)
    return node.kind != "call" or node.name in _SPECIAL or any(node.overload in table for table in by_overload)


def is_of_values(node: Node) -> bool:
    """Return whether a node is a call of a function that needs the values of its arguments, and nothing else."""
    overload = node.overload
    is_other = node.name in _SPECIAL or overload in _BY_LITERAL or overload in _COUNTED
    return node.kind == "call" and overload in FUNCTIONS and not is_other and len(node.parts) in (1, 2)


STRING_UNITS: Final = 100
"""Characters that are copied or compared for one unit."""
SEARCHED_UNITS: Final = 40
"""Steps of a search for one text in another for one unit."""


class _Builder:
    def __init__(self, scope: Mapping[str, int], open_macros: int) -> None:
        self._scope = scope
        self._open_macros = open_macros
        """Elements may have the same name as one further out: their number is not that of the names."""

    def of(self, node: Node) -> Evaluator:  # noqa: PLR0911  a case for each kind
        match node.kind:
            case "constant":
                return _constant(node.value)
            case "name":
                return self._name(node.name)
            case "select":
                operand, field = self.of(node.parts[0]), node.name
                return lambda of: entry(operand(of), field)
            case "has":
                operand, field = self.of(node.parts[0]), node.name
                return lambda of: field in operand(of)
            case "list":
                elements = tuple(map(self.of, node.parts))
                return lambda of: [one(of) for one in elements]
            case "map":
                each = tuple(map(self.of, node.parts))
                pairs = tuple(zip(each[::2], each[1::2], strict=True))
                return partial(_map, pairs)
            case "macro":
                return self._macro(node)
            case "call":
                return self._call(node)
            case "message":
                return failing(f"conditions have no {node.name}")

    def _name(self, name: str) -> Evaluator:
        place = self._scope.get(name)
        if place is not None:
            return lambda of: of.elements[place]
        if name in VARIABLES:
            return lambda of: of.values[name]
        return failing(f"conditions have no {name}")

    def _macro(self, node: Node) -> Evaluator:
        sequence, *parts = node.parts
        place = self._open_macros
        inner = _Builder({**self._scope, node.variable: place}, place + 1)
        each = sum(1 for part in parts for _ in part.walk())
        return _MACROS[node.name, len(parts)](_Loop(place, each, self.of(sequence)), *map(inner.of, parts))

    def _call(self, node: Node) -> Evaluator:  # noqa: PLR0911  a case for each table
        special = _SPECIAL.get(node.name)
        if special is not None:
            return special(*map(self.of, node.parts))
        by_literal = _BY_LITERAL.get(node.overload)
        if by_literal is not None:
            return _read_once(by_literal, node, *map(self.of, node.parts[:-1]))
        counted = _COUNTED.get(node.overload)
        if counted is not None:
            return partial(counted, *map(self.of, node.parts))
        function = FUNCTIONS.get(node.overload)
        if function is None:
            return failing(f"conditions have no function {node.name} for these values")
        left, *others = map(self.of, node.parts)
        if not others:
            return lambda of: function(left(of))
        if node.parts[1].kind == "constant":
            value = node.parts[1].value
            return lambda of: function(left(of), value)
        (right,) = others
        return lambda of: function(left(of), right(of))


class _Loop(NamedTuple):
    """The sequence that a macro iterates over."""

    place: int
    """Of its element."""
    units: int
    """Of an element: what is asked of it has this number of nodes."""
    sequence: Evaluator

    def begin(self, of: Evaluation) -> list[Any]:
        """Return the elements, of a map its keys, and make a place for one of them."""
        found = list(self.sequence(of))
        of.spend(self.units * len(found))
        del of.elements[self.place :]
        of.elements.append(None)
        return found


def _constant(value: Any) -> Evaluator:
    return lambda _: value


def _map(pairs: tuple[tuple[Evaluator, Evaluator], ...], of: Evaluation) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in pairs:
        name = key(of)
        if not isinstance(name, str | int):  # one that an earlier version saved
            raise EvaluationError("a key of a map is neither a text nor a whole number")
        if name in found:
            raise EvaluationError(f"a map has the key {name!r} twice")
        found[name] = value(of)
    return found


def _and(left: Evaluator, right: Evaluator) -> Evaluator:
    def both(of: Evaluation) -> bool:
        try:
            if not left(of):
                return False
        except EvaluationError:
            if not right(of):
                return False
            raise
        return right(of)

    return both


def _or(left: Evaluator, right: Evaluator) -> Evaluator:
    def either(of: Evaluation) -> bool:
        try:
            if left(of):
                return True
        except EvaluationError:
            if right(of):
                return True
            raise
        return right(of)

    return either


def _choice(condition: Evaluator, yes: Evaluator, no: Evaluator) -> Evaluator:
    return lambda of: yes(of) if condition(of) else no(of)


_SPECIAL: Final[dict[str, Callable[..., Evaluator]]] = {"_&&_": _and, "_||_": _or, "_?_:_": _choice}
"""Functions that do not evaluate all of their arguments."""


def _read_once(build: Callable[..., Evaluator], node: Node, *parts: Evaluator) -> Evaluator:
    """Build an evaluator that reads its literal once. One that cannot be read fails only when it is evaluated."""
    if node.parts[-1].kind != "constant":
        return failing(f"{node.name}() needs a literal: save the condition again")
    try:
        return build(node, *parts)
    except EvaluationError as error:
        return failing(str(error))
    except (PatternError, ValueError):
        return failing(f"{node.parts[-1].value!r} is nothing that {node.name}() can use")


def _present(node: Node) -> Evaluator:
    name = node.parts[0].value
    return lambda of: of.values.has(name)


def _in_named_list(node: Node) -> Evaluator:
    name = node.parts[0].value
    return lambda of: of.in_list(name)


def _within(node: Node, address: Evaluator) -> Evaluator:
    network = ip_network(node.parts[1].value)
    length, first = network.max_prefixlen - network.prefixlen, int(network.network_address)
    start = first >> length

    def is_within(of: Evaluation) -> bool:
        found = read_address(address(of))
        if found is None:
            raise EvaluationError("a text is not an address")
        return found.version == network.version and int(found) >> length == start

    return is_within


def _matching(node: Node, text: Evaluator) -> Evaluator:
    return partial(_is_matching, read_pattern(node.parts[-1].value), text)


def _is_matching(pattern: Pattern, text: Evaluator, of: Evaluation) -> bool:
    found = text(of)
    raw = found.encode(errors="surrogatepass")
    of.spend(pattern.units(len(found), len(raw) / len(found) if found else 1))
    return pattern.is_in(raw)


def _in_zone(field: str) -> Callable[[Node, Evaluator], Evaluator]:
    ask = FIELDS[field]

    def build(node: Node, moment: Evaluator) -> Evaluator:
        place = read_time_zone(node.parts[-1].value)

        def found(of: Evaluation) -> int:
            try:
                return ask(place(calendar(moment(of))))
            except OverflowError:
                raise EvaluationError("a time is before the year 1 or after 9999") from None

        return found

    return build


def _by_text(read: Callable[[str], int]) -> Callable[[Node], Evaluator]:
    return lambda node: _constant(read(node.parts[0].value))


_BY_LITERAL: Final[dict[str, Callable[..., Evaluator]]] = {
    "present_of_event": _present,
    "in_list_of_event": _in_named_list,
    "cidr_of_event": _within,
    "string_to_timestamp": _by_text(read_timestamp),
    "string_to_duration": _by_text(read_duration),
    "matches": _matching,
    "matches_string": _matching,
    **{f"timestamp_to_{field}_with_tz": _in_zone(field) for field in FIELDS},
    "timestamp_to_seconds_tz": _in_zone("seconds"),
}
"""Overloads whose last argument is a literal, which is read once; the function is given the others."""


def _joined(left: Evaluator, right: Evaluator, of: Evaluation) -> Any:
    first, second = left(of), right(of)
    of.spend((len(first) + len(second)) // STRING_UNITS)
    return first + second


def _joined_lists(left: Evaluator, right: Evaluator, of: Evaluation) -> list[Any]:
    first, second = left(of), right(of)
    of.spend((len(first) + len(second)) // 10)
    return first + second


def _containing(left: Evaluator, right: Evaluator, of: Evaluation) -> bool:
    text, sought = left(of), right(of)
    of.spend(searched_units(len(text), len(sought)))
    return sought in text


def searched_units(length: int, sought: int) -> int:
    """Return what it costs at most to search a text of one length for a text of another."""
    return max(0, length - sought + 1) * sought // SEARCHED_UNITS


def _in(left: Evaluator, right: Evaluator, of: Evaluation) -> bool:
    element, sequence = left(of), right(of)
    of.spend(len(sequence) // 4)
    return element in sequence


_COUNTED: Final[dict[str, Callable[..., Any]]] = {
    "add_string": _joined,
    "add_bytes": _joined,
    "add_list": _joined_lists,
    "contains_string": _containing,
    "in_list": _in,
}
"""Overloads whose cost depends on the values."""


def _is_decided(by: bool, loop: _Loop, condition: Evaluator, of: Evaluation) -> bool:  # noqa: FBT001
    """Return `by` if it is the condition's value for any element, else `not by`. Raises the first error if none is."""
    failed: EvaluationError | None = None
    for one in loop.begin(of):
        of.elements[loop.place] = one
        try:
            if condition(of) is by:
                return by
        except EvaluationError as error:
            failed = failed or error
    if failed is None:
        return not by
    try:
        raise failed
    finally:
        del failed  # its traceback has this frame: a cycle that only a run of the garbage collector would end


def _kept(loop: _Loop, condition: Evaluator | None, value: Evaluator | None, of: Evaluation) -> list[Any]:
    found: list[Any] = []
    for one in loop.begin(of):
        of.elements[loop.place] = one
        if condition is None or condition(of):
            found.append(one if value is None else value(of))
    return found


def _filtered(loop: _Loop, condition: Evaluator) -> Evaluator:
    return partial(_kept, loop, condition, None)


def _mapped(loop: _Loop, value: Evaluator) -> Evaluator:
    return partial(_kept, loop, None, value)


def _exists_one(loop: _Loop, condition: Evaluator) -> Evaluator:
    return lambda of: len(_kept(loop, condition, None, of)) == 1


_MACROS: Final[dict[tuple[str, int], Callable[..., Evaluator]]] = {
    ("all", 1): partial(partial, _is_decided, False),
    ("exists", 1): partial(partial, _is_decided, True),
    ("exists_one", 1): _exists_one,
    ("filter", 1): _filtered,
    ("map", 1): _mapped,
    ("map", 2): partial(partial, _kept),
}
"""By name and number of parts after the range."""
