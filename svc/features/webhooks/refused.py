"""`identification.refused`: the first at once, then at most one a minute per key and code, with a count.

A flood of refusals costs a subscriber one event a minute, and the store little more (decisions 8.9).
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from svc.features.webhooks.content.payloads import RefusedIdentification
from svc.kernel.values.fields import Environment
from svc.kernel.values.refusals import RefusedRequest
from svc.kernel.values.struct_fields import body_of

INTERVAL_MS = 60_000


class Refusals(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The refusals of one key and code since the last event about them, with the details of the latest."""

    told_at_ms: int
    """When the last event was made."""
    count: int
    request_id: bytes
    occurred_at_ms: int
    status: int
    environment: Environment
    origin: str | None = None
    ip_address: str | None = None
    reason: str | None = None

    @property
    def due_ms(self) -> int:
        """Return the time (Unix ms) from which the next event may be created: a minute after the last."""
        return self.told_at_ms + INTERVAL_MS

    def must_wait(self, now_ms: int) -> bool:
        """Return whether the minute since the last event has not passed, unless the clock was set back by more."""
        return abs(now_ms - self.told_at_ms) < INTERVAL_MS


class Noted(NamedTuple):
    """The result of a refusal or of a minute's end: an event to queue, if any, and refusals to keep, if any."""

    event: RefusedIdentification | None
    """To be queued now, if any."""
    kept: Refusals | None
    """What to remember; `None` = nothing."""


def note(before: Refusals | None, request: RefusedRequest) -> Noted:
    """Count one more refusal (or `count`). Return the event at once if the last one was a minute ago or more."""
    kept = body_of(
        Refusals,
        request,
        told_at_ms=request.occurred_at_ms if before is None else before.told_at_ms,
        count=request.count + (0 if before is None else before.count),
    )
    if before is not None and before.must_wait(request.occurred_at_ms):
        return Noted(None, kept)
    return _notified(kept, request.key_id, request.code, request.occurred_at_ms)


def notify(before: Refusals, key_id: str, code: str, now_ms: int) -> Noted:
    """Return the event that reports the refusals counted since the last one, once its minute has passed. Before that,
    return no event and keep `before`; if nothing was counted, return no event and keep nothing.
    """
    if before.must_wait(now_ms):
        return Noted(None, before)
    return _notified(before, key_id, code, now_ms) if before.count else Noted(None, None)


def _notified(refusals: Refusals, key_id: str, code: str, now_ms: int) -> Noted:
    request_id = str(UUID(bytes=refusals.request_id))
    event = body_of(RefusedIdentification, refusals, request_id=request_id, code=code, key_id=key_id)
    return Noted(event, msgspec.structs.replace(refusals, told_at_ms=now_ms, count=0))
