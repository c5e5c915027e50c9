"""Conditions in CEL, the Common Expression Language: what they may name, and how one is compiled and evaluated.

What may live here: the environment of conditions (decisions 13.4) over `cel-expr-python` (docs/adr/0115), and its
errors with their position. What an event's variables are is said in `ruleset.py`.

Names such as `visitor.id` are declared whole, so that the checker finds a mistyped one. A variable without a value is
left out of an evaluation: what asks for it is an error, which `&&` and `||` absorb where the other side decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs]  it has them for this module

MAX_LENGTH: Final = 2000
"""Characters of a condition."""
MOST_DEPTH: Final = 32
"""Parentheses, brackets and braces within each other."""
MOST_MACROS: Final = 3
"""`all`, `exists`, `exists_one`, `map` and `filter`. None may be within another: so what a condition costs is bounded
by its text and by the event.
"""

_WINDOWS = cel.Type.Map(cel.Type.STRING, cel.Type.INT)
_STRING, _INT, _BOOL = cel.Type.STRING, cel.Type.INT, cel.Type.BOOL
_STRINGS = cel.Type.List(cel.Type.STRING)

VARIABLES: Final[dict[str, cel.Type]] = {
    "score": _INT,
    "level": _STRING,
    "signals": _STRINGS,
    "groups": _STRINGS,
    "visitor.id": _STRING,
    "visitor.is_new": _BOOL,
    "visitor.confidence": _INT,
    "visitor.identifiable": _BOOL,
    "visitor.age_days": _INT,
    "account.id": _STRING,
    "account.verified": _BOOL,
    "account.age_days": _INT,
    "action": _STRING,
    "tag": _STRING,
    "environment": _STRING,
    "platform": _STRING,
    "sdk_platform": _STRING,
    "origin": _STRING,
    "address.ip": _STRING,
    "address.country": _STRING,
    "address.asn": _STRING,
    "address.asn_name": _STRING,
    "address.anonymity_network": _STRING,
    "agent": _STRING,
    "os": _STRING,
    "device_kind": _STRING,
    "visitor_kind": _STRING,
    "velocity": cel.Type.Map(cel.Type.STRING, cel.Type.Map(cel.Type.STRING, _WINDOWS)),
    "velocity.visitor.events": _WINDOWS,
    "velocity.visitor.accounts": _WINDOWS,
    "velocity.visitor.addresses": _WINDOWS,
    "velocity.visitor.countries": _WINDOWS,
    "velocity.account.events": _WINDOWS,
    "velocity.account.visitors": _WINDOWS,
    "velocity.account.addresses": _WINDOWS,
    "velocity.account.countries": _WINDOWS,
    "velocity.address.events": _WINDOWS,
    "velocity.address.visitors": _WINDOWS,
    "velocity.address.accounts": _WINDOWS,
    "labels.visitor": _STRINGS,
    "labels.account": _STRINGS,
    "now": cel.Type.TIMESTAMP,
}
"""Name -> type, as conditions see them."""

InList = Callable[[str], bool]
"""Whether this event's value of the kind of the list with this name is in it."""


class ConditionError(ValueError):
    """A condition that cannot be saved: what is wrong, with line and column from 1 where they are known."""


class Condition(NamedTuple):
    """A condition that was checked."""

    expression: cel.Expression
    names: frozenset[str]
    """The variables that it names: those of `VARIABLES`."""
    lists: frozenset[str]
    """The lists that it names."""


class _Evaluation:
    """The event of the evaluation that goes on: functions of conditions are given no other way to it."""

    def __init__(self) -> None:
        self.values: Mapping[str, Any] = {}
        self.in_list: InList = _in_none
        self.failure: BaseException | None = None
        """Of the store, which the language would make an error of the condition of."""


def _in_none(_: str) -> bool:
    return False


_now = _Evaluation()


def compiled(text: str) -> Condition:
    """Return the compiled condition. Raises `ConditionError` if the text is not a valid one."""
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"the condition has more than {MAX_LENGTH} characters")
    tokens = list(_tokens(text))
    _refuse_expensive(tokens)
    lists, asked = _arguments(tokens, "in_list"), _arguments(tokens, "present")
    for name, (line, column) in asked.items():
        if name not in VARIABLES:
            raise ConditionError(f"line {line}, column {column}: there is no variable {name!r}")
    try:
        expression = environment().compile(text)
    except RuntimeError as error:
        raise ConditionError(_explained(str(error))) from None
    if expression.return_type() != _BOOL:
        raise ConditionError("line 1, column 1: the condition is not true or false: compare its value with another")
    return Condition(expression, frozenset(_named(tokens) | asked.keys()), frozenset(lists))


known = lru_cache(maxsize=4096)(compiled)
"""As `compiled`, for texts that were saved: each is compiled once in a process."""


def question(values: Mapping[str, Any], in_list: InList) -> Callable[[Condition], bool | None]:
    """Return a function that tells whether a condition is true of an event with these variables; `None` if its
    evaluation fails. Missing variables have no value. Raises what `in_list` raises. Use the function before the next
    one is made.
    """
    _now.values, _now.in_list, _now.failure = values, in_list, None
    activation = activation_of(values)

    def holds(condition: Condition) -> bool | None:
        try:
            value = condition.expression.eval(activation).value()
        except RuntimeError:  # the budget of iterations
            value = None
        if _now.failure is not None:
            raise _now.failure
        return value if isinstance(value, bool) else None

    return holds


def value_of(text: str, activation: cel.Activation, values: Mapping[str, Any], in_list: InList) -> Any:
    """Return the value of a part of a condition, as Python has it: a boolean, number, text, time, list or dictionary;
    `None` if its evaluation fails, or it is not an expression by itself.
    """
    _now.values, _now.in_list, _now.failure = values, in_list, None
    try:
        found = environment().compile(text).eval(activation)
    except RuntimeError:
        return None
    if _now.failure is not None:
        raise _now.failure
    return None if str(found.type()) == "ERROR" else found.value()


