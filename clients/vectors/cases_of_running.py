"""Cases of `engine.json`."""

from __future__ import annotations

import json
from typing import Any

from cases_of_keeping import CHALLENGE, KNOWN
from cases_of_reports import PIXEL
from running import run

ONLY = ["python", "kotlin"]
HANGS: list[dict[str, Any]] = [{"hangs": True}]
SLOW_PHONE = ("build", "memory", "screen", "timezone", "android_id", "app")
"""Sources in the order in which a host lists them: what identifies is not the first."""
CONSTANT = ("build", "memory", "screen", "android_id", "app")


def done(number: int = 1, after_ms: int = 20, **more: Any) -> dict[str, Any]:
    """A response of the service."""
    body = {"request_id": f"r{number}", "visitor_id": "v", **more}
    return {"after_ms": after_ms, "status": 200, "headers": {}, "body": json.dumps(body)}


DEFERRED = done(deferred_token="t")  # noqa: S106 - of a response


def refused(status: int, code: str, after_ms: int = 20, **headers: str) -> dict[str, Any]:
    body = {"error": {"code": code, "message": "said", "status": status}, "request_id": "r0"}
    return {"after_ms": after_ms, "status": status, "headers": headers, "body": json.dumps(body)}


def fault(name: str, after_ms: int = 20) -> dict[str, Any]:
    return {"after_ms": after_ms, "fault": name}


def challenge(after_ms: int = 20) -> dict[str, Any]:
    return {"after_ms": after_ms, "status": 200, "headers": {}, "body": json.dumps({"challenge": CHALLENGE})}


def identify(at_ms: int, call: str, tag: str | None = None, timeout_ms: int | None = None) -> dict[str, Any]:
    found = {"at_ms": at_ms, "do": "identify", "call": call, "tag": tag or call}
    return found if timeout_ms is None else {**found, "timeout_ms": timeout_ms}


def cancel(at_ms: int, call: str) -> dict[str, Any]:
    return {"at_ms": at_ms, "do": "cancel", "call": call}


def forget(at_ms: int) -> dict[str, Any]:
    return {"at_ms": at_ms, "do": "forget"}


def takes(*after_ms: int, value: Any = None) -> list[dict[str, Any]]:
    return [{"after_ms": ms, "value": value} for ms in after_ms]


class Cases:
    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def add(  # noqa: PLR0913 - what a case may say
        self,
        name: str,
        *events: dict[str, Any],
        slow: dict[str, list[dict[str, Any]]] | None = None,
        checks: dict[str, list[dict[str, Any]]] | None = None,
        second: dict[str, list[dict[str, Any]]] | None = None,
        online: list[dict[str, Any]] | None = None,
        token: str | None = KNOWN,
        store: list[dict[str, Any]] | None = None,
        hanging_callbacks: tuple[str, ...] = (),
        scripts: dict[str, list[dict[str, Any]]] | None = None,
        sources: tuple[str, ...] = SLOW_PHONE,
        **options: Any,
    ) -> None:
        """`slow`: readings of a source in place of one of a millisecond."""

        def readings(source: str) -> list[dict[str, Any]]:
            own = (slow or {}).get(source)
            if own is None:
                return takes(3, value=PIXEL[source])
            return [
                {**step, "value": PIXEL[source]} if "after_ms" in step and "fault" not in step else step for step in own
            ]

        given = {
            "options": options,
            "sources": [
                {"name": source, "constant": source in CONSTANT, "readings": readings(source)} for source in sources
            ],
            "checks": [{"name": check, "readings": steps} for check, steps in (checks or {}).items()],
            "second": [{"name": source, "readings": steps} for source, steps in (second or {}).items()],
            "online": online or takes(3, value=True),
            "store": {"token": token, "readings": store or takes(3)},
            "hanging_callbacks": list(hanging_callbacks),
            "scripts": {"identify": [done()], **(scripts or {})},
            "events": list(events),
        }
        self.all.append({"name": name, "kind": "engine", "only": ONLY, "given": given, "expect": run(given)})


def engine_cases() -> list[dict[str, Any]]:
    cases = Cases()
    _collecting(cases)
    _sending(cases)
    _beside_each_other(cases)
    _ending(cases)
    _attesting(cases)
    _forgetting(cases)
    _second_reports(cases)
    return cases.all


