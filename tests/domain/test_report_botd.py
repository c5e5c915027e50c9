"""BotD's components, which accompany other collectors."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from svc.identify.model import RequestFacts
from svc.identify.report import read_report

FACTS = RequestFacts(ip="192.0.2.1")
COMPONENTS: dict[str, Any] = {
    "process": {"state": -1, "error": "BotdError: window.process is undefined"},
    "userAgent": {"state": 0, "value": "Mozilla/5.0 HeadlessChrome/109.0"},
    "windowSize": {
        "state": 0,
        "value": {"outerWidth": 0, "outerHeight": 0, "innerWidth": 1920, "innerHeight": 1080},
    },
    "pluginsLength": {"state": 0, "value": 0},
    "productSub": {"state": 0, "value": "20030107"},
    "webGL": {"state": 0, "value": {"vendor": "WebKit", "renderer": "WebKit WebGL"}},
    "webDriver": {"state": 0, "value": True},
    "languages": {"state": 0, "value": [["en-US"], ["en-US", "en"]]},
    "rtt": {"state": 0, "value": None},
}


def test_readable_components_are_kept_and_others_are_not():
    report = read_report({"botd": COMPONENTS}, FACTS)
    assert report.collectors == ("botd",)
    assert report.botd is not None
    assert "process" not in report.botd
    assert "rtt" not in report.botd
    assert report.botd["webDriver"] is True


def test_components_give_claims_and_no_attributes():
    report = read_report({"botd": COMPONENTS}, FACTS)
    claims = report.claims
    assert (claims.outer_window, claims.inner_window) == ((0, 0), (1920, 1080))
    assert (claims.webdriver, claims.plugin_count, claims.product_sub) == (True, 0, "20030107")
    # The masked name is that of the engine, not of a graphics card.
    assert (claims.languages, claims.gpu_renderer, claims.webgl) == (("en-US", "en"), None, None)
    assert claims.user_agent == "Mozilla/5.0 HeadlessChrome/109.0"
    assert report.attributes == {}


def test_the_collector_that_gives_the_attributes_comes_first_and_takes_precedence():
    report = read_report({"botd": COMPONENTS, "userAgent": "Mozilla/5.0 Chrome/137.0", "platform": "Win32"}, FACTS)
    assert report.collectors == ("plain", "botd")
    assert report.claims.user_agent == "Mozilla/5.0 Chrome/137.0"
    assert report.claims.plugin_count == 0


def test_unavailable_graphics_and_a_reported_renderer_are_claims():
    without = read_report({"botd": {**COMPONENTS, "webGL": {"state": -4}}}, FACTS).claims
    assert (without.webgl, without.gpu_renderer) == (False, None)
    named = {"state": 0, "value": {"vendor": "Mozilla", "renderer": "llvmpipe, or similar"}}
    firefox = read_report({"botd": {**COMPONENTS, "webGL": named}}, FACTS).claims
    assert (firefox.gpu_vendor, firefox.gpu_renderer) == (None, "llvmpipe, or similar")


def test_one_collector_that_sees_a_webdriver_is_enough():
    report = read_report({"botd": COMPONENTS, "userAgent": "x", "webdriver": False}, FACTS)
    assert report.claims.webdriver is True


def test_a_value_without_components_is_not_a_botd_report():
    for botd in (None, [], {}, "x", {"bot": True, "botKind": "headless_chrome"}, {"a": {"state": "0"}}):
        assert read_report({"botd": botd}, FACTS).botd is None


def test_of_many_components_the_first_are_read():
    components = {f"c{number}": {"state": 0, "value": number} for number in range(200)}
    report = read_report({"botd": components}, FACTS)
    assert report.botd == {f"c{number}": number for number in range(64)}


def test_real_captures_are_read(shared_data: Path):
    with gzip.open(shared_data / "bots" / "captures.jsonl.gz", "rt") as lines:
        captures = [json.loads(line) for line in lines]
    for capture in captures:
        report = read_report({"components": capture["components"], "botd": capture["botComponents"]}, FACTS)
        assert report.collectors == ("fingerprintjs", "botd")
        assert report.claims.webdriver is capture["webdriver"]
        assert report.claims.outer_window == (capture["screen"]["ow"], capture["screen"]["oh"])
