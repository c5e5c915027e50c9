"""Why a condition is true or false of an event: its terms, each with the values that it compares.

What may live here: a condition taken apart at `&&`, `||` and `!`, as the language binds them, and what each part comes
to. Every part is evaluated by the language itself; nothing is concluded here from its parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, cast

from svc.domain.rules.conditions import TOKEN, InList, activation_of, value_of, variables_in

LONGEST_VALUE: Final = 200
"""Characters of a value that are shown."""
_RELATIONS: Final = ("==", "!=", "<=", ">=", "<", ">")
TermKind = Literal["all", "any", "not", "term"]
_JOINED: Final[tuple[tuple[TermKind, str], ...]] = (("any", "|"), ("all", "&"))
"""By doubled marks, the one that binds loosest first."""


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


class _Piece(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def explain(condition: str, values: Mapping[str, Any], in_list: InList) -> Term:
    """Return the terms of a condition that was checked, for an event with these values. Blocks for about a tenth of a
    millisecond a term.
    """
    return _Explanation(condition, values, in_list).of(
        [
            _Piece(found.lastgroup or "mark", found.group(), found.start(), found.end())
            for found in TOKEN.finditer(condition)
            if found.lastgroup != "space"
        ]
    )


class _Explanation:
    def __init__(self, condition: str, values: Mapping[str, Any], in_list: InList) -> None:
        self._condition, self._values, self._in_list = condition, values, in_list
        self._activation = activation_of(values)

    def of(self, pieces: Sequence[_Piece]) -> Term:
        """Return the value of these pieces, which are an expression."""
        while len(pieces) > 1 and pieces[0].text == "(" and _closing(pieces) == len(pieces) - 1:
            pieces = pieces[1:-1]
        text = self._text(pieces)
        kind, parts = _parts(pieces)
        if kind != "term":
            return Term(kind, text, self._result(text), tuple(map(self.of, parts)))
        absent = tuple(sorted(variables_in(text) - self._values.keys()))
        at = _relation(pieces)
        if at is None:
            return Term("term", text, self._result(text), absent=absent)
        start, end = at
        left, right = self._operand(pieces[:start]), self._operand(pieces[end:])
        operator = "".join(piece.text for piece in pieces[start:end])
        return Term("term", text, self._result(text), (), operator, left, right, absent)

    def _text(self, pieces: Sequence[_Piece]) -> str:
        return self._condition[pieces[0].start : pieces[-1].end] if pieces else ""

    def _result(self, text: str) -> bool | None:
        found = value_of(text, self._activation, self._values, self._in_list)
        return found if isinstance(found, bool) else None

    def _operand(self, pieces: Sequence[_Piece]) -> Operand:
        text = self._text(pieces)
        if all(piece.kind in ("text", "number") or piece.text == "-" for piece in pieces):
            return Operand(text, None)
        found = value_of(text, self._activation, self._values, self._in_list)
        return Operand(text, None if found is None else shown(found))


def shown(value: Any) -> str:
    """Return a value as a condition would write it; what is longer than `LONGEST_VALUE` is cut."""
    text = _shown(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        case dict():
            entries = cast("dict[Any, Any]", value).items()
            return "{" + ", ".join(f"{_shown(name)}: {each}" for name, each in sorted(entries)) + "}"
        case _:
            return str(value)


def _parts(pieces: Sequence[_Piece]) -> tuple[TermKind, list[Sequence[_Piece]]]:
    """How an expression is put together, loosest first, and of what."""
    if any(piece.text == "?" for _, piece in _outside(pieces)):
        return "term", []  # a choice between two values is shown whole
    for kind, mark in _JOINED:
        parts = _split(pieces, mark)
        if len(parts) > 1 and all(parts):
            return kind, parts
    if len(pieces) > 1 and pieces[0].text == "!" and _relation(pieces) is None:
        return "not", [pieces[1:]]
    return "term", []


def _split(pieces: Sequence[_Piece], mark: str) -> list[Sequence[_Piece]]:
    """The pieces between doubled marks that are outside of brackets."""
    parts: list[Sequence[_Piece]] = []
    start = 0
    for at, piece in _outside(pieces):
        if at > start - 1 and piece.text == mark and at + 1 < len(pieces) and pieces[at + 1].text == mark:
            parts.append(pieces[start:at])
            start = at + 2
    return [*parts, pieces[start:]]


def _relation(pieces: Sequence[_Piece]) -> tuple[int, int] | None:
    """Where the last comparison outside of brackets begins and ends; `None` where nothing is compared."""
    found: tuple[int, int] | None = None
    for at, piece in _outside(pieces):
        if at == 0 or (found is not None and at < found[1]):
            continue
        pair = piece.text + (pieces[at + 1].text if at + 1 < len(pieces) else "")
        is_pair = pair in _RELATIONS and pieces[at + 1].start == piece.end
        if is_pair:
            found = at, at + 2
        elif piece.text in _RELATIONS or (piece.kind == "name" and piece.text == "in"):
            found = at, at + 1
    return found if found is not None and found[1] < len(pieces) else None


def _outside(pieces: Sequence[_Piece]) -> Iterator[tuple[int, _Piece]]:
    """(index, piece) of the marks and names that are in no bracket."""
    depth = 0
    for at, piece in enumerate(pieces):
        if piece.kind != "text" and piece.text in ("(", "[", "{"):
            depth += 1
        elif piece.kind != "text" and piece.text in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and piece.kind in ("mark", "name"):
            yield at, piece


def _closing(pieces: Sequence[_Piece]) -> int:
    """Where the bracket closes that the first piece opens."""
    depth = 0
    for at, piece in enumerate(pieces):
        if piece.kind != "text":
            depth += (piece.text in ("(", "[", "{")) - (piece.text in (")", "]", "}"))
        if depth == 0:
            return at
    return len(pieces)