def _collecting(cases: Cases) -> None:
    case = cases.add
    case("a plain call", identify(0, "a"))
    case("what is constant is read once", identify(0, "a"), identify(100, "b"))
    case("a phone without a token makes one and keeps it", identify(0, "a"), identify(100, "b"), token=None)
    case("two slow sources cost nothing", identify(0, "a"), slow={"memory": takes(500), "screen": takes(500)})
    case(
        "what identifies is read first",
        identify(0, "a"),
        slow=dict.fromkeys(("memory", "screen", "timezone"), takes(900)),
    )
    case(
        "two sources hang: each costs its field, once",
        identify(0, "a"),
        identify(2_000, "b"),
        slow={"memory": HANGS, "screen": HANGS},
    )
    case("the time for collecting is the limit", identify(0, "a"), slow={"memory": takes(1_500)}, collect_ms=700)
    case("what is late serves the next call", identify(0, "a"), identify(1_600, "b"), slow={"memory": takes(1_500)})
    case(
        "what is late and not constant serves one call, where its own is late, too",
        identify(0, "a"), identify(2_000, "b"), identify(6_000, "c"),
        slow={"timezone": takes(1_500, 1_500, 6)},
    )  # fmt: skip
    case(
        "a device id that is slow is waited for again",
        identify(0, "a"),
        identify(1_200, "b"),
        slow={"android_id": takes(1_500)},
    )
    case(
        "a device id that hangs is waited for no longer than ten seconds",
        *(identify(at, f"c{at}") for at in (0, 5_000, 10_500)),
        slow={"android_id": HANGS},
    )
    case("a source that throws costs its field", identify(0, "a"), slow={"screen": [fault("error", 3)]})
    case(
        "a constant that throws is read again",
        identify(0, "a"),
        identify(100, "b"),
        slow={"screen": [fault("error", 3), {"after_ms": 3}]},
    )
    case("a store that hangs costs the token", identify(0, "a"), identify(2_000, "b"), store=HANGS)
    case(
        "a store that is slow gives the token to the next call",
        identify(0, "a"),
        identify(2_000, "b"),
        store=takes(1_200),
    )
    case(
        "eight sources hang: what identifies is there",
        identify(0, "a"),
        sources=(*tuple(PIXEL)[1:9], "android_id", "app", "build"),
        slow=dict.fromkeys(tuple(PIXEL)[1:9], HANGS),
    )
    case(
        "everything hangs: a report goes, without",
        identify(0, "a"),
        identify(2_000, "b"),
        slow=dict.fromkeys(SLOW_PHONE, HANGS),
        store=HANGS,
    )
    case("calls beside each other share what is read", identify(0, "a"), identify(10, "b"), slow={"memory": takes(50)})
    case(
        "a check is a flag where it is true",
        identify(0, "a"),
        checks={"rooted": takes(3, value=True), "frida": takes(3, value=False)},
    )
    case(
        "a check that hangs is named",
        identify(0, "a"),
        identify(1_500, "b"),
        checks={"rooted": HANGS, "frida": takes(3, value=True)},
    )
    case(
        "nothing is sent where there is no network",
        identify(0, "a"),
        identify(50, "b"),
        online=[*takes(3, value=False), *takes(3, value=True)],
    )
    case(
        "it is said at once, though a source hangs",
        identify(0, "a"),
        online=takes(6, value=False),
        slow={"memory": HANGS},
    )
    case("a system that does not say whether there is a network", identify(0, "a"), identify(1_500, "b"), online=HANGS)
    case("little is read where little is sent", identify(0, "a"), minimal=True)
    case("no device id where none is wanted", identify(0, "a"), device_id=False)
    case("nothing is stored where nothing may be", identify(0, "a"), storage=False)


