"""Cases of `apps.json`: what an app sends, which senders count as one, how sure a response is, how it reports refusals.
Rules: which keys and origins are an app's (decisions 2.7, 18.5); what a device id is worth without attestation (18.5).
"""

from __future__ import annotations

import json
from typing import Any

from cases_of_reports import IPHONE, OPTIONS, PIXEL
from cases_of_sending import REQUEST_ID
from reporting import signals
from sending import read_response

EPOCH_MS = 1_772_359_200_000
NATIVE = ("android", "ios")
DEVICE = {"android": PIXEL, "ios": IPHONE}
DEVICE_ID = {"android": "android_id", "ios": "identifier_for_vendor"}
AGENT = {
    "android": "svc-android/0.3.0 (Android 15; com.example.shop/42)",
    "ios": "svc-ios/0.3.0 (iOS 17.4; com.example.shop/42)",
}
BROWSER = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36"
)
HOME, OFFICE, ELSEWHERE, SERVER = "81.2.69.142", "91.3.4.5", "185.5.6.7", "203.0.114.9"
"""Addresses in networks of their own."""
SHOP, WEB_VIEW, APP_ORIGIN = "https://shop.example", "https://localhost", "capacitor://localhost"
OWN, THIEFS, AFTER_REINSTALLATION = (f"{digit}d0cbe8bdbd64a3f9a4c2f1b7a5e6d0{digit}" for digit in "892")
"""Client tokens."""
API_KEY = "svc_pk_us_development_0123456789abcdefghij"
DRAWN = bytes([128]) * 16
"""What a phone draws where it needs randomness."""


def app_cases() -> list[dict[str, Any]]:
    """Of `app_request`: what an SDK sends. Of `app_refusal`: the response to a request that is refused, and what an SDK
    tells of it. Of `app_visits`: keys, reports and requests one after the other; the responses, and what a server
    concludes of the events at a log-in.
    """
    return [*_requests(), *_refusals(), *_senders(), *_visits()]


# What an app sends


def time_ordered_id(now_ms: int, drawn: bytes) -> str:
    """A UUIDv7 (RFC 9562) of this moment and 16 random bytes."""
    made = bytearray(now_ms.to_bytes(6, "big") + drawn[6:])
    made[6] = made[6] & 15 | 0x70
    made[8] = made[8] & 63 | 0x80
    text = made.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _request(given: dict[str, Any]) -> dict[str, Any]:
    """What an SDK sends for these options, subject and phone."""
    options, bridge = given["options"], given["options"]["bridge"]
    platform = f"{bridge['name']}-{given['platform']}" if bridge else given["platform"]
    id_ = time_ordered_id(given["now_ms"], DRAWN)
    token = (given["token"] or DRAWN.hex()) if options["storage"] else None
    report = signals(
        {
            "platform": given["platform"], "device": given["device"], "flags": [], "token": token, "nonce": id_,
            "collected_at": given["now_ms"],
            "options": {**options, "bridge": f"{bridge['name']}/{bridge['version']}" if bridge else None},
        }
    )  # fmt: skip
    body = {
        **given["subject"],
        "sdk": {"platform": platform, "version": (bridge or given)["version"]},
        "signals": report,
    }
    if options["verdict"]:
        body["verdict"] = True
    headers = {
        "content-type": "application/json", "x-api-key": given["api_key"], "x-svc-sdk-platform": platform,
        "user-agent": given["user_agent"], "idempotency-key": id_, "x-svc-replay": "full",
    }  # fmt: skip
    return {"url": f"{given['endpoint']}/api/v1/identify", "headers": headers, "body": body}


def _requests() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, *, token: str | None = OWN, subject: dict[str, str] | None = None, **options: Any) -> None:
        for platform in NATIVE:
            given = {
                "platform": platform, "api_key": API_KEY, "endpoint": "http://127.0.0.1:8080", "version": "0.3.0",
                "user_agent": AGENT[platform], "now_ms": EPOCH_MS, "device": DEVICE[platform], "token": token,
                "subject": subject or {}, "options": {**OPTIONS, "verdict": False, **options},
            }  # fmt: skip
            cases.append(
                {"name": f"{platform}: {name}", "kind": "app_request", "given": given, "expect": _request(given)}
            )

    case("token and device id, and no origin")
    case("the first report after an installation", token=None)
    case("what it is about", subject={"tag": "mJ4tq0ZfW2s", "account_id": "user-8271", "action": "log_in"})
    case("no device id is wanted", device_id=False)
    case("nothing may be stored", storage=False)
    case("minimal", minimal=True)
    case("a signed verdict is wanted", verdict=True)
    case("by a bridge", bridge={"name": "react-native", "version": "0.2.0"})
    return cases


