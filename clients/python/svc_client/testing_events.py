"""What a fake service stores and signs: events from what a test says of them, verdicts, deliveries of webhooks.

What may live here: pure functions, but for random ids and keys.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import string
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from svc_client.testing_data import EVENT_FIELDS, SIGNALS, EventFields

DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
LENGTH = 20
"""Characters of a random id."""
THRESHOLD = 30
"""From which a score is suspect, unless an organization says otherwise."""
SCORES = {"low": 0, "medium": THRESHOLD, "high": 2 * THRESHOLD}
"""Level -> its least score."""
VERDICT_VALID_S = 300
CLAIMS = (
    "environment", "platform", "ip_address", "origin", "tag", "account_id", "action", "visitor_is_new", "identifiable",
    "visitor_confidence", "proven", "suspect_score", "suspect_level", "decision",
)  # fmt: skip
"""Fields of an event that a verdict has, too."""
NULLABLE = ("suspect_score", "document")
"""Fields of every event that may be `null`."""
DETAILS = ("document", "shadow", "deferred_signals")
"""Fields that only a single event has."""


class Answer(EventFields, total=False):
    """What a test says of an event; an honest visitor's wherever it says nothing."""

    visitor: str
    """A name of your choice, `honest` if left out, or a visitor id: events of one name are of one visitor."""
    decision: Literal["allow", "review", "challenge", "block"]
    """What a rule decided."""
    rule: str
    """The name of that rule, `Test rule` if left out."""
    signals: list[str]
    """Signals that fired, or groups of signals, such as `vpn`: score and level follow from their weights."""
    age_s: float
    """How long ago it was, 0 if left out."""


SAID = frozenset(EVENT_FIELDS) | {"visitor", "decision", "rule", "signals", "age_s"}


