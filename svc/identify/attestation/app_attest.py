"""App Attest: a key in the secure hardware of an Apple device, attested by Apple once, and then used for assertions.

What may live here: Apple's validation of both objects (developer.apple.com, Validating apps that connect to your
server), and their binary layout. All that an attestation shows is judged without the store; an assertion is judged by
the key that the store knows.

The client data hash is SHA-256 over the 32 bytes of the challenge (docs/attestation.md).

The flags of authenticator data (Web Authentication 6.1) are not asked: an assertion claims to carry a credential and
does not, and a map that follows is announced by some devices only. What is there is found by its offset. The objects
are CBOR (RFC 8949), read strictly: lengths are definite and written in the shortest form, a map has no key twice, and
there are no tags. Depth and number of items are bounded.
"""

from __future__ import annotations

import struct
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
        point = _leaf_point(leaf)
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


def _leaf_point(leaf: x509.Certificate) -> bytes | None:
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


MAX_DEPTH = 6
MAX_ITEMS = 128
"""Items inside one item, including itself and keys of maps. Objects of current devices have 13 at most."""

_SIMPLE = 7
_SIMPLE_VALUES = {20: False, 21: True, 22: None}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}


class CborError(ValueError):
    """The bytes are not the part of CBOR that is read here."""


def read_item(raw: bytes, start: int = 0) -> tuple[Any, int]:
    """Return the item that begins at `start`, and where it ends. Raises `CborError`; no bytes make it raise anything
    else.

    Integers, byte strings, text, lists, dictionaries, `bool`, `None` and floats; keys of dictionaries are integers,
    byte strings or text.
    """
    reader = _Reader(raw, start)
    return reader.item(MAX_DEPTH), reader.at


def read_map(raw: bytes, start: int = 0) -> dict[Any, Any]:
    """Return the map that begins at `start` and ends with the bytes. Raises `CborError` for anything else."""
    found, end = read_item(raw, start)
    if type(found) is not dict or end != len(raw):
        raise CborError("not one map")
    return cast("dict[Any, Any]", found)


