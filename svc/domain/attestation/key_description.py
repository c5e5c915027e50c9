"""The key description: what secure hardware says of a key it made, of the app that asked, and of how the device booted.

What may live here: the attestation extension of a leaf certificate as a value (source.android.com, Key and ID
Attestation, schema), as far as it is judged. Fields that nothing judges are stepped over, and so are tags that a later
release of Android adds.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise

import msgspec
from cryptography.hazmat.asn1 import TLV, SetOf, decode_der
from cryptography.hazmat.asn1 import sequence as der_sequence

ATTESTATION_EXTENSION = "1.3.6.1.4.1.11129.2.1.17"

_ORIGIN, _ROOT_OF_TRUST, _APPLICATION_ID = b"\xbf\x85\x3e", b"\xbf\x85\x40", b"\xbf\x85\x45"
"""KeyMint tags 702, 704 and 709, as DER writes them."""
_ENUMERATED = b"\x0a"
_CONTEXT_CONSTRUCTED, _TAG_NUMBER = 0xA0, 0x1F


class SecurityLevel(IntEnum):
    """Where a key, or the program that attests it, is protected, as the schema numbers it."""

    SOFTWARE = 0
    TRUSTED_ENVIRONMENT = 1
    STRONG_BOX = 2


class BootState(IntEnum):
    """What the boot loader found when it verified the system, as the schema numbers it."""

    VERIFIED = 0
    SELF_SIGNED = 1
    UNVERIFIED = 2
    FAILED = 3


class KeyOrigin(IntEnum):
    """How the key came into the hardware, as the schema numbers it; only a `GENERATED` one cannot be known
    elsewhere.
    """

    GENERATED = 0
    DERIVED = 1
    IMPORTED = 2
    RESERVED = 3
    SECURELY_IMPORTED = 4


class RootOfTrust(msgspec.Struct, frozen=True):
    """How the device was booted, as the hardware recorded it: part of the authorization list that it enforces."""

    device_locked: bool
    boot_state: BootState


class ApplicationId(msgspec.Struct, frozen=True):
    """The app that asked for the key, as Android's key store knows it."""

    packages: frozenset[str]
    """Names; several where apps share a user id."""
    signing_digests: frozenset[bytes]
    """SHA-256 of the certificates that signed them."""


class KeyDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged. `None` = not said where only the hardware's word counts."""

    attestation_version: int
    attestation_level: SecurityLevel
    keymint_version: int
    keymint_level: SecurityLevel
    challenge: bytes
    origin: KeyOrigin | None
    """From the list that the hardware enforces."""
    root_of_trust: RootOfTrust | None
    """From the list that the hardware enforces."""
    application: ApplicationId | None
    """From the list that Android enforces: hardware knows no apps."""


@der_sequence
class _Schema:
    """KeyDescription. Its lists stay open: a later release of Android adds tags."""

    attestation_version: int
    attestation_level: TLV
    keymint_version: int
    keymint_level: TLV
    challenge: bytes
    unique_id: bytes
    software: list[TLV]
    hardware: list[TLV]


@der_sequence
class _RootOfTrustSchema:
    boot_key: bytes
    device_locked: bool
    boot_state: TLV
    boot_hash: bytes | None
    """Since version 3."""


@der_sequence
class _Package:
    name: bytes
    version: int


@der_sequence
class _ApplicationIdSchema:
    packages: SetOf[_Package]
    signing_digests: SetOf[bytes]


def read_key_description(raw: bytes) -> KeyDescription | None:
    """Read the value of the extension; `None` where it is not what the schema says. No bytes make it raise."""
    try:
        described = decode_der(_Schema, raw)
        software, hardware = _authorizations(described.software), _authorizations(described.hardware)
        origin, boot = hardware.get(_ORIGIN), hardware.get(_ROOT_OF_TRUST)
        application = software.get(_APPLICATION_ID)
        return KeyDescription(
            attestation_version=described.attestation_version,
            attestation_level=SecurityLevel(_enumerated(described.attestation_level)),
            keymint_version=described.keymint_version,
            keymint_level=SecurityLevel(_enumerated(described.keymint_level)),
            challenge=described.challenge,
            origin=None if origin is None else KeyOrigin(decode_der(int, origin)),
            root_of_trust=None if boot is None else _root_of_trust(decode_der(_RootOfTrustSchema, boot)),
            application=None if application is None else _application(decode_der(bytes, application)),
        )
    except ValueError:  # also an enumeration's unknown number, or a name that is not UTF-8
        return None


def _authorizations(elements: list[TLV]) -> dict[bytes, bytes]:
    """Identifier -> content of `[number] EXPLICIT`. DER wants ascending tags, which also leaves no tag twice."""
    tags = [element.tag_bytes for element in elements]
    if any((len(after), after) <= (len(before), before) for before, after in pairwise(tags)):
        raise ValueError("the tags are not in ascending order")
    if any(tag[0] & ~_TAG_NUMBER != _CONTEXT_CONSTRUCTED for tag in tags):
        raise ValueError("an element is not explicitly tagged")
    contents = [bytes(element.data) for element in elements]
    for content in contents:
        decode_der(TLV, content)  # raises unless it is one element
    return dict(zip(tags, contents, strict=True))


def _root_of_trust(fields: _RootOfTrustSchema) -> RootOfTrust:
    return RootOfTrust(fields.device_locked, BootState(_enumerated(fields.boot_state)))


def _application(raw: bytes) -> ApplicationId:
    fields = decode_der(_ApplicationIdSchema, raw)
    packages = frozenset(package.name.decode() for package in fields.packages.as_list())
    return ApplicationId(packages, frozenset(fields.signing_digests.as_list()))


def _enumerated(element: TLV) -> int:
    """An ENUMERATED of one byte: every enumeration of the schema is smaller."""
    if element.tag_bytes != _ENUMERATED or len(element.data) != 1:
        raise ValueError("not an ENUMERATED")
    return element.data[0]
