"""App Attest: a key in the secure hardware of an Apple device, attested by Apple once, and then used for assertions.

What may live here: Apple's validation of both objects (developer.apple.com, Validating apps that connect to your
server). All that an attestation shows is judged without the store; an assertion is judged by the key that the store
knows.

The client data hash is SHA-256 over the 32 bytes of the challenge (docs/attestation.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal, cast

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ObjectIdentifier

from svc.identify.attestation.authenticator_data import (
    AttestedCredential,
    AuthenticatorData,
    read_assertion_data,
    read_attestation_data,
    read_map,
)
from svc.identify.attestation.challenge import AppleEnvironment, AttestedKey
from svc.identify.attestation.trust import (
    CERTIFICATE_ERRORS,
    AppleTrust,
    ChainFailure,
    extension_value,
    is_issued_by,
    is_valid_at,
    read_certificates,
)
from svc.identify.report.values import members
from svc.kernel.values.fields import Environment

MAX_ATTESTATION_BYTES = 20_000
"""Attestations of current devices have 6,000, most of it the receipt, which is not read."""
MAX_ASSERTION_BYTES = 4_000
NONCE_EXTENSION = "1.2.840.113635.100.8.2"

AppAttestFailure = Literal[
    ChainFailure,
    "attestation_malformed",
    "nonce_mismatch",
    "key_mismatch",
    "app_unexpected",
    "environment_unexpected",
    "counter_unexpected",
    "assertion_malformed",
]
AssertionFailure = Literal[
    "key_unknown", "signature_invalid", "app_unexpected", "environment_unexpected", "counter_replayed"
]

_NONCE = ObjectIdentifier(NONCE_EXTENSION)
_NONCE_HEAD = b"\x30\x24\xa1\x22\x04\x20"
"""SEQUENCE { [1] { OCTET STRING of 32 bytes } }"""


class NewKey(msgspec.Struct, frozen=True):
    """A key whose attestation verified."""

    key_id: bytes
    public_key: bytes
    """The uncompressed point, 65 bytes."""
    app_id: str
    environment: AppleEnvironment
    data: AuthenticatorData


class Assertion(msgspec.Struct, frozen=True):
    """An assertion that was read, of one of the apps that may attest; its signature is still to be verified."""

    key_id: bytes
    app_id: str
    nonce: bytes
    """What is signed: SHA-256 over the authenticator data and the client data hash."""
    signature: bytes
    data: AuthenticatorData


Proof = NewKey | Assertion


def verify_attestation(
    raw: bytes, key_id: bytes, client_data_hash: bytes, trust: AppleTrust, at_ms: int
) -> NewKey | tuple[AppAttestFailure, ...]:
    """Return the key that an attestation object attests, or everything that is wrong with it; without a valid chain,
    that alone. No bytes make it raise.

    `key_id`: the 32 bytes that the app names. `at_ms` is the time now: leaves are valid for days.
    """
    read = _read_attestation(raw)
    if read is None:
        return ("attestation_malformed",)
    certificates, signed, data, credential = read
    try:
        leaf = _verified_leaf(certificates, trust, at_ms)
        if not isinstance(leaf, x509.Certificate):
            return (leaf,)
        nonce = extension_value(leaf, _NONCE)
        point = _point(leaf)
    except CERTIFICATE_ERRORS:
        return ("chain_malformed",)
    failures: tuple[AppAttestFailure, ...] = tuple(_claims(data, credential, key_id, point, trust))
    if nonce != _NONCE_HEAD + _nonce(signed, client_data_hash):
        failures = ("nonce_mismatch", *failures)
    environment = credential.environment
    if failures or environment is None or point is None:
        return failures
    return NewKey(key_id, point, trust.apps[data.app_digest], environment, data)


def read_assertion(
    raw: bytes, key_id: bytes, client_data_hash: bytes, trust: AppleTrust
) -> Assertion | tuple[AppAttestFailure, ...]:
    """Check an assertion object as far as its key is not needed; return it, or what is wrong. Never raises."""
    try:
        found = read_map(raw)
        signed, signature = found.get("authenticatorData"), found.get("signature")
        if type(signed) is not bytes or type(signature) is not bytes:
            return ("assertion_malformed",)
        data = read_assertion_data(signed)
    except ValueError:
        return ("assertion_malformed",)
    app_id = trust.apps.get(data.app_digest)
    if app_id is None:
        return ("app_unexpected",)
    return Assertion(key_id, app_id, _nonce(signed, client_data_hash), signature, data)


def failures_of(proof: Proof, known: AttestedKey | None, environment: Environment) -> Iterator[AssertionFailure]:
    """Yield what is wrong with a proof, given the stored record of its key (`None` if there is none) and the
    environment of the API key: builds that run from Xcode prove nothing in production.
    """
    attested_in = proof.environment if isinstance(proof, NewKey) else known.environment if known else None
    if environment == "production" and attested_in == "development":
        yield "environment_unexpected"
    if isinstance(proof, NewKey):
        return
    if known is None:
        yield "key_unknown"
        return
    if not _is_signed(proof, known.public_key):
        yield "signature_invalid"
    if proof.app_id != known.app_id:
        yield "app_unexpected"
    if proof.data.counter <= known.counter:
        yield "counter_replayed"


def updated(proof: Proof, known: AttestedKey | None, visitor_id: str, at_ms: int) -> AttestedKey:
    """Return the record of a key after a valid proof. Its counter never falls, also where it is attested again."""
    if isinstance(proof, NewKey):
        counter, first_ms = (0, at_ms) if known is None else (known.counter, known.first_seen_ms)
        return AttestedKey(proof.public_key, proof.app_id, proof.environment, counter, visitor_id, first_ms, at_ms)
    assert known is not None, "an assertion of an unknown key was accepted"
    return msgspec.structs.replace(
        known, counter=proof.data.counter, visitor_id=visitor_id, last_seen_ms=max(at_ms, known.last_seen_ms)
    )


def _read_attestation(raw: bytes) -> tuple[list[bytes], bytes, AuthenticatorData, AttestedCredential] | None:
    """Return certificates, signed bytes and their content; `None` unless it is an attestation object of App Attest."""
    try:
        found = read_map(raw)
        certificates, signed = members(found.get("attStmt")).get("x5c"), found.get("authData")
        if found.get("fmt") != "apple-appattest" or type(certificates) is not list or type(signed) is not bytes:
            return None
        if any(type(one) is not bytes for one in cast("list[Any]", certificates)):
            return None
        return cast("list[bytes]", certificates), signed, *read_attestation_data(signed)
    except ValueError:
        return None


def _nonce(signed: bytes, client_data_hash: bytes) -> bytes:
    return sha256(signed + client_data_hash).digest()


def _verified_leaf(certificates: list[bytes], trust: AppleTrust, at_ms: int) -> x509.Certificate | ChainFailure:
    """Verify a leaf and Apple's intermediate, from the root down (step 1). The root is not sent along, and its own
    dates are not checked: whether to trust it is for its owner to decide.
    """
    chain = read_certificates(certificates) if len(certificates) == 2 else None
    if chain is None:
        return "chain_malformed"
    leaf, intermediate = chain
    if not any(is_issued_by(intermediate, root) for root in trust.roots):
        return "chain_untrusted"
    if not _is_authority(intermediate) or not is_issued_by(leaf, intermediate):
        return "chain_broken"
    return leaf if all(is_valid_at(one, at_ms) for one in chain) else "chain_expired"


def _is_authority(certificate: x509.Certificate) -> bool:
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.BasicConstraints):
            return extension.value.ca
    return False


def _point(leaf: x509.Certificate) -> bytes | None:
    """Return the attested key, uncompressed; `None` for a key that is not on P-256."""
    key = leaf.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        return None
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _claims(
    data: AuthenticatorData, credential: AttestedCredential, key_id: bytes, point: bytes | None, trust: AppleTrust
) -> Iterator[AppAttestFailure]:
    """Yield a failure for each wrong claim of an attestation (steps 5 to 9)."""
    if point is None or not sha256(point).digest() == key_id == credential.id or credential.point != point:
        yield "key_mismatch"
    if data.app_digest not in trust.apps:
        yield "app_unexpected"
    if data.counter != 0:
        yield "counter_unexpected"
    if credential.environment is None:
        yield "environment_unexpected"


def _is_signed(assertion: Assertion, public_key: bytes) -> bool:
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
    try:
        key.verify(assertion.signature, assertion.nonce, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True
