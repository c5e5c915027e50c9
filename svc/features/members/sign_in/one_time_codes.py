"""One-time codes of members: TOTP (RFC 6238, decisions 15.3).

What may live here: pure functions of a secret and a time.
"""

from __future__ import annotations

import base64
import hmac

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

STEP_S = 30
CODE_DIGITS = 6
_DRIFT = (0, -1, 1)
"""Steps around now whose codes are good: for clocks that differ by up to half a minute, and for slow typing."""
_CODE_SECRET_BYTES = 20


def code_secret(key: bytes, member_id: str, generation: int) -> bytes:
    """Return the secret from which a member's authenticator makes codes (RFC 6238). It is derived, and
    stored nowhere.
    """
    return hmac.digest(key, f"totp\n{member_id}\n{generation}".encode(), "sha256")[:_CODE_SECRET_BYTES]


def shown_secret(secret: bytes) -> str:
    """Return a secret as people type it: base32."""
    return base64.b32encode(secret).decode()


def code_url(secret: bytes, email: str, issuer: str) -> str:
    """Return the `otpauth:` URL that authenticators read."""
    return _totp(secret).get_provisioning_uri(email, issuer)


def step_of_code(secret: bytes, code: str, now_ms: int, last: int) -> int | None:
    """Return the time step that a code belongs to, of those around now and after `last`; `None` for a wrong code and
    for one that counted before.
    """
    given, now_step = code.encode(), now_ms // 1000 // STEP_S
    matched = None
    for drift in _DRIFT:
        step = now_step + drift
        is_it = hmac.compare_digest(_totp(secret).generate(step * STEP_S), given)
        if is_it and step > last and matched is None:
            matched = step
    return matched


def code_at(secret: bytes, at_ms: int) -> str:
    """Return the code of this moment."""
    return _totp(secret).generate(at_ms // 1000).decode()


def _totp(secret: bytes) -> TOTP:
    return TOTP(secret, CODE_DIGITS, SHA1(), STEP_S)  # noqa: S303  what authenticators take
