"""JSON as the service writes it: strictly read, so that every library reads the same of the same bytes."""

from __future__ import annotations

import json
import re
from typing import Any, cast

DEEPEST = 100
"""Levels of lists and objects."""
MAX_INTEGER = 2**53 - 1
"""What every reader of JSON has exactly (RFC 8259, section 6)."""
_MAX_DIGITS = 4_000
"""Python raises `ValueError` for an integer of more."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parsed(content: bytes) -> Any:
    """The value of a text of JSON in UTF-8; of two fields of one name, the last one. Raises `ValueError` for anything
    else, such as NaN, a byte order mark, half of a surrogate pair, and what is nested deeper than `DEEPEST`.
    """
    text = content.decode()
    try:
        value: Any = json.loads(text, parse_constant=_refused, parse_int=_integer)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if _HALF.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for one in level for inner in _inside(one)]
    if any(isinstance(one, dict | list) for one in level):
        raise ValueError("nested too deep")
    return value


def whole(value: object) -> int | None:
    """The number of a value that is a whole one, in any notation; `None` for any other."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and abs(value) <= MAX_INTEGER else None


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
