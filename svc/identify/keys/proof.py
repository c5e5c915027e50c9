"""Whether a report was signed by the key of its browser (`client_key`, `client_proof`; docs/adr/0084).

What may live here: the bytes that are signed, and their check: report, origin and time in, the proven key or what is
wrong with the proof out. Which token a key belongs to, matching decides.

`web/sdk/src/identity.ts` makes the proofs. It signs the report as it is sent, with everything in it but the proof
itself, which is the last member. So nothing has to be put into a canonical form; and an intermediary that rewrites the
JSON on the way, though it says the same, breaks the proof.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from svc.identify.model import ProofVersion, Report, RequestFacts
from svc.identify.report import read_report

VERSIONS: Final[tuple[ProofVersion, ...]] = (2, 1)
"""In the order in which they are tried: nothing in a report says by which it was signed."""
KEY_LENGTH: Final = 87
"""Characters of `client_key`: base64url, without padding, of the 65 bytes of an uncompressed point (SEC 1, 2.3.3)."""
PROOF_LENGTH: Final = 86
"""Characters of `client_proof`: of the 64 bytes of r and s (IEEE P1363), as Web Crypto writes them."""
WINDOW_MS: Final = 7 * 24 * 3600 * 1000
"""How far `collected_at` may lie from the arrival, on either side. A clock that is wrong by days still proves. The
nonce of a report that arrived is remembered for longer than twice that (`history.REPLAY_MEMORY_S`), so that no proof
is accepted twice."""

Problem = Literal["malformed", "no_token", "no_nonce", "no_origin", "time", "signature"]
"""What is wrong with a proof: `client_key` or `client_proof` is missing or not written as such; the report has no
token that the key could belong to, no nonce to be used once, or came without an origin; `collected_at` is missing or
outside the window; the signature is not of these bytes, this origin and this key."""

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_HASH = ECDSA(SHA256())


class Proof(NamedTuple):
    """The result of a report's proof: a key, or a problem."""

    key: bytes | None
    """The public key that signed the report, 65 bytes; `None` where none did."""
    problem: Problem | None
    version: ProofVersion | None = None
    """What the signature covers; `None` where there is no valid one."""
    key_before: bytes | None = None
    """The key of the token before, where the report is proven and that key signed it, too (decisions 18.2)."""


class Subject(NamedTuple):
    """What an identification is about, as its body says it beside the report; `None` for what it leaves out."""

    account_id: str | None = None
    action: str | None = None
    tag: str | None = None


NO_SUBJECT: Final = Subject()


def examine(
    report: Report,
    signals_json: bytes,
    origin: str | None,
    at_ms: int,
    subject: Subject = NO_SUBJECT,
    known: ProofVersion | None = None,
) -> Proof | None:
    """Return what the proof in a report is worth; `None` if the report has neither key nor proof. Never raises.

    `signals_json`: the signals byte for byte as sent; `origin`: the site that the request came from, in its one
    spelling; `at_ms`: when it arrived; `subject`: what the body says beside the signals; `known`: the version by which
    the signature was found valid before, which is believed. About 170 µs for a report with a proof of version 2, more
    for one of version 1 or a wrong one, else nothing.
    """
    if report.client_key is None and report.client_proof is None:
        return None
    problem = _problem(report, origin, at_ms)
    if problem is not None:
        return Proof(None, problem)
    assert report.client_key is not None
    assert report.client_proof is not None
    assert origin is not None
    point, signature = _decoded(report.client_key), _decoded(report.client_proof)
    key = None if point is None else _public_key(point)
    if key is None or signature is None:
        return Proof(None, "malformed")
    unsigned = without_proof(signals_json, report.client_proof)
    for version in VERSIONS if known is None else (known,):
        text = None if unsigned is None else signed_text(unsigned, origin, version, subject)
        if known is not None or (text is not None and _is_signed(key, signature, text)):
            return Proof(point, None, version, _key_before(report, unsigned, origin, subject))
    return Proof(None, "signature")


