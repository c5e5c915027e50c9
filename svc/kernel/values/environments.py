"""Environments and platforms: words that keys, prices and verdicts share, and whether an address is known."""

from __future__ import annotations

from typing import Literal, get_args

Environment = Literal["production", "staging", "development"]


Platform = Literal["web", "android", "ios"]
"""Scoring profile (interface 2.3)."""


State = Literal["enriched", "unavailable"]


ENVIRONMENTS: tuple[Environment, ...] = get_args(Environment)


PLATFORMS: tuple[Platform, ...] = get_args(Platform)
