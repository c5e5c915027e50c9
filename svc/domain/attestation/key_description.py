"""The key description: what secure hardware says of a key it made, of the app that asked, and of how the device booted.

What may live here: the attestation extension of a leaf certificate as a value (source.android.com, Key and ID
Attestation, schema), as far as it is judged. Fields that nothing judges are stepped over, and so are tags that a later
release of Android adds.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise

import msgspec

from svc.domain.attestation import der
from svc.domain.attestation.der import Element, NotDer

ATTESTATION_EXTENSION = "1.3.6.1.4.1.11129.2.1.17"

_ORIGIN, _ROOT_OF_TRUST, _APPLICATION_ID = 702, 704, 709
"""KeyMint tags."""


class SecurityLevel(IntEnum):
    """Where a key, or the program that attests it, lives."""

    SOFTWARE = 0
    TRUSTED_ENVIRONMENT = 1
    STRONG_BOX = 2


class BootState(IntEnum):
    """What the boot loader found of the system it started."""

    VERIFIED = 0
    SELF_SIGNED = 1
    UNVERIFIED = 2
    FAILED = 3


class KeyOrigin(IntEnum):
    GENERATED = 0
    DERIVED = 1
    IMPORTED = 2
    RESERVED = 3
    SECURELY_IMPORTED = 4


class RootOfTrust(msgspec.Struct, frozen=True):
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


def read_key_description(raw: bytes) -> KeyDescription | None:
    """Read the value of the extension; `None` where it is not what the schema says. No bytes make it raise."""
    try:
        fields = der.parts(der.read_only(raw))
        if len(fields) != 8:
            return None
        software, hardware = _authorizations(fields[6]), _authorizations(fields[7])
        der.octets(fields[5])
        origin, boot = hardware.get(_ORIGIN), hardware.get(_ROOT_OF_TRUST)
        application = software.get(_APPLICATION_ID)
        return KeyDescription(
            attestation_version=der.integer(fields[0]),
            attestation_level=SecurityLevel(der.integer(fields[1], der.ENUMERATED)),
            keymint_version=der.integer(fields[2]),
            keymint_level=SecurityLevel(der.integer(fields[3], der.ENUMERATED)),
            challenge=der.octets(fields[4]),
            origin=None if origin is None else KeyOrigin(der.integer(origin)),
            root_of_trust=None if boot is None else _root_of_trust(boot),
            application=None if application is None else _application(der.octets(application)),
        )
    except (NotDer, ValueError):  # ValueError: an enumeration's unknown number, or a name that is not UTF-8
        return None


def _authorizations(element: Element) -> dict[int, Element]:
    """Tag -> value. DER wants the tags in ascending order, which also leaves no tag twice."""
    tagged = [der.explicit(part) for part in der.parts(element)]
    if any(after <= before for (before, _), (after, _) in pairwise(tagged)):
        raise NotDer
    return dict(tagged)


def _root_of_trust(element: Element) -> RootOfTrust:
    fields = der.parts(element)
    if len(fields) not in (3, 4):  # the hash of what was booted came with version 3
        raise NotDer
    der.octets(fields[0])
    for digest in fields[3:]:
        der.octets(digest)
    return RootOfTrust(der.boolean(fields[1]), BootState(der.integer(fields[2], der.ENUMERATED)))


def _application(raw: bytes) -> ApplicationId:
    fields = der.parts(der.read_only(raw))
    if len(fields) != 2:
        raise NotDer
    names: set[str] = set()
    for package in der.parts(fields[0], der.SET):
        name, version = _pair(package)
        der.integer(version)
        names.add(der.octets(name).decode())
    digests = frozenset(der.octets(digest) for digest in der.parts(fields[1], der.SET))
    return ApplicationId(frozenset(names), digests)


def _pair(element: Element) -> tuple[Element, Element]:
    fields = der.parts(element)
    if len(fields) != 2:
        raise NotDer
    return fields[0], fields[1]
