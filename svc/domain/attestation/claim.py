"""The attestation that a report carries, judged as far as that goes without the store.

What may live here: `signals.attestation` (decisions 7.5), and what is asked of a key description. Each way to fail has
a name, which stands as evidence of the signal `attestation_failed`; docs/attestation.md lists them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from svc.domain.attestation import challenge as challenges
from svc.domain.attestation.chain import MAX_CERTIFICATE_BYTES, MAX_CERTIFICATES, verify_chain
from svc.domain.attestation.key_description import BootState, KeyDescription, KeyOrigin, SecurityLevel
from svc.domain.attestation.trust import Trust
from svc.domain.model import Level, Observation, Platform
from svc.domain.report.values import members

_MAX_BASE64 = (MAX_CERTIFICATE_BYTES + 2) // 3 * 4


class Attestation(msgspec.Struct, frozen=True):
    """The attestation of a report, judged but for its challenge, which only the store knows."""

    challenge: bytes | None
    """The challenge to use up; `None` where the report names none that could be one."""
    failures: tuple[str, ...]
    """Names of what does not hold."""


def read_attestation(signals: dict[str, Any], platform: Platform, trust: Trust, at_ms: int) -> Attestation | None:
    """Judge the attestation in a report's signals at `at_ms` (decisions 7.5); `None` where it carries none. No JSON
    makes it raise.
    """
    sent = signals.get("attestation")
    if sent is None:
        return None
    claim = members(sent)
    named = claim.get("challenge")
    challenge = challenges.from_text(named)
    failures = ["challenge_unknown"] if named is not None and challenge is None else []
    match claim.get("format"):
        case "none":  # proves nothing, and says so: but a challenge that it names is used up
            pass
        case "android-key":
            if named is None:
                failures.append("challenge_missing")
            if platform != "android":
                failures.append("platform_mismatch")
            failures += _android_key(claim.get("certificate_chain"), challenge, trust, at_ms)
        case _:
            failures.append("format_unknown")
    return Attestation(challenge, tuple(failures))


def observe(failures: tuple[str, ...]) -> tuple[Observation, ...]:
    """The signal `attestation_failed` with these failures as evidence: one makes it medium, two or more high; nothing
    without any (decisions 7.5).
    """
    if not failures:
        return ()
    confidence: Level = "medium" if len(failures) == 1 else "high"
    return (Observation("attestation_failed", confidence, failures),)


def _android_key(chain: Any, challenge: bytes | None, trust: Trust, at_ms: int) -> Iterator[str]:
    certificates = _certificates(chain)
    verified = "chain_malformed" if certificates is None else verify_chain(certificates, trust, at_ms)
    if isinstance(verified, KeyDescription):
        yield from verify_claims(verified, challenge, trust)
    else:
        yield verified


def verify_claims(description: KeyDescription, challenge: bytes | None, trust: Trust) -> Iterator[str]:
    """Names of what is wrong with a key description whose chain was verified. `challenge`: the one that the report
    names; `None` = not compared.
    """
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
    """One of the packages is expected (apps that share a user id are named together), and all signers are."""
    app = description.application
    if app is None:
        return not trust.packages and not trust.signing_digests
    known = not trust.packages or bool(app.packages & trust.packages)
    signed = not trust.signing_digests or (bool(app.signing_digests) and app.signing_digests <= trust.signing_digests)
    return known and signed


def _certificates(chain: Any) -> list[bytes] | None:
    """The certificates as bytes, where they are a list of base64 texts of a size that will be looked at."""
    if type(chain) is not list:
        return None
    texts = cast("list[Any]", chain)
    if not 0 < len(texts) <= MAX_CERTIFICATES:
        return None
    certificates: list[bytes] = []
    for text in texts:
        if type(text) is not str or len(text) > _MAX_BASE64:
            return None
        try:
            certificates.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            return None
    return certificates
