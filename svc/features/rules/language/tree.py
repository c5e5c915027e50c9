"""The checked tree of a condition: nodes with types and positions, read from what the language's checker serializes.

What may live here: `cel.expr.CheckedExpr` (github.com/google/cel-spec, proto/cel/expr/checked.proto) -> `Node`. Macros
are nodes of their own, as they were written, and not the loops that the parser makes of them. What a tree means is said
in `evaluators.py`, what it costs in `cost.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import lru_cache
from struct import unpack
from typing import Any, Final, Literal, NamedTuple

MAX_DEPTH: Final = 200
"""Nodes within each other: what walks a tree calls itself."""

Place = tuple[int, int]
"""Line and column, from 1."""


class Type(NamedTuple):
    """A type of the language: `int`, `uint`, `double`, `string`, `bytes`, `bool`, `null`, `timestamp`, `duration`,
    `list` of one parameter, `map` of two; `other` for any that conditions have no values of, such as messages.
    """

    name: str
    parameters: tuple[Type, ...] = ()


OTHER: Final = Type("other")


class Node(NamedTuple):
    """A part of a condition."""

    kind: Literal["constant", "name", "select", "has", "call", "list", "map", "macro", "message"]
    at: Place
    type: Type
    name: str = ""
    """Of a `name` the variable; of `select` and `has` the field; of a `call` the function; of a `macro` its own; of a
    `message` its type.
    """
    value: Any = None
    """Of a `constant`, as Python has it."""
    parts: tuple[Node, ...] = ()
    """Of `select`, `has` the operand. Of a `call` the target, if it has one, and the arguments. Of a `list` its
    elements, of a `map` keys and values in turn. Of a `macro` the range, then its conditions and values.
    """
    overload: str = ""
    """Of a `call`: which of the functions of this name it is; empty where the types leave several."""
    is_member: bool = False
    """Of a `call`: whether its first part stands before the dot."""
    variable: str = ""
    """Of a `macro`: the name of the element."""

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, parents first."""
        left: list[Node] = [self]
        while left:
            node = left.pop()
            yield node
            left.extend(reversed(node.parts))


class TreeError(ValueError):
    """A tree that cannot be read: too deep, or of a newer language."""


def read_tree(serialized: bytes, text: str) -> Node:
    """Return the tree of a condition that was checked; `serialized` is what `Expression.serialize()` returns for
    `text`. Raises `TreeError`.
    """
    return _Reader(serialized, text).node(None, 0)


def read_parsed(serialized: bytes, text: str) -> Node:
    """Return the tree of a condition that was parsed and not checked: its nodes have no types. Raises `TreeError`."""
    return _Reader(serialized, text, is_checked=False).node(None, 0)


def called(function: str, tree: Node) -> Iterator[Node]:
    """Yield the calls of a function in a tree."""
    return (node for node in tree.walk() if node.kind == "call" and node.name == function)


_Fields = Mapping[int, list[Any]]
"""Of a message: number -> values, in their order. Integers, or bytes."""


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(raw: bytes) -> _Fields:
    """Decode a protocol buffers message (protobuf.dev/programming-guides/encoding)."""
    found: dict[int, list[Any]] = {}
    at, end = 0, len(raw)
    value: Any
    while at < end:
        tag, at = (raw[at], at + 1) if raw[at] < 0x80 else _varint(raw, at)  # most numbers have one byte
        kind = tag & 7
        if kind == 1:
            value, at = raw[at : at + 8], at + 8
        elif kind in (0, 2):
            value, at = (raw[at], at + 1) if raw[at] < 0x80 else _varint(raw, at)
            if kind:
                value, at = raw[at : at + value], at + value
        else:
            raise TreeError(f"the serialized condition has the wire type {kind}")
        if tag >> 3 in found:
            found[tag >> 3].append(value)
        else:
            found[tag >> 3] = [value]
    return found


def _first(fields: _Fields, number: int, default: Any = b"") -> Any:
    return fields.get(number, (default,))[0]


def _text(fields: _Fields, number: int) -> str:
    return _first(fields, number).decode()


def _by_id(entries: list[bytes]) -> dict[int, Any]:
    pairs = map(_fields, entries)
    return {_first(pair, 1, 0): _first(pair, 2, 0) for pair in pairs}


_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {2: "timestamp", 3: "duration"}


@lru_cache(maxsize=256)
def _type(raw: bytes) -> Type:
    fields = _fields(raw)
    match next(iter(fields), 0):
        case 2:
            return Type("null")
        case 3:
            return Type(_PRIMITIVES.get(_first(fields, 3), "other"))
        case 5:
            return Type(_WELL_KNOWN.get(_first(fields, 5), "other"))
        case 6:
            return Type("list", (_type(_first(_fields(_first(fields, 6)), 1)),))
        case 7:
            both = _fields(_first(fields, 7))
            return Type("map", (_type(_first(both, 1)), _type(_first(both, 2))))
        case _:
            return OTHER


