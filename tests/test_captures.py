"""Real browsers, plain and automated, through the whole service over HTTP."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from bench.browsers.measure import CONTRADICTIONS, PROGRAMS, SHAPES, Shape, read_captures
from tests.support.jsonl import read_jsonl
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service, succeeded

pytestmark = pytest.mark.slow


def captures(shared_data: Path) -> list[dict[str, Any]]:
    return [
        *read_jsonl(shared_data / "browsers" / "ladder.jsonl.gz"),
        *read_jsonl(shared_data / "bots" / "captures.jsonl.gz"),
    ]


async def post(live: Live, key: str, capture: dict[str, Any]) -> dict[str, Any]:
    """As the page that took the capture would have sent it."""
    sent = {name.lower(): value for name, value in capture["headers"].items()}
    own = {name: sent[name] for name in sent if name == "accept-language" or name.startswith("sec-ch-ua")}
    headers = {**own, "user-agent": capture["ua"], "x-forwarded-for": PUBLIC_ADDRESS}
    signals = {"components": capture["components"], "botd": capture["botComponents"]}
    return succeeded(await live.identify(key, signals, headers=headers))


async def test_a_capture_repeated_at_once_gets_the_same_id_at_100(tmp_path: Path, shared_data: Path):
    for number, capture in enumerate(captures(shared_data)):
        async with live_service(tmp_path / str(number)) as live:
            _, key = live.issue(allowed_origins=(ORIGIN,))
            first = await post(live, key, capture)
            again = await post(live, key, capture)
        name = (capture["tag"], capture.get("kind"))
        assert (first["visitor_is_new"], first["visitor_confidence"]) == (True, 0), name
        assert again["visitor_id"] == first["visitor_id"], name
        assert (again["visitor_is_new"], again["visitor_confidence"]) == (False, 100), name


async def test_every_capture_is_recognized_after_all_the_others(tmp_path: Path, shared_data: Path):
    async with live_service(tmp_path) as live:
        _, key = live.issue(allowed_origins=(ORIGIN,))
        first = [await post(live, key, capture) for capture in captures(shared_data)]
        live.clock.advance(seconds=3600)
        for capture, earlier in zip(captures(shared_data), first, strict=True):
            again = await post(live, key, capture)
            assert again["visitor_id"] == earlier["visitor_id"], capture["tag"]
            assert again["visitor_confidence"] >= 99, capture["tag"]
        assert len(live.events()) == 2 * len(first)


async def test_the_same_device_is_recognized_through_browser_upgrades(tmp_path: Path, shared_data: Path):
    """Profiles that differ in nothing but their time zone may share an id; any others may not."""
    visitors: dict[str, set[str]] = defaultdict(set)
    async with live_service(tmp_path) as live:
        _, key = live.issue(allowed_origins=(ORIGIN,))
        for capture in read_jsonl(shared_data / "browsers" / "ladder.jsonl.gz"):
            live.clock.advance(hours=24)
            answer = await post(live, key, capture)
            visitors[answer["visitor_id"]].add(capture["profile"])
    assert max(len(profiles) for profiles in visitors.values()) <= 2


async def test_automated_browsers_are_suspect_and_those_of_people_are_not(tmp_path: Path, shared_data: Path):
    async with live_service(tmp_path) as live:
        _, key = live.issue(allowed_origins=(ORIGIN,))
        for capture in captures(shared_data):
            live.clock.advance(hours=24)  # else they are a burst of new visitors
            answer = await post(live, key, capture)
            fired = {trigger["signal"] for trigger in answer.get("triggers", ())}
            if is_persons(capture):
                assert fired <= {"virtual_machine"}, (capture["tag"], fired)
                assert answer["suspect_level"] == "low", capture["tag"]
            else:
                assert fired & {"automation", "headless"}, capture["tag"]
                assert answer["suspect_score"] >= 30, capture["tag"]


async def test_headless_browsers_are_detected_even_with_a_changed_name(tmp_path: Path, shared_data: Path):
    """The name is the first thing that stealth tools change: here, and in the brands, it is that of a browser."""
    async with live_service(tmp_path) as live:
        _, key = live.issue(allowed_origins=(ORIGIN,))
        for capture in captures(shared_data):
            if not is_persons(capture) and "Headless" in capture["ua"]:
                renamed = json.loads(json.dumps(capture).replace("HeadlessChrome", "Chrome"))
                answer = await post(live, key, hide_driver(renamed))
                fired = {trigger["signal"] for trigger in answer["triggers"]}
                assert fired & {"automation", "headless"}, capture["tag"]


REAL_BROWSERS = Path(__file__).parent / "captures" / "real-browsers.jsonl.gz"


@pytest.mark.parametrize("shape", SHAPES)
async def test_real_browsers_get_the_expected_verdicts_over_http(tmp_path: Path, shape: Shape):
    """One visit of each browser as it is installed, and each kind of disguise."""
    shown = ("plain", "headless", "headless-1920x1080", "headless-shell-renamed", "as-android", "as-windows")
    sent: set[str] = set()
    async with live_service(tmp_path) as live:
        _, key = live.issue(allowed_origins=(ORIGIN,))
        for capture in read_captures(REAL_BROWSERS):
            if capture.visit or capture.tag.partition("/")[2] not in shown:
                continue
            hints = {name: value for name, value in capture.headers.items() if name.startswith(("sec-ch-", "user-"))}
            headers = {**hints, "x-forwarded-for": PUBLIC_ADDRESS}
            response = await live.identify(key, capture.signals(shape), headers=headers)
            assert response.status_code == 200, response.text
            answer = response.json()
            fired = {trigger["signal"] for trigger in answer.get("triggers", ())}
            if capture.kind == "normal":
                assert fired <= capture.true, capture.tag
            else:
                assert fired & (CONTRADICTIONS if capture.kind == "spoofed" else PROGRAMS), capture.tag
            sent.add(capture.tag)
    assert {"firefox/plain", "epiphany/plain", "firefox/headless-1920x1080", "chromium/as-android"} <= sent


def is_persons(capture: dict[str, Any]) -> bool:
    """Bots bear a label; among the plain browsers those with a window are a person's."""
    return capture.get("label", capture.get("kind")) in ("human-like", "headful")


def hide_driver(capture: dict[str, Any]) -> dict[str, Any]:
    """As if nothing told of the driver itself."""
    components = capture["botComponents"]
    components["webDriver"]["value"] = False
    components["distinctiveProps"]["value"] = dict.fromkeys(components["distinctiveProps"]["value"], False)
    return capture
