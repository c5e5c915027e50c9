"""Signed verdicts: what an identification decided, as a JWS that a backend verifies by itself (docs/adr/0046).

Compact serialization of RFC 7515 with Ed25519 (RFC 8037), claims of RFC 7519. A private key is derived from the
installation's pepper, the organization's id and a generation, and never stored; rotating is the next generation.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from svc.identify.model import Verdict
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.encodings import base64url
from svc.kernel.values.struct_fields import body_of

if TYPE_CHECKING:
    from svc.identify.identification import Submission  # which loads all that reads a report

VALID_S = 300
"""How long a verdict is accepted after it was signed: the replay window."""
TYPE = "svc-verdict+jwt"
ISSUER = "svc"


class VerdictClaims(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is signed. `None` is left out. Fields may be added."""

    iss: str
    aud: str
    """The organization."""
    sub: str
    """The visitor."""
    jti: str
    """The request id: accept it once."""
    iat: int
    exp: int
    environment: str
    platform: str
    ip_address: str
    origin: str | None = None
    tag: str | None = None
    account_id: str | None = None
    action: str | None = None
    visitor_is_new: bool
    identifiable: bool
    visitor_confidence: int
    proven: bool
    suspect_score: int | None = None
    suspect_level: str | None = None
    decision: dict[str, str] | None = None
    """`action`, `rule_id` and `rule`."""


class Jwk(msgspec.Struct, frozen=True):
    """A public key as RFC 8037 writes it."""

    kty: str
    crv: str
    x: str
    kid: str
    use: str
    alg: str


class SigningKey(NamedTuple):
    """One generation of an organization's key."""

    private: Ed25519PrivateKey
    jwk: Jwk
    protected: str
    """The header of a JWS by this key, encoded."""


def verdict_key(pepper: bytes) -> bytes:
    """Return the key from which all signing keys of one installation are derived. 32 bytes."""
    return hmac.digest(pepper, b"svc verdict keys 1", "sha256")


@lru_cache(maxsize=1024)
def signing_key(key: bytes, organization_id: str, generation: int) -> SigningKey:
    """Return one generation of an organization's key; `key`: see `verdict_key`. Equal arguments give the same one."""
    seed = hmac.digest(key, f"{organization_id}\n{generation}".encode(), "sha256")
    private = Ed25519PrivateKey.from_private_bytes(seed)
    x = base64url(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    thumbprint = hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest()  # RFC 7638
    jwk = Jwk(kty="OKP", crv="Ed25519", x=x, kid=base64url(thumbprint), use="sig", alg="EdDSA")
    protected = msgspec.json.encode({"alg": "EdDSA", "kid": jwk.kid, "typ": TYPE})
    return SigningKey(private, jwk, base64url(protected))


def signed_verdict(key: bytes, organization: Organization, verdict: Verdict, about: Submission, issued_ms: int) -> str:
    """Return a verdict about a submission in the compact serialization, by the organization's key in force. `key` as of
    `verdict_key`; `issued_ms`: when it was submitted (Unix ms), by the machine's clock.
    """
    signing = signing_key(key, organization.id, organization.verdict_key_generation)
    issued_at = issued_ms // 1000
    claims = body_of(
        VerdictClaims,
        verdict,
        about,
        iss=ISSUER,
        aud=organization.id,
        sub=verdict.visitor_id,
        jti=str(about.request_id),
        iat=issued_at,
        exp=issued_at + VALID_S,
        ip_address=about.facts.ip,
        decision=None if verdict.decision is None else msgspec.structs.asdict(verdict.decision),
    )
    signed = f"{signing.protected}.{base64url(msgspec.json.encode(claims))}"
    return f"{signed}.{base64url(signing.private.sign(signed.encode()))}"


def published_keys(key: bytes, organization: Organization, now_ms: int) -> tuple[Jwk, ...]:
    """Return the public keys that verifiers accept: the one in force, the next one, so that a cached list outlives a
    rotation, and the previous one until it expires.
    """
    generation = organization.verdict_key_generation
    generations = [generation, generation + 1]
    until_ms = organization.previous_verdict_key_expires_at_ms
    if until_ms is not None and now_ms < until_ms:
        generations.append(generation - 1)
    return tuple(signing_key(key, organization.id, one).jwk for one in generations)
