"""Browsers driven by today's tools, with the web SDK in the page: what fires for each, and which nothing gives away.

`tests/captures/README.md` says how they were taken.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.browsers.pack import read_rows
from svc.domain.detection import detect
from svc.domain.model import Network, RequestFacts
from svc.domain.report import read_report
from svc.domain.useragent import read_agent
from svc.domain.useragent.hints import read_hints

FILE = Path(__file__).parents[1] / "captures" / "automation.jsonl.gz"

UNDETECTED = {
    "botasaurus/window",
    "drissionpage/window",
    "nodriver/window",
    "puppeteer-flagless/window",
    "pydoll/window",
    "selenium-driverless/window",
    "seleniumbase-uc/window",
    "undetected-chromedriver/window",
    "zendriver/window",
}
"""An ordinary Chromium in an ordinary window, driven through its debugging port without a driver's flag: no report of
the page says so.
"""
OF_AN_APPLE_DEVICE = {"anti_detect_browser", "engine_mismatch", "os_mismatch"}
"""Chromium that calls itself Safari on an iPhone contradicts itself."""


@cache
def observed() -> dict[str, set[str]]:
    """Tag -> signals."""
    found: dict[str, set[str]] = {}
    for row in read_rows(FILE):
        facts = facts_of(row)
        report = read_report(row["signals"], facts)
        seen = detect(report, facts, read_agent(facts, report), Network(state="enriched"), "web")
        found[row["tag"]] = {observation.signal for observation in seen}
    return found


def facts_of(row: dict[str, Any]) -> RequestFacts:
    headers = row["headers"]
    return RequestFacts(
        ip="81.2.69.142",
        user_agent=headers["user-agent"],
        accept_language=headers.get("accept-language"),
        hints=read_hints(headers),
    )


def driven() -> dict[str, set[str]]:
    return {tag: signals for tag, signals in observed().items() if not tag.startswith("device-mode")}


def test_the_captures_contain_every_tool_in_each_of_its_modes():
    assert len(driven()) == 42
    assert driven().keys() >= UNDETECTED


def test_every_tool_is_detected_except_those_that_leave_no_trace_in_a_window():
    silent = {tag for tag, signals in driven().items() if signals.isdisjoint({"automation", "headless"})}
    assert silent == UNDETECTED


def test_no_tool_hides_that_it_runs_headless():
    for tag, signals in driven().items():
        if not tag.endswith("/window"):
            assert not signals.isdisjoint({"headless", "automation"}), tag


def test_a_stealth_plugin_is_detected_by_its_contradictions():
    for tag, signals in driven().items():
        if "-stealth" in tag:
            assert signals >= {"automation", "anti_detect_browser"}, tag


@pytest.mark.parametrize("device", ["pixel", "galaxy"])
def test_an_android_phone_in_device_mode_fires_nothing(device: str):
    assert observed()[f"device-mode-{device}/window"] == set()


@pytest.mark.parametrize("device", ["iphone", "ipad"])
def test_an_iphone_in_device_mode_is_seen_as_another_browser_and_not_as_automation(device: str):
    assert observed()[f"device-mode-{device}/window"] == OF_AN_APPLE_DEVICE
