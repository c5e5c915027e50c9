"""A maker of attested devices for tests: a root of its own, certificates below it, and key descriptions as told."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

from svc.identify.attestation.key_attestation import ATTESTATION_EXTENSION, KeyDescription, verify_chain
from svc.identify.attestation.trust import Trust, public_key

CHALLENGE = bytes(range(32))
NOW_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""
APP = "com.example.shop"
SIGNER = b"\x5a" * 32
PROVISIONING_EXTENSION = "1.3.6.1.4.1.11129.2.1.30"


# DER


def tlv(identifier: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes((identifier, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((identifier, 0x80 | len(length))) + length + content


def whole(value: int, identifier: int = 0x02) -> bytes:
    return tlv(identifier, value.to_bytes(value.bit_length() // 8 + 1))


def enumerated(value: int) -> bytes:
    return whole(value, 0x0A)


def octets(value: bytes) -> bytes:
    return tlv(0x04, value)


def boolean(value: bool) -> bytes:
    return tlv(0x01, b"\xff" if value else b"\x00")


def sequence(*parts: bytes) -> bytes:
    return tlv(0x30, *parts)


def set_of(*parts: bytes) -> bytes:
    return tlv(0x31, *sorted(parts))


def tagged(number: int, value: bytes) -> bytes:
    """`[number] EXPLICIT`."""
    if number < 31:
        return tlv(0xA0 | number, value)
    high, low = divmod(number, 128)
    rest = tlv(0, value)[1:]
    return bytes((0xBF, *([0x80 | high] if high else []), low)) + rest


# Key descriptions


def boot(*, locked: bytes = boolean(True), state: int = 0, hashed: bool = True) -> bytes:
    return sequence(octets(b"\x01" * 32), locked, enumerated(state), *([octets(b"\x02" * 32)] if hashed else []))


def app_id(packages: Sequence[str] = (APP,), signers: Sequence[bytes] = (SIGNER,)) -> bytes:
    named = [sequence(octets(name.encode()), whole(7)) for name in packages]
    return octets(sequence(set_of(*named), set_of(*map(octets, signers))))


SOFTWARE = {701: whole(1_767_225_600_000), 709: app_id()}
HARDWARE = {1: set_of(whole(2)), 2: whole(3), 3: whole(256), 503: b"\x05\x00", 702: whole(0), 704: boot()}


def described(
    *,
    challenge: bytes = CHALLENGE,
    levels: tuple[int, int] = (1, 1),
    software: dict[int, bytes] = SOFTWARE,
    hardware: dict[int, bytes] = HARDWARE,
) -> bytes:
    """A key description; of a locked and verified device, unless told otherwise. Tags come in the order given."""
    lists = [sequence(*(tagged(tag, value) for tag, value in tags.items())) for tags in (software, hardware)]
    return sequence(
        whole(300), enumerated(levels[0]), whole(300), enumerated(levels[1]), octets(challenge), octets(b""), *lists
    )


# Certificates


def certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    *,
    days: tuple[int, int] = (-3650, 3650),
    extensions: dict[str, bytes] | None = None,
    algorithm: Any = None,
    serial: int | None = None,
) -> bytes:
    """DER. `days`: first and last day of validity, counted from `NOW_MS`."""
    now = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(serial or 1 + crc32(subject.encode()))
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )
    for name, value in (extensions or {}).items():
        builder = builder.add_extension(x509.UnrecognizedExtension(ObjectIdentifier(name), value), critical=False)
    return builder.sign(signer, algorithm or SHA256(), ecdsa_deterministic=True).public_bytes(Encoding.DER)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@cache
def key(name: str) -> ec.EllipticCurvePrivateKey:
    """The private key of that name; the same one each time."""
    return ec.derive_private_key(1 + crc32(name.encode()), ec.SECP256R1())


def root() -> bytes:
    return certificate("root", key("root"), "root", key("root"))


def batch(**given: Any) -> bytes:
    """The certificate of many devices' attestation key."""
    return certificate("batch", key("batch"), "root", key("root"), **given)


def leaf(description: bytes | None = None, **given: Any) -> bytes:
    extensions = {ATTESTATION_EXTENSION: described() if description is None else description}
    return certificate("leaf", key("leaf"), "batch", key("batch"), **{"extensions": extensions, **given})


def chain(description: bytes | None = None) -> list[bytes]:
    """Leaf first. Of a device that is locked and verified, unless the description says otherwise."""
    return [leaf(description), batch(), root()]


def trust(**given: Any) -> Trust:
    return Trust(roots=frozenset({public_key(x509.load_der_x509_certificate(root()))}), **given)


def verify(certificates: Sequence[bytes], at_ms: int = NOW_MS, **given: Any) -> KeyDescription | str:
    return verify_chain(certificates, trust(**given), at_ms)


def attested(certificates: Sequence[bytes], challenge: bytes = CHALLENGE) -> dict[str, Any]:
    """What a report says."""
    return {
        "challenge": base64.b64encode(challenge).decode(),
        "format": "android-key",
        "certificate_chain": [base64.b64encode(raw).decode() for raw in certificates],
    }


_PEM = re.compile("-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def read_pem(file: Path) -> list[bytes]:
    return [base64.b64decode(body) for body in _PEM.findall(file.read_text())]