def checked(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a test says. Raises `ValueError` for what no event can have."""
    for name, value in said.items():
        if name not in SAID:
            raise ValueError(f"an event has no {name}")
        if value is None and not EVENT_FIELDS.get(name) and name not in NULLABLE:
            raise ValueError(f"every event has {name}")
    if "rule" in said and "decision" not in said:
        raise ValueError("a rule without a decision: say what it decided")
    return dict(said)


def made_id(name: str) -> str:
    """20 characters for a name, the same every time; those of an id are its own."""
    if re.fullmatch(f"[0-9A-Za-z]{{{LENGTH}}}", name):
        return name
    left, digits = int.from_bytes(hashlib.sha256(name.encode()).digest()), ""
    while len(digits) < LENGTH:
        left, digit = divmod(left, len(DIGITS))
        digits += DIGITS[digit]
    return digits


def new_request_id(now_ms: int) -> str:
    """A UUIDv7."""
    noise = secrets.randbits(74)
    return str(UUID(int=now_ms << 80 | 0x7 << 76 | (noise >> 62) << 64 | 0b10 << 62 | noise & (1 << 62) - 1))


def moment(at_ms: float) -> str:
    """A time as the service writes it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event_of(request_id: str, said: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """An event as `get_event` has it. Raises `ValueError` for what no event can have."""
    given = checked(said)
    platform = given.get("platform", "web")
    fired = _fired(given.pop("signals", ()), platform)
    decided, rule = given.pop("decision", None), given.pop("rule", "Test rule")
    event: dict[str, Any] = {
        "request_id": request_id,
        "visitor_id": made_id(given.pop("visitor", "honest")),
        "visitor_is_new": False,
        "identifiable": True,
        "visitor_confidence": 100,
        "proven": True,
        "state": "enriched",
        "occurred_at": moment(now_ms - given.pop("age_s", 0) * 1000),
        "environment": "production",
        "platform": platform,
        "sdk_platform": platform,
        "sdk_version": "unknown",
        "origin": "https://shop.example" if platform == "web" else None,
        "ip_address": "203.0.113.7",
        "country_code": "GB",
        "country_name": "United Kingdom",
        **_scored(fired, given),
        "triggers": _groups(fired),
        "signals": fired,
        "has_document": False,
        "document": None,
        "decision": decided and {"action": decided, "rule_id": f"rul_{made_id(rule)}", "rule": rule},
        "velocity": _velocity(has_account=given.get("account_id") is not None),
        "account_verified": True if given.get("account_id") is not None else None,
        **given,
    }
    return {name: value for name, value in event.items() if value is not None or name in NULLABLE}


def _fired(names: list[str], platform: str) -> list[dict[str, Any]]:
    """Each signal, heaviest first."""
    found: list[dict[str, Any]] = []
    for name in names:
        kin = [one for one, (group, weights) in SIGNALS.items() if name in (one, group) and platform in weights]
        if not kin:
            raise ValueError(f"there is no signal and no group {name} on {platform}")
        signal = name if name in kin else max(kin, key=lambda one: SIGNALS[one][1][platform])
        group, weights = SIGNALS[signal]
        found.append({"signal": signal, "group": group, "weight": weights[platform], "confidence": "medium"})
    return sorted(found, key=lambda one: -one["weight"])


def _groups(fired: list[dict[str, Any]]) -> list[dict[str, Any]]:
    weights: dict[str, int] = {}
    for one in fired:
        weights[one["group"]] = weights.get(one["group"], 0) + one["weight"]
    groups = [{"signal": group, "weight": weight, "confidence": "medium"} for group, weight in weights.items()]
    return sorted(groups, key=lambda one: -cast("int", one["weight"]))


def _scored(fired: list[dict[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Score and level: the one follows from the other where a test says only one, and from the signals where none."""
    score = given.get("suspect_score", sum(one["weight"] for one in fired))
    if "suspect_score" not in given and given.get("suspect_level") in SCORES:
        score = max(score, SCORES[given["suspect_level"]])
    if score is None:
        return {"suspect_score": None}
    level = "low" if score < THRESHOLD else "medium" if score < 2 * THRESHOLD else "high"
    return {"suspect_score": score, "suspect_level": level}


def _velocity(*, has_account: bool) -> dict[str, Any]:
    once, accounts = _times(1), _times(int(has_account))
    found = {
        "visitor": {"events": once, "accounts": accounts, "addresses": once, "countries": once},
        "address": {"events": once, "visitors": once, "accounts": accounts},
    }
    if has_account:
        found["account"] = {"events": once, "visitors": once, "addresses": once, "countries": once}
    return found


def _times(times: int) -> dict[str, int]:
    return {"1h": times, "24h": times, "30d": times}


class VerdictKey:
    """A key that signs verdicts, as an organization has one. Needs `cryptography`."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  installed for verdicts only

        self._private = Ed25519PrivateKey.generate()
        x = encoded(self._private.public_key().public_bytes_raw())
        self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": made_id(x), "use": "sig", "alg": "EdDSA"}

    def signed(self, event: Mapping[str, Any], organization_id: str) -> str:
        """The verdict of an event, in the compact serialization."""
        issued_s = int(datetime.fromisoformat(event["occurred_at"]).timestamp())
        claims = {
            "iss": "svc",
            "aud": organization_id,
            "sub": event["visitor_id"],
            "jti": event["request_id"],
            "iat": issued_s,
            "exp": issued_s + VERDICT_VALID_S,
            **{name: event[name] for name in CLAIMS if event.get(name) is not None},
        }
        header = {"alg": "EdDSA", "kid": self.jwk["kid"], "typ": "svc-verdict+jwt"}
        text = ".".join(encoded(json.dumps(part, ensure_ascii=False).encode()) for part in (header, claims))
        return f"{text}.{encoded(self._private.sign(text.encode()))}"


def encoded(content: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class Delivery(NamedTuple):
    """A webhook as it arrives."""

    body: bytes
    headers: dict[str, str]


def delivery_of(event: Mapping[str, Any], secret: str, organization_id: str, now_ms: int) -> Delivery:
    """A signed delivery, as of `FakeService.webhook`."""
    whole: dict[str, Any] = {
        "id": new_request_id(now_ms),
        "type": "identification.completed",
        "version": 1,
        "organization_id": organization_id,
        "environment": "live",
        "created_at": moment(now_ms),
        "data": {},
        **event,
    }
    body = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    at = str(now_ms // 1000)
    digest = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return Delivery(
        body,
        {
            "Content-Type": "application/json",
            "X-Svc-Event-ID": whole["id"],
            "X-Svc-Event-Type": whole["type"],
            "X-Svc-Timestamp": at,
            "X-Svc-Signature": f"sha256={digest}",
        },
    )
