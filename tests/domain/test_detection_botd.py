"""BotD's rules, run again: each fires, each has a nearest innocent case, and the library agrees on every capture."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.detection import botd, detect
from svc.identify.detection.findings import Findings
from svc.identify.model import Agent, Network, Report, RequestFacts

if TYPE_CHECKING:
    from pathlib import Path

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
)

NOWHERE = Network(state="unavailable", reason="private_address")

ORDINARY: dict[str, Any] = {
    "android": False,
    "browserKind": "chrome",
    "browserEngineKind": "chromium",
    "documentFocus": True,
    "userAgent": CHROME,
    "appVersion": CHROME.removeprefix("Mozilla/"),
    "rtt": 50,
    "windowSize": {"outerWidth": 1280, "outerHeight": 800, "innerWidth": 1280, "innerHeight": 700},
    "pluginsLength": 5,
    "pluginsArray": True,
    "errorTrace": "TypeError: Cannot read properties of null (reading '0')\n    at getErrorTrace (https://a.example/b.js:1:1)",
    "productSub": "20030107",
    "windowExternal": "[object External]",
    "mimeTypesConsistent": True,
    "evalLength": 33,
    "webGL": {"vendor": "WebKit", "renderer": "WebKit WebGL"},
    "webDriver": False,
    "languages": [["en-US"]],
    "documentElementKeys": [],
    "functionBind": "function bind() { [native code] }",
    "distinctiveProps": {"selenium": False, "cef": False},
    "notificationPermissions": False,
}

FIRING: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("detectAppVersion", {"appVersion": "5.0 HeadlessChrome/140"}, "headless_chrome", "headless"),
    ("detectAppVersion", {"appVersion": "5.0 Electron/30"}, "electron", "automation"),
    ("detectAppVersion", {"appVersion": "5.0 SlimerJS/1"}, "slimerjs", "automation"),
    ("detectDocumentAttributes", {"documentElementKeys": ["lang", "webdriver"]}, "selenium", "automation"),
    ("detectErrorTrace", {"errorTrace": "at file:///PhantomJS/x.js"}, "phantomjs", "automation"),
    ("detectEvalLengthInconsistency", {"evalLength": 37}, "unknown", "engine_mismatch"),
    ("detectEvalLengthInconsistency", {"evalLength": 39}, "unknown", "engine_mismatch"),
    ("detectFunctionBind", {"functionBind": None}, "phantomjs", "automation"),
    ("detectLanguagesLengthInconsistency", {"languages": []}, "headless_chrome", "headless"),
    ("detectNotificationPermissions", {"notificationPermissions": True}, "headless_chrome", "headless"),
    ("detectPluginsArray", {"pluginsArray": False}, "headless_chrome", "automation"),
    ("detectPluginsLengthInconsistency", {"pluginsLength": 0}, "headless_chrome", None),
    ("detectProcess", {"process": {"type": "renderer"}}, "electron", "automation"),
    ("detectProcess", {"process": {"versions": {"electron": "30.0.0"}}}, "electron", "automation"),
    ("detectUserAgent", {"userAgent": "Mozilla/5.0 HeadlessChrome/140"}, "headless_chrome", "headless"),
    ("detectUserAgent", {"userAgent": "Mozilla/5.0 PhantomJS/2"}, "phantomjs", "automation"),
    ("detectWebDriver", {"webDriver": True}, "headless_chrome", "automation"),
    ("detectWebGL", {"webGL": {"vendor": "Brian Paul", "renderer": "Mesa OffScreen"}}, "headless_chrome", "headless"),
    ("detectWindowExternal", {"windowExternal": "[object Sequentum]"}, "sequentum", "automation"),
    ("detectWindowSize", {"windowSize": {"outerWidth": 0, "outerHeight": 0}}, "headless_chrome", "headless"),
    ("detectMimeTypesConsistent", {"mimeTypesConsistent": False}, "unknown", "automation"),
    ("detectProductSub", {"productSub": "20100101"}, "unknown", "engine_mismatch"),
    ("detectDistinctiveProperties", {"distinctiveProps": {"cef": False, "geb": True}}, "geb", "automation"),
]

INNOCENT: dict[str, dict[str, Any]] = {
    "an ordinary desktop Chrome": {},
    "a phone without plugins": {"android": True, "pluginsLength": 0},
    "Chrome on an iPhone without plugins": {"browserEngineKind": "webkit", "pluginsLength": 0, "evalLength": 37},
    "Firefox without plugins": {
        "browserKind": "firefox",
        "browserEngineKind": "gecko",
        "pluginsLength": 0,
        "evalLength": 37,
        "productSub": "20100101",
    },
    "Firefox that blocks notifications": {"browserKind": "firefox", "notificationPermissions": True},
    "a tab opened in the background": {"documentFocus": False, "windowSize": {"outerWidth": 0, "outerHeight": 0}},
    "a window of which one side is unknown": {"windowSize": {"outerWidth": 0, "outerHeight": 700}},
    "an engine that BotD does not know": {"browserEngineKind": "unknown", "evalLength": 37},
    "Mesa on a desktop": {"webGL": {"vendor": "Mesa", "renderer": "Mesa Intel(R) UHD Graphics"}},
}


def fired(**changes: Any) -> dict[str, str]:
    return botd.rerun({**ORDINARY, **changes})


def test_all_eighteen_rules_are_shown_to_fire() -> None:
    assert len(botd.DETECTORS) == 18
    assert {name for name, *_ in FIRING} == set(botd.DETECTORS)


@pytest.mark.parametrize(("detector", "change", "kind", "signal"), FIRING)
def test_a_rule_fires_alone_and_fires_its_signal(
    detector: str, change: dict[str, Any], kind: str, signal: str | None
) -> None:
    assert fired(**change) == {detector: kind}
    findings = Findings()
    botd.detect_botd({**ORDINARY, **change}, findings)
    assert [observation.signal for observation in findings.observations("web")] == ([signal] if signal else [])


@pytest.mark.parametrize("case", INNOCENT)
def test_no_rule_fires_on_a_similar_innocent_visit(case: str) -> None:
    assert fired(**INNOCENT[case]) == {}


def test_nothing_fires_where_nothing_could_be_read() -> None:
    assert botd.rerun({}) == {}


def test_one_headless_name_read_twice_is_one_observation() -> None:
    findings = Findings()
    botd.detect_botd({"userAgent": "HeadlessChrome/1", "appVersion": "HeadlessChrome/1"}, findings)
    (observation,) = findings.observations("web")
    assert observation.evidence == ("botd_app_version", "botd_user_agent")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)
COMPONENTS = st.dictionaries(st.sampled_from([*ORDINARY, "process"]), JSON)


@pytest.mark.slow
@given(components=COMPONENTS)
def test_components_of_any_type_never_raise(components: dict[str, Any]) -> None:
    for name, kind in botd.rerun(components).items():
        assert name in botd.DETECTORS
        assert isinstance(kind, str)
    seen = detect(Report(botd=components), RequestFacts(ip="192.0.2.1", user_agent=CHROME), Agent(), NOWHERE, "web")
    assert len({observation.signal for observation in seen}) == len(seen)


@pytest.mark.parametrize("name", ["bots/captures", "browsers/ladder"])
def test_the_library_gave_the_same_verdict_on_every_real_capture(shared_data: Path, name: str) -> None:
    with gzip.open(shared_data / f"{name}.jsonl.gz", "rt") as lines:
        captures = [json.loads(line) for line in lines]
    assert captures
    for capture in captures:
        readable = {key: part["value"] for key, part in capture["botComponents"].items() if part["state"] == 0}
        detections = capture["botDetections"]
        assert set(detections) == set(botd.DETECTORS)
        expected = {key: verdict["botKind"] for key, verdict in detections.items() if verdict["bot"]}
        assert botd.rerun(readable) == expected, capture["tag"]
