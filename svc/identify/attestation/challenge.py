"""Challenges, which attestations answer, and what the store keeps of the keys that were attested.

A challenge is 32 random bytes, given to one key, good for five minutes and one use. What may live here: the records,
and the rule by which a challenge is taken or refused (interface 2.5, decisions 7.5).
"""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec

from svc.kernel.values.encodings import from_base64

CHALLENGE_BYTES = 32
LIFETIME_MS = 5 * 60 * 1000
"""See interface 8."""

ChallengeFailure = Literal["challenge_unknown", "challenge_foreign", "challenge_expired", "challenge_used"]


class Challenge(msgspec.Struct, frozen=True, array_like=True):
    """A challenge that was issued and is kept for its five minutes."""

    key_id: str
    """The key that asked for it; another of the same organization may not use it."""
    issued_at_ms: int
    used: bool = False

    @property
    def expires_at_ms(self) -> int:
        """Five minutes after issue; at this moment it is no longer good."""
        return self.issued_at_ms + LIFETIME_MS


def period(at_ms: int) -> int:
    """Return the number of the five-minute period in which a challenge issued at `at_ms` is stored."""
    return at_ms // LIFETIME_MS


def periods_to_search(at_ms: int) -> tuple[int, int, int]:
    """Return the periods that can hold a challenge valid at `at_ms`, likeliest first, last for a clock set back."""
    now = period(at_ms)
    return now, now - 1, now + 1


def refusal(challenge: Challenge, key_id: str, at_ms: int) -> ChallengeFailure | None:
    """Return why this key cannot use a challenge at `at_ms` (Unix ms); `None` if it can. Another key, a second use and
    an age of five minutes are refused (interface 8, decisions 7.5).
    """
    if challenge.key_id != key_id:
        return "challenge_foreign"
    if challenge.used:
        return "challenge_used"
    return "challenge_expired" if at_ms >= challenge.expires_at_ms else None


def as_text(challenge: bytes) -> str:
    """Return the challenge as it is sent to a device: standard base64 with padding, 44 characters (interface 2.5)."""
    return base64.b64encode(challenge).decode()


def from_text(text: Any) -> bytes | None:
    """Return the 32 bytes of a challenge in base64 of 44 characters; `None` for any other JSON value."""
    challenge = from_base64(text, CHALLENGE_BYTES)
    return challenge if challenge is not None and len(challenge) == CHALLENGE_BYTES else None


AppleEnvironment = Literal["production", "development"]
"""The environment of Apple's servers, not of an API key: `development` is a build that is run from Xcode."""

MAX_KEYS_OF_VISITOR = 16
"""An app makes one key for each installation. Beyond this number, the oldest is deleted."""


class AttestedKey(msgspec.Struct, frozen=True, array_like=True):
    """A device's key that App Attest has attested. Append fields, never move them."""

    public_key: bytes
    """The point on P-256, uncompressed: 65 bytes (ANSI X9.62). Its SHA-256 is the key id."""
    app_id: str
    """Team id, dot, bundle id."""
    environment: AppleEnvironment
    counter: int
    """The counter of the last assertion that verified; 0 before the first."""
    visitor_id: str
    """The visitor of its last identification. The key is erased with that visitor."""
    first_seen_ms: int
    last_seen_ms: int


class VisitorKeys(msgspec.Struct, frozen=True, array_like=True):
    """The ids of the attested keys of one visitor, the newest first; at most `MAX_KEYS_OF_VISITOR`."""

    key_ids: tuple[bytes, ...] = ()


class AttestationResult(msgspec.Struct, frozen=True, array_like=True):
    """The result of a report's attestation, as its document says. Append fields, never move them."""

    format: str
    """`android-key`, `apple-app-attest`, `none`, or `unknown`."""
    verified: bool
    """Whether it proves what it claims; `False` where `attestation_failed` was noticed, and for `none`."""
    app_id: str | None = None
    """This and the following fields are set for a verified `apple-app-attest`."""
    environment: AppleEnvironment | None = None
    counter: int | None = None
    key_first_seen_ms: int | None = None
    bundle_version: str | None = None
    """As the device says since iOS 27."""
    distribution: str | None = None
    """How the app came onto the device, since iOS 27: a name of `app_attest.DISTRIBUTIONS`, or the number."""