def _sending(cases: Cases) -> None:
    case = cases.add
    case("a lost response is asked for again", identify(0, "a"), scripts={"identify": [fault("network"), done()]})
    case("three attempts are all", identify(0, "a"), scripts={"identify": [fault("network")]})
    case("silence ends at the limit of an attempt", identify(0, "a"), scripts={"identify": [*HANGS, done()]})
    case("silence ends at the limit of the call", identify(0, "a", timeout_ms=3_000), scripts={"identify": HANGS})
    case(
        "what the service asks to wait is waited",
        identify(0, "a"),
        scripts={"identify": [refused(429, "rate_limited", **{"retry-after": "2"}), done()]},
    )
    case(
        "where the wait is too long, the error is reported at once",
        identify(0, "a"),
        scripts={"identify": [refused(429, "rate_limited", **{"retry-after": "60"})]},
    )
    case("what the service refuses is final", identify(0, "a"), scripts={"identify": [refused(401, "unauthorized")]})
    case(
        "the endpoint that responds is kept",
        identify(0, "a"),
        identify(1_000, "b"),
        scripts={"identify": [fault("network"), done()]},
        endpoints=2,
    )
    case(
        "another chain than the pinned one is final, and a flag of the next report",
        identify(0, "a"),
        identify(100, "b"),
        scripts={"identify": [fault("pin"), done()]},
        endpoints=2,
    )
    case(
        "names that are never resolved: every call ends at its limit",
        *(identify(at, f"c{at}", timeout_ms=3_000) for at in range(0, 16_000, 3_100)),
        scripts={"identify": [{**fault("network"), "after_ms": 25_000}]},
    )  # fmt: skip
    case(
        "twenty calls that hang: six are sent, and each ends at its limit",
        *(identify(10 * at, f"c{at:02}", timeout_ms=3_000 + 10 * at) for at in range(20)),
        scripts={"identify": HANGS},
    )  # fmt: skip
    case(
        "twelve that hang for good are all that is given up; nothing is sent until one ends",
        *(identify(10 * at, f"a{at}", timeout_ms=1_000) for at in range(6)),
        *(identify(2_000 + 10 * at, f"b{at}", timeout_ms=1_000) for at in range(6)),
        identify(4_000, "c", timeout_ms=1_000), identify(9_500, "d", timeout_ms=1_000),
        scripts={"identify": [*[{**fault("network"), "after_ms": 9_000}] * 12, done()]},
    )  # fmt: skip


def _beside_each_other(cases: Cases) -> None:
    case = cases.add
    slow_first = {"identify": [done(1, 8_000), done(2)]}
    case(
        "an urgent call passes a slow one",
        identify(0, "screen"),
        identify(200, "form", timeout_ms=3_000),
        scripts=slow_first,
    )
    case(
        "calls for one thing share a request",
        identify(0, "a", "t"),
        identify(10, "b", "t"),
        scripts={"identify": [done(1, 300)]},
    )
    case(
        "each caller has its own limit",
        identify(0, "a", "t"),
        identify(10, "b", "t", timeout_ms=200),
        scripts={"identify": [done(1, 600)]},
    )
    case(
        "a patient caller extends the flight that it joins",
        identify(0, "a", "t", timeout_ms=200),
        identify(100, "b", "t", timeout_ms=4_000),
        scripts={"identify": [done(1, 150), done()]},
    )
    case(
        "twenty calls beside each other: six at a time", *(identify(10 * at, f"c{at:02}") for at in range(20)),
        scripts={"identify": [done(1, 400)]},
    )  # fmt: skip
    case(
        "a callback that never returns holds up the others for a second",
        identify(0, "a"),
        identify(50, "b"),
        hanging_callbacks=("a",),
    )


def _ending(cases: Cases) -> None:
    case = cases.add
    case(
        "a canceled call is reported as aborted, and the others go on",
        identify(0, "a", "t"),
        identify(10, "b", "t"),
        cancel(100, "b"),
        scripts={"identify": [done(1, 300)]},
    )
    case("what nobody waits for any more ends", identify(0, "a"), cancel(10, "a"), slow={"memory": takes(500)})
    case(
        "canceled between two attempts",
        identify(0, "a"),
        cancel(40, "a"),
        scripts={"identify": [fault("network"), done()]},
    )
    case(
        "canceled while it is sent; the same thing again is another request",
        identify(0, "a", "t"),
        cancel(100, "a"),
        identify(150, "b", "t"),
        scripts={"identify": [done(1, 5_000), done(2)]},
    )
    case(
        "canceled twice, and after its end",
        identify(0, "a"),
        cancel(10, "a"),
        cancel(20, "a"),
        identify(100, "b"),
        cancel(500, "b"),
    )
    case("a limit that ends while the device is read", identify(0, "a", timeout_ms=300), slow={"memory": takes(900)})


