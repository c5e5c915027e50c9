"""Signed verdicts: the check of the signature, and the keys that it is made with. Needs `cryptography`, which
`svc-client[verdicts]` installs.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, cast

from svc_client.checks import CLOCK_SKEW, Action, CheckedVerdict, Problem, Verdict, differences, has_form
from svc_client.types import JwkBody

TYPE = "svc-verdict+jwt"
_TEXTS = ("aud", "jti", "environment")
KEYS_VALID_S = 3600
"""For how long published keys are kept."""
READ_AGAIN_S = 60
"""Between two readings because of a key that is not known: made-up ones cost the service no requests."""


@dataclass(frozen=True)
class Expected:
    """Whose verdict is accepted for which action; everything else as of `Client.check`. The account is the one that the
    identify request named: what `update_event` sets afterwards is not in a verdict.
    """

    organization_id: str
    environment: str
    origin: str | None
    ip: str | None = None
    tag: str | None = None
    now: datetime | None = None
    platform: str | None = None
    proven: bool = False
    account_id: str | None = None
    action: str | None = None
    same_network: bool = False
    allow_unknown: bool = False

    def served(self) -> Action:
        """The action that is being served."""
        given = {field.name: getattr(self, field.name) for field in fields(Action)}
        return Action(**given)


class KeyRing:
    """The published keys of one organization. Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}
        self._read_at_s: float | None = None

    def must_be_read(self, token: object, now_s: float) -> bool:
        """Whether the keys must be read before this token is checked."""
        kid = key_id(token)
        if kid is None:
            return False
        if self._read_at_s is None or now_s - self._read_at_s >= KEYS_VALID_S:
            return True
        return kid not in self._keys and now_s - self._read_at_s >= READ_AGAIN_S

    def put(self, keys: list[JwkBody], now_s: float) -> None:
        """Keep what was read in place of what is kept."""
        self._keys = {key["kid"]: _decoded(key["x"]) for key in keys if (key["kty"], key["crv"]) == ("OKP", "Ed25519")}
        self._read_at_s = now_s

    def check(self, token: object, expected: Expected) -> CheckedVerdict:
        """Every check but that of the first use."""
        verdict = self._verified(token)
        if verdict is None or verdict["aud"] != expected.organization_id:
            return checked_verdict(("invalid",), None, expected)
        if verdict["environment"] != expected.environment:
            return checked_verdict(("invalid",), None, expected)
        now_s = (expected.now or datetime.now(UTC)).timestamp()
        if not verdict["iat"] - CLOCK_SKEW.total_seconds() < now_s < verdict["exp"]:
            return checked_verdict(("too_old",), verdict, expected)
        return checked_verdict(differences(verdict, expected.served()), verdict, expected)

    def _verified(self, token: object) -> Verdict | None:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  installed for verdicts only
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

        kid = key_id(token)
        key = None if kid is None else self._keys.get(kid)
        if key is None:
            return None
        signed, _, signature = cast("str", token).rpartition(".")
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(_decoded(signature), signed.encode())
        except (InvalidSignature, ValueError):
            return None
        claims = json.loads(_decoded(signed.partition(".")[2]))
        return cast("Verdict", claims) if has_form(claims, texts=_TEXTS, integers=("iat", "exp")) else None


def checked_verdict(problems: tuple[Problem, ...], verdict: Verdict | None, expected: Expected) -> CheckedVerdict:
    """What `Client.check_verdict` returns."""
    problem = problems[0] if problems else None
    return CheckedVerdict(problem, verdict, problems=problems, allow_unknown=expected.allow_unknown)


def key_id(token: object) -> str | None:
    """The key that a token says it is signed by; `None` for what is no verdict."""
    if not isinstance(token, str) or not token.isascii() or token.count(".") != 2:
        return None
    try:
        header: Any = json.loads(_decoded(token.partition(".")[0]))
        kid = header["kid"]
        is_verdict = header["alg"] == "EdDSA" and header["typ"] == TYPE
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return kid if is_verdict and isinstance(kid, str) else None


def _decoded(text: str) -> bytes:
    """Bytes from base64url in its one spelling, without padding (RFC 7515, section 2). Raises `ValueError`, also for
    another text of the same bytes: two texts of one verdict would pass for two.
    """
    content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(content).rstrip(b"=").decode() != text:
        raise ValueError("not in the spelling of base64url")
    return content
