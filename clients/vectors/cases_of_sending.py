"""Cases of `retry.json` and `errors.json`."""

from __future__ import annotations

import json
from typing import Any

from sending import read_response, send

REQUEST_ID = "01a2042b-19c8-7634-acc2-3c7222649719"
VISITOR = "lW3DvNunzmoofQrBqNAw"
EPOCH_MS = 1_772_359_200_000
"""2026-03-01T10:00:00Z"""
DATE_IN_3_S = "Sun, 01 Mar 2026 10:00:03 GMT"
DATE_PAST = "Sun, 01 Mar 2026 09:00:00 GMT"
OK_BODY = {"request_id": REQUEST_ID, "visitor_id": VISITOR, "visitor_is_new": True}
DUPLICATE = {"request_id": REQUEST_ID, "duplicate": True}
FULL_DUPLICATE = {**OK_BODY, "duplicate": True}
NATIVE = ("android", "ios")


def responding(status: int, body: Any = None, **more: Any) -> dict[str, Any]:
    headers = {name.replace("_", "-"): value for name, value in more.pop("headers", {}).items()}
    return {"status": status, "body": body if isinstance(body, str) else json.dumps(body), "headers": headers, **more}


def refused(status: int, code: str, **headers: str) -> dict[str, Any]:
    body = {"error": {"code": code, "message": f"said by the service: {code}", "status": status}}
    return responding(status, {**body, "request_id": REQUEST_ID}, headers=headers)


OK = responding(200, OK_BODY)
LATE = {**OK, "after_ms": 6_000}
RESET, SILENCE = {"fault": "network"}, {"fault": "silence"}
DOWN = refused(503, "service_unavailable")
HTML = responding(502, "<html>Bad Gateway</html>")


def retry_cases() -> list[dict[str, Any]]:
    """Each on every platform where it means the same question."""
    cases: list[dict[str, Any]] = []

    def case(name: str, *script: dict[str, Any], on: tuple[str, ...] = ("web", *NATIVE), **changes: Any) -> None:
        for platform in on:
            given = {
                "platform": platform, "timeout_ms": 10_000, "endpoints": 1, "draws": [0.5], "online": True,
                "epoch_ms": EPOCH_MS, "script": list(script), **changes,
            }  # fmt: skip
            cases.append({"name": f"{platform}: {name}", "kind": "send", "given": given, "expect": send(given)})

    case("the first attempt succeeds", OK)
    case("a reset is tried again", RESET, OK)
    case("two resets are tried again", RESET, RESET, OK)
    case("three resets are the end", RESET)
    case("503, then success", DOWN, OK)
    case("503 for ever", DOWN)
    case("a draw of 0 waits for nothing", DOWN, OK, draws=[0.0])
    case("the second wait is longer", DOWN, DOWN, OK, draws=[0.75, 0.75])
    case("a draw for each wait", DOWN, DOWN, OK, draws=[0.25, 0.875])
    case("Retry-After in seconds", refused(429, "rate_limited", retry_after="2"), OK)
    case("Retry-After as a date", refused(503, "service_unavailable", retry_after=DATE_IN_3_S), OK)
    case("Retry-After in the past", refused(503, "service_unavailable", retry_after=DATE_PAST), OK)
    case("Retry-After in words", refused(503, "service_unavailable", retry_after="soon"), OK)
    case("Retry-After beyond the time limit", refused(429, "rate_limited", retry_after="3600"))
    case("Retry-After just within the time limit", refused(429, "rate_limited", retry_after="1"), OK, timeout_ms=1_001)
    case("Retry-After of the whole time limit", refused(429, "rate_limited", retry_after="1"), OK, timeout_ms=1_000)
    case("silence, then success", SILENCE, OK)
    case("a slow body, then the whole response of the first", LATE, responding(200, FULL_DUPLICATE))
    case("silence to the end", SILENCE)
    case("a time limit below that of an attempt", SILENCE, timeout_ms=1_500)
    case("the second attempt has what is left", SILENCE, SILENCE, timeout_ms=7_000)
    case("a slow response within the limit", {**OK, "after_ms": 4_999})
    case("a response at the limit is late", {**OK, "after_ms": 5_000}, OK)
    case("408", refused(408, "timeout"), OK)
    case("425", refused(425, "too_early"), OK)
    case("500, 502, 504", refused(500, "internal_error"), HTML, refused(504, "timeout"))
    for status in (400, 401, 402, 403, 404, 409, 413, 422):
        case(f"{status} is final", refused(status, "refused"), OK, on=("web", "android"))
    case("a page of somebody else", responding(200, "<html>"), OK)
    case("a proxy's page, then success", HTML, OK)
    case("a second endpoint after a reset", RESET, OK, endpoints=2)
    case("a second endpoint after silence", SILENCE, OK, endpoints=2)
    case("after the last endpoint the first", RESET, RESET, OK, endpoints=2)
    case("three endpoints, none of them there", RESET, endpoints=3)
    case("503 of one of two endpoints", DOWN, OK, endpoints=2)
    case("a key that is refused is refused everywhere", refused(401, "unauthorized"), OK, endpoints=2)
    case("offline", OK, on=NATIVE, online=False)
    case("a bare duplicate after a lost response", RESET, responding(200, DUPLICATE), on=NATIVE)
    case("a bare duplicate at once", responding(200, DUPLICATE), responding(200, FULL_DUPLICATE))
    case("four endpoints", RESET, RESET, RESET, OK, on=("web",), endpoints=4)
    return cases


