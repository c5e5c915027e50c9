"""A browser with a key, as `web/sdk/src/identity.ts` is one: what it signs, and how it is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from svc.identify.keys.proof import NO_SUBJECT, Subject
from svc.identify.model import ProofVersion
from svc.kernel.values.encodings import base64url
from tests.support.live import ORIGIN, Live


class BrowserKey:
    """The key of one browser; equal numbers are the same one."""

    def __init__(self, number: int = 1) -> None:
        self._private = derive_private_key(number + 1_000_000, SECP256R1())
        self.point = self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def signature(self, text: bytes) -> bytes:
        """The 64 bytes of r and s."""
        r, s = decode_dss_signature(self._private.sign(text, ECDSA(SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)

    def signed(
        self, signals: Mapping[str, Any], origin: str = ORIGIN, subject: Subject = NO_SUBJECT, version: ProofVersion = 2
    ) -> bytes:
        """The signals with key and proof, byte for byte as a browser sends them beside `subject`; version 1 is that of
        older SDKs.
        """
        return self.proven_text(compact({**signals, "client_key": base64url(self.point)}), origin, subject, version)

    def renewing(
        self,
        signals: Mapping[str, Any],
        before: tuple[str, BrowserKey],
        origin: str = ORIGIN,
        subject: Subject = NO_SUBJECT,
    ) -> bytes:
        """The same of a browser whose token and key are in the place of those `before`, which sign first."""
        token, former = before
        named = {"client_token_before": token, "client_key_before": base64url(former.point)}
        unsigned = compact({**signals, "client_key": base64url(self.point), **named})
        return self.proven_text(
            former.proven_text(unsigned, origin, subject, 2, "client_proof_before"), origin, subject, 2
        )

    def proven_text(
        self, unsigned: bytes, origin: str, subject: Subject, version: ProofVersion, name: str = "client_proof"
    ) -> bytes:
        """The text with a proof of itself as its last member."""
        about = [compact(list(subject))] if version == 2 else []
        lines = [f"svc-proof {version}".encode(), origin.encode(), *about, unsigned]
        signature = self.signature(b"\n".join(lines))
        return b'%b,"%b":"%b"}' % (unsigned[:-1], name.encode(), base64url(signature).encode())


def compact(signals: Mapping[str, Any] | list[Any]) -> bytes:
    """JSON as `JSON.stringify` writes it."""
    return json.dumps(signals, separators=(",", ":"), ensure_ascii=False).encode()


async def send(
    live: Live, key: str, signals: bytes, headers: Mapping[str, str], *, origin: str | None = ORIGIN, **body: Any
) -> httpx.Response:
    """One identification with these signals, byte for byte; `body` as of `Live.identify`."""
    content = compact({"sdk": {"platform": "web"}, **body})[:-1] + b',"signals":' + signals + b"}"
    sent = {"x-api-key": key, "content-type": "application/json", **headers}
    return await live.client.post(
        "/api/v1/identify", content=content, headers=sent if origin is None else {**sent, "origin": origin}
    )
