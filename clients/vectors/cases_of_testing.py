"""Cases of `testing.json`: what a test says to the fake services of the libraries, and what clients of them see."""

from __future__ import annotations

from typing import Any

ORIGIN = "https://shop.example"
ONE, TWO, THREE = (f"01993f0e-52a1-7c3d-9b52-6f1f3c0a9d1{digit}" for digit in "123")
HONEST = "fZn3QEjFtaQMBhac6qHw"
ACTION = {"origin": ORIGIN, "tag": None}
ACCEPTED = {"problem": None, "decision": "accept", "reasons": []}
MISTAKE = {"mistake": True}

Step = dict[str, Any]


def refused(reason: str) -> Step:
    return {"problem": reason, "decision": "refuse", "reasons": [reason]}


def decided(decision: str, *reasons: str) -> Step:
    return {"problem": None, "decision": decision, "reasons": list(reasons)}


def error(status: int, code: str, **more: Any) -> Step:
    return {"error": {"status": status, "code": code, "retry_after_s": None, "details": [], **more}}


def invalid(field: str, issue: str, location: str = "body", code: str = "validation_error") -> Step:
    return error(422, code, details=[{"field": field, "issue": issue, "location": location}])


def answer(request_id: str = ONE, **fields: Any) -> tuple[Step, Any]:
    return {"do": "answer", "id": request_id, "fields": fields}, request_id


def check(expect: Step, request_id: str = ONE, *, is_first: bool = True, **action: Any) -> tuple[Step, Any]:
    return {"do": "check", "id": request_id, "action": {**ACTION, **action}, "is_first": is_first}, expect


def reads(expect: Step, request_id: str = ONE) -> tuple[Step, Any]:
    return {"do": "get_event", "id": request_id, "fields": list(expect)}, expect


def does(do: str, expect: Any = None, **given: Any) -> tuple[Step, Any]:
    return {"do": do, **given}, expect


def testing_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, *steps: tuple[Step, Any], **defaults: Any) -> None:
        given = {"defaults": defaults, "steps": [step for step, _ in steps]}
        cases.append({"name": name, "kind": "testing", "given": given, "expect": [expect for _, expect in steps]})

    _events(case)
    _mistakes(case)
    _changes(case)
    _lists(case)
    _failures(case)
    _signed(case)
    return cases


def _events(case: Any) -> None:
    case("an honest visitor", answer(), check(ACCEPTED))
    case("a request id that nobody said", check(refused("not_found")), does("calls", [["getEvent", 404]]))
    case("what is no request id is not asked", check(refused("not_found"), "nobody"), does("calls", []))
    case(
        "a rule",
        answer(decision="block", rule="Third account"),
        check(decided("refuse", "rule:Third account")),
        answer(TWO, decision="challenge"),
        check(decided("verify", "rule:Test rule"), TWO),
        answer(THREE, decision="review"),
        check(ACCEPTED, THREE),
    )
    case(
        "a visitor by name",
        does("visitor", "K5BXPwPM1pKWhn4jgHPP", name="v1", fields={"signals": ["vpn"], "visitor_confidence": 87}),
        answer(visitor="v1"),
        reads({"visitor_id": "K5BXPwPM1pKWhn4jgHPP", "suspect_score": 15, "suspect_level": "low"}),
        check(decided("verify", "not_known")),
        check(ACCEPTED, allow_unknown=True),
        answer(TWO, visitor="v1", visitor_confidence=100, signals=["tor", "vpn_low", "vpn_medium"]),
        reads(
            {
                "suspect_score": 38,
                "suspect_level": "medium",
                "triggers": [
                    {"signal": "tor", "weight": 25, "confidence": "medium"},
                    {"signal": "vpn", "weight": 13, "confidence": "medium"},
                ],
            },
            TWO,
        ),
        check(decided("verify", "level:medium"), TWO),
        answer(THREE),
        reads({"visitor_id": HONEST}, THREE),
    )
    case("a visitor by id", answer(visitor=HONEST[::-1]), reads({"visitor_id": HONEST[::-1]}))
    case("a level", answer(suspect_level="high"), check(decided("refuse", "level:high")), reads({"suspect_score": 60}))
    case("a score", answer(suspect_score=30), reads({"suspect_level": "medium"}))
    case("no score", answer(suspect_score=None), check(decided("verify", "not_scored")), reads({"suspect_level": None}))
    case("too old", answer(age_s=600), check(refused("too_old")))
    case(
        "fields of an action",
        answer(origin="https://other.example", tag="t", account_id="a", action="log_in"),
        check(refused("other_origin"), tag="t"),
        check(refused("other_tag"), origin="https://other.example", tag="u"),
        check(ACCEPTED, origin="https://other.example", tag="t", account_id="a", action="log_in"),
        reads({"account_verified": True}),
    )
    case(
        "an app", answer(platform="ios", signals=["jailbroken"]), check(ACCEPTED, origin=None), reads({"origin": None})
    )
    case(
        "weak problems",
        answer(proven=False),
        check({**decided("verify", "unproven"), "problem": "unproven"}, proven=True),
    )
    case(
        "defaults, and what replaces them",
        answer(),
        check(decided("verify", "rule:a"), tag="t"),
        answer(TWO, tag=None, decision="block"),
        check(decided("refuse", "rule:a"), TWO),
        tag="t",
        decision="challenge",
        rule="a",
    )
    case("used before", answer(), check(ACCEPTED), check(refused("used_before"), is_first=False))


