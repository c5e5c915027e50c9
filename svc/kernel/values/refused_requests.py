"""Identifications that were refused, as processes report them to each other."""

from __future__ import annotations

import msgspec

from svc.kernel.net.trace_context import TraceContext
from svc.kernel.values.fields import Environment

NOTIFIABLE = frozenset({401, 402, 413, 422, 429})
"""Statuses of refusals that make an event, where the key was recognized."""


class RefusedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One refused request of a recognized key, or the latest of `count` similar ones."""

    organization: int
    key_id: str
    code: str
    status: int
    environment: Environment
    request_id: bytes
    occurred_at_ms: int
    origin: str | None
    ip_address: str | None
    reason: str | None = None
    count: int = 1
    trace: TraceContext | None = None

    @property
    def name(self) -> str:
        """`key_id/code`: the kind of refusal within the organization; refusals of one kind are counted together."""
        return f"{self.key_id}/{self.code}"
