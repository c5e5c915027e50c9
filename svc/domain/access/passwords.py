"""Passwords and one-time codes of members (decisions 15.3, docs/adr/0122).

What may live here: pure functions. `password_hash` takes some 50 ms of CPU and 19 MiB: never on the loop.
"""

from __future__ import annotations

import base64
import hmac
import unicodedata

from argon2.low_level import Type, hash_secret_raw
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 256
"""Characters."""
_TIME_COST, _MEMORY_KIB, _THREADS = 2, 19_456, 1
"""The least that OWASP names for argon2id: a flood of sign-ins takes little memory, and who has the hashes without the
pepper can try nothing at all."""
_HASH_BYTES = 32

STEP_S = 30
CODE_DIGITS = 6
_DRIFT = (0, -1, 1)
"""Steps around now whose codes are good: for clocks that differ by up to half a minute, and for slow typing."""
_CODE_SECRET_BYTES = 20


def sign_in_key(pepper: bytes) -> bytes:
    """The key from which salts, stored passwords and secrets of codes are derived. 32 bytes."""
    return hmac.digest(pepper, b"svc members 1", "sha256")


def password_hash(key: bytes, email: str, password: str) -> bytes:
    """argon2id of a password, 32 bytes. The salt follows from the address, so that one computation serves every
    organization with a member of this address, and an address that nobody has costs as much. `key` is of `sign_in_key`.
    """
    return hash_secret_raw(
        unicodedata.normalize("NFKC", password).encode(),
        hmac.digest(key, b"salt\n" + email.encode(), "sha256"),
        time_cost=_TIME_COST,
        memory_cost=_MEMORY_KIB,
        parallelism=_THREADS,
        hash_len=_HASH_BYTES,
        type=Type.ID,
    )


def stored_password(key: bytes, member_id: str, hashed: bytes) -> bytes:
    """What is stored of a `password_hash`: of no use without the pepper, and different for each member."""
    return hmac.digest(key, b"password\n" + member_id.encode() + hashed, "sha256")


def is_password(key: bytes, member_id: str, hashed: bytes, stored: bytes | None) -> bool:
    """Whether a `password_hash` is of the member's password."""
    return hmac.compare_digest(stored_password(key, member_id, hashed), stored or bytes(_HASH_BYTES))


def code_secret(key: bytes, member_id: str, generation: int) -> bytes:
    """The secret from which a member's authenticator makes codes (RFC 6238). It is derived, and stored nowhere."""
    return hmac.digest(key, f"totp\n{member_id}\n{generation}".encode(), "sha256")[:_CODE_SECRET_BYTES]


def shown_secret(secret: bytes) -> str:
    """A secret as people type it: base32."""
    return base64.b32encode(secret).decode()


def code_url(secret: bytes, email: str, issuer: str) -> str:
    """The `otpauth:` URL that authenticators read."""
    return _totp(secret).get_provisioning_uri(email, issuer)


def step_of_code(secret: bytes, code: str, now_ms: int, last: int) -> int | None:
    """The time step that a code belongs to, of those around now and after `last`; `None` for a wrong code and for one
    that counted before.
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
    """The code of this moment."""
    return _totp(secret).generate(at_ms // 1000).decode()


def _totp(secret: bytes) -> TOTP:
    return TOTP(secret, CODE_DIGITS, SHA1(), STEP_S)  # noqa: S303  what authenticators take
