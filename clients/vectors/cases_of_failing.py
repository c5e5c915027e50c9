"""Cases of `hostile.json`: the result of `check` of a server library for each behavior of `hostile.py`."""

from __future__ import annotations

from typing import Any

TIMEOUT_MS = 1_200
"""Of an attempt; the recipes, which make one, have all of the deadline for it."""
DEADLINE_MS = 3_000
LATEST_MS = DEADLINE_MS * 11 // 10

UNREACHABLE, UNEXPECTED = "unreachable", "200 unexpected_response"
BUSY, LIMITED = "503 service_unavailable", "429 rate_limited"


def hostile_cases() -> list[dict[str, Any]]:
    """`expect` has `results`, of which one must come: a decision, a status and a code, or `unreachable`; `once`, the
    same of a recipe; `attempts`, `null` for any number; `ms`, the least and the most that a call may take.
    """
    cases: list[dict[str, Any]] = []

    def case(
        behavior: str,
        *results: str,
        attempts: int | None = 1,
        once: tuple[str, ...] | None = None,
        at_least_ms: int = 0,
        at_most_ms: int = LATEST_MS,
    ) -> None:
        given = {"behavior": behavior, "timeout_ms": TIMEOUT_MS, "deadline_ms": DEADLINE_MS}
        expect = {
            "results": list(results),
            "once": list(results if once is None else once),
            "attempts": attempts,
            "ms": [at_least_ms, at_most_ms],
        }
        cases.append({"name": f"hostile: {behavior}", "kind": "hostile", "given": given, "expect": expect})

    case("an event", "accept")
    for behavior in ("never", "drips headers", "drips the body", "drips chunks"):
        case(behavior, UNREACHABLE, attempts=3, at_least_ms=DEADLINE_MS * 9 // 10)
    case("informational flood", UNREACHABLE, UNEXPECTED, "103 unexpected_response", attempts=None)
    case("closes at once", UNREACHABLE, attempts=None)  # Java's own client repeats each attempt
    case("closes within the headers", UNREACHABLE, attempts=3, once=(UNREACHABLE, UNEXPECTED))
    for behavior in (
        "closes within the body",
        "garbage for a status",
        "garbage for chunks",
        "garbage for a length",
    ):
        case(behavior, UNREACHABLE, attempts=3)
    case("hangs once", "accept", attempts=2, once=(UNREACHABLE,), at_least_ms=TIMEOUT_MS)
    case("closes once", "accept", attempts=2, once=(UNREACHABLE,))
    for behavior in (
        "a length too short", "html", "empty", "null", "a list", "a number", "deep nesting", "another shape",
        "wrong types", "no UTF-8", "NaN", "no gzip", "an error with 200",
    ):  # fmt: skip
        case(behavior, UNEXPECTED)
    for behavior in ("gzip bomb", "huge body"):  # a slow machine needs more than an attempt for so much
        case(behavior, UNEXPECTED, attempts=None)
    case("redirects", "302 unexpected_response")
    case("401 html", "401 unexpected_response")
    case("404 html", "404 unexpected_response")
    case("404 of the service", "refuse")
    case("503 html", "503 unexpected_response", attempts=3)
    case("503 for once", "accept", attempts=2, once=(BUSY,))
    case("503 until a date in the past", "accept", attempts=2, once=(BUSY,))
    case("503 for a negative time", "accept", attempts=2, once=(BUSY,))
    case("503 for a second", "accept", attempts=2, once=(BUSY,), at_least_ms=1_000)
    case("429", LIMITED, attempts=3)
    case("429 for longer than the deadline", LIMITED, at_most_ms=TIMEOUT_MS)
    case("429 until a date to come", LIMITED, at_most_ms=TIMEOUT_MS)
    case("429 for 5,000 digits", LIMITED, at_most_ms=TIMEOUT_MS)
    return cases
