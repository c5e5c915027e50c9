"""The language of conditions: CEL with the variables and functions of decisions 13.4, parsed and checked.

What may live here: what conditions may name, the library that parses and checks them (`cel-expr-python`,
docs/adr/0115), and its errors in words that an analyst understands. Nothing is evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final

from svc.features.rules.language.tree import Node, Place, TreeError, read_parsed, read_tree
from svc.identify.velocity.counts import OTHERS

if TYPE_CHECKING:
    from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs]  it has them for this module

MAX_LENGTH: Final = 2000
"""Characters of a condition."""
_WINDOWS: Final = "map(string, int)"

VARIABLES: Final[dict[str, str]] = {
    "score": "int",
    "level": "string",
    "signals": "list(string)",
    "groups": "list(string)",
    "visitor.id": "string",
    "visitor.is_new": "bool",
    "visitor.confidence": "int",
    "visitor.identifiable": "bool",
    "visitor.age_days": "int",
    "account.id": "string",
    "account.verified": "bool",
    "account.age_days": "int",
    "action": "string",
    "tag": "string",
    "environment": "string",
    "platform": "string",
    "sdk_platform": "string",
    "origin": "string",
    "address.ip": "string",
    "address.country": "string",
    "address.asn": "string",
    "address.asn_name": "string",
    "address.anonymity_network": "string",
    "agent": "string",
    "os": "string",
    "device_kind": "string",
    "visitor_kind": "string",
    "velocity": f"map(string, map(string, {_WINDOWS}))",
    **{f"velocity.{subject}.{kind}": _WINDOWS for subject, kinds in OTHERS.items() for kind in ("events", *kinds)},
    "labels.visitor": "list(string)",
    "labels.account": "list(string)",
    "now": "timestamp",
}
"""Name -> type, as conditions see them. Names are declared whole, so that the checker finds one that is mistyped."""
FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "present": ("string",),
    "in_list": ("string",),
    "cidr": ("string", "string"),
}
"""Name -> types of the parameters; each is a bool. Their overloads are `NAME_of_event`."""


class ConditionError(ValueError):
    """A condition that cannot be saved: what is wrong in words. `at`: where, if that is known; `too_expensive`: it is
    right and could cost too much.
    """

    def __init__(self, words: str, at: Place | None = None, *, too_expensive: bool = False) -> None:
        super().__init__(words if at is None else f"line {at[0]}, column {at[1]}: {words}")
        self.at = at
        self.too_expensive = too_expensive


def checked_tree(text: str) -> Node:
    """Return the checked tree of a condition. Raises `ConditionError` for what the language does not take; what is
    beyond conditions (`conditions.py`) may be in it.
    """
    environment = _environment()
    try:
        _look_for_growing_types(read_parsed(environment.compile(text, disable_check=True).serialize(), text))
        return read_tree(environment.compile(text).serialize(), text)
    except RuntimeError as error:
        raise _explained(str(error), text) from None
    except TreeError as error:
        raise ConditionError(str(error)) from None


def _look_for_growing_types(parsed: Node) -> None:
    """Refuse what makes types grow without bound. The type of `{x: x}` is twice as long as that of x, so the checker
    needs seconds and gigabytes for some twenty of these in a row. Lists and maps by text only add one level each.
    """
    for node in parsed.walk():
        if node.kind == "message":
            raise ConditionError(f"conditions have no {node.name}", node.at)
        keys = node.parts[::2]
        if node.kind == "map" and not (keys and all(isinstance(key.value, str | int) for key in keys)):
            raise ConditionError(
                'the keys of a map must be texts in quotes or whole numbers, such as {"a": 1}', node.at
            )


@cache
def _environment() -> cel.Env:
    from cel_expr_python import cel  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]  50 MB: when it is used

    return cel.NewEnv(
        variables={name: declared(of) for name, of in VARIABLES.items()},
        functions=[
            cel.FunctionDecl(
                name,
                [
                    cel.Overload(
                        f"{name}_of_event",
                        return_type=cel.Type.BOOL,
                        parameters=[declared(of) for of in parameters],
                    )
                ],
            )
            for name, parameters in FUNCTIONS.items()
        ],
    )


def declared(of: str) -> cel.Type:
    """Return a type of `VARIABLES` as the library has it."""
    from cel_expr_python import cel  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]  see above

    if of.startswith("list("):
        return cel.Type.List(declared(of[5:-1]))
    if of.startswith("map("):
        key, _, value = of[4:-1].partition(", ")
        return cel.Type.Map(declared(key), declared(value))
    return getattr(cel.Type, of.upper())


_AT = re.compile(r"<input>:(-?\d+):(-?\d+): (.*)")
_NO_OVERLOAD = re.compile(r"found no matching overload for '(.+)' applied to '\((.*)\)'")
_NO_NAME = re.compile(r"undeclared reference to '([^']*)'")
_NO_TOKEN = re.compile(r"token recognition error at: '(.*)'")
_NO_FIELD = re.compile(r"expression of type '(.*)' cannot be the operand of a select operation")
_UNEXPECTED = re.compile(r"(?:mismatched|extraneous|missing|no viable alternative at) input '(.*?)'")
_COMPARISONS: Final = ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_")


def _explained(problem: str, text: str) -> ConditionError:
    """Return the library's first error in our words, at its place."""
    if "recursion" in problem:
        return ConditionError("too deep: more brackets within each other than conditions may have")
    found = _AT.search(problem)
    if found is None:
        return ConditionError(problem.splitlines()[0])
    line, column, words = found.groups()
    return ConditionError(_in_words(words, text), (int(line), int(column)) if int(line) > 0 else None)