def _mistakes(case: Any) -> None:
    for name, fields in {
        "a field that no event has": {"visitor_name": "a"},
        "a rule that decided nothing": {"rule": "a"},
        "no signal": {"signals": ["shifty"]},
        "a signal of another platform": {"signals": ["rooted"]},
        "an event without an address": {"ip_address": None},
    }.items():
        case(name, (answer(**fields)[0], MISTAKE))
    case("no request id", (answer("r1")[0], MISTAKE))
    case("no operation", does("fail", MISTAKE, status=503, operation="get_event"))
    case("no status", does("fail", MISTAKE, status=418))
    case("a code of another status", does("fail", MISTAKE, status=503, code="unauthorized"))
    case("an operation that is not known", does("get_visitor", MISTAKE, visitor_id=HONEST))


def _changes(case: Any) -> None:
    case(
        "an account and a label",
        answer(action="sign_up"),
        does("update_event", [ONE, "a", "fraud", None], id=ONE, change={"account_id": "a", "label": "fraud"}),
        does("update_event", [ONE, "a", "fraud", "bot"], id=ONE, change={"label_reason": "bot"}),
        does("update_event", [ONE, "a", "legitimate", None], id=ONE, change={"label": "legitimate"}),
        does("update_event", [ONE, None, None, None], id=ONE, change={"account_id": None, "label": None}),
        does("update_event", [ONE, None, None, None], id=ONE, change={}),
        reads({"account_verified": None, "action": "sign_up"}),
        does("update_event", invalid("label_reason", "invalid_value"), id=ONE, change={"label_reason": "bot"}),
        does("update_event", error(404, "event_not_found"), id=TWO, change={"label": "fraud"}),
        does("list_changes", [["event.created", ONE]] + [["event.updated", ONE]] * 4),
    )
    case(
        "a label by a management key",
        answer(),
        does("label_event", error(401, "unauthorized"), id=ONE, label="fraud"),
        does("client", key="management"),
        does("label_event", [ONE, "fraud", "chargeback"], id=ONE, label="fraud", label_reason="chargeback"),
        does("label_event", error(404, "event_not_found"), id=TWO, label="fraud"),
        does("label_event", [ONE, None, None], id=ONE, label=None),
        does("get_management_key", "organization"),
    )
    case(
        "a request id of another form",
        does("get_event", invalid("request_id", "invalid_value", "path", "invalid_request_id"), id="r1", fields=[]),
    )
    case(
        "an identification",
        does("identify", [HONEST, False, "low"], tag="t", account_id="a", idempotency_key="k"),
        does("identify", "duplicate", tag="t", account_id="a", idempotency_key="k"),
        does("list_events", [["t", "a"]], query={}, fields=["tag", "account_id"]),
        does("identify", error(401, "unauthorized"), key="nobody"),
    )


