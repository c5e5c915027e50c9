"""Android key attestation: a certificate chain, verified from its root down to the key description in its leaf.

The key description says what secure hardware knows of a key that it made, of the app that asked, and of how the device
booted. What may live here: that extension as a value (source.android.com, Key and ID Attestation, schema), as far as it
is judged, and the rules for chains. Fields that nothing judges are skipped, and so are tags that a later release of
Android adds. The rules are the platform's, not those of web servers: the device writes the leaf's dates, factories gave
out certificates that are not certificate authorities or have expired since, and the extension counts in the leaf alone,
because the holder of an attested key can sign anything below it.

The order bounds the work: no key is used that a key above it has not signed, so that an invented chain costs its
reading and one signature of a root at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Literal

import msgspec
from cryptography import x509
from cryptography.hazmat.asn1 import TLV, SetOf, decode_der
from cryptography.hazmat.asn1 import sequence as der_sequence
from cryptography.x509.oid import ObjectIdentifier

from svc.identify.attestation.trust import (
    CERTIFICATE_ERRORS,
    ChainFailure,
    Trust,
    extension_value,
    is_issued_by,
    is_valid_at,
    public_key,
    read_certificates,
)

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
    """How the key came into the hardware, as the schema numbers it. Only a `GENERATED` one is nowhere else."""

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
    """What is judged of a key description. `None` = not said by the hardware, if only its word counts."""

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
    """Parse the value of the extension; return `None` if it does not follow the schema. Never raises."""
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
    """Map identifier to content of `[number] EXPLICIT`. DER wants ascending tags, which excludes duplicates."""
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
    """Read an ENUMERATED of one byte: no enumeration of the schema needs more."""
    if element.tag_bytes != _ENUMERATED or len(element.data) != 1:
        raise ValueError("not an ENUMERATED")
    return element.data[0]


MAX_CERTIFICATES = 10

AndroidFailure = Literal[
    ChainFailure, "chain_revoked", "description_missing", "description_repeated", "description_malformed"
]

_EXTENSION = ObjectIdentifier(ATTESTATION_EXTENSION)
_PROVISIONING = ObjectIdentifier("1.3.6.1.4.1.11129.2.1.30")
"""Marks the certificate of a key that was certified over the network, for weeks, rather than in a factory."""
_Chain = Sequence[x509.Certificate]


def verify_chain(certificates: Sequence[bytes], trust: Trust, at_ms: int) -> KeyDescription | AndroidFailure:
    """Return the key description in the leaf of a valid certificate chain, or why the chain is not valid. No bytes make
    it raise.

    `certificates` are DER, the leaf first and the root last. `at_ms` is the time now.
    """
    if not 2 <= len(certificates) <= MAX_CERTIFICATES or len(set(certificates)) != len(certificates):
        return "chain_malformed"
    chain = read_certificates(certificates)
    try:
        return "chain_malformed" if chain is None else _failure(chain, trust, at_ms) or _description(chain)
    except CERTIFICATE_ERRORS:
        return "chain_malformed"


def _description(chain: _Chain) -> KeyDescription | AndroidFailure:
    if any(extension_value(certificate, _EXTENSION) is not None for certificate in chain[1:]):
        return "description_repeated"
    raw = extension_value(chain[0], _EXTENSION)
    if raw is None:
        return "description_missing"
    return read_key_description(raw) or "description_malformed"


def _failure(chain: _Chain, trust: Trust, at_ms: int) -> AndroidFailure | None:
    root = chain[-1]
    if public_key(root) not in trust.roots:
        return "chain_untrusted"
    # The root is verified by itself, too, since its copy came with the report.
    if not all(is_issued_by(child, parent) for parent, child in pairwise((root, *reversed(chain)))):
        return "chain_broken"
    if any(certificate.serial_number in trust.revoked for certificate in chain):
        return "chain_revoked"
    return None if _is_in_time(chain[1:-1], at_ms) else "chain_expired"


def _is_in_time(issuers: _Chain, at_ms: int) -> bool:
    """Return whether the certificates between leaf and root were valid at the time that counts.

    That is now if the key was certified over the network: such certificates live for weeks and are renewed. A key from
    the factory cannot be renewed and is used for longer than its certificates are valid. There it is the time when the
    last certificate of the chain was issued.
    """
    if not issuers:
        return True
    starts = [1000 * issuer.not_valid_before_utc.timestamp() for issuer in issuers]
    provisioned = any(extension_value(issuer, _PROVISIONING) is not None for issuer in issuers)
    moment_ms = at_ms if provisioned else max(starts)
    return all(is_valid_at(issuer, moment_ms) for issuer in issuers)
