"""Values of conditions: functions and operators of the language over Python's values.

What may live here: overload of the language (github.com/google/cel-spec, doc/langdef.md, "Standard Definitions") ->
a function of Python values. Integers are `int` within 64 bits, timestamps and durations `int` in nanoseconds, the
others as Python has them. Which overload a call has is decided by the checker, so that no function looks at types.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from svc.identify.network.timezones import time_zone


class EvaluationError(Exception):
    """An evaluation that has no result, in words; a rule does not match then."""


SECOND_NS: Final = 1_000_000_000
_INT, _UINT = range(-(1 << 63), 1 << 63), range(1 << 64)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_NS: Final = -62_135_596_800 * SECOND_NS
_LAST_NS: Final = 253_402_300_800 * SECOND_NS - 1
_LONGEST_NS: Final = 315_576_000_000 * SECOND_NS


def _within(allowed: range, number: int) -> int:
    if number not in allowed:
        raise EvaluationError("a number is beyond 64 bits")
    return number


def _moment(ns: int) -> int:
    if not _FIRST_NS <= ns <= _LAST_NS:
        raise EvaluationError("a time is before the year 1 or after 9999")
    return ns


def _span(ns: int) -> int:
    if not -_LONGEST_NS <= ns <= _LONGEST_NS:
        raise EvaluationError("a duration is longer than 10,000 years")
    return ns


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("a number is divided by zero")
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _ratio(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _element(sequence: list[Any], index: int) -> Any:
    if not 0 <= index < len(sequence):
        raise EvaluationError(f"a list of {len(sequence)} has no element {index}")
    return sequence[index]


def entry(entries: dict[Any, Any], key: Any) -> Any:
    """Return the value of a key of a map. Raises `EvaluationError` where it has none."""
    try:
        return entries[key]
    except KeyError:
        raise EvaluationError(f"a map has no key {key!r}") from None


def _whole(number: float, allowed: range) -> int:
    least = 0 if allowed.start == 0 else math.nextafter(allowed.start, 0)  # -2⁶³ itself is beyond, by the language
    if not least <= number < allowed.stop:  # nor is what is not a number
        raise EvaluationError("a number is beyond 64 bits")
    return int(number)


def _read_int(text: str, allowed: range) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        raise EvaluationError("a text is not a whole number")
    return _within(allowed, int(text))


def _read_double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EvaluationError("a text is not a number") from None


def _read_bool(text: str) -> bool:
    if text in ("1", "t", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "false", "FALSE", "False"):
        return False
    raise EvaluationError("a text is neither true nor false")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise EvaluationError("bytes are not UTF-8") from None


_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def read_timestamp(text: str) -> int:
    """Return a time of RFC 3339 in nanoseconds since 1970. Raises `EvaluationError`."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise EvaluationError("a text is not a time such as 2026-01-31T09:00:00Z")
    *parts, fraction, sign, hours, minutes = found.groups()
    year, month, day, hour, minute, second = map(int, parts)
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise EvaluationError("there is no such time") from None
    ahead_s = (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1) if sign else 0
    seconds = (whole - _EPOCH) // timedelta(seconds=1) - ahead_s
    return _moment(seconds * SECOND_NS + int((fraction or "").ljust(9, "0")))


_UNITS_NS: Final = {"h": 3600 * SECOND_NS, "m": 60 * SECOND_NS, "s": SECOND_NS, "ms": 10**6, "us": 10**3, "ns": 1}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|us|ns|h|m|s)", re.ASCII)
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)


def read_duration(text: str) -> int:
    """Return a duration such as `1h30m` in nanoseconds. Raises `EvaluationError`."""
    if not _DURATION.fullmatch(text) or len(text) > _LONGEST_DURATION:
        raise EvaluationError("a text is not a duration such as 24h or 90m; there are h, m, s, ms, us and ns")
    total = 0
    for number, unit in _PART.findall(text):
        whole, _, fraction = number.partition(".")
        total += int(whole or 0) * _UNITS_NS[unit]
        total += int(fraction or 0) * _UNITS_NS[unit] // 10 ** len(fraction)
    return _span(-total if text.startswith("-") else total)


_LONGEST_DURATION = 64


def _fraction(ns: int) -> str:
    if not ns:
        return ""
    digits = f"{ns:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return "." + digits


def written_timestamp(ns: int) -> str:
    """Return a time in nanoseconds since 1970 by RFC 3339 in UTC."""
    seconds, rest = divmod(ns, SECOND_NS)
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + _fraction(rest) + "Z"


def written_duration(ns: int) -> str:
    """Return a duration in nanoseconds as seconds, such as `90s`."""
    seconds, rest = divmod(abs(ns), SECOND_NS)
    return f"{'-' if ns < 0 else ''}{seconds}{_fraction(rest)}s"


_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)


def read_time_zone(name: str) -> Callable[[datetime], datetime]:
    """Return a function from a time in UTC to that of a zone: a name of the IANA, or `+01:00`. Raises
    `EvaluationError` if there is none.
    """
    found = _OFFSET.fullmatch(name)
    if found is not None:
        sign, hours, minutes = found.groups()
        ahead = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
        return lambda moment: moment + ahead
    zone = time_zone(name)
    if zone is None:
        raise EvaluationError(f"there is no time zone {name!r}")
    return lambda moment: moment.astimezone(zone)