def _lists(case: Any) -> None:
    made = (answer(account_id="a"), answer(TWO, age_s=60, tag="t"), answer(THREE, account_id="a", signals=["tor"]))
    case(
        "newest first",
        *made,
        does("list_events", [THREE, ONE, TWO], query={}),
        does("list_events", [THREE, ONE], query={"account_id": "a"}),
        does("list_events", [THREE], query={"account_id": "a", "limit": 1}),
        does("list_events", [TWO], query={"tag": "t"}),
        does("list_events", [THREE], query={"signal": "tor"}),
        does("list_events", [], query={"group": "vpn"}),
        does("list_events", [], query={"level": "high"}),
        does("iterate_events", [THREE, ONE, TWO], query={"limit": 2}),
    )
    case(
        "a feed",
        *made,
        does("iterate_feed", [[ONE, TWO], [THREE]], query={"limit": 2}),
        does("list_events", invalid("tag", "not_with_order", "query"), query={"order": "oldest", "tag": "t"}),
    )
    case("changes", *made, does("list_changes", [["event.created", one] for one in (ONE, TWO, THREE)]))
    case("health", does("get_health", "ok"), does("get_readiness", "ready"))


def _failures(case: Any) -> None:
    case(
        "once, and the next attempt succeeds",
        answer(),
        does("fail", status=503),
        check(ACCEPTED),
        does("calls", [["getEvent", 503], ["getEvent", 200]]),
    )
    case(
        "with a time to wait",
        answer(),
        does("fail", status=429, retry_after_s=30),
        check(error(429, "rate_limited", retry_after_s=30)),
        check(ACCEPTED),
    )
    case(
        "always, until it recovers",
        answer(),
        does("fail", status=500, times=None),
        check(error(500, "internal_error")),
        does("recover"),
        check(ACCEPTED),
        does("calls", [["getEvent", 500]] * 3 + [["getEvent", 200]]),
    )
    case(
        "of one operation",
        answer(),
        does("fail", status=402, code="billing_blocked", operation="identify"),
        check(ACCEPTED),
        does("identify", error(402, "billing_blocked")),
    )
    case("a key that was revoked", answer(), does("fail", status=401), check(error(401, "unauthorized")))
    case("a key of nobody", answer(), does("client", key="nobody"), check(error(401, "unauthorized")))
    case(
        "a timeout",
        answer(),
        does("time_out", times=3),
        check({"unreachable": True}),
        check(ACCEPTED),
        does("calls", [["getEvent", None]] * 3 + [["getEvent", 200]]),
    )
    case(
        "an update that may have been carried out is sent once",
        answer(),
        does("time_out", operation="updateEvent"),
        does("update_event", {"unreachable": True}, id=ONE, change={"label": "fraud"}),
        does("calls", [["updateEvent", None]]),
    )
    case("no connection", answer(), does("disconnect", times=None), check({"unreachable": False}))
    case(
        "an operation that the test answers",
        does("respond", operation="getVisitor", body={"visitor_id": HONEST, "notes_count": 3}),
        does("get_visitor", {"visitor_id": HONEST, "notes_count": 3}, visitor_id=HONEST),
        does("get_visitor", {"visitor_id": HONEST, "notes_count": 3}, visitor_id=HONEST),
    )


def _signed(case: Any) -> None:
    def verdict(expect: Step, request_id: str = ONE, *, is_first: bool = True, **expected: Any) -> tuple[Step, Any]:
        given = {"origin": ORIGIN, "tag": None, **expected}
        return does("check_verdict", expect, id=request_id, expected=given, is_first=is_first)

    case(
        "verdicts",
        answer(account_id="a"),
        verdict(ACCEPTED, account_id="a"),
        verdict(refused("used_before"), is_first=False, account_id="a"),
        verdict(refused("other_tag"), tag="t"),
        verdict(refused("invalid"), environment="staging"),
        answer(TWO, decision="block", rule="é"),
        verdict(decided("refuse", "rule:é"), TWO),
        answer(THREE, age_s=330),
        verdict(refused("too_old"), THREE),
        does("calls", [["getVerdictKeys", 200]]),
    )
    case("a verdict of another service", answer(), does("check_forged", refused("invalid"), id=ONE, is_first=True))
    case(
        "webhooks",
        answer(tag="é"),
        does("webhook", ["identification.completed", "é"], id=ONE, secrets=["a"]),
        does("webhook", ["visitor.suspect", "é"], id=ONE, secrets=["b", "a"], type="visitor.suspect"),
        does("webhook", "not authentic", id=ONE, secrets=["b"]),
    )
