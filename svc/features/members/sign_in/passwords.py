"""Passwords of members (decisions 15.3, docs/adr/0122).

What may live here: pure functions. `password_hash` takes some 50 ms of CPU and 19 MiB: never on the loop.
"""

from __future__ import annotations

import hmac
import unicodedata
from functools import cache
from typing import Final

from argon2.low_level import Type, hash_secret_raw

SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 256
"""Characters."""
_TIME_COST, _MEMORY_KIB, _THREADS = 2, 19_456, 1
"""The least that OWASP names for argon2id: a flood of sign-ins takes little memory, and an attacker who has the hashes
without the pepper can try nothing at all.
"""
_HASH_BYTES = 32


COMMON_PASSWORDS: Final = 10_000
"""That many of the most common passwords are refused (decisions 15.3), by the list that zxcvbn ships (ADR 191)."""


@cache
def _common() -> frozenset[str]:
    """Return the most common passwords that are long enough to be allowed here."""
    from zxcvbn.frequency_lists import FREQUENCY_LISTS  # noqa: PLC0415  12 MB, when the first one is chosen

    return frozenset(word for word in FREQUENCY_LISTS["passwords"][:COMMON_PASSWORDS] if len(word) >= SHORTEST_PASSWORD)


def is_guessable(password: str, email: str, name: str) -> bool:
    """Return whether a password is among the most common ones, or is the member's own address or name, whatever its
    case. `email`: as of `canonical_email`.
    """
    spelled = unicodedata.normalize("NFKC", password).casefold()
    own = (email, name, name.replace(" ", ""))
    return spelled in _common() or spelled in {unicodedata.normalize("NFKC", each).casefold() for each in own}


def sign_in_key(pepper: bytes) -> bytes:
    """Return the key from which salts, stored passwords and secrets of codes are derived. 32 bytes."""
    return hmac.digest(pepper, b"svc members 1", "sha256")


def password_hash(key: bytes, email: str, password: str) -> bytes:
    """Return the argon2id hash of a password, 32 bytes. The salt is derived from the address, so that one computation
    serves every organization with a member of this address, and an unknown address costs as much. `key`: see
    `sign_in_key`.
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
    """Return what is stored of a `password_hash`: of no use without the pepper, and different for each member."""
    return hmac.digest(key, b"password\n" + member_id.encode() + hashed, "sha256")


def is_password(key: bytes, member_id: str, hashed: bytes, stored: bytes | None) -> bool:
    """Return whether a `password_hash` is of the member's password."""
    return hmac.compare_digest(stored_password(key, member_id, hashed), stored or bytes(_HASH_BYTES))
