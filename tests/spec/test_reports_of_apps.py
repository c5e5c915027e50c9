"""Decisions 18.5: where reports of apps count as such, and what a device id is worth without attestation.

The cases are shared: `clients/vectors/apps.json`. SDKs pass what they decide of them; here the service responds to what
they send, and a library for servers reads its events.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from svc_client.checks import Action, checked, problems_with

from tests.clients.vectors import cases
from tests.spec.test_apps import ELSEWHERE, HOME, OFFICE, App, app_report, ids, token
from tests.spec.test_attestation import android_key, proof, root_file
from tests.support.live import Live, live_service, report, succeeded

CASES = cases("apps")
API = "/api/v1"


def of_kind(kind: str) -> Any:
    chosen = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize("case", chosen, ids=lambda case: case["name"])


def test_every_case_is_run():
    assert {case["kind"] for case in CASES} == {"app_request", "app_refusal", "app_visits"}


def test_each_row_of_the_guide_has_cases_that_say_the_same():
    """By what the cell begins with: kind of the case, and how its name ends."""
    guide = (Path(__file__).parents[2] / "docs" / "mobile.md").read_text()
    section = guide.partition("## Keys and origins\n")[2].partition("\n## ")[0]
    cells = [row.split(" | ") for row in section.splitlines() if row.startswith("| ")][1:]
    words = {"the app's": "counts as the app", "a page's": "counts as a page", "refused": "app_refusal"}
    names = {case["name"]: case["kind"] for case in CASES}
    for sender, found in cells:
        (kind,) = (kind for word, kind in words.items() if found.startswith(word))
        for ending in ROWS[sender.removeprefix("| ").partition(",")[0]]:
            chosen = [name for name in names if name.endswith(f": {ending}")]
            assert len(chosen) == 2, ending
            assert all(f": {kind}: " in name or names[name] == kind for name in chosen)
    assert len(cells) == len(ROWS)


def test_each_confidence_in_the_guide_has_cases_that_end_with_it():
    guide = (Path(__file__).parents[2] / "docs" / "mobile.md").read_text()
    section = guide.partition("## Token and device id\n")[2].partition("\n## ")[0]
    for row, endings in CONFIDENCES.items():
        assert f"\n| {row} | " in section
        for ending in endings:
            chosen = [case["expect"][-1]["confidence"] for case in CASES if case["name"].endswith(f": {ending}")]
            assert chosen == [{"90 or more": [90, 100], "85 to 89": [85, 89]}[row]] * 2, ending


CONFIDENCES = {
    "90 or more": (
        "token and device id are sure from everywhere", "a token alone is sure from everywhere",
        "a device id alone, at home", "a device id with a token of somebody's own, at home",
        "a reinstalled phone is sure everywhere once it was at home on three days",
        "a reinstalled phone is sure everywhere once its former token was silent for ten days",
    ),
    "85 to 89": (
        "a device id alone is not, from another network", "an attestation that says none changes nothing",
        "a device id with a token of somebody's own is not, from another network",
        "a phone without any id is not, at home either",
    ),
}  # fmt: skip
"""Rows of the guide -> how the names of cases end. What attestation adds has a test below, with certificates."""
ROWS = {
    "a public key of the platform": (
        "a key of the app, without an origin", "a bridge", "the platform in the header alone",
    ),
    "that key": ("an origin of an app that the key allows",),
    "a secret or [proxy key](proxy.md)": (
        "a secret key of a server that speaks for the phone", "a secret key, and the origin of an app", "a proxy key",
    ),
    "an `http` or `https` origin": (
        "a page, by a key of app and web", "a web view of the app at https://localhost, by a key of app and web",
        "a secret key, and the origin of a page", "a proxy key, and the origin of a page",
    ),
    "no platform": (
        "no platform", "another platform than the key's", "the origin null",
        "an origin of an app that the key does not list", "a page, by a key of the app that lists its origin",
    ),
}  # fmt: skip


class Script:
    """The keys and reports of a case, and the nonces of its requests."""

    def __init__(self, live: Live, given: dict[str, Any]) -> None:
        self._live, self._given = live, given
        self._nonces: Iterator[str] = (f"019b8e9c-4f00-7a3e-9b64-{number:012x}" for number in range(1_000))
        environment = given["environment"]
        self._keys = {name: self._issued(environment, **about) for name, about in given["keys"].items()}

    def _issued(self, environment: str, kind: str, **fields: Any) -> str:
        return self._live.issue(kind, environment, **{name: tuple(value) for name, value in fields.items()})[1]

    async def send(self, request: dict[str, Any]) -> httpx.Response:
        live = self._live
        live.clock.advance(hours=request["after_hours"])
        headers = {"x-api-key": self._keys[request["key"]], "x-forwarded-for": request["address"], **request["headers"]}
        if "public_key" in request:
            headers["x-svc-public-key"] = self._keys[request["public_key"]]
        sdk = {} if request["named"] is None else {"platform": request["named"]}
        if request["path"] == "challenge":
            return await live.client.post(f"{API}/attestation/challenge", headers=headers)
        signals = self._given["reports"][request["report"]]
        if request["path"] == "supplement":
            body: dict[str, Any] = {"token": "AQGi", "sdk": sdk, "signals": {"tier": "deferred", "version": 1}}
            return await live.client.post(
                f"{API}/events/{live.world.request_id(0)}/supplement", json=body, headers=headers
            )
        report = {**signals, "nonce": next(self._nonces), "collected_at": live.clock.now_ms}
        if "attestation" in request:
            report["attestation"] = request["attestation"]
        return await live.client.post(f"{API}/identify", json={"sdk": sdk, "signals": report}, headers=headers)


async def read_event(live: Live, environment: str, request_id: str) -> Any:
    """What a server reads of it."""
    secret = live.issue("secret", environment)[1]
    return (await live.client.get(f"{API}/events/{request_id}", headers={"x-api-key": secret})).json()


def at_a_log_in(event: Any) -> dict[str, Any]:
    """What a library for servers concludes where an app is expected, whose event has no origin."""
    action = Action(origin=None, tag=event.get("tag"), now=datetime.fromisoformat(event["occurred_at"]))
    found = checked(problems_with(event, action, event["request_id"]), event, allow_unknown=False)
    return {"problem": found.problem, "decision": found.decision, "reasons": found.reasons}


@of_kind("app_visits")
async def test_who_counts_as_the_app_and_how_sure_a_response_is(live: Live, case: dict[str, Any]):
    given = case["given"]
    script, visitors = Script(live, given), dict[str, str]()
    for request, expected in zip(given["requests"], case["expect"], strict=True):
        response = await script.send(request)
        assert response.status_code == expected["status"], response.text
        answer = response.json()
        event = await read_event(live, given["environment"], answer["request_id"])
        least, most = expected["confidence"]
        assert least <= answer["visitor_confidence"] <= most, request
        assert visitors.setdefault(expected["visitor"], answer["visitor_id"]) == answer["visitor_id"]
        for name in ("visitor_is_new", "identifiable"):
            assert answer[name] == event[name] == expected[name], name
        assert (event["platform"], event.get("origin")) == (expected["platform"], expected["origin"])
        assert event["document"]["sdk"].get("platform") == expected["named"]
        if expected["log_in"] is not None:
            assert at_a_log_in(event) == expected["log_in"]
    assert len(set(visitors.values())) == len(visitors)


@of_kind("app_refusal")
async def test_who_may_not_send_and_what_is_said(live: Live, case: dict[str, Any]):
    response = await Script(live, case["given"]).send(case["given"]["request"])
    expected = case["expect"]
    assert (response.status_code, response.json()["error"]) == (expected["status"], expected["body"]["error"])
    assert live.events() == []


@of_kind("app_request")
async def test_what_an_sdk_sends_is_the_apps(live: Live, case: dict[str, Any]):
    sent, platform = case["expect"], case["given"]["platform"]
    key = live.issue(platforms=(platform,), allowed_origins=())[1]
    headers = {**sent["headers"], "x-api-key": key, "x-forwarded-for": HOME}
    path = sent["url"].removeprefix(case["given"]["endpoint"])
    answer = succeeded(await live.client.post(path, json=sent["body"], headers=headers))
    event = await read_event(live, "development", answer["request_id"])
    assert (event["platform"], event.get("origin")) == (platform, None)
    assert event["document"]["sdk"] == sent["body"]["sdk"]
    assert {name: event.get(name) for name in case["given"]["subject"]} == case["given"]["subject"]
    assert event["document"]["signals"] == sent["body"]["signals"]


async def test_a_pages_report_with_an_apps_token_is_nothing_of_the_app(live: Live):
    app = App(live, "android")
    owner = await app.identify(HOME, **ids("android", 1))
    page = report(client_token=ids("android", 1)["client_token"])
    answer = (await live.identify(live.issue()[1], page, headers={"x-forwarded-for": HOME})).json()
    assert answer["visitor_is_new"]
    again = await app.identify(HOME, **ids("android", 1))
    assert (again["visitor_id"], again["visitor_confidence"]) == (owner["visitor_id"], 100)


async def test_a_device_id_that_hardware_attests_is_sure_from_everywhere(directory: Path):
    async with live_service(directory / "data", attestation_roots_file=root_file(directory)) as live:
        key = android_key(live)

        async def answer(ip: str, attestation: dict[str, Any], **had: str) -> dict[str, Any]:
            signals = app_report("android", **had) | {"attestation": attestation}
            headers = {"x-forwarded-for": ip}
            response = await live.identify(key, signals, origin=None, sdk={"platform": "android"}, headers=headers)
            return response.json()

        owner = await answer(HOME, await proof(live, key), **ids("android", 1))
        again = await answer(
            ELSEWHERE, sent := await proof(live, key), **ids("android", 1) | {"client_token": token(700)}
        )
        assert (again["visitor_id"], again["visitor_confidence"] >= 90) == (owner["visitor_id"], True)
        copied = await answer(OFFICE, sent, **ids("android", 1) | {"client_token": token(702)})
        assert copied["visitor_confidence"] <= 89, "a challenge counts once"