# Who sends


def _key(platforms: tuple[str, ...], origins: tuple[str, ...] = (), **more: str) -> dict[str, Any]:
    return {"kind": "public", "platforms": list(platforms), "allowed_origins": list(origins), **more}


def _report(platform: str, token: str | None, device_id: str | None, **options: Any) -> dict[str, Any]:
    """What the SDK sends of one phone; its nonce is that of the request (a runner makes one for each)."""
    given = {
        "platform": platform, "device": {**DEVICE[platform], DEVICE_ID[platform]: device_id}, "flags": [],
        "options": {**OPTIONS, **options}, "token": token, "nonce": "", "collected_at": EPOCH_MS,
    }  # fmt: skip
    report = signals(given)
    del report["nonce"], report["collected_at"]
    return report


def _sent(platform: str, key: str = "app", **changes: Any) -> dict[str, Any]:
    """A request as an app's SDK makes it, from `HOME`, unless changed. `headers` that are `None` are not sent; `named`
    is `sdk.platform`, `None` = missing.
    """
    headers = {"user-agent": AGENT[platform], "x-svc-sdk-platform": platform, **changes.pop("headers", {})}
    return {
        "path": "identify", "key": key, "report": "phone", "named": platform, "address": HOME, "after_hours": 0,
        **changes, "headers": {name: value for name, value in headers.items() if value is not None},
    }  # fmt: skip


def _from_page(origin: str) -> dict[str, str]:
    return {"origin": origin, "user-agent": BROWSER, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}


def _forwarded(origin: str | None = None) -> dict[str, Any]:
    """The headers of a server that speaks for a phone at home, from an address of its own."""
    more = {} if origin is None else {"x-svc-visitor-origin": origin}
    return {
        "headers": {"x-svc-visitor-ip": HOME, "x-svc-visitor-user-agent": AGENT["android"], **more},
        "address": SERVER,
    }


def _seen(
    visitor: str, least: int, most: int | None = None, *, platform: str, origin: str | None = None, **more: Any
) -> dict[str, Any]:
    """A response, and what of its event a server reads. `confidence`: the least and the most that it may be;
    `platform`: by which it was scored; `named`: what the request named.
    """
    is_new = most is None and least == 0
    log_in = _log_in("other_origin" if origin else None, is_known=least >= 90)
    return {
        "status": 200, "visitor": visitor, "visitor_is_new": is_new, "identifiable": True,
        "confidence": [least, least if most is None else most], "platform": platform, "named": platform,
        "origin": origin, "log_in": log_in, **more,
    }  # fmt: skip


def _log_in(problem: str | None, *, is_known: bool) -> dict[str, Any]:
    """What the libraries for servers conclude of it at a log-in from the app, whose event has no origin."""
    if problem:
        return {"problem": problem, "decision": "refuse", "reasons": [problem]}
    return {
        "problem": None,
        "decision": "accept" if is_known else "verify",
        "reasons": [] if is_known else ["not_known"],
    }


_COUNTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a key of the app, without an origin", {}),
    ("a bridge", {"named": "react-native-{}", "headers": {"x-svc-sdk-platform": "react-native-{}"}}),
    ("the platform in the header alone", {"named": None}),
    ("the platform in the body alone", {"headers": {"x-svc-sdk-platform": None}}),
    ("the body says the platform, whatever the header says", {"headers": {"x-svc-sdk-platform": "web"}}),
    ("a key of app and web, without an origin", {"key": "both"}),
    ("an origin of an app that the key allows", {"key": "origins", "headers": {"origin": APP_ORIGIN}}),
    ("a secret key of a server that speaks for the phone", {"key": "secret", **_forwarded()}),
    ("a secret key, and the origin of an app", {"key": "secret", **_forwarded(APP_ORIGIN)}),
    ("a proxy key", {"key": "proxy", **_forwarded()}),
    ("a proxy key that passes on the key of the app", {"key": "proxy", "public_key": "app", **_forwarded()}),
)
_PAGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a page, by a key of app and web", {"key": "both", "headers": _from_page(SHOP)}),
    (
        "a web view of the app at https://localhost, by a key of app and web",
        {"key": "both", "headers": _from_page(WEB_VIEW)},
    ),
    ("a page that says web, by a key of the web", {"key": "web", "named": "web", "headers": _from_page(SHOP)}),
    ("a secret key, and the origin of a page", {"key": "secret", **_forwarded(SHOP)}),
    ("a proxy key, and the origin of a page", {"key": "proxy", **_forwarded(SHOP)}),
)
_NOT_NATIVE = (
    "no Origin header, and the platform {} is not one of the key's native ones",
    "Send it from a page, or name in sdk.platform a native platform (ios, android) that the key has.",
)
_WEB_KEY = (
    "no Origin header, and the key is for the web only",
    "Send it from a page, or with an Origin header that the key allows.",
)
_PAGES_ALONE = (
    "the origin's platform is web, which is not one of the key's: '{}'",
    "What a page sends is always for the web. Issue a key with that platform.",
)
_NOT_LISTED = ("the origin is not in the key's list: '{}'", "Add it to the key's allowed origins.")
_NO_ORIGIN = (
    "the Origin header holds no origin that a key can allow: '{}'",
    "Serve the page over http or https: files and sandboxed frames have no origin.",
)
_FOR_SERVERS = ("a secret key was sent with an Origin header: '{}'", "Secret keys are for servers.")
_NAMELESS = {"named": None, "headers": {"x-svc-sdk-platform": None}}
_REFUSED: tuple[tuple[str, tuple[str, str], str, dict[str, Any]], ...] = (
    ("another platform than the key's", _NOT_NATIVE, "{other}", {"named": "{other}"}),
    ("no platform", _NOT_NATIVE, "web", _NAMELESS),
    ("the platform web", _NOT_NATIVE, "web", {"named": "web"}),
    ("a platform in capitals", _NOT_NATIVE, "web", {"named": "{capitals}"}),
    ("a key of the web, without an origin", _WEB_KEY, "", {"key": "web"}),
    ("a page, by a key of the app that lists its origin", _PAGES_ALONE, SHOP,
     {"key": "origins", "headers": _from_page(SHOP)}),
    ("a web view at https://localhost, by a key of the app", _PAGES_ALONE, WEB_VIEW,
     {"key": "origins", "headers": _from_page(WEB_VIEW)}),
    ("a page, by a key without origins", _NOT_LISTED, SHOP, {"headers": _from_page(SHOP)}),
    ("an origin of an app that the key does not list", _NOT_LISTED, "ionic://localhost",
     {"key": "origins", "headers": {"origin": "ionic://localhost"}}),
    ("the origin null", _NO_ORIGIN, "null", {"key": "origins", "headers": {"origin": "null"}}),
    ("the origin of a file", _NO_ORIGIN, "file://", {"key": "origins", "headers": {"origin": "file://"}}),
    ("a secret key with an origin", _FOR_SERVERS, APP_ORIGIN, {"key": "secret", "headers": {"origin": APP_ORIGIN}}),
)  # fmt: skip
"""Name; the reason, and what to do, as a development key gets them; what the reason names; the request."""
UNAUTHORIZED = (
    "The key is not valid for this request: it is unknown, revoked or expired, or does not allow this origin or "
    "platform (secret and management keys allow no origin). The log of the service has the reason, under this request "
    "id."
)


def _keys(platform: str, *requests: dict[str, Any]) -> dict[str, Any]:
    """Those that the requests name."""
    used = {request.get(name) for request in requests for name in ("key", "public_key")}
    keys = {
        "app": _key((platform,)),
        "origins": _key((platform,), (APP_ORIGIN, SHOP, WEB_VIEW)),
        "both": _key(("web", platform), (APP_ORIGIN, SHOP, WEB_VIEW)),
        "web": _key(("web",), (SHOP,)),
        "secret": {"kind": "secret"},
        "proxy": {"kind": "proxy"},
    }
    return {name: key for name, key in keys.items() if name in used}


def _named(request: dict[str, Any], platform: str) -> dict[str, Any]:
    """With the platform in the places for it."""
    words = {"{}": platform, "{other}": NATIVE[platform == "android"], "{capitals}": platform.upper()}

    def put(text: Any) -> Any:
        for word, value in words.items():
            text = text.replace(word, value) if isinstance(text, str) else text
        return text

    headers = {name: put(value) for name, value in request.get("headers", {}).items()}
    if "x-svc-visitor-user-agent" in headers:
        headers["x-svc-visitor-user-agent"] = AGENT[platform]
    return {name: put(value) for name, value in request.items() if name != "headers"} | {"headers": headers}


def _device_id(platform: str) -> str:
    return DEVICE[platform][DEVICE_ID[platform]]