def _key_before(report: Report, signed: bytes | None, origin: str, subject: Subject) -> bytes | None:
    """Return the key of the token that the report's token replaces. It signed what the new key signed, without its own
    proof. The report names it as the former key, so that no other report of that key passes for this one.
    """
    text, proof = report.client_key_before or "", report.client_proof_before or ""
    if signed is None or report.client_token_before is None or len(text) != KEY_LENGTH or len(proof) != PROOF_LENGTH:
        return None
    point, signature = _decoded(text), _decoded(proof)
    key = None if point is None else _public_key(point)
    unsigned = without_proof(signed, proof, "client_proof_before")
    if key is None or signature is None or unsigned is None:
        return None
    return point if _is_signed(key, signature, signed_text(unsigned, origin, 2, subject)) else None


def does_not_verify(report: Report, proof: Proof) -> bool:
    """Return whether a report has a proof that is wrong, and not one that nobody can check."""
    is_whole = report.client_key is not None and report.client_proof is not None
    return proof.problem == "signature" or (proof.problem == "malformed" and is_whole)


def archived_proof(signals_json: bytes, origin: str | None, at_ms: int, known: ProofVersion | None) -> Proof | None:
    """Examine, as `examine` does, the archived signals of an event that arrived at `at_ms`. `known`: what its record
    says; account, action and tag may have been changed since, so that a proof of version 2 cannot be checked again.
    """
    report = read_report(msgspec.json.decode(signals_json), RequestFacts(ip=""))
    return examine(report, signals_json, origin, at_ms, known=known)


def _problem(report: Report, origin: str | None, at_ms: int) -> Problem | None:
    """Return the first problem that shows without verifying the signature."""
    if len(report.client_key or "") != KEY_LENGTH or len(report.client_proof or "") != PROOF_LENGTH:
        return "malformed"
    if report.client_token is None:
        return "no_token"
    if report.nonce is None:
        return "no_nonce"
    if origin is None:
        return "no_origin"
    collected = report.collected_at_ms
    return "time" if collected is None or abs(at_ms - collected) > WINDOW_MS else None


def without_proof(signals_json: bytes, proof: str, name: str = "client_proof") -> bytes | None:
    """Return the bytes that the browser signed: the signals without their last member, which is the proof of this
    `name`. `None` if they do not end with it.
    """
    end = f',"{name}":"{proof}"}}'.encode("utf-8", "replace")
    return signals_json[: -len(end)] + b"}" if signals_json.endswith(end) else None


def signed_text(unsigned: bytes, origin: str, version: ProofVersion, subject: Subject = NO_SUBJECT) -> bytes:
    """Return what is signed of a report, given its signals without the proof: lines, of which the first one names the
    purpose and the version, so that no signature of the same key for anything else passes for one.
    """
    # JSON as `JSON.stringify` writes it, in both libraries.
    about = (msgspec.json.encode(subject),) if version == 2 else ()
    return b"\n".join((b"svc-proof %d" % version, origin.encode("utf-8", "replace"), *about, unsigned))


def _decoded(text: str) -> bytes | None:
    """Decode base64url without padding, whose length has been checked; `None` for other characters."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4)) if _BASE64URL.fullmatch(text) else None


@lru_cache(maxsize=512)
def _public_key(point: bytes) -> EllipticCurvePublicKey | None:
    """Read an uncompressed point of P-256; `None` for anything else. It is cached, since a page identifies more than
    once within minutes, and the first verification with a key takes 20 us more.
    """
    try:
        return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    except ValueError:
        return None


def _is_signed(key: EllipticCurvePublicKey, signature: bytes, text: bytes) -> bool:
    half = len(signature) // 2
    r, s = int.from_bytes(signature[:half]), int.from_bytes(signature[half:])
    try:
        key.verify(encode_dss_signature(r, s), text, _HASH)
    except InvalidSignature:
        return False
    return True
