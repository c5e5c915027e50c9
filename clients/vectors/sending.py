"""How one message is sent, whatever becomes of its attempts; and what an SDK says when nothing is left to try.

What may live here: the rules of retries and errors for each platform, on virtual time. Time and random draws are
inputs, so that a trace is exact.
"""

from __future__ import annotations

import json
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

ATTEMPTS = 3
ATTEMPT_MS = 5_000
FIRST_WAIT_MS = 100
LONGEST_WAIT_MS = 2_000
RETRIED = {"web": frozenset({408, 425, 429}), "android": frozenset({429}), "ios": frozenset({429})}
"""Platform -> statuses below 500 that are tried again."""


def retry_after_ms(header: str | None, now_ms: int) -> int:
    """`Retry-After`, seconds or a date (RFC 9110, 10.2.3), in milliseconds; 0 where there is none."""
    if not header:
        return 0
    if re.fullmatch(r"[0-9]+", header):
        return int(header) * 1000
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return 0
    return max(0, round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000) - now_ms)


def read_response(platform: str, response: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """`{"response": ...}`, or `{"error": ...}` with the members that every SDK's error has."""
    status = response["status"]
    headers = {name.lower(): text for name, text in response.get("headers", {}).items()}
    body = _parsed(response.get("body", ""))
    if 200 <= status < 300 and isinstance(body, dict) and isinstance(body.get("request_id"), str):
        return {"response": body}
    given = {
        "status": status,
        "retryable": status >= 500 or status in RETRIED[platform],
        "retry_after_ms": retry_after_ms(headers.get("retry-after"), now_ms),
    }
    if 200 <= status < 300 or not isinstance(body, dict) or not isinstance(body.get("error"), dict):
        return {"error": {"code": "bad_response", **given, "request_id": None}}
    own = body.get("request_id")
    request_id = own if isinstance(own, str) else headers.get("x-request-id")
    return {"error": {"code": body["error"].get("code", f"http_{status}"), **given, "request_id": request_id}}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _failed(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "status": 0, "retryable": True, "retry_after_ms": 0, "request_id": None}}


def send(given: dict[str, Any]) -> dict[str, Any]:
    """What one message comes to: its attempts (`endpoint`, `at_ms`), its result or error, and when it ended.

    `given`: `platform`, `timeout_ms`, `endpoints` (how many), `draws` (in [0, 1), one for each wait, again from the
    first when they are used up), `online`, `epoch_ms` at the start, and `script`: what the servers do to each attempt,
    the last for ever: a response after `after_ms`, `fault` `network` after `after_ms`, or `fault` `silence`.
    """
    platform, timeout_ms, count = given["platform"], given["timeout_ms"], given["endpoints"]
    is_web = platform == "web"
    if not given["online"] and not is_web:
        return {"attempts": [], "ended_at_ms": 0, **_failed("offline")}
    now = endpoint = waits = 0
    attempts: list[dict[str, int]] = []
    bare: dict[str, Any] | None = None
    most = max(ATTEMPTS, count) if is_web else ATTEMPTS
    while True:
        step = given["script"][min(len(attempts), len(given["script"]) - 1)]
        attempts.append({"endpoint": endpoint, "at_ms": now})
        outcome, took = _attempt(platform, step, min(ATTEMPT_MS, timeout_ms - now), given["epoch_ms"] + now)
        now += took
        ended = {"attempts": attempts, "ended_at_ms": now}
        if "response" in outcome:
            if not is_web or len(attempts) > 1 or not _is_bare(outcome["response"]):
                return {**ended, **outcome}
            bare = outcome
            continue
        if bare is not None:
            return {**ended, **bare}
        error = outcome["error"]
        here = error["status"] == 0 or (is_web and (error["status"] >= 500 or error["code"] == "bad_response"))
        elsewhere = is_web and here and len(attempts) < count
        if len(attempts) >= most or not (error["retryable"] or elsewhere):
            return {**ended, **outcome}
        if here:
            endpoint = (endpoint + 1) % count
        draw = given["draws"][waits % len(given["draws"])]
        waits += 1
        longest = min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (len(attempts) - 1))
        wait = max(error["retry_after_ms"], int(draw * longest))
        if timeout_ms - now <= wait:
            return {**ended, **outcome}
        now += wait


def _attempt(platform: str, step: dict[str, Any], limit_ms: int, now_ms: int) -> tuple[dict[str, Any], int]:
    """What came of an attempt, and how long it took."""
    after_ms = step.get("after_ms", 0)
    if step.get("fault") == "silence" or after_ms >= limit_ms:
        return _failed("timeout"), limit_ms
    if step.get("fault") == "network":
        return _failed("network"), after_ms
    return read_response(platform, step, now_ms + after_ms), after_ms


def _is_bare(response: dict[str, Any]) -> bool:
    """Whether it says only that the identification was made before."""
    return response.get("duplicate") is True and "visitor_id" not in response