def _visit_case(
    name: str, platform: str, reports: dict[str, Any], *steps: tuple[dict[str, Any], Any]
) -> dict[str, Any]:
    requests = [request for request, _ in steps]
    keys = _keys(platform, *requests)
    given = {
        "platform": platform, "environment": "production", "keys": keys, "reports": reports, "requests": requests,
    }  # fmt: skip
    expect = [expected for _, expected in steps]
    return {"name": f"{platform}: {name}", "kind": "app_visits", "given": given, "expect": expect, "only": ["service"]}


def _senders() -> list[dict[str, Any]]:
    """Whether the whole report of a phone, at its own address, is its visitor's: that depends on who sends it."""
    cases: list[dict[str, Any]] = []
    for platform in NATIVE:
        reports = {"phone": _report(platform, OWN, _device_id(platform))}
        owner = (_sent(platform), _seen("A", 0, platform=platform))
        for name, changes in (*_COUNTS, *_PAGES):
            request = _sent(platform, **_named(changes, platform))
            headers = request["headers"]
            origin = headers.get("origin") or headers.get("x-svc-visitor-origin")
            said = request["named"] or platform
            is_page = origin is not None and origin.startswith("https://")
            if is_page:
                sender = _seen("B", 0, platform="web", named=said, origin=origin)
                back = (_sent(platform, after_hours=24, address=ELSEWHERE), _seen("A", 90, 100, platform=platform))
            else:
                sender = _seen("A", 100, platform=platform, named=said, origin=origin)
                back = (_sent(platform), _seen("A", 100, platform=platform))
            kind = "counts as a page" if is_page else "counts as the app"
            cases.append(_visit_case(f"{kind}: {name}", platform, reports, owner, (request, sender), back))
    return cases


def _refusals() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, platform: str, environment: str, request: dict[str, Any], message: str) -> None:
        error = {"code": "unauthorized", "message": message, "status": 401}
        body = {"error": error, "request_id": REQUEST_ID}
        told = read_response(platform, {"status": 401, "body": json.dumps(body)}, EPOCH_MS)["error"]
        given = {
            "platform": platform, "environment": environment, "keys": _keys(platform, request),
            "reports": {"phone": _report(platform, OWN, _device_id(platform))}, "request": request,
        }  # fmt: skip
        expect = {"status": 401, "body": body, "told": {**told, "message": message}}
        cases.append({"name": f"{platform}: {name}", "kind": "app_refusal", "given": given, "expect": expect})

    for platform in NATIVE:
        for name, (reason, step), about, changes in _REFUSED:
            request = _sent(platform, **_named(changes, platform))
            said = reason.format(about.replace("{other}", NATIVE[platform == "android"]))
            explained = f"This development key was refused: {said}. {step}"
            case(name, platform, "production", request, UNAUTHORIZED)
            case(f"{name}, explained to a development key", platform, "development", request, explained)
        for name, origin, public in (
            ("a proxy key that passes on the key of the app and a page's origin", SHOP, "origins"),
            ("a proxy key that passes on a key of the web and no origin", None, "web"),
        ):
            request = _sent(platform, **_named({"key": "proxy", "public_key": public, **_forwarded(origin)}, platform))
            case(name, platform, "production", request, UNAUTHORIZED)
        for path in ("challenge", "supplement"):
            nameless = {"path": path, "named": None, "headers": {"x-svc-sdk-platform": None}}
            case(f"a {path} without a platform", platform, "production", _sent(platform, **nameless), UNAUTHORIZED)
    return cases


# How sure a response is


def _visits() -> list[dict[str, Any]]:
    return [case for platform in NATIVE for case in _visits_of(platform)]


