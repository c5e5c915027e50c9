"""What a member needs beside its password: a one-time code (TOTP, RFC 6238), or a recovery code (decisions 15.3).

What may live here: pure functions of a member, the sign-in key and a time. Each code counts once: a member let in by
one gets the member back without it, to be stored in the same transaction.
"""

from __future__ import annotations

import base64
import hmac
from typing import Final

import msgspec
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from svc.kernel.access.members import Member

STEP_S = 30
CODE_DIGITS = 6
_DRIFT = (0, -1, 1)
"""Steps around now whose codes are good: for clocks that differ by up to half a minute, and for slow typing."""
_CODE_SECRET_BYTES = 20


def code_secret(key: bytes, member_id: str, generation: int) -> bytes:
    """Return the secret from which a member's authenticator makes codes (RFC 6238). It is derived, never stored."""
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


RECOVERY_CODES: Final = 10
"""Made together, when one-time codes are confirmed."""
_CODE_BYTES: Final = 7
_CODE_LETTERS: Final = 10
"""Of base32, so that a code has 50 bits."""
RECOVERY_ENTROPY: Final = RECOVERY_CODES * _CODE_BYTES
"""Random bytes for `recovery_codes`."""
MAX_CODE_LENGTH: Final = 16
"""Characters of a code as people type it, with blanks."""


def recovery_codes(entropy: bytes) -> tuple[str, ...]:
    """Return new recovery codes, each as `xxxxx-xxxxx`. `entropy`: `RECOVERY_ENTROPY` random bytes."""
    parts = (entropy[at : at + _CODE_BYTES] for at in range(0, RECOVERY_ENTROPY, _CODE_BYTES))
    texts = (base64.b32encode(part).decode().lower()[:_CODE_LETTERS] for part in parts)
    return tuple(f"{text[:5]}-{text[5:]}" for text in texts)


def recovery_digest(key: bytes, member_id: str, code: str) -> bytes:
    """Return what is stored of a recovery code, 16 bytes: of no use without the pepper, and different for each member.
    Case, hyphens and blanks do not matter. `key`: see `passwords.sign_in_key`.
    """
    typed = "".join(code.lower().replace("-", "").split())
    return hmac.digest(key, f"recovery\n{member_id}\n{typed}".encode(), "sha256")[:16]


def use_code(member: Member, key: bytes, code: str, now_ms: int) -> Member | None:
    """Return the member after it has used this one-time code or recovery code; `None` for a wrong code, and for one
    that was used before.
    """
    if member.code_generation is None:
        return None
    typed = "".join(code.split())
    step = step_of_code(code_secret(key, member.id, member.code_generation), typed, now_ms, member.last_code)
    if step is not None:
        return msgspec.structs.replace(member, last_code=step)
    digest = recovery_digest(key, member.id, code)
    left = tuple(known for known in member.recovery if not hmac.compare_digest(known, digest))
    return None if len(left) == len(member.recovery) else msgspec.structs.replace(member, recovery=left)