@lru_cache(maxsize=1024)
def _reference(raw: bytes) -> tuple[str, str]:
    """Return (variable, overload of the function); empty where the checker gives none, or several overloads."""
    fields = _fields(raw)
    overloads = fields.get(3, [])
    return _text(fields, 1), overloads[0].decode() if len(overloads) == 1 else ""


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _constant(fields: _Fields) -> Any:  # noqa: PLR0911  a case for each type
    number, values = next(iter(fields.items()))
    value = values[0]
    match number:
        case 1:
            return None
        case 2:
            return bool(value)
        case 3:
            return _signed(value)
        case 4:
            return value
        case 5:
            return unpack("<d", value)[0]
        case 6:
            return value.decode()
        case 7:
            return bytes(value)
        case _:
            raise TreeError(f"the serialized condition has a constant of the kind {number}")


class _Reader:
    def __init__(self, serialized: bytes, text: str, *, is_checked: bool = True) -> None:
        """Read a `cel.expr.CheckedExpr`, or a `ParsedExpr` (proto/cel/expr/syntax.proto)."""
        read = _fields(_first(_fields(serialized), 2))
        source = _fields(_first(read, 5 if is_checked else 3))
        self._root: bytes = _first(read, 4 if is_checked else 2)
        self._references = _by_id(read.get(2, [])) if is_checked else {}
        self._types = _by_id(read.get(3, [])) if is_checked else {}
        self._offsets = _by_id(source.get(4, []))
        self._lines = [-1, *(at for at, mark in enumerate(text) if mark == "\n")]

    def node(self, raw: bytes | None, depth: int) -> Node:  # noqa: C901, PLR0911  a case for each kind
        """Read a node, of which there may be `MAX_DEPTH` within each other; `None` = the root."""
        if depth > MAX_DEPTH:
            raise TreeError(f"too deep: more than {MAX_DEPTH} parts are within each other")
        fields = _fields(self._root if raw is None else raw)
        number: int = _first(fields, 2, 0)
        at, of = self._place(number), _type(self._types.get(number, b""))
        name, overload = _reference(self._references.get(number, b""))
        if 3 in fields:
            return Node("constant", at, of, value=_constant(_fields(fields[3][0])))
        if 4 in fields:
            return Node("name", at, of, name=name or _text(_fields(fields[4][0]), 1))
        if 5 in fields and name:  # a variable with a dot in its name, such as `visitor.id`
            return Node("name", at, of, name=name)
        if 5 in fields:
            select = _fields(fields[5][0])
            kind = "has" if _first(select, 3, 0) else "select"
            return Node(kind, at, of, name=_text(select, 2), parts=(self.node(_first(select, 1), depth + 1),))
        if 6 in fields:
            return self._call(_fields(fields[6][0]), overload, at, of, depth)
        if 7 in fields:
            elements = _fields(fields[7][0]).get(1, [])
            return Node("list", at, of, parts=tuple(self.node(one, depth + 1) for one in elements))
        if 8 in fields:
            message = _fields(fields[8][0])
            if _text(message, 1):
                return Node("message", at, of, name=_text(message, 1))
            entries = map(_fields, message.get(2, []))
            parts = (self.node(_first(entry, of), depth + 1) for entry in entries for of in (3, 4))
            return Node("map", at, of, parts=tuple(parts))
        if 9 in fields:
            return self._macro(_fields(fields[9][0]), at, of, depth)
        raise TreeError("the serialized condition has an expression of an unknown kind")

    def _call(self, call: _Fields, overload: str, at: Place, of: Type, depth: int) -> Node:
        return Node(
            "call",
            at,
            of,
            name=_text(call, 2),
            parts=tuple(self.node(one, depth + 1) for one in (*call.get(1, []), *call.get(3, []))),
            overload=overload,
            is_member=1 in call,
        )

    def _macro(self, loop: _Fields, at: Place, of: Type, depth: int) -> Node:
        """Turn a loop of the parser back into its macro (github.com/google/cel-spec, doc/langdef.md, "Macros")."""
        variable = _text(loop, 1)
        begin, step = (self.node(_first(loop, number), depth + 1) for number in (4, 6))
        match begin, step:
            case Node(kind="constant", value=bool()), Node(kind="call", parts=(_, condition)):
                name, parts = "all" if begin.value else "exists", (condition,)
            case Node(kind="constant"), Node(kind="call", name="_?_:_", parts=(condition, *_)):
                name, parts = "exists_one", (condition,)
            case Node(kind="list"), Node(kind="call", name="_+_", parts=(_, Node(kind="list", parts=(value,)))):
                name, parts = "map", (value,)
            case Node(kind="list"), Node(kind="call", name="_?_:_", parts=(condition, added, _)):
                (value,) = added.parts[1].parts
                is_element = value.kind == "name" and value.name == variable
                name, parts = ("filter", (condition,)) if is_element else ("map", (condition, value))
            case _:
                raise TreeError("conditions have no such macro")
        sequence = self.node(_first(loop, 2), depth + 1)
        return Node("macro", at, of, name=name, parts=(sequence, *parts), variable=variable)

    def _place(self, number: int) -> Place:
        offset = self._offsets.get(number, 0)
        line = bisect_left(self._lines, offset)
        return line, offset - self._lines[line - 1]
