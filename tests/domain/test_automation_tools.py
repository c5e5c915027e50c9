"""Browsers driven by today's tools, with the web SDK in the page: what fires for each, and which nothing gives away.

`tests/captures/README.md` says how they were taken.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.browsers.pack import read_rows
from svc.identify.detection import detect
from svc.identify.model import Network, RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from svc.identify.useragent.agent import read_hints

CAPTURES = Path(__file__).parents[1] / "captures"
FILES = {
    "chromium-150": CAPTURES / "automation.jsonl.gz",
    "chromium-156": CAPTURES / "automation-156.jsonl.gz",
    "inspected": CAPTURES / "automation-inspected.jsonl.gz",
}
"""Those of Chromium 156 were taken by a web SDK that also says whether its page is in a frame; the last, of the same
Chromium in windows, by one that asks whether an inspector is attached.
"""

UNDETECTED = {
    "botasaurus/window",
    "drissionpage/window",
    "nodriver/window",
    "pydoll/window",
    "selenium-driverless/window",
    "seleniumbase-uc/window",
    "undetected-chromedriver/window",
    "zendriver/window",
}
"""An ordinary Chromium in an ordinary window, driven through its debugging port without a driver's flag: no report of
the page says so.
"""
UNDETECTED_IN = {
    "chromium-150": UNDETECTED | {"puppeteer-flagless/window"},
    "chromium-156": UNDETECTED | {"patchright-no-viewport/window"},
    "inspected": (UNDETECTED - {"seleniumbase-uc/window", "undetected-chromedriver/window"})
    | {"patchright-no-viewport/window"},
}
"""Puppeteer without that flag shows by the size of its page, where the report says that the page is in no frame.
patchright without its emulated screen is no more than the others.
"""
TOOLS = {"chromium-150": 42, "chromium-156": 48, "inspected": 25}
OF_AN_APPLE_DEVICE = {"anti_detect_browser", "engine_mismatch", "os_mismatch"}
"""Chromium that calls itself Safari on an iPhone contradicts itself."""


@cache
def observed(browser: str) -> dict[str, set[str]]:
    """Tag -> signals."""
    found: dict[str, set[str]] = {}
    for row in read_rows(FILES[browser]):
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


def driven(browser: str) -> dict[str, set[str]]:
    return {tag: signals for tag, signals in observed(browser).items() if not tag.startswith("device-mode")}


def tools_of(browser: str) -> set[str]:
    """What the developer tools fire that show a page as a phone would see it."""
    return {"developer_tools"} if browser == "inspected" else set()


@pytest.fixture(params=FILES)
def browser(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_captures_contain_every_tool_in_each_of_its_modes(browser: str):
    assert len(driven(browser)) == TOOLS[browser]
    assert driven(browser).keys() >= UNDETECTED_IN[browser]


def test_every_tool_is_detected_except_those_that_leave_no_trace_in_a_window(browser: str):
    silent = {tag for tag, signals in driven(browser).items() if signals.isdisjoint({"automation", "headless"})}
    assert silent == UNDETECTED_IN[browser]


def test_no_tool_hides_that_it_runs_headless(browser: str):
    for tag, signals in driven(browser).items():
        if not tag.endswith("/window"):
            assert not signals.isdisjoint({"headless", "automation"}), tag


def test_a_stealth_plugin_is_detected_by_its_contradictions(browser: str):
    for tag, signals in driven(browser).items():
        if "-stealth" in tag or "fingerprint-injector" in tag:
            assert signals >= {"automation", "anti_detect_browser"}, tag


@pytest.mark.parametrize("device", ["pixel", "galaxy"])
def test_an_android_phone_in_device_mode_fires_nothing_but_the_tools_that_show_it(browser: str, device: str):
    assert observed(browser)[f"device-mode-{device}/window"] == tools_of(browser)


@pytest.mark.parametrize("device", ["iphone", "ipad"])
def test_an_iphone_in_device_mode_is_seen_as_another_browser_and_not_as_automation(browser: str, device: str):
    assert observed(browser)[f"device-mode-{device}/window"] == OF_AN_APPLE_DEVICE | tools_of(browser)