def variables_in(text: str) -> frozenset[str]:
    """Return the variables that a part of a condition names."""
    return frozenset(_named(list(_tokens(text))))


def activation_of(values: Mapping[str, Any]) -> cel.Activation:
    """Return the values of an event, for evaluations. Those that are missing have no value."""
    return environment().Activation(values)


@cache
def environment() -> cel.Env:
    """Return the variables and functions of conditions, without the bounds of `compiled`."""
    functions = [
        _function("present", _is_present, [_STRING]),
        _function("in_list", _is_in_list, [_STRING]),
        _function("cidr", _is_within, [_STRING, _STRING]),
    ]
    return cel.NewEnv(variables=VARIABLES, extensions=[cel.CelExtension("svc", functions)])


def _function(name: str, implementation: Callable[..., bool], parameters: list[cel.Type]) -> cel.FunctionDecl:
    overload = cel.Overload(f"{name}_of_event", return_type=_BOOL, parameters=parameters, impl=implementation)
    return cel.FunctionDecl(name, [overload])


def _is_present(name: str) -> bool:
    return name in _now.values


def _is_in_list(name: str) -> bool:
    if _now.failure is not None:
        return False
    try:
        return _now.in_list(name)
    except BaseException as error:  # noqa: BLE001  it is raised when the evaluation has ended
        _now.failure = error
        return False


def _is_within(ip: str, network: str) -> bool:
    return ip_address(ip) in _network(network)


_network = lru_cache(maxsize=1024)(ip_network)

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>[rRbB]{0,2}(?:'{3}(?s:.*?)(?<!\\)'{3}|"{3}(?s:.*?)(?<!\\)"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9][A-Za-z0-9.+-]*)
    |(?P<mark>.)""",
    re.VERBOSE,
)
"""Names, marks, literals and what is between them. Each mark is one character."""
_OPENING, _CLOSING = "([{", ")]}"
_PLAIN = re.compile(r"""["'][\w.]*["']""", re.ASCII)
_MACROS = frozenset({"all", "exists", "exists_one", "map", "filter"})

Token = tuple[str, str, tuple[int, int]]
"""Kind, text, (line, column) from 1."""
_NOTHING: Token = ("", "", (0, 0))


def _tokens(text: str) -> Iterator[Token]:
    """Names, marks and literals; what the language makes of them is left to its own parser."""
    for found in TOKEN.finditer(text):
        kind = found.lastgroup or "mark"
        if kind != "space":
            line = text.count("\n", 0, found.start())
            column = found.start() - (text.rfind("\n", 0, found.start()) + 1)
            yield kind, found.group(), (line + 1, column + 1)


def _refuse_expensive(tokens: list[Token]) -> None:
    """Raises `ConditionError` for what is too deep, or could cost too much."""
    open_macros: list[bool] = []
    count = 0
    for at, (_, text, (line, column)) in enumerate(tokens):
        if text in _OPENING:
            is_macro = text == "(" and at >= 2 and tokens[at - 1][1] in _MACROS and tokens[at - 2][1] == "."
            if is_macro and any(open_macros):
                raise ConditionError(f"line {line}, column {column}: nested macros are too expensive")
            open_macros.append(is_macro)
            count += is_macro
        elif text in _CLOSING and open_macros:
            open_macros.pop()
        if len(open_macros) > MOST_DEPTH:
            raise ConditionError(f"line {line}, column {column}: too deep: more than {MOST_DEPTH} brackets")
        if count > MOST_MACROS:
            raise ConditionError(f"line {line}, column {column}: more than {MOST_MACROS} macros are too expensive")


def _arguments(tokens: list[Token], function: str) -> dict[str, tuple[int, int]]:
    """The names that a function is called with -> where. Raises `ConditionError` for a call with anything but one plain
    literal: what it asks for must be known before.
    """
    found: dict[str, tuple[int, int]] = {}
    for at, (kind, text, (line, column)) in enumerate(tokens):
        if kind != "name" or text != function or [token[1] for token in tokens[at + 1 : at + 2]] != ["("]:
            continue
        argument, end = [*tokens[at + 2 : at + 4], _NOTHING, _NOTHING][:2]
        if argument[0] != "text" or not _PLAIN.fullmatch(argument[1]) or end[1] != ")":
            raise ConditionError(f"line {line}, column {column}: {function}() needs one name in quotes")
        found[argument[1][1:-1]] = argument[2]
    return found


def _named(tokens: list[Token]) -> set[str]:
    """The variables that are named, each as the longest name that is one; `velocity` alone for all below it."""
    found: set[str] = set()
    at = 0
    while at < len(tokens):
        if tokens[at][0] != "name":
            at += 1
            continue
        path, end = [tokens[at][1]], at + 1
        while end + 1 < len(tokens) and tokens[end][1] == "." and tokens[end + 1][0] == "name":
            path.append(tokens[end + 1][1])
            end += 2
        names = (".".join(path[:size]) for size in range(len(path), 0, -1))
        found.update(islice((name for name in names if name in VARIABLES), 1))
        at = end
    return found


_AT = re.compile(r"<input>:(\d+):(\d+): (.*)")


def _explained(problem: str) -> str:
    """The first error of the library, with its line and column."""
    found = _AT.search(problem)
    if found is None:
        return problem.splitlines()[0]
    line, column, words = cast("tuple[str, str, str]", found.groups())
    return f"line {line}, column {column}: {words.replace(chr(32) + '(in container ' + chr(39) * 2 + ')', '')}"
