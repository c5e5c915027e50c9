"""The attestation that a report carries, judged as far as that goes without the store.

What may live here: `signals.attestation` (decisions 7.5), and what is asked of a key description. Each way to fail has
a name, which stands as evidence of the signal `attestation_failed`; docs/attestation.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, cast

import msgspec

from svc.identify.attestation import challenge as challenges
from svc.identify.attestation.app_attest import (
    KEY_ID_BYTES,
    MAX_ASSERTION_BYTES,
    MAX_ATTESTATION_BYTES,
    AppAttestFailure,
    Proof,
    read_assertion,
    verify_attestation,
)
from svc.identify.attestation.challenge import AttestationResult, AttestedKey
from svc.identify.attestation.key_attestation import (
    MAX_CERTIFICATES,
    BootState,
    KeyDescription,
    KeyOrigin,
    SecurityLevel,
    verify_chain,
)
from svc.identify.attestation.trust import MAX_CERTIFICATE_BYTES, Trust
from svc.identify.model import Level, Observation
from svc.identify.report.values import members
from svc.kernel.values.encodings import from_base64
from svc.kernel.values.fields import Platform

_PLATFORMS: dict[str, Platform] = {"android-key": "android", "apple-app-attest": "ios"}
"""Format -> the platform that it proves."""


class Attestation(msgspec.Struct, frozen=True):
    """The attestation of a report, judged but for what only the store knows: its challenge and the keys of devices."""

    challenge: bytes | None
    """The challenge to use up; `None` where the report names none that could be one."""
    failures: tuple[str, ...]
    """Names of what does not hold."""
    format: str = "none"
    """As in `AttestationResult`."""
    proof: Proof | None = None
    """For `apple-app-attest`: the key to store, or an assertion to verify with the stored key."""


def read_attestation(signals: dict[str, Any], platform: Platform, trust: Trust, at_ms: int) -> Attestation | None:
    """Check the attestation in a report's signals at `at_ms` (decisions 7.5); `None` without one. Never raises."""
    sent = signals.get("attestation")
    if sent is None:
        return None
    claim = members(sent)
    named = claim.get("challenge")
    challenge = challenges.from_text(named)
    failures = ["challenge_unknown"] if named is not None and challenge is None else []
    kind = claim.get("format")
    if kind == "none":  # proves nothing, and says so: but a challenge that it names is used up
        return Attestation(challenge, tuple(failures))
    proves = _PLATFORMS.get(kind) if isinstance(kind, str) else None
    if proves is None:
        return Attestation(challenge, (*failures, "format_unknown"), "unknown")
    if named is None:
        failures.append("challenge_missing")
    if platform != proves:
        failures.append("platform_mismatch")
    if proves == "android":
        failures += _android_key(claim.get("certificate_chain"), challenge, trust, at_ms)
        return Attestation(challenge, tuple(failures), "android-key")
    found = _app_attest(claim, challenge or b"", trust, at_ms)
    if isinstance(found, tuple):
        return Attestation(challenge, (*failures, *found), "apple-app-attest")
    return Attestation(challenge, tuple(failures), "apple-app-attest", found)


def observe(failures: tuple[str, ...]) -> tuple[Observation, ...]:
    """Return `attestation_failed` with these failures as evidence: medium for one, high for more (decisions 7.5)."""
    if not failures:
        return ()
    confidence: Level = "medium" if len(failures) == 1 else "high"
    return (Observation("attestation_failed", confidence, failures),)


def missing(signals: dict[str, Any], platform: Platform) -> tuple[Observation, ...]:
    """Return the signal `attestation_missing` if an app sends none or says that it has none. Takes any JSON."""
    sent = signals.get("attestation")
    if platform == "web" or (sent is not None and members(sent).get("format") != "none"):
        return ()
    return (Observation("attestation_missing", "low", ("attestation_absent" if sent is None else "attestation_none",)),)


def result(attestation: Attestation, failures: tuple[str, ...], known: AttestedKey | None) -> AttestationResult:
    """Return the result for the archived document. `known`: the stored record of the key of a verified proof."""
    verified = attestation.format != "none" and not failures
    proof = attestation.proof
    if not verified or proof is None or known is None:
        return AttestationResult(attestation.format, verified)
    return AttestationResult(
        attestation.format,
        verified,
        app_id=known.app_id,
        environment=known.environment,
        counter=known.counter,
        key_first_seen_ms=known.first_seen_ms,
        bundle_version=proof.data.bundle_version,
        distribution=proof.data.distribution,
    )


def _android_key(chain: Any, challenge: bytes | None, trust: Trust, at_ms: int) -> Iterator[str]:
    certificates = _certificates(chain)
    verified = "chain_malformed" if certificates is None else verify_chain(certificates, trust, at_ms)
    if isinstance(verified, KeyDescription):
        yield from verify_claims(verified, challenge, trust)
    else:
        yield verified


def verify_claims(description: KeyDescription, challenge: bytes | None, trust: Trust) -> Iterator[str]:
    """Yield what is wrong with a verified key description. `challenge`: that of the report; `None` = any."""
    if challenge is not None and description.challenge != challenge:
        yield "challenge_mismatch"
    if min(description.attestation_level, description.keymint_level) < SecurityLevel.TRUSTED_ENVIRONMENT:
        yield "software_only"
    if description.origin is not KeyOrigin.GENERATED:
        yield "key_not_generated"
    boot = description.root_of_trust
    if boot is None or boot.boot_state is not BootState.VERIFIED:
        yield "boot_unverified"
    if boot is None or not boot.device_locked:
        yield "device_unlocked"
    if not _is_expected_app(description, trust):
        yield "app_unexpected"


def _is_expected_app(description: KeyDescription, trust: Trust) -> bool:
    """Return whether all signers and one of the packages are expected. Apps that share a user id are named together."""
    app = description.application
    if app is None:
        return not trust.packages and not trust.signing_digests
    known = not trust.packages or bool(app.packages & trust.packages)
    signed = not trust.signing_digests or (bool(app.signing_digests) and app.signing_digests <= trust.signing_digests)
    return known and signed


def _app_attest(
    claim: dict[str, Any], challenge: bytes, trust: Trust, at_ms: int
) -> Proof | tuple[AppAttestFailure, ...]:
    """Verify an attestation or assertion. Its client data hash is SHA-256 over the challenge's 32 bytes."""
    key_id, attestation, assertion = claim.get("key_id"), claim.get("attestation"), claim.get("assertion")
    key = from_base64(key_id, KEY_ID_BYTES)
    client_data_hash = sha256(challenge).digest()
    if assertion is not None:
        raw = from_base64(assertion, MAX_ASSERTION_BYTES)
        if raw is None or key is None or len(key) != KEY_ID_BYTES or attestation is not None:
            return ("assertion_malformed",)
        return read_assertion(raw, key, client_data_hash, trust.apple)
    raw = from_base64(attestation, MAX_ATTESTATION_BYTES)
    if raw is None or key is None or len(key) != KEY_ID_BYTES:
        return ("attestation_malformed",)
    return verify_attestation(raw, key, client_data_hash, trust.apple, at_ms)


def _certificates(chain: Any) -> list[bytes] | None:
    """Decode the certificates; `None` unless they are a list of base64 texts within the limits of number and size."""
    if type(chain) is not list:
        return None
    texts = cast("list[Any]", chain)
    if not 0 < len(texts) <= MAX_CERTIFICATES:
        return None
    certificates = [from_base64(text, MAX_CERTIFICATE_BYTES) for text in texts]
    return [raw for raw in certificates if raw is not None] if None not in certificates else None
