"""Changes of stored events: their kinds, and their places in the order that they share with new events (decisions 19).

What may live here: a place in, what it stands for out; no store.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from svc.identify.events.listing import Position

ChangeKind = Literal["updated", "erased"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
"""Their indexes are stored in keys: append, never move."""

_BEHIND_EVENTS: Final = b"\xff" * 12
"""No request id begins so, since the version of a UUIDv7 is in its seventh byte."""


def place_of_change(changed_at_ms: int, sequence: int) -> Position:
    """Return the place of a change among events: behind those of its millisecond (Unix ms), in the order of
    `sequence`.
    """
    return Position(changed_at_ms, _BEHIND_EVENTS + sequence.to_bytes(4))


def first_change_behind(place: Position) -> tuple[int, int]:
    """Return (`changed_at_ms`, `sequence`) of the first change that could come behind a place."""
    at_ms, tail = place
    sequence = int.from_bytes(tail[12:]) + 1 if tail.startswith(_BEHIND_EVENTS) else 0
    return (at_ms + 1, 0) if sequence >> 32 else (at_ms, sequence)
