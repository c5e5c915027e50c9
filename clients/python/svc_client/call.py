"""What an operation asks of the service, as a value: the generated methods make it, and the clients send it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4


@dataclass(frozen=True)
class Call:
    """One request, without what all requests share."""

    method: str
    path: str
    """Below `/api/v1`."""
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] | None = None
    is_repeatable: bool = False
    """Whether sending it twice does no more than sending it once."""


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"


UNSET: Final = Unset.UNSET
"""An argument that was left out, where `None` is sent as `null`."""


def given(values: Mapping[str, Any], nullable: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What is sent: the values but those that are `None`, and the nullable ones but those that are `UNSET`."""
    sent = {name: value for name, value in values.items() if value is not None}
    return sent | {name: value for name, value in (nullable or {}).items() if value is not UNSET}


def path(pattern: str, *segments: str) -> str:
    """A path with each `{}` replaced by a segment. Raises `ValueError` for one that would lead to another path."""
    for segment in segments:
        if segment in ("", ".", ".."):
            raise ValueError(f"{segment!r} is not an identifier")
    return pattern.format(*(quote(segment, safe="") for segment in segments))


def new_idempotency_key() -> str:
    """A random key, so that the attempts of one call are one identification."""
    return str(uuid4())
