"""Reading certificates, and what they are measured against: root keys, revoked certificates, the apps expected.

What may live here: the published root certificates of Android key attestation and of App Attest (`roots.pem` and
`apple_roots.pem`, beside this module), the readers of the files that take their place, and the value that holds all of
it. The roots of the two are kept apart: neither attests the other's devices. Nothing here opens a file of the
operator's; bytes come in.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Literal

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ObjectIdentifier, SignatureAlgorithmOID

MAX_CERTIFICATE_BYTES = 10_000

ChainFailure = Literal["chain_malformed", "chain_untrusted", "chain_broken", "chain_expired"]
"""What is wrong with a chain of any platform."""

CERTIFICATE_ERRORS = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What the library raises for parts of a certificate that it reads when they are first used."""

_SIGNATURES = frozenset(
    {
        SignatureAlgorithmOID.RSA_WITH_SHA256,
        SignatureAlgorithmOID.RSA_WITH_SHA384,
        SignatureAlgorithmOID.RSA_WITH_SHA512,
        SignatureAlgorithmOID.ECDSA_WITH_SHA256,
        SignatureAlgorithmOID.ECDSA_WITH_SHA384,
        SignatureAlgorithmOID.ECDSA_WITH_SHA512,
    }
)


def read_certificates(certificates: Sequence[bytes]) -> list[x509.Certificate] | None:
    """Return the certificates (DER) parsed; `None` if one is too large or cannot be read."""
    if any(len(raw) > MAX_CERTIFICATE_BYTES for raw in certificates):
        return None
    # What the library still reads, but announces to refuse, is refused today.
    with warnings.catch_warnings():
        warnings.simplefilter("error", CryptographyDeprecationWarning)
        try:
            return [x509.load_der_x509_certificate(raw) for raw in certificates]
        except (ValueError, x509.InvalidVersion, CryptographyDeprecationWarning):
            return None


def is_issued_by(child: x509.Certificate, parent: x509.Certificate) -> bool:
    """Return whether the name and the key of `parent` have signed `child`, with a digest that is not weak."""
    if child.signature_algorithm_oid not in _SIGNATURES:
        return False
    try:
        child.verify_directly_issued_by(parent)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def is_valid_at(certificate: x509.Certificate, at_ms: float) -> bool:
    """Return whether `at_ms` lies within the dates of the certificate, both included."""
    start, end = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    return start <= at_ms / 1000 <= end


def extension_value(certificate: x509.Certificate, name: ObjectIdentifier) -> bytes | None:
    """Return the content of an extension that the library does not know; `None` if the certificate has none of that
    name. Raises one of `CERTIFICATE_ERRORS` for extensions that cannot be read.
    """
    for extension in certificate.extensions:
        if extension.oid == name and isinstance(extension.value, x509.UnrecognizedExtension):
            return extension.value.value
    return None


class AppleTrust(msgspec.Struct, frozen=True, kw_only=True):
    """The roots and apps by which App Attest is judged. Without a root, or without an app, nothing verifies."""

    roots: tuple[x509.Certificate, ...] = ()
    apps: dict[bytes, str] = {}
    """SHA-256 of an app id -> the id: team id, dot, bundle id."""


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """The roots, revocations and apps by which attestations are judged; all but `apple` are Android's."""

    roots: frozenset[bytes]
    """Public keys (DER SubjectPublicKeyInfo). Keys rather than certificates: a device carries whichever certificate of
    the root was current when it was made."""
    revoked: frozenset[int] = frozenset()
    """Serial numbers of certificates that are revoked or suspended."""
    packages: frozenset[str] = frozenset()
    """Names of the apps that may attest; empty = any app."""
    signing_digests: frozenset[bytes] = frozenset()
    """SHA-256 of the certificates that these apps are signed with; empty = any."""
    apple: AppleTrust = AppleTrust()


def public_key(certificate: x509.Certificate) -> bytes:
    """Return a key as DER SubjectPublicKeyInfo, as in `Trust.roots`. Raises `ValueError` for an unknown kind."""
    try:
        return certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except UnsupportedAlgorithm as error:
        raise ValueError("a certificate's key is of a kind that is not known") from error


@cache
def published_trust() -> Trust:
    """Return the published roots; no revocations, any app of Android and none of Apple."""
    folder = files("svc.identify.attestation")
    apple = AppleTrust(roots=read_apple_roots((folder / "apple_roots.pem").read_bytes()))
    return Trust(roots=read_roots((folder / "roots.pem").read_bytes()), apple=apple)


def apps_by_digest(app_ids: Iterable[str]) -> dict[bytes, str]:
    """Return these app ids by their digests, as `AppleTrust.apps`. They are compared exactly."""
    return {sha256(app_id.encode()).digest(): app_id for app_id in app_ids}


def read_apple_roots(raw: bytes) -> tuple[x509.Certificate, ...]:
    """Return the root certificates in a PEM file. Raises `ValueError` with one line that says what is wrong."""
    try:
        return tuple(x509.load_pem_x509_certificates(raw))
    except ValueError as error:
        raise ValueError("no PEM certificates that can be read") from error


def read_roots(raw: bytes) -> frozenset[bytes]:
    """Return the root keys in a file of PEM certificates, or of a JSON array of them, as Android publishes it. Raises
    `ValueError` with one line that says what is wrong.
    """
    if raw.lstrip()[:1] == b"[":
        try:
            raw = "\n".join(msgspec.json.decode(raw, type=list[str])).encode()
        except msgspec.DecodeError as error:
            raise ValueError(f"not a JSON array of certificates: {error}") from error
    try:
        return frozenset(public_key(certificate) for certificate in x509.load_pem_x509_certificates(raw))
    except ValueError as error:
        raise ValueError("no PEM certificates that can be read") from error


class _Status(msgspec.Struct):
    status: str


class _StatusList(msgspec.Struct):
    entries: dict[str, _Status]


def read_revoked(raw: bytes) -> frozenset[int]:
    """Return the revoked serial numbers in Android's list of certificate statuses (developer.android.com, certificate
    revocation status). Only certificates with an abnormal status are listed; suspended ones, and those with an unknown
    status, count as revoked. Raises `ValueError` with one line that says what is wrong.
    """
    try:
        listed = msgspec.json.decode(raw, type=_StatusList)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a list of certificate statuses: {error}") from error
    try:
        return frozenset(int(serial, 16) for serial in listed.entries)
    except ValueError as error:
        raise ValueError("a serial number in the list is not hexadecimal") from error
