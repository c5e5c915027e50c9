"""Readers of one JSON value: a value of the type that was asked for, or `None`.

What may live here: total functions of a single decoded JSON value. They never raise: reports come from machines that
nobody vouches for, and a wrong type means the same as a missing value, "not compared".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from blake3 import blake3

MAX_LIST = 512
"""Entries of one list that are looked at. The longest honest one, of fonts, has some 300."""
MOST_FIGURES = 64
"""Members of an object of numbers. FingerprintJS sends some 25 of `Math`."""
LONGEST_NAME = 32
"""Characters of a name among them."""
SHORT_TEXT = 64
"""Values up to this many characters stand for themselves, longer ones are hashed."""

_LARGEST_NUMBER = 1e15
_NO_MEMBERS: dict[str, Any] = {}
"""Never written to."""
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_SORTED_JSON = msgspec.json.Encoder(order="sorted")


def text(value: Any, longest: int, *, shortest: int = 1) -> str | None:
    """A string of the given length in characters that can be stored as UTF-8 (lone surrogates can not)."""
    if type(value) is not str or not shortest <= len(value) <= longest:
        return None
    return value if is_unicode(value) else None


def number(value: Any) -> float | None:
    """A finite number of a size that a browser reports; booleans are none. Whole numbers come back as `int`."""
    kind = value.__class__
    if (kind is int or kind is float) and -_LARGEST_NUMBER < value < _LARGEST_NUMBER:
        return value
    return None


def whole(value: Any) -> int | None:
    """A number without a fraction."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def flag(value: Any) -> bool | None:
    return value if type(value) is bool else None


def members(value: Any) -> dict[str, Any]:
    """The members of an object; of anything else none, so that nested reading needs no checks."""
    return cast("dict[str, Any]", value) if type(value) is dict else _NO_MEMBERS


def figures(value: Any) -> dict[str, float]:
    """The numbers of an object by name, such as results of `Math`; none of one larger than any browser sends."""
    said = members(value)
    if len(said) > MOST_FIGURES:
        return {}
    return {
        name: found
        for name, value in said.items()
        if (found := number(value)) is not None and len(name) <= LONGEST_NAME and is_unicode(name)
    }


def entries_of(value: Any) -> list[Any]:
    """The first entries of a list; of anything else none."""
    return cast("list[Any]", value)[:MAX_LIST] if type(value) is list else []


def texts(value: Any, longest: int = 128) -> list[str] | None:
    """The usable strings of a list, in its order; `None` when it is no list."""
    if type(value) is not list:
        return None
    return [
        entry
        for entry in entries_of(value)
        if type(entry) is str and 0 < len(entry) <= longest and (entry.isascii() or is_unicode(entry))
    ]


def size(width: Any, height: Any) -> tuple[float, float] | None:
    """Two numbers that are no less than zero."""
    across, down = number(width), number(height)
    if across is None or down is None or across < 0 or down < 0:
        return None
    return across, down


def epoch_ms(value: Any) -> int | None:
    """A moment written as RFC 3339 text with an offset, or as milliseconds since 1970."""
    if type(value) is str:
        if len(value) > 40 or _RFC_3339.fullmatch(value) is None:
            return None
        try:
            moment = (datetime.fromisoformat(value.upper()) - _EPOCH) // _MILLISECOND
        except ValueError:
            return None
    else:
        found = number(value)
        if found is None:
            return None
        moment = int(found)
    return moment if 0 <= moment <= _LAST_MS else None


def shown(value: float) -> str:
    """A number as text, the same for 8 and 8.0."""
    return str(int(value)) if value == int(value) else repr(value)


def scalar_text(value: Any) -> str | None:
    """A leaf as text: strings as they are, numbers by `shown`, booleans as in JSON; `None` for anything unusable."""
    kind = value.__class__
    if kind is str:
        return value if value and is_unicode(value) else None
    if kind is bool:
        return "true" if value else "false"
    found = number(value)
    return None if found is None else shown(found)


def structure_text(value: Any) -> str | None:
    """Any JSON value as JSON text with sorted members; `None` for what can not be written."""
    try:
        return _SORTED_JSON.encode(value).decode()
    except (ValueError, OverflowError, RecursionError, TypeError):
        return None


def compact(value: str) -> str:
    """Short text as it is, longer text hashed."""
    return value if len(value) <= SHORT_TEXT else digest(value)


def digest(value: str) -> str:
    """128 bits of BLAKE3 over the text, in hexadecimal."""
    return blake3(value.encode("utf-8", "surrogatepass")).hexdigest(length=16)


def is_unicode(value: str) -> bool:
    """Whether the text can be written as UTF-8: JSON escapes allow lone surrogates, which can not."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
