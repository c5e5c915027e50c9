"""Reports of the project's own web SDK: the probes beside FingerprintJS and BotD, and what fires on them."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.detection import detect
from svc.identify.model import Agent, Attribute, Network, Observation, RequestFacts
from svc.identify.report import read_report

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/144.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
RENDERER = "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002504) Direct3D11 vs_5_0 ps_5_0, D3D11)"
FACTS = RequestFacts(ip="192.0.2.1", user_agent=CHROME)
NOWHERE = Network(state="unavailable", reason="private_address")
PAGE = {
    "userAgent": CHROME, "platform": "Win32", "language": "de-DE", "languages": ["de-DE", "de", "en"], "cores": 8,
    "memory": 8, "webdriver": False, "timeZone": "Europe/Berlin",
}  # fmt: skip
ELSEWHERE = PAGE | {"gpuVendor": "Google Inc. (NVIDIA)", "gpuRenderer": RENDERER}
HINTS = {
    "brands": [{"brand": "Not(A:Brand", "version": "8"}, {"brand": "Chromium", "version": "144"}],
    "fullVersionList": [{"brand": "Not(A:Brand", "version": "8.0.0.0"}, {"brand": "Chromium", "version": "144.0.1.2"}],
    "mobile": False, "platform": "Windows", "platformVersion": "15.0.0", "architecture": "x86", "bitness": "64",
    "model": "", "wow64": False, "formFactors": ["Desktop"],
}  # fmt: skip


def components(**changes: Any) -> dict[str, Any]:
    """What FingerprintJS says of the same browser."""
    values = {
        "hardwareConcurrency": 8, "deviceMemory": 8, "platform": "Win32", "timezone": "Europe/Berlin",
        "languages": [["de-DE"], ["de-DE", "de", "en"]], "screenResolution": [1920, 1080], "vendor": "Google Inc.",
        "webGlBasics": {"vendorUnmasked": "Google Inc. (NVIDIA)", "rendererUnmasked": RENDERER},
    } | changes  # fmt: skip
    return {name: {"value": value, "duration": 1} for name, value in values.items()}


def signals(fingerprintjs: dict[str, Any] | None = None, **probes: Any) -> dict[str, Any]:
    """A report as the SDK sends it; a probe that is named replaces or extends that of an honest browser."""
    honest: dict[str, Any] = {
        "version": 1,
        "contexts": {"page": PAGE, "iframe": ELSEWHERE, "worker": ELSEWHERE},
        "hints": HINTS,
        "drivers": {"webdriver": False, "webdriverWritable": False, "selenium": False, "playwright": False},
        "plugins": {"count": 5, "genuine": True, "linked": True, "overflows": False},
        "canvas": {"noise": False},
        "media": {"anyPointer": "fine", "anyHover": True},
        "screen": {"pixelRatio": 1.25},
    }
    merged = honest | {
        name: honest[name] | value if isinstance(value, dict) and name in honest else value
        for name, value in probes.items()
    }
    return {"components": components(**fingerprintjs or {}), "probes": merged}


def look(report: dict[str, Any], facts: RequestFacts = FACTS) -> dict[str, Observation]:
    seen = detect(read_report(report, facts), facts, Agent(), NOWHERE, "web")
    return {observation.signal: observation for observation in seen}


def test_the_probes_give_claims_and_fingerprintjs_the_attributes():
    report = read_report(signals(), FACTS)
    assert report.collectors == ("fingerprintjs", "probes")
    assert report.attributes[Attribute.PIXEL_RATIO] == "probes:1.25"
    others = {name: value for name, value in report.attributes.items() if name != Attribute.PIXEL_RATIO}
    assert {value.split(":")[0] for value in others.values()} == {"fingerprintjs"}
    claims = report.claims
    assert (claims.user_agent, claims.language, claims.pointer, claims.webdriver) == (CHROME, "de-DE", True, False)
    assert (claims.driver_marks, claims.plugins_patched, claims.plugin_count) == ((), False, 5)
    assert (claims.hints.grease, claims.hints.brands) == ("Not(A:Brand", (("Chromium", "144.0.1.2"),))
    assert claims.contexts is not None
    assert claims.contexts["worker"] == {
        "user_agent": CHROME, "platform": "Win32", "language": "de-DE", "cores": 8, "memory_gb": 8,
        "webdriver": False, "gpu_vendor": "Google Inc. (NVIDIA)", "gpu_renderer": RENDERER, "timezone": "Europe/Berlin",
    }  # fmt: skip


def test_a_genuine_browser_fires_nothing():
    assert look(signals()) == {}


@pytest.mark.parametrize("version", [0, 2, "1", True, None])
def test_probes_of_an_unknown_version_are_not_read(version: Any):
    report = read_report(signals(version=version), FACTS)
    assert report.collectors == ("fingerprintjs",)
    assert report.claims.contexts is None
    assert report.rest == read_report({"components": components()}, FACTS).rest, "they are no leaves either"


@pytest.mark.parametrize(
    ("probes", "signal", "evidence"),
    [
        ({"drivers": {"selenium": True}}, "automation", "selenium_mark"),
        ({"drivers": {"playwright": True}}, "automation", "playwright_mark"),
        ({"drivers": {"webdriverWritable": True}}, "automation", "webdriver_writable"),
        ({"drivers": {"webdriver": True}}, "automation", "webdriver"),
        ({"contexts": {"worker": {"webdriver": True}}}, "automation", "webdriver_in_worker"),
        ({"contexts": {"iframe": {"platform": "Linux x86_64"}}}, "os_mismatch", "platform_in_iframe"),
        ({"contexts": {"worker": {"cores": 4}}}, "browser_tampering", "hardware_in_worker"),
        ({"contexts": {"worker": {"gpuRenderer": "SwiftShader"}}}, "browser_tampering", "renderer_in_worker"),
        ({"contexts": {"worker": {"timeZone": "Asia/Tokyo"}}}, "browser_tampering", "timezone_in_worker"),
        ({"contexts": {"iframe": {"timeZone": "Asia/Tokyo"}}}, "browser_tampering", "timezone_in_iframe"),
        ({"plugins": {"genuine": False}}, "browser_tampering", "plugins_patched"),
        ({"plugins": {"linked": False}}, "browser_tampering", "plugins_patched"),
        ({"canvas": {"noise": True}}, "browser_tampering", "canvas_noise"),
        ({"hints": {"brands": [{"brand": "Not A;Brand", "version": "99"}, {"brand": "Chromium", "version": "144"}]}},
         "browser_tampering", "invented_brand_of_another_release"),
    ],
)  # fmt: skip
def test_a_deviating_probe_fires_its_signal(probes: dict[str, Any], signal: str, evidence: str):
    assert evidence in look(signals(**probes))[signal].evidence


def test_an_empty_plugin_list_is_consistent():
    empty = {"count": 0, "genuine": True, "linked": True, "overflows": False}
    assert look(signals(plugins=empty)) == {}


# The time zone of the page against those of iframe and worker ---------------------------------------------------------


def zones(page: str, elsewhere: str | None, **fingerprintjs: Any) -> dict[str, Any]:
    inner = {**ELSEWHERE, "timeZone": elsewhere}
    contexts = {"page": PAGE | {"timeZone": page}, "iframe": inner, "worker": inner}
    return signals({"timezone": page, **fingerprintjs}, contexts=contexts)


def test_a_time_zone_that_was_changed_for_the_page_alone_is_tampering():
    seen = look(zones("America/New_York", "Europe/Berlin"))
    assert set(seen) == {"browser_tampering"}
    assert seen["browser_tampering"].evidence == ("timezone_in_iframe", "timezone_in_worker")


@pytest.mark.parametrize(
    ("page", "elsewhere"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("Asia/Calcutta", "Asia/Kolkata"),  # the old and the new name of one zone
        ("Etc/UTC", "UTC"),
        ("Europe/Berlin", None),
        ("UTC+2", "Europe/Berlin"),  # an offset: the page knew no name
    ],
)
def test_aliases_of_one_time_zone_or_a_missing_one_are_no_contradiction(page: str, elsewhere: str | None):
    assert look(zones(page, elsewhere)) == {}


def test_firefox_with_resist_fingerprinting_may_show_utc_in_the_page_alone():
    facts = RequestFacts(ip="192.0.2.1", user_agent=FIREFOX)
    page = {"userAgent": FIREFOX, "platform": "Linux x86_64", "timeZone": "UTC"}
    contexts = {"page": page, "worker": page | {"timeZone": "Europe/Berlin"}, "iframe": page}
    leveled = {
        "timezone": "UTC", "hardwareConcurrency": 4, "screenResolution": [1400, 900], "screenFrame": [0, 0, 0, 0],
        "platform": "Linux x86_64", "vendor": "", "deviceMemory": None, "webGlBasics": None,
    }  # fmt: skip
    report = {"components": components(**leveled), "probes": {"version": 1, "contexts": contexts}}
    assert Attribute.TIMEZONE in read_report(report, facts).masked
    assert set(look(report, facts)) == {"privacy_settings"}


# Firefox --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounded", "real", "fires"), [(4, 2, False), (8, 12, False), (8, 2, True)])
def test_the_real_core_count_of_firefox_agrees_with_the_rounded_one_of_fingerprintjs(
    rounded: int, real: int, fires: bool
):
    facts = RequestFacts(ip="192.0.2.1", user_agent=FIREFOX)
    there = {"userAgent": FIREFOX, "platform": "Linux x86_64", "cores": real, "timeZone": "Europe/Berlin"}
    contexts = {"page": there, "iframe": there, "worker": there}
    found = components(hardwareConcurrency=rounded, platform="Linux x86_64", vendor="", webGlBasics=None)
    seen = look({"components": found, "probes": {"version": 1, "contexts": contexts}}, facts)
    assert ("browser_tampering" in seen) is fires


# Private windows ------------------------------------------------------------------------------------------------------


def test_a_private_window_reported_by_the_sdk_is_low_confidence():
    assert look({**signals(), "incognito": True})["incognito"] == Observation("incognito", "low", ("private_mode",))
    told = look({"components": components(), "incognito": True})
    assert told["incognito"].confidence == "medium"


@pytest.mark.parametrize(
    "hostile", [None, 7, "x", [], [1], {"page": 3}, {"worker": {"timeZone": ["UTC"], "cores": "8"}}]
)
def test_values_of_a_wrong_type_count_as_absent(hostile: Any):
    report = {**signals(), "probes": {"version": 1, "contexts": hostile, "drivers": hostile, "hints": hostile}}
    read = read_report(report, FACTS)
    assert (read.claims.contexts, read.claims.driver_marks) == (None, None)
    assert look(report) == {}
