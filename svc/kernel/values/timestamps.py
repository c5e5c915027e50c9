"""Times as text and as numbers: RFC 3339 for people and machines outside, Unix milliseconds inside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+ -])([01]\d|2[0-3]):?([0-5]\d))", re.ASCII
)
"""RFC 3339, 5.6, and offsets without a colon (ISO 8601), which bodies take, too. The space for a plus: that is what an
unescaped `+` of a query string says."""


def timestamp(at_ms: int) -> str:
    """Return a time (Unix ms) in RFC 3339, UTC with milliseconds and `Z` (decisions 1.2)."""
    seconds, milliseconds = divmod(at_ms, 1000)
    return f"{_second(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    """Return a second without its zone: what is written at one time mostly says that time, more than once."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def unix_ms(at: datetime) -> int:
    """Return Unix milliseconds, rounded down, negative before 1970. Raises `TypeError` for a time without a zone."""
    return (at - _EPOCH) // _MILLISECOND


def iso_day(day: int) -> str:
    """Return a UTC day since 1970 as `2026-01-05`."""
    return (_EPOCH + timedelta(days=day)).date().isoformat()


def utc(at_ms: int) -> datetime:
    """Return a time (Unix ms) as a datetime in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def read_timestamp(text: str) -> int | None:
    """Return the Unix milliseconds of an RFC 3339 text, rounded up, so as to be after what is before; else `None`."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    date, time, fraction, sign, hours, minutes = found.groups()
    try:
        ms = unix_ms(datetime.fromisoformat(f"{date}T{time}Z"))  # the offset is reckoned apart: no year is out of range
    except ValueError:
        return None
    if fraction is not None:
        ms += int(fraction[:3].ljust(3, "0")) + bool(fraction[3:].strip("0"))
    if sign is not None:
        offset_ms = (int(hours) * 60 + int(minutes)) * 60_000
        ms += offset_ms if sign == "-" else -offset_ms
    return ms
