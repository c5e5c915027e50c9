"""Times as text and as numbers: RFC 3339 for people and machines outside, Unix milliseconds inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def timestamp(at_ms: int) -> str:
    """RFC 3339 UTC with milliseconds and `Z` (decisions 1.2)."""
    seconds, milliseconds = divmod(at_ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03}Z"


def unix_ms(at: datetime) -> int:
    """Unix milliseconds of a time with a time zone, rounded down; negative before 1970. Raises `TypeError` for a time
    without a zone.
    """
    return (at - _EPOCH) // _MILLISECOND


def iso_day(day: int) -> str:
    """A UTC day since 1970 as `2026-01-05`."""
    return (_EPOCH + timedelta(days=day)).date().isoformat()


def utc(at_ms: int) -> datetime:
    """Unix milliseconds as a time in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)