class _Reader:
    def __init__(self, raw: bytes, at: int) -> None:
        self._raw = raw
        self._items = 0
        self.at = at

    def item(self, depth: int) -> Any:
        self._items += 1
        if not depth or self._items > MAX_ITEMS:
            raise CborError("too deep or too many items")
        (first,) = self._take(1)
        kind, info = first >> 5, first & 0x1F
        if kind == _SIMPLE:
            return self._simple(info)
        number = self._number(info)
        match kind:
            case 0 | 1:
                return -1 - number if kind else number
            case 2:
                return self._take(number)
            case 3:
                return self._text(number)
            case 4:
                return [self.item(depth - 1) for _ in range(number)]
            case 5:
                return self._map(number, depth - 1)
            case _:
                raise CborError("a tag")

    def _take(self, count: int) -> bytes:
        start, self.at = self.at, self.at + count
        if self.at > len(self._raw):
            raise CborError("the bytes end early")
        return self._raw[start : self.at]

    def _number(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise CborError("a length that is not definite")
        size = 1 << (info - 24)
        number = int.from_bytes(self._take(size))
        if number < (24 if size == 1 else 1 << (4 * size)):
            raise CborError("a number that is not in its shortest form")
        return number

    def _text(self, count: int) -> str:
        try:
            return self._take(count).decode()
        except UnicodeDecodeError as error:
            raise CborError("text that is not UTF-8") from error

    def _map(self, count: int, depth: int) -> dict[Any, Any]:
        read: dict[Any, Any] = {}
        for _ in range(count):
            key = self.item(depth)
            if type(key) not in (int, bytes, str) or key in read:
                raise CborError("a key of a map that is repeated, or of another kind")
            read[key] = self.item(depth)
        return read

    def _simple(self, info: int) -> Any:
        if info in _FLOATS:
            layout = _FLOATS[info]
            (number,) = struct.unpack(layout, self._take(struct.calcsize(layout)))
            return number
        if info not in _SIMPLE_VALUES:
            raise CborError("a simple value that is not known")
        return _SIMPLE_VALUES[info]


KEY_ID_BYTES = 32
MAX_VERSION = 64
"""Characters that are kept of a bundle version."""

_HEAD_BYTES = 37
_COUNTER = slice(33, 37)
_AAGUID = slice(37, 53)
_CREDENTIAL_ID_LENGTH = slice(53, 55)
_CREDENTIAL_ID = slice(55, 55 + KEY_ID_BYTES)
_KEY = _CREDENTIAL_ID.stop

_ENVIRONMENTS: dict[bytes, AppleEnvironment] = {
    b"appattestdevelop": "development",
    b"appattest\x00\x00\x00\x00\x00\x00\x00": "production",
}
_COSE_P256 = {1: 2, 3: -7, -1: 1}
"""Fields of a COSE key (RFC 9053): EC2, ES256, P-256. Its fields -2 and -3 are x and y."""

DISTRIBUTIONS = {
    1: "system",
    2: "testflight",
    3: "development",
    4: "app_store",
    5: "enterprise",
    6: "developer_id",
    10: "other",
}
"""`apple_validation_category_01`, since iOS 27: how the app came onto the device."""


class AuthenticatorData(msgspec.Struct, frozen=True):
    """The authenticator data of an assertion or an attestation."""

    app_digest: bytes
    """SHA-256 of the app id."""
    counter: int
    bundle_version: str | None = None
    distribution: str | None = None
    """A name of `DISTRIBUTIONS`; the number as text where it has none."""


class AttestedCredential(msgspec.Struct, frozen=True):
    """The part that only an attestation has."""

    environment: AppleEnvironment | None
    """`None` for an identifier that is neither."""
    id: bytes
    """32 bytes."""
    point: bytes | None
    """The public key, uncompressed; `None` for a key that is not one of P-256."""


def read_assertion_data(raw: bytes) -> AuthenticatorData:
    """Return 37 bytes, and since iOS 27 a map behind them. Raises `ValueError` for anything else."""
    if len(raw) < _HEAD_BYTES:
        raise ValueError("authenticator data ends early")
    return _head(raw, _HEAD_BYTES)


def read_attestation_data(raw: bytes) -> tuple[AuthenticatorData, AttestedCredential]:
    """Return 37 bytes, a credential of 32 bytes with its key, and since iOS 27 a map behind it. Raises `ValueError` for
    anything else.
    """
    if len(raw) < _KEY or int.from_bytes(raw[_CREDENTIAL_ID_LENGTH]) != KEY_ID_BYTES:
        raise ValueError("authenticator data has no credential of 32 bytes")
    key, end = read_item(raw, _KEY)
    return _head(raw, end), AttestedCredential(_ENVIRONMENTS.get(raw[_AAGUID]), raw[_CREDENTIAL_ID], _cose_point(key))


def _head(raw: bytes, end: int) -> AuthenticatorData:
    extensions = {} if end == len(raw) else read_map(raw, end)
    version = extensions.get("apple_bundle_version_01")
    category = extensions.get("apple_validation_category_01")
    number = int.from_bytes(category, "little") if type(category) is bytes and len(category) == 4 else None
    return AuthenticatorData(
        app_digest=raw[:32],
        counter=int.from_bytes(raw[_COUNTER]),
        bundle_version=version[:MAX_VERSION] if type(version) is str else None,
        distribution=None if number is None else DISTRIBUTIONS.get(number, str(number)),
    )


def _cose_point(key: Any) -> bytes | None:
    """Return a COSE key in the uncompressed form; `None` unless it is on P-256."""
    if type(key) is not dict:
        return None
    fields = cast("dict[Any, Any]", key)
    x, y = fields.get(-2), fields.get(-3)
    is_p256 = all(fields.get(name) == value for name, value in _COSE_P256.items())
    if not is_p256 or type(x) is not bytes or type(y) is not bytes:
        return None
    return b"\x04" + x + y
