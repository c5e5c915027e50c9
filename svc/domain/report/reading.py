"""`Reading`: what one adapter made of a report, before the adapters are joined.

What may live here: this one type, and nothing that knows a report's shape.
"""

from __future__ import annotations

from typing import Any

import msgspec

from svc.domain.model import Attribute


class Reading(msgspec.Struct):
    """Filled by one adapter."""

    collector: str
    attributes: dict[Attribute, str]
    """Canonical text without the collector's prefix."""
    claims: dict[str, Any]
    """Fields of `Claims` by name; `None` = not said."""
    rest: list[str]
    """`path=value` leaves that no attribute claims."""
    plugin_names: tuple[str, ...] | None = None
    frame: tuple[int, ...] | None = None
    """What the desktop takes of the screen, in pixels; all zero = nothing, as with letterboxing."""
    botd: dict[str, Any] | None = None
    vendor_id: str | None = None
    """What the system gave to all apps of one maker on this device; it stands in for a token that was not sent."""
    device_flags: tuple[str, ...] = ()
    factory_reset_at_ms: int | None = None