def error_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, response: dict[str, Any], on: tuple[str, ...] = ("web", "android", "ios")) -> None:
        for platform in on:
            expect = read_response(platform, response, EPOCH_MS)
            given = {"platform": platform, "epoch_ms": EPOCH_MS, "response": response}
            cases.append({"name": f"{platform}: {name}", "kind": "response", "given": given, "expect": expect})

    for status, code in (
        (400, "invalid_json"), (401, "unauthorized"), (402, "no_credit"), (402, "billing_blocked"), (403, "forbidden"),
        (404, "not_found"), (409, "supplement_conflict"), (413, "payload_too_large"), (422, "validation_error"),
        (429, "rate_limited"), (503, "service_unavailable"), (500, "internal_error"), (408, "timeout"),
        (425, "too_early"),
    ):  # fmt: skip
        case(f"{status} {code}", refused(status, code))
    case("the id of the request in a header", responding(
        503, {"error": {"code": "service_unavailable"}}, headers={"x-request-id": REQUEST_ID}))  # fmt: skip
    case("no id of the request", responding(503, {"error": {"code": "service_unavailable"}}))
    case("an error without code", responding(418, {"error": {"message": "no"}}))
    case("a code of the future", refused(400, "code_of_the_future"))
    case("HTML of a proxy", HTML)
    case("HTML with Retry-After", responding(503, "<html>", headers={"retry_after": "7"}))
    case("an empty body", responding(503, ""))
    case("an empty success", responding(200, ""))
    case("JSON of somebody else", responding(200, {"hello": 1}))
    case("a list", responding(200, "[1]"))
    case("half of a response", responding(200, '{"request_id":"01a2'))
    case("an error that is a text", responding(400, {"error": "no"}))
    case("a request id that is a number", responding(200, {"request_id": 5}))
    case("404 of a web server", responding(404, "Not Found"))
    case("a redirect", responding(302, "", headers={"location": "https://login.example/"}), on=NATIVE)
    case("a captive portal", responding(200, "<html><body>Wi-Fi login</body></html>"))
    case("Retry-After 0", refused(429, "rate_limited", retry_after="0"))
    case("201 is success", responding(201, OK_BODY))
    case("members that nobody knows", responding(200, {**OK_BODY, "future": {"a": [1, None]}}))
    return cases