def _attesting(cases: Cases) -> None:
    def case(
        name: str,
        *events: dict[str, Any],
        attest: list[dict[str, Any]],
        challenges: list[dict[str, Any]] | None = None,
        **more: Any,
    ) -> None:
        scripts = {"challenge": challenges or [challenge()], "attest": attest, "identify": [done()]}
        cases.add(name, *events, scripts=scripts, attestation=True, **more)

    chain = [{"after_ms": 300, "chain": [900, 700]}]
    case("a report is attested", identify(0, "a"), attest=chain)
    case(
        "attestations are one after the other, reports beside them",
        identify(0, "a"),
        identify(10, "b"),
        identify(20, "c"),
        attest=chain,
    )
    case("a key store that throws is not asked again", identify(0, "a"), identify(1_000, "b"), attest=[fault("error")])
    case(
        "a key store that is slow costs three seconds, and no more until it is done",
        identify(0, "a"),
        identify(3_500, "b"),
        identify(6_000, "c"),
        attest=[{"after_ms": 5_000, "chain": [900]}, *chain],
    )
    case(
        "a key store that hangs costs three seconds once",
        identify(0, "a"),
        identify(10, "b"),
        identify(8_000, "c"),
        attest=HANGS,
    )
    case("no challenge, no proof", identify(0, "a"), attest=chain, challenges=[refused(503, "service_unavailable")])
    case("a challenge that hangs costs two seconds", identify(0, "a"), attest=chain, challenges=HANGS)
    case(
        "a challenge that is none",
        identify(0, "a"),
        attest=chain,
        challenges=[{**challenge(), "body": '{"challenge": "short"}'}],
    )
    case("the limit of a call that is attested", identify(0, "a", timeout_ms=1_000), attest=HANGS)
    case(
        "canceled while it is attested: the next one waits for the key store",
        identify(0, "a"),
        identify(10, "b"),
        cancel(100, "a"),
        attest=chain,
    )


def _forgetting(cases: Cases) -> None:
    case = cases.add
    second = {"sensors": takes(3_000, value="digest")}
    deferred = {"identify": [DEFERRED], "supplement": [{"status": 503}]}
    case("what is stored is gone, and later reports have no id", identify(0, "a"), forget(100), identify(200, "b"))
    case("a call under way is ended", identify(0, "a"), forget(100), scripts={"identify": [done(1, 2_000)]})
    case(
        "nothing is stored afterwards, though a second report was being read",
        identify(0, "a"),
        forget(200),
        second=second,
        scripts=deferred,
        deferred=True,
    )
    case("a store that is at work is waited for", identify(0, "a"), forget(10), token=None, store=takes(150))
    case(
        "a request that hangs is waited for no longer than its limit",
        identify(0, "a", timeout_ms=2_000),
        forget(100),
        scripts={"identify": HANGS},
    )
    case(
        "a key that is being made is waited for",
        identify(0, "a"),
        forget(100),
        attestation=True,
        scripts={"challenge": [challenge()], "attest": [{"after_ms": 700, "chain": [900]}]},
    )
    case("twice", identify(0, "a"), forget(100), forget(150))
    case(
        "queued reports are gone",
        identify(0, "a"),
        forget(500),
        second={"sensors": takes(6, value="digest")},
        scripts=deferred,
        deferred=True,
    )


def _second_reports(cases: Cases) -> None:
    def case(
        name: str,
        *events: dict[str, Any],
        supplement: list[int],
        second: dict[str, list[dict[str, Any]]] | None = None,
        responses: list[dict[str, Any]] | None = None,
    ) -> None:
        scripts = {
            "identify": responses or [DEFERRED],
            "supplement": [{"status": status} for status in supplement],
        }
        cases.add(name, *events, second=second or {"sensors": takes(6, value="digest")}, scripts=scripts, deferred=True)

    case("a second report follows", identify(0, "a"), supplement=[202])
    case(
        "it waits where the service is away, and goes after the next response",
        identify(0, "a"),
        identify(1_000, "b"),
        supplement=[503, 202],
        responses=[DEFERRED, done(2)],
    )
    case(
        "a source of it that hangs costs ten seconds and its field",
        identify(0, "a"),
        supplement=[202],
        second={"gpu": HANGS, "sensors": takes(6, value="digest")},
    )
    case(
        "six responses: the oldest second report is gone",
        *(identify(1_000 * at, f"c{at}") for at in range(6)),
        supplement=[0],
        responses=[{**DEFERRED, "body": DEFERRED["body"].replace("r1", f"r{at}")} for at in range(6)],
    )
    case("none where the response names none", identify(0, "a"), supplement=[202], responses=[done()])
