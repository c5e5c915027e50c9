"""Signed verdicts: the check of the signature, and the keys that it is made with. Needs `cryptography`, which
`svc-client[verdicts]` installs.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, cast

from svc_client.checks import CLOCK_SKEW, Action, CheckedVerdict, Problem, Verdict, differences, has_form
from svc_client.errors import unexpected
from svc_client.json_text import parsed

TYPE = "svc-verdict+jwt"
KEY_BYTES = 32
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

    def put(self, keys: object, now_s: float) -> None:
        """Keep what was read in place of what is kept. Raises `ApiError` where it has not the form of keys; one of
        another kind is left out.
        """
        if not isinstance(keys, list):
            raise unexpected(200)
        found: dict[str, bytes] = {}
        for key in cast("list[object]", keys):
            fields = cast("dict[str, object]", key) if isinstance(key, dict) else {}
            kty, crv, kid, x = (fields.get(name) for name in ("kty", "crv", "kid", "x"))
            if not (isinstance(kty, str) and isinstance(crv, str) and isinstance(kid, str) and isinstance(x, str)):
                raise unexpected(200)
            content = _decoded_or_none(x)
            if (kty, crv) == ("OKP", "Ed25519") and content is not None and len(content) == KEY_BYTES:
                found[kid] = content
        self._keys, self._read_at_s = found, now_s

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
            claims = parsed(_decoded(signed.partition(".")[2]))
        except (InvalidSignature, ValueError):
            return None
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
        header: Any = parsed(_decoded(token.partition(".")[0]))
    except ValueError:
        return None
    if not isinstance(header, dict):
        return None
    fields = cast("dict[str, object]", header)
    kid = fields.get("kid")
    is_verdict = fields.get("alg") == "EdDSA" and fields.get("typ") == TYPE and "crit" not in fields
    return kid if is_verdict and isinstance(kid, str) else None


def _decoded(text: str) -> bytes:
    """Bytes from base64url in its one spelling, without padding (RFC 7515, section 2). Raises `ValueError`, also for
    another text of the same bytes: two texts of one verdict would pass for two.
    """
    content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(content).rstrip(b"=").decode() != text:
        raise ValueError("not in the spelling of base64url")
    return content


def _decoded_or_none(text: str) -> bytes | None:
    try:
        return _decoded(text)
    except ValueError:
        return None
