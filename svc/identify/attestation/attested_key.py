"""Keys of Apple devices that have attested themselves, as they are kept; and the result of a report's attestation.

What may live here: records of the store. Nothing is imported that reads certificates.
"""

from __future__ import annotations

from typing import Literal

import msgspec

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
    """How the app came onto the device, since iOS 27: a name of `authenticator_data.DISTRIBUTIONS`, or the number."""
