"""Further cases of `verdict.json` and `webhook.json`: what is signed, and is no verdict or event all the same."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

from cases_for_servers import (
    BLOCK,
    BODY,
    CLAIMS,
    EVENT,
    KEY,
    MESSAGE,
    NOW_MS,
    NOW_S,
    ORGANIZATION,
    ORIGIN,
    SECRET,
    encoded,
    expected_of,
    key_of,
    signed_headers,
)
from cases_of_responses import DEEPEST, KINDS_OF_VALUES, MISSING, written

HEADER = {"alg": "EdDSA", "typ": "svc-verdict+jwt", "kid": key_of(KEY)["kid"]}


def token(claims: bytes | str | None = None, header: bytes | str | None = None) -> str:
    """A verdict whose signature holds, of these bytes."""
    parts = (json.dumps(HEADER) if header is None else header, written(CLAIMS) if claims is None else claims)
    text = ".".join(encoded(part.encode() if isinstance(part, str) else part) for part in parts)
    return f"{text}.{encoded(KEY.sign(text.encode()))}"


def claim_cases() -> list[dict[str, Any]]:  # noqa: PLR0912, PLR0915  a branch for each claim
    """Verdicts that are signed as they should be."""
    cases: list[dict[str, Any]] = []

    def case(
        name: str,
        problem: str | None = "invalid",
        signed: str | None = None,
        *,
        reasons: Sequence[str] = (),
        now_ms: int = NOW_MS,
        changes: dict[str, Any] | None = None,
        **asked: Any,
    ) -> None:
        signed = token(written({**CLAIMS, **(changes or {})})) if signed is None else signed
        expected = {
            "organization_id": ORGANIZATION,
            "environment": "production",
            "origin": ORIGIN,
            "tag": "signup",
            **asked,
        }
        given = {"keys": [key_of(KEY)], "token": signed, "now_ms": now_ms, "expected": expected}
        expect = expected_of(problem, reasons)
        cases.append({"name": f"claims: {name}", "kind": "verdict", "given": given, "expect": expect})

    case("as they should be", None)
    for kind, value in KINDS_OF_VALUES.items():
        for name in ("aud", "jti", "environment", "ip_address", "platform"):
            if kind != "a text" or name == "ip_address":
                case(f"{name} is {kind}", changes={name: value})
        for name in ("iat", "exp"):
            if kind not in ("a number", "zero"):
                case(f"{name} is {kind}", changes={name: value})
        if kind not in ("true", "false"):
            case(f"identifiable is {kind}", changes={"identifiable": value})
        if kind not in ("a number", "zero"):
            case(f"visitor_confidence is {kind}", changes={"visitor_confidence": value})
        if kind not in ("missing", "null"):
            case(f"decision is {kind}", changes={"decision": value})
        if not isinstance(value, str) and kind not in ("missing", "null"):
            for name in ("origin", "tag", "account_id", "action", "suspect_level"):
                case(f"{name} is {kind}", changes={name: value})
        if kind != "true":
            case(f"proven is {kind}", "unproven", changes={"proven": value}, reasons=["unproven"], proven=True)
        if kind not in ("empty", "a text"):
            header = {name: held for name, held in {**HEADER, "kid": value}.items() if held is not MISSING}
            case(f"the kid is {kind}", signed=token(header=json.dumps(header)))
    for name, value in (("sub", 7), ("suspect_score", 1.5), ("visitor_is_new", None), ("iss", []), ("nbf", "x")):
        case(f"not read: {name}", None, changes={name: value})
    case("an empty tag, and none is expected", None, changes={"tag": ""}, tag=None)
    case("no tag, and an empty one is expected", None, changes={"tag": None}, tag="")
    case("an empty origin, and none is expected", None, changes={"origin": ""}, origin=None)
    case("of an address in brackets", changes={"ip_address": "[2001:db8::1]"})
    case("of an address with its zone", None, changes={"ip_address": "fe80::1%eth0"}, ip="fe80::1")
    _case_of_times(case)
    inside = written(CLAIMS)[:-1]
    for name, value in (
        ("AUD", "org_x"),
        ("Exp", 1),
        ("TAG", "payment"),
        ("Suspect_Level", "high"),
        ("Environment", "staging"),
    ):
        case(f"{name} beside the right one", None, token(f"{inside}, {json.dumps(name)}: {json.dumps(value)}}}"))
        upper = {name: CLAIMS[name.lower()], name.lower(): MISSING}
        if name not in ("TAG", "Suspect_Level"):
            case(f"{name} in place of the right one", changes=upper)
    case("two aud, the last one right", None, token(inside.replace('"aud"', '"aud": "org_x", "aud"') + "}"))
    case("two aud, the first one right", signed=token(f'{inside}, "aud": "org_x"}}'))
    case("two exp, the last one past", "too_old", token(f'{inside}, "exp": 1}}'))
    case("two decisions", None, token(f'{inside}, "decision": {json.dumps(BLOCK)}, "decision": null}}'))
    for name, content in _no_objects(inside):
        case(name, signed=token(content))
        header = dict(_no_objects(json.dumps(HEADER)[:-1]))[name]
        case(f"in the header: {name}", signed=token(header=header))
    case(f"{DEEPEST} levels", None, token(f'{inside}, "x": {"[" * (DEEPEST - 1)}{"]" * (DEEPEST - 1)}}}'))
    case("blanks", None, token(f"\n{written(CLAIMS)}\t", f" {json.dumps(HEADER)} "))
    for name, value in HEADER.items():
        case(
            f"{name.upper()} in place of {name}",
            signed=token(header=written({**HEADER, name: MISSING, name.upper(): value})),
        )
        case(f"{name.upper()} beside {name}", None, token(header=written({**HEADER, name.upper(): "x"})))
    case("the algorithm in small letters", signed=token(header=written({**HEADER, "alg": "eddsa"})))
    case("the type in capitals", signed=token(header=written({**HEADER, "typ": "SVC-VERDICT+JWT"})))
    case("two algorithms, the last one right", None, token(header='{"alg": "none", ' + written(HEADER)[1:]))
    case("two algorithms, the first one right", signed=token(header=written(HEADER)[:-1] + ', "alg": "none"}'))
    case("a critical extension", signed=token(header=written({**HEADER, "crit": ["b64"], "b64": False})))
    case("critical extensions that are none", signed=token(header=written({**HEADER, "crit": []})))
    case("a header of tomorrow", None, token(header=written({**HEADER, "cty": "x", "future": [1.5]})))
    return cases


def _case_of_times(case: Any) -> None:
    issued, expires = NOW_MS, NOW_MS + 300_000
    case("its last millisecond", None, now_ms=expires - 1)
    case("when it expires", "too_old", now_ms=expires)
    case("its first millisecond", None, now_ms=issued - 29_999)
    case("before it", "too_old", now_ms=issued - 30_000)
    for text, problem in (
        (f"{NOW_S}.0", None), ("1.7723592e9", None), (f"{NOW_S}000e-3", None), ("0", None), ("-0", None),
        (str(1 - 2**53), None),
        (str(2**53 - 1), "too_old"), (f"{NOW_S}.5", "invalid"), (str(2**53), "invalid"), ("1e300", "invalid"),
        ("1e-300", "invalid"),
        ("9" * 400, "invalid"), (f'"{NOW_S}"', "invalid"), ("true", "invalid"),
    ):  # fmt: skip
        case(
            f"iat of {text[:20]}, {len(text)} long",
            problem,
            token(written({**CLAIMS, "iat": 12321}).replace("12321", text)),
        )
    for text, problem in (
        (f"{NOW_S}.0", "too_old"), ("1.7723592e9", "too_old"), (str(2**53 - 1), None), (str(1 - 2**53), "too_old"),
        ("0", "too_old"),
        (f"{NOW_S + 300}.5", "invalid"), (str(2**53), "invalid"), ("1e300", "invalid"),
    ):  # fmt: skip
        case(
            f"exp of {text[:20]}, {len(text)} long",
            problem,
            token(written({**CLAIMS, "exp": 12321}).replace("12321", text)),
        )


def _no_objects(inside: str) -> list[tuple[str, bytes]]:
    """What is no object of JSON in UTF-8, of an object without its last bracket."""
    whole = inside + "}"
    texts = {
        "nothing": "", "null": "null", "a list": f"[{whole}]", "a text": '"x"', "a number": "7",
        "an empty object": "{}",
        "it ends early": inside, "something behind it": f"{whole} x", "a comma at its end": f"{inside},}}",
        "a comment": f"/* */{whole}",
        "NaN": f'{inside}, "x": NaN}}', "a byte order mark": f"\ufeff{whole}",
        "half of an emoji": f'{inside}, "x": "\\ud83d"}}',
        "a zero before a number": f'{inside}, "x": 01}}', "an escape that is none": f'{inside}, "x": "\\x41"}}',
        "a line break in a text": f'{inside}, "x": "\n"}}',
        "too deep": f'{inside}, "x": {"[" * DEEPEST}{"]" * DEEPEST}}}',
    }  # fmt: skip
    return [
        *((name, text.encode()) for name, text in texts.items()),
        ("UTF-16", whole.encode("utf-16")),
        ("no UTF-8", f'{inside}, "x": "'.encode() + b'\xff"}'),
    ]


def delivery_cases() -> list[dict[str, Any]]:
    """Deliveries that are signed as they should be."""
    cases: list[dict[str, Any]] = []

    def case(name: str, expect: str | None, body: bytes | str, *, now_s: int = NOW_S, **headers: str) -> None:
        content = body.encode() if isinstance(body, str) else body
        sent = {**signed_headers(content, SECRET), **{name.replace("_", "-"): value for name, value in headers.items()}}
        given = {"body": base64.b64encode(content).decode(), "headers": sent, "secrets": [SECRET], "now_s": now_s}
        cases.append({"name": f"signed: {name}", "kind": "webhook", "given": given, "expect": expect})

    inside = BODY.decode()[:-1]
    for name, content in _no_objects(inside):
        case(name, None, content)
    for kind, value in KINDS_OF_VALUES.items():
        case(f"its version is {kind}", None, written({**EVENT, "version": value}))
        if kind != "a text":
            case(f"its id is {kind}", None, written({**EVENT, "id": value}))
        case(f"its type is {kind}", MESSAGE if kind == "a text" else None, written({**EVENT, "type": value}))
        if kind not in ("a list", "an object"):
            case(f"its data are {kind}", None, written({**EVENT, "data": value}))
        for name in ("organization_id", "environment", "created_at", "future"):
            case(f"not read: {name} is {kind}", MESSAGE, written({**EVENT, name: value}))
    for text, is_event in (
        ("1.0", True),
        ("1e0", True),
        ("10e-1", True),
        ("1.5", False),
        ("01", False),
        ("+1", False),
        ("2", False),
        ("-1", False),
    ):
        case(
            f"version {text}", MESSAGE if is_event else None, BODY.decode().replace('"version":1', f'"version":{text}')
        )
    for name in ("id", "type", "version", "data"):
        case(f"{name.upper()} in place of {name}", None, written({**EVENT, name: MISSING, name.upper(): EVENT[name]}))
        case(f"{name.upper()} beside {name}", MESSAGE, f'{inside},"{name.upper()}":null}}')
    case("two versions, the last one right", MESSAGE, inside.replace('"version"', '"version":2,"version"') + "}")
    case("two versions, the first one right", None, f'{inside},"version":2}}')
    case("two data", "second", f'{inside},"data":{{"message":"second"}}}}')
    case("a long number", MESSAGE, f'{inside},"x":{"1" * 400}}}')
    case("a number of 5,000 digits", MESSAGE, f'{inside},"x":{"7" * 5_000}}}')
    case("blanks", MESSAGE, f" \r\n{BODY.decode()}\n\t")
    case(f"{DEEPEST} levels", MESSAGE, f'{inside},"x":{"[" * (DEEPEST - 1)}{"]" * (DEEPEST - 1)}}}')
    case("just not too old", MESSAGE, BODY, now_s=NOW_S + 300)
    case("just not too new", MESSAGE, BODY, now_s=NOW_S - 300)
    for length, is_time in ((12, True), (13, False)):
        early = "0" * (length - len(str(NOW_S))) + str(NOW_S)
        signature = signature_at(early)
        case(
            f"a time of {length} digits",
            MESSAGE if is_time else None,
            BODY,
            X_Svc_Timestamp=early,
            X_Svc_Signature=signature,
        )
    return cases


def signature_at(time: str) -> str:
    """The signature of the delivery with its time written in another way."""
    return "sha256=" + hmac.new(SECRET.encode(), f"{time}.".encode() + BODY, hashlib.sha256).hexdigest()
