"""Readers of one JSON value: a value of the type that was asked for, or `None`.

What may live here: total functions of a single decoded JSON value. They never raise: reports come from machines that
nobody has verified, and a wrong type means the same as a missing value, "not compared".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
from blake3 import blake3

from svc.kernel.values.timestamps import unix_ms

MAX_LIST = 512
"""Entries of one list that are looked at. The longest honest one, of fonts, has some 300."""
MAX_FIGURES = 64
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
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_SORTED_JSON = msgspec.json.Encoder(order="sorted")


def text(value: Any, longest: int, *, shortest: int = 1) -> str | None:
    """A string of the given length in characters that can be stored as UTF-8 (lone surrogates cannot)."""
    if value.__class__ is str and shortest <= len(value) <= longest and (value.isascii() or is_unicode(value)):
        return value
    return None


Converter = Callable[..., Any]


def described(convert: Converter, words: str) -> Converter:
    """Give a converter these words as its docstring: type, unit and bounds."""
    convert.__doc__ = words
    return convert


def text_of(longest: int, *, shortest: int = 1) -> Converter:
    """A converter to text of `shortest` to `longest` characters, as `text` reads it."""

    def convert(value: Any) -> str | None:
        if value.__class__ is str and shortest <= len(value) <= longest and (value.isascii() or is_unicode(value)):
            return value
        return None

    return described(convert, f"Text of {shortest} to {longest:,} characters.")


short_text = text_of(64)


def first_of(convert: Converter) -> Converter:
    """A converter of several values to the first that `convert` gives a result for; `None` where there is none."""

    def first(*given: Any) -> Any:
        for value in given:
            found = convert(value)
            if found is not None:
                return found
        return None

    return described(first, f"The first that is usable of: {convert.__doc__}")


def when(expected: Any, result: Any) -> Converter:
    """A converter to `result` of this one value."""

    def convert(value: Any) -> Any:
        return result if value == expected else None

    return described(convert, f"`{expected}`, or anything else.")


def above_zero(spelled: str) -> Converter:
    """A converter of a number above zero to text, by a format specification. Failures are zero or below."""

    def convert(value: Any) -> str | None:
        found = number(value)
        return format(found, spelled) if found is not None and found > 0 else None

    return described(convert, f"Number above 0; compared as `{spelled}`.")


def pattern(template: str, *converts: Converter, needs: int, missing: str | None = None) -> Converter:
    """A converter of as many values as there are `converts` to one text of at most 64 characters, longer ones hashed:
    `template` (of `str.format`) filled with the results, `missing` in the place of those that are `None`. The result is
    `None` unless one of the first `needs` values is usable.
    """
    nothing = [None] * needs

    def joined(*given: Any) -> str | None:
        found = [convert(value) for convert, value in zip(converts, given, strict=True)]
        if found[0] is None and found[:needs] == nothing:
            return None
        if missing is not None and None in found:
            found = [missing if value is None else value for value in found]
        return compact(template.format(*found))

    words = dict.fromkeys((convert.__doc__ or "").partition("\n")[0] for convert in converts)
    return described(joined, " ".join(words))


def number(value: Any) -> float | None:
    """Number between -10^15 and 10^15; booleans are none. Whole numbers come back as `int`."""
    kind = value.__class__
    if (kind is int or kind is float) and -_LARGEST_NUMBER < value < _LARGEST_NUMBER:
        return value
    return None


def whole(value: Any) -> int | None:
    """Whole number between -10^15 and 10^15."""
    kind = value.__class__
    if (kind is int or (kind is float and value.is_integer())) and -_LARGEST_NUMBER < value < _LARGEST_NUMBER:
        return int(value)
    return None


def flag(value: Any) -> bool | None:
    """Boolean."""
    return value if type(value) is bool else None


def members(value: Any) -> dict[str, Any]:
    """Return the members of an object; none of anything else, so that nested reading needs no checks."""
    return value if value.__class__ is dict else _NO_MEMBERS


def figures(value: Any) -> dict[str, float] | None:
    """Object of at most 64 numbers by name, such as results of `Math`; a larger one counts as missing."""
    said = members(value)
    if len(said) > MAX_FIGURES:
        return None
    return {
        name: value
        for name, value in said.items()
        if (value.__class__ is float or value.__class__ is int)
        and -_LARGEST_NUMBER < value < _LARGEST_NUMBER
        and len(name) <= LONGEST_NAME
        and (name.isascii() or is_unicode(name))
    } or None


def entries_of(value: Any) -> list[Any]:
    """Return the first entries of a list; none of anything else."""
    return value[:MAX_LIST] if value.__class__ is list else []


def texts(value: Any, longest: int = 128) -> list[str] | None:
    """The usable strings of a list, in its order; `None` when it is not a list."""
    if value.__class__ is not list:
        return None
    return [
        entry
        for entry in value[:MAX_LIST]
        if entry.__class__ is str and 0 < len(entry) <= longest and (entry.isascii() or is_unicode(entry))
    ]


def size(width: Any, height: Any) -> tuple[float, float] | None:
    """Two numbers of at least 0: width and height in CSS pixels, of apps in physical ones."""
    across, down = number(width), number(height)
    if across is None or down is None or across < 0 or down < 0:
        return None
    return across, down


def epoch_ms(value: Any) -> int | None:
    """RFC 3339 text with an offset, or milliseconds since 1970; up to the year 9999.

    As Unix milliseconds, rounded down; `None` for any other value.
    """
    if type(value) is str:
        if len(value) > 40 or _RFC_3339.fullmatch(value) is None:
            return None
        try:
            moment = unix_ms(datetime.fromisoformat(value.upper()))
        except ValueError:
            return None
    else:
        found = number(value)
        if found is None:
            return None
        moment = int(found)
    return moment if 0 <= moment <= _LAST_MS else None


@lru_cache(maxsize=4096)
def shown(value: float) -> str:
    """A finite number as its shortest text, the same for 8 and 8.0. Raises `ValueError` or `OverflowError` for others,
    which `number` lets none of pass.
    """
    return str(int(value)) if value == int(value) else repr(value)


def scalar_text(value: Any) -> str | None:
    """Text, number or boolean; kept as text, numbers by `shown`, booleans as in JSON."""
    kind = value.__class__
    if kind is str:
        return value if value and is_unicode(value) else None
    if kind is bool:
        return "true" if value else "false"
    found = number(value)
    return None if found is None else shown(found)


def number_text(value: Any) -> str | None:
    """Number between -10^15 and 10^15; kept as text."""
    found = number(value)
    return None if found is None else shown(found)


def structure_text(value: Any) -> str | None:
    """Any JSON value as JSON text with sorted members; `None` for what cannot be written."""
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
    """Return whether the text can be written as UTF-8: JSON escapes allow lone surrogates, which cannot."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


MAX_BRANDS = 16
_GREASE = re.compile(r"[\W_]*Not[\W_]?A[\W_]?Brand[\W_]*")


@lru_cache(maxsize=1024)
def is_grease(brand: str) -> bool:
    """Return whether browsers invented the brand, such as `Not;A=Brand` (W3C UA Client Hints, 6.2)."""
    return _GREASE.fullmatch(brand) is not None


def read_brands(value: Any) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """(brand, version) pairs, sorted, and the invented brand, of a list of `{brand, version}` objects or of bare names.
    A browser mixes in one invented brand so that nobody relies on the list's exact content, and shuffles the order.

    Of the list 16 entries are read, texts of at most 64 characters; a version may be "".
    """
    found: list[tuple[str, str]] = []
    invented: str | None = None
    for entry in entries_of(value)[:MAX_BRANDS]:
        fields = members(entry)
        brand = text(entry if type(entry) is str else fields.get("brand"), 64)
        if brand is None:
            continue
        if not is_grease(brand):
            found.append((brand, text(fields.get("version"), 64) or ""))
        elif invented is None:
            invented = brand
    return tuple(sorted(found)), invented
