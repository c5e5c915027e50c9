"""Times as people type them: RFC 3339, or how long ago."""

from __future__ import annotations

import re
from typing import Any

import click

from svc.domain.events.listing import read_timestamp
from svc.world import World

_AGO = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


class TimestampType(click.ParamType[int]):
    """RFC 3339 with any offset, or `30m`, `24h`, `7d`, `2w` for so long before now -> Unix milliseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Unix milliseconds; an integer is returned as it is. Fails with a usage error."""
        at_ms = value if isinstance(value, int) else read_time(value, World.real().now_ms())
        if at_ms is None:
            self.fail(f"{value!r} is neither a time such as 2026-01-05T10:00:00Z nor an age such as 7d", param, ctx)
        return at_ms


def read_time(text: str, now_ms: int) -> int | None:
    """Unix milliseconds of RFC 3339 text, or of an age such as `7d` (units s, m, h, d, w); `None` for other text and
    for what lies before 1970.
    """
    ago = _AGO.fullmatch(text)
    if ago is None:
        return read_timestamp(text)
    at_ms = now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    return at_ms if at_ms >= 0 else None
