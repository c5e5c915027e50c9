"""Which events a list shows: the window in time, the filters and the page (interface 4.2, decisions 7.1).

What may live here: what the query says in, a `Listing` or a `Refusal` out.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple, get_args

from svc.domain.model import Level
from svc.domain.records import RETENTION_MS
from svc.domain.refusals import Detail, Issue, Refusal

DEFAULT_WINDOW_MS = 24 * 3600 * 1000
MAX_WINDOW_MS = RETENTION_MS
MAX_OFFSET = 10_000
"""Events that may come before a page."""
LEVELS: tuple[Level, ...] = get_args(Level)

_LEVELS: dict[str, Level] = {level: level for level in LEVELS}
_VISITOR_ID = re.compile(r"[0-9A-Za-z]{20}", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+ -])([01]\d|2[0-3]):([0-5]\d))", re.ASCII
)
"""RFC 3339, 5.6. The space for a plus: that is what an unescaped `+` of a query string says."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  the offset is reckoned apart, so that no year is out of range


class Listing(NamedTuple):
    """A checked request for one page of events."""

    from_ms: int
    """Of arrival, inclusive."""
    to_ms: int
    """Exclusive."""
    visitor_id: str | None
    """`None` = any."""
    level: Level | None
    """`None` = any, those that were not scored included."""
    offset: int
    """Events before the page."""
    limit: int


class Asked(NamedTuple):
    """The parameters of a list of events as they were sent, their values not checked yet."""

    start: str | None = None
    end: str | None = None
    page: int = 1
    limit: int = 10
    visitor: str | None = None
    level: str | None = None


def read_listing(asked: Asked, now_ms: int) -> Listing | Refusal:
    """Check the parameters of a list of events against the window and the limits (interface 4.2); `422 invalid_window`
    with the parameter that is wrong.
    """
    window = read_window(asked.start, asked.end, now_ms)
    if isinstance(window, Refusal):
        return window
    if asked.visitor is not None and not _VISITOR_ID.fullmatch(asked.visitor):
        return _invalid("visitor", "invalid_value")
    level = None if asked.level is None else _LEVELS.get(asked.level)
    if level is None and asked.level is not None:
        return _invalid("level", "invalid_value")
    offset = (asked.page - 1) * asked.limit
    if offset > MAX_OFFSET:
        return _invalid("page", "out_of_range")
    return Listing(*window, asked.visitor, level, offset, asked.limit)


def read_window(start: str | None, end: str | None, now_ms: int) -> tuple[int, int] | Refusal:
    """(from, to) in Unix milliseconds: to is not in it. The default start is 24 hours before, but not over 30 days ago.

    The default end is the end of this very millisecond, so that what arrived in it is readable at once.
    """
    to_ms = now_ms if end is None else read_timestamp(end)
    if to_ms is None:
        return _invalid("to", "invalid_value")
    oldest_ms = now_ms - RETENTION_MS
    from_ms = max(to_ms - DEFAULT_WINDOW_MS, oldest_ms) if start is None else read_timestamp(start)
    if from_ms is None:
        return _invalid("from", "invalid_value")
    if not oldest_ms <= from_ms < to_ms:
        return _invalid("to" if start is None else "from", "out_of_range")
    if to_ms - from_ms > MAX_WINDOW_MS:
        return _invalid("to", "out_of_range")
    return from_ms, to_ms + (end is None)


def read_timestamp(text: str) -> int | None:
    """RFC 3339 with any offset as Unix milliseconds, rounded up so that whatever is before it stays before; `None` for
    other text.
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    date, time, fraction, sign, hours, minutes = found.groups()
    try:
        since = datetime.fromisoformat(f"{date}T{time}") - _EPOCH
    except ValueError:
        return None
    ms = (since.days * 86_400 + since.seconds) * 1000
    if fraction is not None:
        ms += int(fraction[:3].ljust(3, "0")) + bool(fraction[3:].strip("0"))
    if sign is not None:
        offset_ms = (int(hours) * 60 + int(minutes)) * 60_000
        ms += offset_ms if sign == "-" else -offset_ms
    return ms


def _invalid(parameter: str, issue: Issue) -> Refusal:
    return Refusal("invalid_window", (Detail(parameter, issue, "query"),))