def _visits_of(platform: str) -> list[dict[str, Any]]:
    device_id = _device_id(platform)
    other_id = f"{device_id[:-1]}{'1' if device_id[-1] != '1' else '2'}"
    reports = {
        "phone": _report(platform, OWN, device_id),
        "stranger": _report(platform, THIEFS, device_id),
        "reinstalled": _report(platform, AFTER_REINSTALLATION, device_id),
        "device id alone": _report(platform, None, device_id),
        "token alone": _report(platform, OWN, None),
        "no ids": _report(platform, None, None),
        "neighbor": _report(platform, THIEFS, other_id),
        "token with another device id": _report(platform, OWN, other_id),
        "minimal": _report(platform, OWN, device_id, minimal=True),
    }

    def at(report: str, address: str, after_hours: int = 0, **changes: Any) -> dict[str, Any]:
        return _sent(platform, report=report, address=address, after_hours=after_hours, **changes)

    def seen(visitor: str, least: int, most: int | None = None, **more: Any) -> dict[str, Any]:
        return _seen(visitor, least, most, platform=platform, **more)

    def case(name: str, *steps: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
        used = {request["report"] for request, _ in steps}
        return _visit_case(name, platform, {key: reports[key] for key in reports if key in used}, *steps)

    first = (at("phone", HOME), seen("A", 0))
    unproven, sure = seen("A", 85, 89), seen("A", 90, 100)
    return [
        case("token and device id are sure from everywhere", first, (at("phone", HOME, 24), sure),
             (at("phone", ELSEWHERE, 24), sure), (at("phone", OFFICE, 24), sure)),
        case("a token alone is sure from everywhere", first, (at("token alone", ELSEWHERE, 24), sure)),
        case("a device id alone is not, from another network", first, (at("device id alone", ELSEWHERE, 24), unproven)),
        case("a device id with a token of somebody's own is not, from another network", first,
             (at("stranger", ELSEWHERE), unproven)),
        case("who comes back with another's device id gets no surer", first,
             *((at("phone", HOME, 24), sure), (at("stranger", ELSEWHERE), unproven)) * 4,
             (at("phone", OFFICE), sure)),
        case("an attestation that says none changes nothing", first,
             (at("stranger", ELSEWHERE, attestation={"format": "none"}), unproven)),
        case("a device id with a token of somebody's own, at home", first, (at("stranger", HOME, 24), sure)),
        case("a device id alone, at home", first, (at("device id alone", HOME, 24), sure)),
        case("a phone without any id is not, at home either", first, (at("no ids", HOME, 24), unproven)),
        case("a reinstalled phone is sure everywhere once it was at home on three days", first,
             (at("reinstalled", ELSEWHERE), unproven),
             *(step for day in (1, 2, 3) for step in (
                 (at("reinstalled", HOME, 24), sure if day == 3 or platform == "android" else unproven),
                 (at("reinstalled", ELSEWHERE), unproven if day < 3 else sure)))),
        case("a reinstalled phone is sure everywhere once its former token was silent for ten days", first,
             (at("reinstalled", ELSEWHERE), unproven), (at("reinstalled", ELSEWHERE, 9 * 24), unproven),
             (at("reinstalled", ELSEWHERE, 2 * 24), sure)),
        *(_stolen(platform, case, at, name, address) for name in ("phone", "stranger", "token with another device id")
          for address in (HOME, ELSEWHERE)),
        _two_visitors(platform, case, at, seen, first),
        case("a minimal report says too little to recognize anybody", *(
            (at("minimal", HOME, 24), seen(visitor, 0, identifiable=False, log_in={
                "problem": None, "decision": "verify", "reasons": ["not_identifiable", "not_known"]}))
            for visitor in "AB")),
        case("a page that sends reports of an app knows its own again", *(
            (at("phone", HOME, hours, key="both", headers=_from_page(SHOP)), answer)
            for hours, answer in ((0, _seen("A", 0, platform="web", named=platform, origin=SHOP)),
                                  (24, _seen("A", 90, 100, platform="web", named=platform, origin=SHOP))))),
    ]  # fmt: skip


def _stolen(platform: str, case: Any, at: Any, report: str, address: str) -> dict[str, Any]:
    """A page with what was read of the phone, at its address or elsewhere: it finds nothing, and takes nothing away."""
    what = {"phone": "the whole report", "stranger": "the device id"}.get(report, "the token")
    where = "at the phone's address" if address == HOME else "elsewhere"
    steps = [
        (at("phone", HOME), _seen("A", 0, platform=platform)),
        (at(report, address, key="both", headers=_from_page(SHOP)),
         _seen("B", 0, platform="web", named=platform, origin=SHOP)),
        (at("phone", OFFICE, 24), _seen("A", 100, platform=platform)),
    ]  # fmt: skip
    return case(f"a page with {what} of a phone gets none of its visitor, {where}", *steps)


def _two_visitors(platform: str, case: Any, at: Any, seen: Any, first: Any) -> dict[str, Any]:
    """Token and device id of two visitors: Android follows the device id, iOS the token."""
    name = "where the ids name two visitors, the " + ("device id" if platform == "android" else "token") + " decides"
    neighbor = (at("neighbor", OFFICE), seen("B", 0))
    answer = seen("A", 85, 89) if platform == "android" else seen("B", 90, 100)
    return case(name, first, neighbor, (at("stranger", ELSEWHERE), answer))
