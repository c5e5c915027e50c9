"""What an error code of the API means; apart from `refusals`, since features name theirs before anything is loaded."""

from __future__ import annotations

from typing import NamedTuple


class ErrorCode(NamedTuple):
    """What a code means."""

    status: int
    """Of HTTP."""
    message: str
    """For the caller: what to do."""
