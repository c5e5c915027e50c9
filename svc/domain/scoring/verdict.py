"""The verdict on one identification: who it is, how sure that is, and how suspicious.

What may live here: the value that the decision makes and that travels whole from there: through the transaction into
the stored event, to the response of identify, to reads of events and into webhooks. It is taken apart only where it
leaves the service (`event_row`).
"""

from __future__ import annotations

import msgspec

from svc.domain.model import Level, State


class EventTrigger(msgspec.Struct, frozen=True, array_like=True):
    """A signal group that fired, with the sum of its weights (interface 2.3)."""

    signal: str
    """Name of the group."""
    weight: int
    confidence: Level


class EventSignal(msgspec.Struct, frozen=True, array_like=True):
    """A signal that fired, with the weight in force then (interface 2.2)."""

    signal: str
    group: str
    weight: int
    confidence: Level


class Verdict(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Interface 2.2 and 2.3, decisions 7.1 and 8.10. Stored within an event, so fields are appended with defaults."""

    visitor_id: str
    state: State
    reason: str | None
    suspect_score: int | None
    """`None` = not scored."""
    suspect_level: Level | None
    triggers: tuple[EventTrigger, ...]
    identifiable: bool
    visitor_is_new: bool
    visitor_confidence: int
    """0 for a new id, 85 to 99 matched though something changed, 100 (decisions 3.5)."""
    linkage: str
    """How the visitor was matched: `token`, `exact`, `match`, ..., for operators."""
    signals: tuple[EventSignal, ...] | None = None
    """Heaviest first, ties by name; `None` in events stored by 0.1.0, which kept only their groups."""
    proven: bool = False
    """The report was signed by the key that its token had before this visit (`proof`)."""
