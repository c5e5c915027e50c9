"""Canonical JSON as all SDKs write it: names sorted by UTF-16 unit, no space, integral numbers without fraction.

What may live here: values in, text out. Numbers are written as ECMAScript does, so that the web SDK's own text is
canonical once its names are sorted.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from hashlib import sha256
from typing import Any


def canonical(value: Any) -> str:
    """The text of a JSON value. Lone surrogates are written as escapes, everything else as itself."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_text(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(one) for one in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return number(value)
    return json.dumps(value)


def digest(text: str) -> str:
    """SHA-256 of the text's UTF-8, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def number(value: float) -> str:
    """The shortest digits that read back as the same number; an exponent below 1e-6 and from 1e21 on."""
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    point = len(text) + exponent
    minus = "-" if sign else ""
    if len(text) <= point <= 21:
        return minus + text + "0" * (point - len(text))
    if 0 < point <= 21:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{minus}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _text(value: str) -> str:
    return '"' + "".join(_character(one) for one in value) + '"'


def _character(one: str) -> str:
    if one in _ESCAPES:
        return _ESCAPES[one]
    if one < " " or "\ud800" <= one <= "\udfff":
        return f"\\u{ord(one):04x}"
    return one
