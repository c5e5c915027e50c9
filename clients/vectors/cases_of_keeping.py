"""Cases of `token.json`, `deferred.json` and `attestation.json`."""

from __future__ import annotations

import base64
from typing import Any

from keeping import DAY_MS, QUEUE_BYTES, after, android_claim, choose, client_data_hash, deferred, token

MADE = "8d0cbe8bdbd64a3f9a4c2f1b7a5e6d01"
KNOWN = "3c5f7a90b1d24e68a7c9e0f21b3d4a56"
NOW_MS = 1_772_359_200_000
NATIVE = ["python", "kotlin", "swift"]
ANDROID = ["python", "kotlin"]
"""iOS sends no deferred reports."""
CHALLENGE = base64.b64encode(bytes(range(32))).decode()


def token_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, content: str | None, *faults: str, storage: bool = True) -> None:
        given = {"content": content, "faults": list(faults), "made": MADE, "storage": storage}
        cases.append({"name": name, "kind": "token", "given": given, "expect": token(given)})

    case("none yet", None)
    case("one that is known", KNOWN)
    case("an empty text", "")
    case("one that was cut", KNOWN[:20])
    case("one in capitals", KNOWN.upper())
    case("something else", "hello, world")
    case("too much", KNOWN + "\n")
    case("it cannot be read", KNOWN, "read")
    case("it can be neither read nor written", None, "read", "write")
    case("it cannot be written", None, "write")
    case("it is known and cannot be written", KNOWN, "write")
    case("what is written is lost", None, "lost_write")
    case("what is written is lost, over something else", "hello", "lost_write")
    case("nothing may be stored", None, storage=False)
    case("nothing may be stored, and one is there", KNOWN, storage=False)
    return cases


def deferred_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def report(number: int, hours: float = 1, size: int = 900) -> dict[str, Any]:
        return {"id": f"r{number}", "expires_at_ms": NOW_MS + int(hours * 3_600_000), "bytes": size}

    def case(name: str, queue: list[dict[str, Any]], *responses: int, add: dict[str, Any] | None = None) -> None:
        given = {"now_ms": NOW_MS, "queue": queue, "add": add, "responses": list(responses)}
        cases.append({"name": name, "kind": "deferred", "only": ANDROID, "given": given, "expect": deferred(given)})

    five = [report(number) for number in range(1, 6)]
    case("nothing", [])
    case("one is added", [], add=report(1))
    case("one is added and accepted", [], 202, add=report(1))
    case("an exact duplicate is accepted", [report(1)], 200)
    case("a conflict is the end of it", [report(1)], 409)
    case("an expired token is the end of it", [report(1)], 422)
    case("a refused key is the end of it", [report(1), report(2)], 401, 401)
    case("no network: all stay", five, 0)
    case("503: all stay", five, 503)
    case("429: all stay", five, 429)
    case("two are accepted, then the network goes", five, 202, 202, 0)
    case("expired ones are gone", [report(1, -1), report(2, 0), report(3)], 202)
    case("the sixth replaces the oldest", five, add=report(6))
    case("the sixth, where one had expired", [report(1, -1), *five[1:]], add=report(6))
    case("one that is too large is not kept", [report(1)], add=report(2, size=QUEUE_BYTES + 1))
    case("one of the largest size is kept", [report(1)], add=report(2, size=QUEUE_BYTES))
    case("one that is expired is not kept", [], add=report(1, -1))
    case("all are sent, oldest first", five, 202, 409, 202, 202, 202)
    return cases


def attestation_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, kind: str, given: Any, expect: Any, *, only: list[str] = NATIVE) -> None:
        cases.append({"name": name, "kind": kind, "only": only, "given": given, "expect": expect})

    challenges: dict[str, Any] = {
        "a challenge": CHALLENGE, "another": base64.b64encode(b"\xff" * 32).decode(),
        "31 bytes": base64.b64encode(b"a" * 31).decode(),
        "33 bytes": base64.b64encode(b"a" * 33).decode(), "no base64": "not base64!", "an empty text": "",
        "no padding": CHALLENGE.rstrip("="), "a line break": CHALLENGE + "\n", "none": None,
    }  # fmt: skip
    for name, challenge in challenges.items():
        case(f"hash of {name}", "client_data_hash", challenge, client_data_hash(challenge))
    chains: dict[str, Any] = {
        "three certificates": [600, 700, 900], "one of the largest size": [10_000], "ten": [1] * 10, "eleven": [1] * 11,
        "one that is too large": [600, 10_001], "no certificate": [], "an empty one": [600, 0],
        "a key store that fails": None,
    }  # fmt: skip
    for name, chain in chains.items():
        given = {"challenge": CHALLENGE, "chain": chain}
        case(f"Android: {name}", "android_claim", given, android_claim(given), only=ANDROID)
    given = {"challenge": None, "chain": [600]}
    case("Android: no challenge", "android_claim", given, android_claim(given), only=ANDROID)
    ios = ["python", "swift"]
    states: dict[str, dict[str, Any]] = {
        "no key": {"key_id": None, "pending": False, "attested_at_ms": None},
        "a key": {"key_id": "k1", "pending": False, "attested_at_ms": NOW_MS - 3 * DAY_MS},
        "a pending key of today": {"key_id": "k1", "pending": True, "attested_at_ms": NOW_MS - 1},
        "a pending key of yesterday": {"key_id": "k1", "pending": True, "attested_at_ms": NOW_MS - DAY_MS},
        "a key dropped today": {"key_id": None, "pending": False, "attested_at_ms": NOW_MS - 3_600_000},
        "a key dropped yesterday": {"key_id": None, "pending": False, "attested_at_ms": NOW_MS - 2 * DAY_MS},
        "a clock that was set back": {"key_id": None, "pending": False, "attested_at_ms": NOW_MS + DAY_MS},
    }
    for name, state in states.items():
        did = choose(state, NOW_MS)
        for response in ("ok", "failed", "lost"):
            event = {"did": did, "key_id": "k2" if did == "attest" else None, "response": response, "now_ms": NOW_MS}
            given = {"state": state, "event": event}
            case(f"iOS: {name}, {response}", "ios_key", given, {"did": did, "state": after(state, event)}, only=ios)
    return cases