def calendar(ns: int) -> datetime:
    """Return a time in nanoseconds since 1970 as a date in UTC, without what is below a microsecond."""
    return _EPOCH + timedelta(microseconds=ns // 1000)


FIELDS: Final[dict[str, Callable[[datetime], int]]] = {
    "year": lambda at: at.year,
    "month": lambda at: at.month - 1,
    "day_of_month": lambda at: at.day - 1,
    "day_of_month_1_based": lambda at: at.day,
    "day_of_week": lambda at: at.isoweekday() % 7,
    "day_of_year": lambda at: at.timetuple().tm_yday - 1,
    "hours": lambda at: at.hour,
    "minutes": lambda at: at.minute,
    "seconds": lambda at: at.second,
    "milliseconds": lambda at: at.microsecond // 1000,
}
"""What is asked of a time -> its answer; `timestamp_to_year` is the overload of `year`."""


def _compared(name: str, function: Callable[[Any, Any], bool]) -> dict[str, Callable[..., Any]]:
    types = ("bool", "int64", "uint64", "double", "string", "bytes", "timestamp", "duration")
    return {f"{name}_{of}": function for of in types}


def _same(value: Any) -> Any:
    return value


_OF_INT: Final[dict[str, Callable[[int], Any]]] = {
    "negate_int64": lambda number: _within(_INT, -number),
    "uint64_to_int64": lambda number: _within(_INT, number),
    "int64_to_uint64": lambda number: _within(_UINT, number),
    "int64_to_double": float,
    "uint64_to_double": float,
    "int64_to_string": str,
    "uint64_to_string": str,
    "int64_to_timestamp": lambda seconds: _moment(seconds * SECOND_NS),
    "timestamp_to_int64": lambda ns: ns // SECOND_NS,
    "timestamp_to_string": written_timestamp,
    "duration_to_string": written_duration,
    "duration_to_hours": lambda ns: _quotient(ns, 3600 * SECOND_NS),
    "duration_to_minutes": lambda ns: _quotient(ns, 60 * SECOND_NS),
    "duration_to_seconds": lambda ns: _quotient(ns, SECOND_NS),
    "duration_to_milliseconds": lambda ns: _quotient(ns, 10**6) - 1000 * _quotient(ns, SECOND_NS),
}
_OF_INTS: Final[dict[str, Callable[[int, int], int]]] = {
    "add_int64": lambda left, right: _within(_INT, left + right),
    "subtract_int64": lambda left, right: _within(_INT, left - right),
    "multiply_int64": lambda left, right: _within(_INT, left * right),
    "divide_int64": lambda left, right: _within(_INT, _quotient(left, right)),
    "modulo_int64": lambda left, right: left - right * _quotient(left, right),
    "add_uint64": lambda left, right: _within(_UINT, left + right),
    "subtract_uint64": lambda left, right: _within(_UINT, left - right),
    "multiply_uint64": lambda left, right: _within(_UINT, left * right),
    "divide_uint64": _quotient,
    "modulo_uint64": lambda left, right: left - right * _quotient(left, right),
    "add_timestamp_duration": lambda left, right: _moment(left + right),
    "add_duration_timestamp": lambda left, right: _moment(left + right),
    "add_duration_duration": lambda left, right: _span(left + right),
    "subtract_timestamp_timestamp": lambda left, right: _span(left - right),
    "subtract_timestamp_duration": lambda left, right: _moment(left - right),
    "subtract_duration_duration": lambda left, right: _span(left - right),
}
_OF_DOUBLE: Final[dict[str, Callable[[float], Any]]] = {
    "negate_double": operator.neg,
    "double_to_int64": lambda number: _whole(number, _INT),
    "double_to_uint64": lambda number: _whole(number, _UINT),
    "double_to_string": lambda number: f"{number:g}",
}
_OF_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "string_to_int64": lambda text: _read_int(text, _INT),
    "string_to_uint64": lambda text: _read_int(text, _UINT),
    "string_to_double": _read_double,
    "string_to_bool": _read_bool,
    "string_to_bytes": str.encode,
    "string_to_timestamp": read_timestamp,
    "string_to_duration": read_duration,
}


def _of_time(ask: Callable[[datetime], int]) -> Callable[[int], int]:
    return lambda ns: ask(calendar(ns))


def _written_bool(value: object) -> str:
    return "true" if value else "false"


def _has_key(key: Any, entries: dict[Any, Any]) -> bool:
    return key in entries


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **_OF_INT,
    **_OF_INTS,
    **_OF_DOUBLE,
    **_OF_TEXT,
    "equals": operator.eq,
    "not_equals": operator.ne,
    **_compared("less", operator.lt),
    **_compared("less_equals", operator.le),
    **_compared("greater", operator.gt),
    **_compared("greater_equals", operator.ge),
    "logical_not": operator.not_,
    "add_double": operator.add,
    "subtract_double": operator.sub,
    "multiply_double": operator.mul,
    "divide_double": _ratio,
    "in_map": _has_key,
    "index_list": _element,
    "index_map": entry,
    **dict.fromkeys(("size_string", "size_bytes", "size_list", "size_map"), len),
    **dict.fromkeys(("string_size", "bytes_size", "list_size", "map_size"), len),
    "starts_with_string": str.startswith,
    "ends_with_string": str.endswith,
    **dict.fromkeys(("int64_to_int64", "uint64_to_uint64", "double_to_double", "string_to_string"), _same),
    **dict.fromkeys(("bool_to_bool", "bytes_to_bytes", "timestamp_to_timestamp", "duration_to_duration"), _same),
    "bool_to_string": _written_bool,
    "bytes_to_string": _decoded,
    **{f"timestamp_to_{name}": _of_time(ask) for name, ask in FIELDS.items()},
}
"""Overload -> what it does, where its arguments are all that it needs. `add_string`, `add_list`, `contains`, `matches`,
`in_list` and those of times in a zone are in `evaluators.py`: what they cost is counted while they run.
"""
