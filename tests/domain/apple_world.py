"""A maker of Apple devices for tests: a root of its own, leaves below it, attestations and assertions as told."""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import Path
from typing import Any

import cbor2
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from svc.identify.attestation.app_attest import NONCE_EXTENSION
from svc.identify.attestation.trust import AppleTrust, apps_by_digest
from tests.domain.attestation_world import CHALLENGE, certificate, key

APP = "A1B2C3D4E5.com.example.shop"
PRODUCTION = b"appattest".ljust(16, b"\x00")
DEVELOPMENT = b"appattestdevelop"
NONCE_HEAD = bytes.fromhex("3024a1220420")
AUTHORITY = {"2.5.29.19": bytes.fromhex("30030101ff")}
"""Basic constraints: a certificate authority."""
EXTENSIONS_OF_IOS_27 = {"apple_bundle_version_01": "42", "apple_validation_category_01": b"\x04\x00\x00\x00"}


def root(name: str = "apple root") -> bytes:
    return certificate(name, key(name), name, key(name), extensions=AUTHORITY)


def write_roots(file: Path) -> str:
    """A file for the setting `attestation_apple_roots_file`; its name."""
    file.write_bytes(x509.load_der_x509_certificate(root()).public_bytes(Encoding.PEM))
    return str(file)


def intermediate(**given: Any) -> bytes:
    return certificate(
        "apple ca", key("apple ca"), "apple root", key("apple root"), **{"extensions": AUTHORITY, **given}
    )


def trust(*apps: str) -> AppleTrust:
    return AppleTrust(roots=(x509.load_der_x509_certificate(root()),), apps=apps_by_digest(apps or (APP,)))


class Device:
    """An installation of an app, with the key that it made. What the methods are given takes the place of what an
    honest device would say.
    """

    def __init__(self, name: str = "device", app: str = APP, aaguid: bytes = PRODUCTION) -> None:
        self._key = key(name)
        self._head = sha256(app.encode()).digest()
        self._aaguid = aaguid
        self._counter = 0
        self.point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.id = sha256(self.point).digest()

    def authenticator_data(
        self,
        *,
        flags: int = 0x40,
        counter: int = 0,
        credential: bytes | None = None,
        cose: Any = None,
        extensions: Any = None,
        behind: bytes = b"",
    ) -> bytes:
        """Of an attestation."""
        credential = self.id if credential is None else credential
        of_p256 = {1: 2, 3: -7, -1: 1, -2: self.point[1:33], -3: self.point[33:]}
        return (
            self._signed_head(flags, counter)
            + self._aaguid
            + len(credential).to_bytes(2)
            + credential
            + cbor2.dumps(of_p256 if cose is None else cose)
            + (b"" if extensions is None else cbor2.dumps(extensions))
            + behind
        )

    def attestation(
        self,
        challenge: bytes = CHALLENGE,
        *,
        signed: bytes | None = None,
        sent: bytes | None = None,
        nonce: bytes | None = None,
        chain: list[bytes] | None = None,
        fields: dict[str, Any] | None = None,
        days: tuple[int, int] = (-1, 2),
        leaf_key: str = "",
    ) -> bytes:
        """An attestation object. `signed`: authenticator data that the nonce covers, `sent`: what is sent for it;
        `nonce`: the value of the extension.
        """
        signed = self.authenticator_data() if signed is None else signed
        expected = NONCE_HEAD + sha256(signed + sha256(challenge).digest()).digest()
        leaf = certificate(
            "apple leaf",
            key(leaf_key) if leaf_key else self._key,
            "apple ca",
            key("apple ca"),
            days=days,
            extensions={NONCE_EXTENSION: expected if nonce is None else nonce},
        )
        statement = {"x5c": [leaf, intermediate()] if chain is None else chain, "receipt": bytes(500)}
        content = {"fmt": "apple-appattest", "attStmt": statement, "authData": signed if sent is None else sent}
        return cbor2.dumps(content | (fields or {}))

    def assertion(
        self,
        challenge: bytes = CHALLENGE,
        *,
        counter: int | None = None,
        extensions: Any = None,
        behind: bytes = b"",
        fields: dict[str, Any] | None = None,
    ) -> bytes:
        """An assertion object; each has the next counter."""
        self._counter += 1
        signed = self._signed_head(0x40, self._counter if counter is None else counter)
        signed += b"" if extensions is None else cbor2.dumps(extensions)
        nonce = sha256(signed + sha256(challenge).digest()).digest()
        signature = self._key.sign(nonce, ec.ECDSA(SHA256(), deterministic_signing=True))
        return cbor2.dumps({"signature": signature, "authenticatorData": signed + behind} | (fields or {}))

    def _signed_head(self, flags: int, counter: int) -> bytes:
        return self._head + bytes((flags,)) + counter.to_bytes(4)

    def attested(self, challenge: bytes = CHALLENGE, raw: bytes | None = None) -> dict[str, Any]:
        """What a report says at first."""
        return self._claim(challenge, attestation=self.attestation(challenge) if raw is None else raw)

    def asserted(self, challenge: bytes = CHALLENGE, raw: bytes | None = None) -> dict[str, Any]:
        """What a report says from then on."""
        return self._claim(challenge, assertion=self.assertion(challenge) if raw is None else raw)

    def _claim(self, challenge: bytes, **proof: bytes) -> dict[str, Any]:
        values = {"challenge": challenge, "key_id": self.id, **proof}
        return {"format": "apple-app-attest"} | {
            name: base64.b64encode(value).decode() for name, value in values.items()
        }
