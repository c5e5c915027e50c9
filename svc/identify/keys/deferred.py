"""The deferred token: the capability to send one deferred report (interface 2.4, decisions 7.4).

Opaque and self-contained, so that issuing one stores nothing: version, request id, expiry and a digest of key and
origin, with an HMAC over them, base64url without padding. And when two deferred reports are the same.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple
from uuid import UUID

import msgspec

from svc.kernel.values.encodings import seal, unseal

LIFETIME_MS = 24 * 3600 * 1000
_FORM = struct.Struct(">B16sQ16s")
_VERSION = 1
_MAC_LENGTH = 16


class DeferredToken(NamedTuple):
    """What a valid deferred token grants: one report for this request, until then."""

    request_id: UUID
    expires_at_ms: int


def issue_token(signing_key: bytes, request_id: UUID, key_id: str, origin: str | None, now_ms: int) -> str:
    """Return a token good for 24 hours for this request, key and origin, made with the key of `signing_key()`."""
    body = _FORM.pack(_VERSION, request_id.bytes, now_ms + LIFETIME_MS, _binding(key_id, origin))
    return seal(signing_key, body, _MAC_LENGTH)


def open_token(signing_key: bytes, text: str, key_id: str, origin: str | None, now_ms: int) -> DeferredToken | None:
    """Return a token's content; `None` if it is malformed, forged, expired, or of another key or origin."""
    body = unseal(signing_key, text, _MAC_LENGTH)
    if body is None or len(body) != _FORM.size:
        return None
    version, request_id, expires_at_ms, binding = _FORM.unpack(body)
    if version != _VERSION or now_ms >= expires_at_ms or binding != _binding(key_id, origin):
        return None
    return DeferredToken(UUID(bytes=request_id), expires_at_ms)


def signing_key(pepper: bytes) -> bytes:
    """Return the 32-byte key of all deferred tokens of one installation, derived from its pepper."""
    return hmac.digest(pepper, b"svc deferred token 1", "sha256")


def report_digest(sdk_platform: str | None, sdk_version: str | None, signals_json: bytes) -> bytes:
    """Return 16 bytes that two reports share when SDK and signals have the same canonical JSON (decisions 7.4). Raises
    `msgspec.DecodeError` for `signals_json` that is not JSON.

    Canonical: names sorted, no space, one spelling of each text and number, as RFC 8785 has it.
    """
    canonical = msgspec.json.encode((sdk_platform, sdk_version, _untyped.decode(signals_json)), order="deterministic")
    return hashlib.blake2b(canonical, digest_size=16).digest()


def _number(text: str) -> int | float:
    """Read a number that is not written as an integer, but may be one: 1.0 and 1e0 are 1."""
    value = float(text)
    return int(value) if abs(value) <= _EXACT and value.is_integer() else value


_EXACT = 2.0**53
"""Up to here a double is as exact as an integer."""


_untyped = msgspec.json.Decoder(float_hook=_number)


def _binding(key_id: str, origin: str | None) -> bytes:
    return hashlib.sha256(f"{key_id}\n{origin or ''}".encode()).digest()[:16]
