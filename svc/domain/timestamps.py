"""How moments are written for people and machines outside."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(at_ms: int) -> str:
    """RFC 3339 UTC with milliseconds and `Z` (decisions 1.2)."""
    seconds, milliseconds = divmod(at_ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03}Z"


def utc(at_ms: int) -> datetime:
    """Unix milliseconds as a time in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)