def _in_words(words: str, text: str) -> str:
    for form, explain in _EXPLAINED:
        found = form.search(words)
        if found is not None:
            return explain(*found.groups(), text)
    return words


def _of_no_overload(function: str, types: str, _: str) -> str:
    operands = _split(types)
    if function in _COMPARISONS and len(operands) == 2:
        return _compared(*operands)
    if function == "@in":
        if operands[-1] == "string":
            return 'in needs a list on its right, such as ["a", "b"]; a part of a text is found by tag.contains("a")'
        return f"a {_called(operands[0])} is looked for in a {_called(operands[-1])}"
    if function in ("contains", "startsWith", "endsWith", "matches") and operands[0].startswith("list("):
        by_element = f'signals.exists(name, name.{function}("…"))'
        return f'{function}() is asked of a text, and this is a list: write "name" in signals, or {by_element}'
    if function == "_[_]" and operands[0].startswith("map(string"):
        return 'the name in the brackets must be in quotes, such as ["24h"]'
    name = {"!_": "!", "-_": "-", "_&&_": "&&", "_||_": "||"}.get(function, function.strip("_"))
    return f"{name} cannot be used with {' and '.join(f'a {_called(one)}' for one in operands) or 'nothing'}"


def _compared(left: str, right: str) -> str:  # noqa: PLR0911  a sentence for each mistake
    both = {left, right}
    maps = [one for one in (left, right) if one.startswith("map(")]
    if maps and "map(" not in maps[0][4:]:
        return 'a window is missing: ["1h"], ["24h"] or ["30d"], such as velocity.visitor.accounts["24h"]'
    if maps:
        return 'say what is counted and in which window, such as velocity.visitor.accounts["24h"]'
    if both == {"int", "string"}:
        return "a number is compared with a text: write numbers without quotes, and texts in quotes"
    if both == {"int", "double"}:
        return "a whole number is compared with one that has a point: write it without the point"
    if "null_type" in both:
        return 'whether there is a value is asked by present("tag"), not by null'
    if "bool" in both:
        return f"true or false is compared with a {_called(next(iter(both - {'bool'}), 'bool'))}"
    if left.startswith("list(") or right.startswith("list("):
        return 'a list is compared with one value: write "name" in signals'
    return f"a {_called(left)} is compared with a {_called(right)}"


_USUAL: Final = ("size", "matches", "contains", "startsWith", "endsWith", "exists", "all", "duration", "timestamp")


def _of_no_name(name: str, text: str) -> str:
    is_called = re.search(rf"\b{re.escape(name)}\s*\(", text) is not None
    near = get_close_matches(name, [*FUNCTIONS, *_USUAL] if is_called else VARIABLES, 1)
    begun = [each for each in VARIABLES if each.startswith(f"{name}.")]
    if name in FUNCTIONS:
        return f"{name}() needs {len(FUNCTIONS[name])} values in its brackets"
    if begun:
        return f"{name} alone is not a variable: there is {', '.join(begun)}"
    if name.lower() in ("and", "or", "not"):
        return "write && for and, || for or, and ! for not"
    return f"there is no variable or function {name!r}" + (f"; did you mean {near[0]}?" if near else "")


def _of_no_token(token: str, _: str) -> str:
    mark = token.strip()
    doubled = {"=": "==", "&": "&&", "|": "||"}.get(mark[:1])
    if doubled:
        return f"write {doubled} instead of {mark[:1]}"
    if mark[:1] in "\"'":
        return "a quote is missing at the end of a text"
    return f"{mark or token!r} means nothing in a condition"


def _of_no_field(of: str, _: str) -> str:
    return f"there is nothing behind the dot: the value before it is a {_called(of)}"


def _of_unexpected(found: str, _: str) -> str:
    if found in ("", "<EOF>"):
        return "the condition ends too early: a value or a bracket is missing"
    if found.lower() in ("and", "or", "not"):
        return "write && for and, || for or, and ! for not"
    return f"{found!r} is not expected here: an operator such as && is missing before it, or it is one too many"


_EXPLAINED: Final[tuple[tuple[re.Pattern[str], Callable[..., str]], ...]] = (
    (_NO_OVERLOAD, _of_no_overload),
    (_NO_NAME, _of_no_name),
    (_NO_TOKEN, _of_no_token),
    (_NO_FIELD, _of_no_field),
    (_UNEXPECTED, _of_unexpected),
)


def _split(types: str) -> list[str]:
    """Split types at the commas outside of brackets."""
    found, depth, start = list[str](), 0, 0
    for at, mark in enumerate(types):
        depth += (mark == "(") - (mark == ")")
        if mark == "," and depth == 0:
            found.append(types[start:at].strip())
            start = at + 1
    last = types[start:].strip()
    return [*found, last] if last else found


def _called(of: str) -> str:
    if of.startswith("list("):
        return "list"
    if of.startswith("map("):
        return "map"
    words = {"int": "number", "uint": "number", "double": "number with a point", "string": "text"}
    more = {"bool": "value that is true or false", "timestamp": "time", "google.protobuf.Timestamp": "time"}
    return (words | more).get(of, of.replace("google.protobuf.", "").lower())
