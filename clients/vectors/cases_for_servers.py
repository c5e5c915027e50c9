"""Cases of `webhook.json`, `verdict.json` and `check.json`: what a library for servers concludes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NOW_S = 1_772_359_200
"""2026-03-01T10:00:00Z"""
NOW_MS = NOW_S * 1000
ORGANIZATION = "org_4Jm0Vn2rT8sKq1ZxYb3A"
REQUEST_ID = "01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11"
VISITOR = "lW3DvNunzmoofQrBqNAw"
ORIGIN = "https://shop.example"
ADDRESS = "203.0.113.7"
SECRET, PREVIOUS = "svc_whsec_" + "aB3" * 14 + "x", "svc_whsec_" + "zY8" * 14 + "w"

# Webhooks

MESSAGE = "Zoë, 😀"
EVENT = {
    "id": REQUEST_ID,
    "type": "webhook.test",
    "version": 1,
    "organization_id": ORGANIZATION,
    "environment": "live",
    "created_at": "2026-03-01T10:00:00.000Z",
    "data": {"message": MESSAGE},
}
BODY = json.dumps(EVENT, ensure_ascii=False, separators=(",", ":")).encode()


def signed_headers(body: bytes, *secrets: str) -> dict[str, str]:
    """The headers of a delivery: its id, the time, and a signature by each secret."""
    text = f"{NOW_S}.".encode() + body
    parts = ["sha256=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest() for secret in secrets]
    return {"X-Svc-Event-ID": REQUEST_ID, "X-Svc-Timestamp": str(NOW_S), "X-Svc-Signature": ",".join(parts)}


def webhook_cases() -> list[dict[str, Any]]:
    """`expect` is the message of the event, `null` where the delivery is not authentic, or is no event."""
    cases: list[dict[str, Any]] = []
    headers = signed_headers(BODY, SECRET, PREVIOUS)

    def case(
        name: str,
        expect: str | None = None,
        *,
        body: bytes = BODY,
        headers: dict[str, str] = headers,
        secrets: Sequence[str] = (SECRET,),
        now_s: int = NOW_S,
    ) -> None:
        text = base64.b64encode(body).decode()
        given = {"body": text, "headers": headers, "secrets": list(secrets), "now_s": now_s}
        cases.append({"name": name, "kind": "webhook", "given": given, "expect": expect})

    def signed(name: str, body: bytes) -> None:
        case(name, body=body, headers=signed_headers(body, SECRET))

    case("as it was sent", MESSAGE)
    case("headers in capitals", MESSAGE, headers={name.upper(): value for name, value in headers.items()})
    case("headers in small letters", MESSAGE, headers={name.lower(): value for name, value in headers.items()})
    case("the previous secret", MESSAGE, secrets=[PREVIOUS])
    case("a secret read from a file", MESSAGE, secrets=[SECRET + "\n"])
    case("both secrets", MESSAGE, secrets=["svc_whsec_other", SECRET])
    case(
        "spaces between signatures",
        MESSAGE,
        headers={**headers, "X-Svc-Signature": headers["X-Svc-Signature"].replace(",", " , ")},
    )
    case("minutes old", MESSAGE, now_s=NOW_S + 299)
    case("minutes early", MESSAGE, now_s=NOW_S - 299)
    case("too old", now_s=NOW_S + 301)
    case("too new", now_s=NOW_S - 301)
    case("another secret", secrets=["svc_whsec_other"])
    case("no secret", secrets=[])
    case("an empty secret", secrets=[""], headers=signed_headers(BODY, ""))
    case("a blank secret", secrets=[" \n"], headers=signed_headers(BODY, ""))
    case("another body", body=BODY + b" ")
    case("another time", headers={**headers, "X-Svc-Timestamp": str(NOW_S + 1)})
    case("no signature", headers={**headers, "X-Svc-Signature": ""})
    case("a digest without its algorithm", headers={**headers, "X-Svc-Signature": headers["X-Svc-Signature"][7:71]})
    case("a digest in capitals", headers={**headers, "X-Svc-Signature": headers["X-Svc-Signature"].upper()})
    case("a signature cut short", headers={**headers, "X-Svc-Signature": headers["X-Svc-Signature"][:70]})
    for name, time in (
        ("a time of 5,000 digits", "9" * 5000),
        ("a time with a sign", f"+{NOW_S}"),
        ("a time with a fraction", f"{NOW_S}.0"),
        ("a time in a space", f" {NOW_S}"),
        ("a time in other digits", "١٧٧٢٣٥٩٢٠٠"),
        ("no time", ""),
    ):
        case(name, headers={**signed_headers(BODY, SECRET), "X-Svc-Timestamp": time})
    case("no headers", headers={})
    signed("no JSON", b"hello")
    signed("no text", b'{"version": 1, "id": "\xff"}')
    signed("no object", b"[1]")
    signed("null", b"null")
    signed("nothing", b"")
    signed("no version", b'{"id": "x"}')
    signed("another version", b'{"version": 2}')
    return cases


# Signed verdicts

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NEXT_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
FORGER = Ed25519PrivateKey.from_private_bytes(bytes(32))
CLAIMS = {
    "iss": "svc", "aud": ORGANIZATION, "sub": VISITOR, "jti": REQUEST_ID, "iat": NOW_S, "exp": NOW_S + 300,
    "environment": "production", "platform": "web", "ip_address": ADDRESS, "origin": ORIGIN, "tag": "signup",
    "account_id": "a", "action": "log_in", "visitor_is_new": False, "identifiable": True, "visitor_confidence": 100,
    "proven": False, "suspect_score": 0, "suspect_level": "low",
}  # fmt: skip
BLOCK = {"action": "block", "rule_id": "rul_Yv3kPq8sT1nB6wDx0hRz", "rule": "Third account"}
CHALLENGE = {"action": "challenge", "rule_id": "rul_Yv3kPq8sT1nB6wDx0hRz", "rule": 'Zoë\'s, "new"'}
ALLOW = {"action": "allow", "rule_id": "rul_Yv3kPq8sT1nB6wDx0hRz", "rule": "Trusted"}
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


REFUSING = ("level:high", f"rule:{BLOCK['rule']}")
"""Reasons that refuse what belongs to its action; any other one asks for a second factor."""
WEAK = ("other_address", "other_network", "unproven")


UNEXPECTED = "unexpected_response"


def expected_of(problem: str | None, reasons: Sequence[str]) -> dict[str, Any]:
    """What must come of a case: a problem that is not weak is the only reason there is. What has not the form of an
    event is an error.
    """
    if problem == UNEXPECTED:
        return {"error": UNEXPECTED}
    if problem is not None and problem not in WEAK:
        return {"problem": problem, "decision": "refuse", "reasons": [problem]}
    decision = "refuse" if any(reason in REFUSING for reason in reasons) else "verify" if reasons else "accept"
    return {"problem": problem, "decision": decision, "reasons": list(reasons)}


def encoded(content: bytes) -> str:
    """In base64url, without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def key_of(private: Ed25519PrivateKey) -> dict[str, str]:
    """The published key."""
    x = encoded(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    thumbprint = hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest()
    return {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": encoded(thumbprint), "use": "sig", "alg": "EdDSA"}


def token_of(claims: dict[str, Any], private: Ed25519PrivateKey = KEY, **header: Any) -> str:
    """A verdict that is signed by a key, with other fields of its header. A claim that is `None` is left out."""
    claims = {name: value for name, value in claims.items() if value is not None}
    fields = {"alg": "EdDSA", "typ": "svc-verdict+jwt", "kid": key_of(private)["kid"], **header}
    text = ".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (fields, claims))
    return f"{text}.{encoded(private.sign(text.encode()))}"


def verdict_cases() -> list[dict[str, Any]]:
    """`expect` is the problem, the decision and the reasons. Each is the first use of its verdict."""
    cases: list[dict[str, Any]] = []
    right = token_of(CLAIMS)
    expected = {
        "organization_id": ORGANIZATION, "environment": "production", "origin": ORIGIN, "ip": ADDRESS, "tag": "signup",
    }  # fmt: skip
    keys = [key_of(KEY), key_of(NEXT_KEY)]

    def case(
        name: str,
        problem: str | None,
        token: str = right,
        *,
        reasons: Sequence[str] = (),
        now_ms: int = NOW_MS,
        **changes: Any,
    ) -> None:
        given = {"keys": keys, "token": token, "now_ms": now_ms, "expected": {**expected, **changes}}
        expect = expected_of(problem, reasons)
        cases.append({"name": name, "kind": "verdict", "given": given, "expect": expect})

    case("as it was signed", None)
    case("by the next key", None, token_of(CLAIMS, NEXT_KEY))
    case("everything that can be compared", None, account_id="a", action="log_in", platform="web")
    case("at its last moment", None, now_ms=NOW_MS + 299_999)
    case("of a clock that is ahead", None, now_ms=NOW_MS - 29_000)
    case("its address as IPv6", None, ip=f"::FFFF:{ADDRESS}")
    case("its address not compared", None, ip=None)
    case("of an app", None, token_of({**CLAIMS, "origin": None, "tag": None}), origin=None, tag=None)
    case("a proven one", None, token_of({**CLAIMS, "proven": True}), proven=True)
    case("a new visitor", None, token_of({**CLAIMS, "visitor_confidence": 0}), reasons=["not_known"])
    case("a new visitor at a sign-up", None, token_of({**CLAIMS, "visitor_confidence": 0}), allow_unknown=True)
    case("not scored", None, token_of({**CLAIMS, "suspect_level": None}), reasons=["not_scored"])
    case("a suspect", None, token_of({**CLAIMS, "suspect_level": "high"}), reasons=["level:high"])
    case("blocked by a rule", None, token_of({**CLAIMS, "decision": BLOCK}), reasons=["rule:Third account"])
    case("challenged by a rule", None, token_of({**CLAIMS, "decision": CHALLENGE}), reasons=['rule:Zoë\'s, "new"'])
    case("allowed by a rule", None, token_of({**CLAIMS, "decision": ALLOW}))
    case("blocked, of another tag", "other_tag", token_of({**CLAIMS, "decision": BLOCK}), tag="payment")
    case(
        "blocked, of another address", "other_address", token_of({**CLAIMS, "decision": BLOCK}),
        reasons=["rule:Third account", "other_address"], ip="203.0.113.8",
    )  # fmt: skip
    case("a field of tomorrow", None, token_of({**CLAIMS, "future": {"a": [1.5, None]}}))
    for name in ("aud", "jti", "iat", "exp", "environment", "platform", "ip_address"):
        case(f"without {name}", "invalid", token_of({**CLAIMS, name: None}))
    case("of several organizations", "invalid", token_of({**CLAIMS, "aud": [ORGANIZATION]}))
    case("of no number", "invalid", token_of({**CLAIMS, "exp": "never"}))
    case("of a decision that is none", "invalid", token_of({**CLAIMS, "decision": "block"}))
    case("of another environment", "invalid", environment="staging")
    case("of another organization", "invalid", organization_id="org_000000000000000000")
    case("too old", "too_old", now_ms=NOW_MS + 300_000)
    case("from the future", "too_old", now_ms=NOW_MS - 31_000)
    case("of another site", "other_origin", origin="https://other.example")
    case("of no site", "other_origin", origin=None)
    case("of another address", "other_address", reasons=["other_address"], ip="203.0.113.8")
    case("of another address in its network", None, ip="203.0.113.8", same_network=True)
    case("of another network", "other_network", reasons=["other_network"], ip="203.0.114.7", same_network=True)
    case("of another tag", "other_tag", tag="payment")
    case("of another address and tag", "other_tag", ip="203.0.113.8", tag="payment")
    case("of no tag", "other_tag", tag=None)
    case("of another account", "other_account", account_id="b")
    case("of an empty account", "other_account", account_id="")
    case("of another action", "other_action", action="sign_up")
    case("of another platform", "other_platform", platform="ios")
    case("not proven", "unproven", reasons=["unproven"], proven=True)
    for name, token in forged(right).items():
        case(f"forged: {name}", "invalid", token)
    return cases


def forged(token: str) -> dict[str, str]:
    """What nobody may accept, by what is wrong with it."""
    header, claims, signature = token.split(".")
    fields = json.loads(base64.urlsafe_b64decode(header + "=="))
    other = encoded(json.dumps({**CLAIMS, "visitor_confidence": 99}).encode())
    kid = fields["kid"]

    def with_header(**changes: Any) -> str:
        return f"{encoded(json.dumps({**fields, **changes}).encode())}.{claims}.{signature}"

    first = ALPHABET.index(signature[-1]) & 0b110000
    return {
        "other claims": f"{header}.{other}.{signature}",
        "a forger's signature": token_of(CLAIMS, FORGER, kid=kid),
        "a forger's key": token_of(CLAIMS, FORGER),
        "a key of its own": token_of(CLAIMS, FORGER, kid=kid, jwk=key_of(FORGER)),
        "no signature": f"{header}.{claims}.",
        "a signature cut short": token[:-4],
        "algorithm none": with_header(alg="none"),
        "an algorithm with the public key as a secret": with_header(alg="HS256"),
        "signed, with another algorithm's name": token_of(CLAIMS, alg="HS256"),
        "signed, of another type": token_of(CLAIMS, typ="JWT"),
        "signed, without a key": token_of(CLAIMS, kid=None),
        "two parts": f"{header}.{claims}",
        "four parts": token + ".x",
        "no header": f".{claims}.{signature}",
        "a header that is no JSON": f"{encoded(b'hello')}.{claims}.{signature}",
        "a header that is no object": f"{encoded(b'[1]')}.{claims}.{signature}",
        "a header that is no base64": f"****.{claims}.{signature}",
        "a nest": f"{encoded(b'[' * 20_000)}.{claims}.{signature}",
        "no ASCII": "ä.ä.ä",
        "nothing": "",
        "padding": token + "=",
        "a line behind it": token + "\n",
        "a space in it": f"{header}.{claims}.{signature[:40]} {signature[40:]}",
        **{
            f"its last character as {last}": token[:-1] + last
            for last in ALPHABET[first : first + 16]
            if last != signature[-1]
        },
        "the other alphabet": f"{header}.{claims}.{signature.replace('-', '+').replace('_', '/')}",
    }


# Events, retries, headers

SEEN = {
    "request_id": REQUEST_ID, "occurred_at": "2026-03-01T10:00:00.000Z", "environment": "production",
    "visitor_id": VISITOR, "platform": "web", "ip_address": ADDRESS, "origin": ORIGIN, "tag": "signup",
    "account_id": "a", "action": "log_in",
    "identifiable": True, "visitor_is_new": False, "visitor_confidence": 100, "proven": False, "suspect_level": "low",
}  # fmt: skip


def check_cases() -> list[dict[str, Any]]:
    """Of `check`: the problem of an event, the decision and the reasons. Of `message`: the text of an error.
    Of `wait`: milliseconds until the next attempt, `null` for none. Of `visitor_headers`: what is passed on.
    """
    return [*_checks(), *_of_apps(), *_forms(), *_decisions(), *_messages(), *_waits(), *_headers()]


class _Checks:
    """Cases of an event and an action, which are equal unless they are changed."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []

    def __call__(
        self,
        name: str,
        problem: str | None = None,
        *,
        event: dict[str, Any] | None = None,
        reasons: Sequence[str] = (),
        now_ms: int = NOW_MS,
        is_first: bool = True,
        **changes: Any,
    ) -> None:
        seen = {name: value for name, value in {**SEEN, **(event or {})}.items() if value is not None}
        action = {"origin": ORIGIN, "ip": ADDRESS, "tag": "signup", **changes}
        given = {"event": seen, "action": action, "now_ms": now_ms, "is_first": is_first}
        self.made.append({"name": name, "kind": "check", "given": given, "expect": expected_of(problem, reasons)})


def _checks() -> list[dict[str, Any]]:
    """Whether an event is of an action."""
    case = _Checks()
    case("of this action")
    case("used before", "used_before", is_first=False)
    case("minutes old", now_ms=NOW_MS + 299_999)
    case("too old", "too_old", now_ms=NOW_MS + 300_000)
    case("of a clock that is ahead", now_ms=NOW_MS - 29_999)
    case("from the future", "too_old", now_ms=NOW_MS - 30_000)
    case("its time without a fraction", event={"occurred_at": "2026-03-01T10:00:00Z"})
    case("of another site", "other_origin", origin="https://other.example")
    case("of a site, where an app's is expected", "other_origin", origin=None)
    case("of an app", event={"origin": None}, origin=None)
    case("of an app, where a site's is expected", "other_origin", event={"origin": None})
    address, network, far = ["other_address"], ["other_network"], "2001:db8:7:9::b"
    case("of another address", "other_address", reasons=address, ip="203.0.113.8")
    case("of another address, used before", "used_before", ip="203.0.113.8", is_first=False)
    case("of another address and tag", "other_tag", ip="203.0.113.8", tag="payment")
    case("of another kind of address", "other_address", reasons=address, ip="::1")
    case("its address not compared", ip=None)
    case("its address not compared, nor its network", ip=None, same_network=True)
    case("of another address in its network", ip="203.0.113.255", same_network=True)
    case("of its network, by IPv4 inside IPv6", ip="::ffff:203.0.113.255", same_network=True)
    case("of another network", "other_network", reasons=network, ip="203.0.114.7", same_network=True)
    case("of a network of another kind", "other_network", reasons=network, ip="2001:db8::a", same_network=True)
    case("of the network of this machine", event={"ip_address": "::1"}, ip="::2", same_network=True)
    case("another IPv6 address in its network", event={"ip_address": "2001:db8:7::a"}, ip=far, same_network=True)
    case(
        "of another IPv6 network", "other_network", event={"ip_address": "2001:db8:8::a"}, reasons=network, ip=far,
        same_network=True,
    )  # fmt: skip
    case("IPv4 inside IPv6", ip=f"::FFFF:{ADDRESS}")
    case("IPv4 as the end of IPv6", "other_address", reasons=address, ip=f"::{ADDRESS}")
    case("IPv6 in another spelling", event={"ip_address": "2001:db8::a"}, ip="2001:0DB8:0:0::A")
    case("IPv6 with the zone of a machine", event={"ip_address": "fe80::1"}, ip="fe80::1%eth0")
    case(
        "another IPv6 address", "other_address", event={"ip_address": "2001:db8::a"}, reasons=address, ip="2001:db8::b"
    )
    case("of another tag", "other_tag", tag="payment")
    case("with a tag, where none is expected", "other_tag", tag=None)
    case("without a tag", event={"tag": None}, tag=None)
    case("of another account", "other_account", account_id="b")
    case("of an empty account", "other_account", account_id="")
    case("of no account", "other_account", event={"account_id": None}, account_id="a")
    case("of its account", account_id="a")
    case("of another action", "other_action", action="sign_up")
    case("of its action", action="log_in")
    case("of another platform", "other_platform", platform="ios")
    case("of its platform", platform="web")
    case("not proven", "unproven", reasons=["unproven"], proven=True)
    case("not proven, of another tag", "other_tag", tag="payment", proven=True)
    case("not proven, used before", "used_before", proven=True, is_first=False)
    case(
        "not proven, of another address", "other_address", reasons=["other_address", "unproven"], proven=True,
        ip="203.0.113.8",
    )  # fmt: skip
    case("of a service that proves nothing", "unproven", event={"proven": None}, reasons=["unproven"], proven=True)
    case("proven", event={"proven": True}, proven=True)
    case(
        "the first fault is reported", "other_origin", origin="https://other.example", ip="203.0.113.8", is_first=False
    )
    return case.made


def _of_apps() -> list[dict[str, Any]]:
    """What `apps.json` has the service say of reports of apps, at a log-in from the app: its events have no origin."""
    case = _Checks()
    for platform in ("android", "ios"):
        phone: dict[str, Any] = {"origin": None, "platform": platform}
        expected: dict[str, Any] = {"origin": None, "platform": platform}
        case(f"{platform}: token and device id", event=phone, **expected)
        case(
            f"{platform}: a device id from elsewhere",
            event={**phone, "visitor_confidence": 89},
            reasons=["not_known"],
            **expected,
        )
        case(f"{platform}: a new phone", event={**phone, "visitor_confidence": 0}, reasons=["not_known"], **expected)
        case(
            f"{platform}: a new phone at a sign-up",
            event={**phone, "visitor_confidence": 0},
            allow_unknown=True,
            **expected,
        )
        nobody = {**phone, "visitor_confidence": 0, "identifiable": False}
        case(f"{platform}: a minimal report", event=nobody, reasons=["not_identifiable", "not_known"], **expected)
        case(f"{platform}: a page that sends what an app sends", "other_origin", event={"platform": "web"}, **expected)
        case(
            f"{platform}: a server that forwards no origin, of the web",
            "other_platform",
            event={**phone, "platform": "web"},
            **expected,
        )
        shell = "capacitor://localhost"
        case(f"{platform}: an origin of the app", event={**phone, "origin": shell}, **{**expected, "origin": shell})
        case(
            f"{platform}: an origin of the app, where none is expected",
            "other_origin",
            event={**phone, "origin": shell},
            **expected,
        )
    return case.made


def _forms() -> list[dict[str, Any]]:
    """What has not the form of an event."""
    case = _Checks()
    for name in ("occurred_at", "ip_address", "platform"):
        case(f"no event: without {name}", UNEXPECTED, event={name: None})
    case("no event: of no time", UNEXPECTED, event={"occurred_at": "yesterday, perhaps"})
    case("no event: of no address", UNEXPECTED, event={"ip_address": "nowhere"})
    case("no event, used before", UNEXPECTED, event={"platform": None}, is_first=False)
    return case.made


def _decisions() -> list[dict[str, Any]]:
    """What is decided about one that is, and why."""
    case = _Checks()
    case("a suspect", event={"suspect_level": "high"}, reasons=["level:high"])
    case("half a suspect", event={"suspect_level": "medium"}, reasons=["level:medium"])
    case("not scored", event={"suspect_level": None}, reasons=["not_scored"])
    case("a level of tomorrow", event={"suspect_level": "lower"}, reasons=["level:lower"])
    case("not identifiable", event={"identifiable": False}, reasons=["not_identifiable"])
    case("hardly recognized", event={"visitor_confidence": 89}, reasons=["not_known"])
    case("recognized", event={"visitor_confidence": 90})
    new, nobody = {"visitor_confidence": 0}, {"visitor_confidence": 0, "identifiable": False}
    case("a new visitor", event=new, reasons=["not_known"])
    case("a new visitor at a sign-up", event=new, allow_unknown=True)
    case("nobody at a sign-up", event=nobody, reasons=["not_identifiable"], allow_unknown=True)
    case("nobody", event=nobody, reasons=["not_identifiable", "not_known"])
    case(
        "half a suspect at a sign-up",
        event={**new, "suspect_level": "medium"},
        reasons=["level:medium"],
        allow_unknown=True,
    )
    block, challenge = f"rule:{BLOCK['rule']}", f"rule:{CHALLENGE['rule']}"
    case("blocked by a rule", event={"decision": BLOCK}, reasons=[block])
    case("blocked by a rule at a sign-up", event={**new, "decision": BLOCK}, reasons=[block], allow_unknown=True)
    case("a blocked suspect", event={"decision": BLOCK, "suspect_level": "high"}, reasons=[block, "level:high"])
    case("blocked, and new", event={**new, "decision": BLOCK}, reasons=[block, "not_known"])
    case("blocked, of another tag", "other_tag", event={"decision": BLOCK}, tag="payment")
    case(
        "blocked, of another address", "other_address", event={"decision": BLOCK}, reasons=[block, "other_address"],
        ip="203.0.113.8",
    )  # fmt: skip
    case("blocked, used before", "used_before", event={"decision": BLOCK}, is_first=False)
    case("challenged by a rule", event={"decision": CHALLENGE}, reasons=[challenge])
    case(
        "a challenged suspect",
        event={"decision": CHALLENGE, "suspect_level": "high"},
        reasons=["level:high", challenge],
    )
    case("challenged, and new", event={**new, "decision": CHALLENGE}, reasons=[challenge, "not_known"])
    case("an action of tomorrow", event={"decision": {**CHALLENGE, "action": "delay"}}, reasons=[challenge])
    for decision in (ALLOW, {**ALLOW, "action": "review"}):
        seen = {"decision": decision}
        case(f"{decision['action']} by a rule", event=seen)
        case(f"{decision['action']}, and new", event={**seen, **new}, reasons=["not_known"])
        case(f"{decision['action']}, a suspect", event={**seen, "suspect_level": "high"}, reasons=["level:high"])
        case(f"{decision['action']}, of another tag", "other_tag", event=seen, tag="payment")
    return case.made


def _messages() -> list[dict[str, Any]]:
    message = "The request is not valid. Fix the fields listed in `details` and retry."
    label = {"field": "label", "issue": "invalid_value", "location": "body"}
    limit = {"field": "limit", "issue": "out_of_range", "location": "query"}
    whole = {"field": "", "issue": "malformed_json", "location": "body"}
    return [
        {
            "name": name,
            "kind": "message",
            "given": {"status": 422, "code": "validation_error", "message": message, "details": details},
            "expect": f"422 validation_error: {message}{faults}",
        }
        for name, details, faults in (
            ("an error without details", [], ""),
            ("a field and its issue", [label], " (label: invalid_value)"),
            ("two fields", [label, limit], " (label: invalid_value, limit: out_of_range)"),
            ("the whole body", [whole], " (body: malformed_json)"),
        )
    ]


def _waits() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, expect: float | None, **given: Any) -> None:
        all_of_it = {"attempts": 3, "attempt": 1, "is_repeatable": True, "random": 1.0, **given}
        cases.append({"name": name, "kind": "wait", "given": all_of_it, "expect": expect})

    for attempt, wait in enumerate((100, 200, 400, 800, 1600, 2000, 2000, None), start=1):
        case(f"after attempt {attempt} of eight", wait, failure="lost", attempts=8, attempt=attempt)
    case("half a draw", 50, failure="lost", random=0.5)
    case("a draw of 0", 0, failure="lost", random=0.0)
    case("the third of three", None, failure="lost", attempt=3)
    case("a lost connection, not repeatable", None, failure="lost", is_repeatable=False)
    case("no connection, not repeatable", 100, failure="unsent", is_repeatable=False)
    for status in (408, 425, 429):
        case(f"{status}, not repeatable", 100, failure=status, is_repeatable=False)
    for status in (500, 502, 503, 504, 599):
        case(f"{status}", 100, failure=status)
        case(f"{status}, not repeatable", None, failure=status, is_repeatable=False)
    for status in (200, 302, 400, 401, 403, 404, 409, 422):
        case(f"{status}", None, failure=status)
    case("Retry-After", 1100, failure=429, retry_after_s=1)
    case("Retry-After of 0", 100, failure=429, retry_after_s=0)
    case("Retry-After at its limit", 5100, failure=503, retry_after_s=5)
    case("Retry-After beyond it", None, failure=503, retry_after_s=6)
    return cases


def _headers() -> list[dict[str, Any]]:
    hints = {"sec-ch-ua": '"Chromium";v="137", "Not/A)Brand";v="24"', "sec-ch-ua-mobile": "?0"}
    fetch = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
    own = {
        "cookie": "a=b",
        "authorization": "Bearer x",
        "user-agent": "Mozilla/5.0",
        "accept": "*/*",
        "x-sec-ch-ua": "x",
    }
    everything = {"accept-language": "en-GB,en;q=0.9", **hints, **fetch}
    beyond = {"accept-language": "\xe9\U0001f600", **fetch}
    given: dict[str, tuple[dict[str, str], dict[str, str]]] = {
        "what is passed on": ({**own, **everything}, everything),
        "names in capitals": ({name.title(): value for name, value in {**own, **everything}.items()}, everything),
        "nothing to pass on": (own, {}),
        "characters beyond ASCII": (beyond, beyond),
        "quotes and control characters": ({"accept-language": '"\\\t\x7f<>&'}, {"accept-language": '"\\\t\x7f<>&'}),
        "one that is too long": ({"accept-language": "x" * 2_048, **fetch}, fetch),
    }
    return [
        {"name": name, "kind": "visitor_headers", "given": headers, "expect": expect}
        for name, (headers, expect) in given.items()
    ]
