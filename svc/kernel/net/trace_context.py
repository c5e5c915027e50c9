"""The trace that a request belongs to: W3C Trace Context Level 2 (`traceparent` and `tracestate`), read and passed on.

What may live here: the two headers as text and as a value. The service exports no spans: its log lines and the webhooks
that a request causes name the trace, so that they are found beside the caller's own spans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_MEMBER = re.compile(
    r"([a-z0-9][a-z0-9_\-*/@]{0,255})=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])"
)
"""A list member (3.3.1.3): a key, and a value without comma and `=` that ends in no space."""
MAX_MEMBERS = 32
MAX_STATE = 512
"""Characters of `tracestate` that are passed on (3.3.1.5 asks for no fewer): of a longer one, entries go."""
LONG_MEMBER = 128
"""Entries of more characters go first (3.3.1.5)."""
SAMPLED = 0x01
_KNOWN_FLAGS = SAMPLED | 0x02
"""`sampled` and `random-trace-id`; every other bit is sent as zero (3.2.2.5)."""


class TraceContext(msgspec.Struct, frozen=True, array_like=True):
    """A trace, and the span in it that is the parent of what follows."""

    trace_id: bytes
    """16 bytes, not all zero."""
    span_id: bytes
    """8 bytes, not all zero: of the caller in what was received, of this service's request in what is passed on."""
    flags: int
    """Bits that Level 2 knows."""
    tracestate: str = ""
    """`tracestate` as it is passed on; empty = none."""

    @property
    def is_sampled(self) -> bool:
        """Whether the caller may have recorded the trace, so that it can be looked up."""
        return bool(self.flags & SAMPLED)

    def child(self, span_id: bytes) -> TraceContext:
        """Return the same trace, with another span of 8 bytes."""
        return msgspec.structs.replace(self, span_id=span_id)

    @property
    def headers(self) -> dict[str, str]:
        """`traceparent`, and `tracestate` where there is any."""
        parent = f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{self.flags:02x}"
        return {"traceparent": parent, **({"tracestate": self.tracestate} if self.tracestate else {})}


def read_trace(headers: Mapping[str, str]) -> TraceContext | None:
    """Return the trace context of a request; `None` without `traceparent`, or if it breaks a rule: then `tracestate` is
    ignored too (3.3). A `tracestate` that breaks a rule is dropped alone. `headers`: by lower-case names, several of a
    name joined by commas.
    """
    found = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    if not (int(trace_id, 16) and int(span_id, 16)):
        return None
    state = _read_state(headers.get("tracestate", ""))
    return TraceContext(bytes.fromhex(trace_id), bytes.fromhex(span_id), int(flags, 16) & _KNOWN_FLAGS, state)


def span_of(request_id: bytes) -> bytes:
    """Return the span of a request: the last 8 bytes of its UUIDv7, which are 62 random bits and never zero."""
    return request_id[8:]


def trace_fields(trace: TraceContext | None) -> dict[str, str]:
    """Return what log lines name of the trace: `trace_id` and `span_id`, in hexadecimal; nothing without one."""
    return {} if trace is None else {"trace_id": trace.trace_id.hex(), "span_id": trace.span_id.hex()}


def _read_state(text: str) -> str:
    members = [member for member in (part.strip(" \t") for part in text.split(",")) if member]
    found = [_MEMBER.fullmatch(member) for member in members]
    keys = {match[1] for match in found if match is not None}
    if len(members) > MAX_MEMBERS or len(keys) < len(members):
        return ""
    while len(",".join(members)) > MAX_STATE:
        long = [member for member in members if len(member) > LONG_MEMBER]
        members.remove(long[-1] if long else members[-1])
    return ",".join(members)
