"""Reports of fpscanner and the texts that it writes where a value is missing (docs/report-fields.md)."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.detection import detect
from svc.identify.model import Agent, Attribute, Network, Observation, RequestFacts
from svc.identify.report import read_report
from svc.identify.report.fpscanner import STANDARD_PLUGINS_HASH
from svc.identify.report.masks import STANDARD_PLUGINS

FACTS = RequestFacts(ip="192.0.2.1")
NOWHERE = Network(state="unavailable", reason="private_address")
CHROME = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/144.0.0.0 "
    "Safari/537.36"
)
RENDERER = "ANGLE (Apple, ANGLE Metal Renderer: Apple M4 Max, Unspecified Version)"
IFRAME = {
    "webdriver": False, "userAgent": CHROME, "platform": "MacIntel", "memory": 8, "cpuCount": 14, "language": "en",
}  # fmt: skip
WORKER = {
    "vendor": "Google Inc. (Apple)", "renderer": RENDERER, "userAgent": CHROME, "language": "en",
    "platform": "MacIntel", "memory": 8, "cpuCount": 14,
}  # fmt: skip
BRANDS = [
    {"brand": "Not(A:Brand", "version": "8"},
    {"brand": "Chromium", "version": "144"},
    {"brand": "Google Chrome", "version": "144"},
]


def sections(**changes: dict[str, Any]) -> dict[str, Any]:
    """Sections as the library sends them; changes are merged into a section."""
    report: dict[str, Any] = {
        "automation": {
            "webdriver": False, "webdriverWritable": False, "selenium": False, "cdp": True, "playwright": False,
            "navigatorPropertyDescriptors": "00000",
        },
        "device": {
            "cpuCount": 14,
            "memory": 8,
            "platform": "MacIntel",
            "screenResolution": {
                "width": 2304, "height": 1296, "pixelDepth": 30, "colorDepth": 30, "availableWidth": 2304,
                "availableHeight": 1265, "innerWidth": 1444, "innerHeight": 1144, "hasMultipleDisplays": True,
            },
            "multimediaDevices": {"speakers": 1, "microphones": 1, "webcams": None},
            "mediaQueries": {
                "prefersColorScheme": "dark", "prefersReducedMotion": False, "prefersReducedTransparency": True,
                "colorGamut": "p3", "pointer": "fine", "anyPointer": "fine", "hover": True, "anyHover": True,
                "colorDepth": 10,
            },
        },
        "browser": {
            "userAgent": CHROME,
            "features": {"bitmask": "1000111100", "chrome": True, "brave": False},
            "plugins": {
                "isValidPluginArray": True, "pluginCount": 5, "pluginNamesHash": STANDARD_PLUGINS_HASH,
                "pluginConsistency1": True, "pluginOverflow": False,
            },
            "extensions": {"bitmask": "01000000", "extensions": ["metamask"]},
            "highEntropyValues": {
                "architecture": "arm", "bitness": "64", "brands": BRANDS, "mobile": False, "model": "",
                "platform": "macOS", "platformVersion": "26.2.0", "uaFullVersion": "144.0.7559.133",
            },
            "etsl": 33,
            "maths": "67d0b556",
            "toSourceError": {"toSourceError": "TypeError: x", "hasToSource": False},
        },
        "graphics": {
            "webGL": {"vendor": "Google Inc. (Apple)", "renderer": RENDERER},
            "webgpu": {"vendor": "apple", "architecture": "metal-3", "device": "", "description": ""},
            "canvas": {"hasModifiedCanvas": False, "canvasFingerprint": "-421c84e0"},
        },
        "codecs": {"audioCanPlayTypeHash": "688c7345", "rtcVideoCapabilitiesHash": "NA", "hasMediaSource": True},
        "locale": {
            "internationalization": {"timezone": "Europe/Paris", "localeLanguage": "en-US"},
            "languages": {"languages": ["en", "en-US", "fr-FR", "fr"], "language": "en"},
        },
        "contexts": {"iframe": IFRAME, "webWorker": WORKER},
    }  # fmt: skip
    return {name: section | changes.get(name, {}) for name, section in report.items()}


def test_the_sections_give_attributes_and_claims():
    report = read_report(sections(), FACTS)
    assert report.collectors == ("fpscanner",)
    assert report.attributes[Attribute.GPU] == "fpscanner:apple m4 max"
    assert report.attributes[Attribute.SCREEN] == "fpscanner:2304x1296"
    assert report.attributes[Attribute.FRAME] == "fpscanner:0,31"
    assert report.attributes[Attribute.HARDWARE] == "fpscanner:14/8"
    assert report.attributes[Attribute.COLOUR] == "fpscanner:30/p3/10"
    assert report.attributes[Attribute.CANVAS] == "fpscanner:-421c84e0"
    assert report.attributes[Attribute.ACCESSIBILITY] == "fpscanner:reducedTransparency=true"
    assert report.attributes[Attribute.LANGUAGES] == "fpscanner:en,en-us,fr-fr,fr"
    claims = report.claims
    assert (claims.user_agent, claims.platform, claims.webdriver) == (CHROME, "MacIntel", False)
    assert (claims.screen, claims.inner_window, claims.outer_window) == ((2304, 1296), (1444, 1144), None)
    assert (claims.cores, claims.memory_gb, claims.plugin_count) == (14, 8, 5)
    assert (claims.gpu_vendor, claims.gpu_renderer) == ("Google Inc. (Apple)", RENDERER)
    assert claims.hints.brands == (("Chromium", "144"), ("Google Chrome", "144"))
    assert claims.driver_marks == ("cdp",)
    assert {"codecs.audioCanPlayTypeHash=688c7345", "extensions[]=metamask", "media.speakers=1"} <= set(report.rest)


def test_values_from_an_iframe_and_a_worker_are_kept_for_comparison():
    contexts = read_report(sections(), FACTS).claims.contexts
    assert contexts is not None
    assert contexts["iframe"] == {
        "user_agent": CHROME, "platform": "MacIntel", "language": "en", "cores": 14, "memory_gb": 8,
        "webdriver": False,
    }  # fmt: skip
    assert contexts["worker"]["gpu_renderer"] == RENDERER
    silent = sections(contexts={"iframe": dict.fromkeys(IFRAME, "ERROR"), "webWorker": dict.fromkeys(WORKER, "NA")})
    assert read_report(silent, FACTS).claims.contexts is None


@pytest.mark.parametrize(
    "signals",
    [
        {"fpscanner": sections()},
        {"fpscanner": {"signals": sections(), "fsid": "FS1_0"}},
        {"signals": sections(), "fsid": "FS1_0", "url": "https://a.example/", "fastBotDetection": True},
    ],
    ids=["named", "named whole answer", "whole answer"],
)
def test_the_sections_are_found_at_any_level(signals: dict[str, Any]):
    report, bare = read_report(signals, FACTS), read_report(sections(), FACTS)
    assert report.collectors == ("fpscanner",)
    assert (report.attributes, report.claims, report.rest) == (bare.attributes, bare.claims, bare.rest)


@pytest.mark.parametrize("missing", ["automation", "graphics", "contexts"])
def test_without_one_of_its_marker_fields_it_is_not_an_fpscanner_report(missing: str):
    signals = sections()
    del signals[missing]
    assert read_report(signals, FACTS).collectors == ()


def test_every_value_names_its_collector():
    assert all(value.startswith("fpscanner:") for value in read_report(sections(), FACTS).attributes.values())


def sentinel_everywhere(value: Any, sentinel: str) -> Any:
    if isinstance(value, dict):
        return {name: sentinel_everywhere(inner, sentinel) for name, inner in value.items()}
    return sentinel


@pytest.mark.parametrize("sentinel", ["ERROR", "NA", "SKIPPED", "INIT"])
def test_a_placeholder_text_is_not_compared(sentinel: str):
    report = read_report(sentinel_everywhere(sections(), sentinel), FACTS)
    assert report.collectors == ("fpscanner",)
    assert report.attributes == {}
    assert report.rest == ()
    claims = report.claims
    assert (claims.user_agent, claims.platform, claims.gpu_renderer, claims.timezone) == (None, None, None, None)
    assert (claims.webdriver, claims.driver_marks, claims.contexts) == (None, None, None)


@pytest.mark.parametrize(
    ("section", "change", "attribute"),
    [
        ("graphics", {"webGL": {"vendor": "NA", "renderer": "NA"}}, Attribute.GPU),
        ("graphics", {"canvas": {"canvasFingerprint": "ERROR"}}, Attribute.CANVAS),
        ("graphics", {"canvas": {"canvasFingerprint": "-421c84e0", "hasModifiedCanvas": True}}, Attribute.CANVAS),
        ("device", {"cpuCount": "NA", "memory": "NA"}, Attribute.HARDWARE),
        ("device", {"screenResolution": {"width": "INIT", "height": "INIT"}}, Attribute.SCREEN),
        ("device", {"mediaQueries": dict.fromkeys(("colorGamut", "prefersReducedMotion"), "SKIPPED")},
         Attribute.ACCESSIBILITY),
        ("browser", {"plugins": {"pluginCount": "NA", "pluginNamesHash": "NA"}}, Attribute.PLUGINS),
        ("browser", {"maths": "ERROR", "etsl": "ERROR"}, Attribute.MISCELLANEOUS),
        ("locale", {"languages": {"languages": "NA", "language": "NA"}}, Attribute.LANGUAGES),
        ("locale", {"internationalization": {"timezone": "ERROR"}}, Attribute.TIMEZONE),
    ],
)  # fmt: skip
def test_one_missing_value_leaves_one_attribute_unset(section: str, change: dict[str, Any], attribute: Attribute):
    assert attribute in read_report(sections(), FACTS).attributes
    assert attribute not in read_report(sections(**{section: change}), FACTS).attributes


@pytest.mark.parametrize(
    ("change", "driven"),
    [
        ({"automation": {"webdriver": True}}, True),
        ({"contexts": {"iframe": IFRAME | {"webdriver": True}}}, True),
        ({"contexts": {"webWorker": WORKER | {"webdriver": True}}}, True),
        ({"automation": {"webdriver": "true"}}, False),
        ({}, False),
    ],
)
def test_a_driver_is_detected_by_any_of_its_flags(change: dict[str, Any], driven: bool):
    report = read_report(sections(**change), FACTS)
    fired = {seen.signal for seen in detect(report, FACTS, Agent(), NOWHERE, "web")}
    assert ("automation" in fired) is driven
    assert (report.claims.webdriver is True) is driven


def test_a_write_to_a_missing_webdriver_proves_nothing():
    replaced = sections(automation={"webdriver": False, "webdriverWritable": True})
    assert "webdriver_writable" in (read_report(replaced, FACTS).claims.driver_marks or ())
    del replaced["automation"]["webdriver"]
    assert "webdriver_writable" not in (read_report(replaced, FACTS).claims.driver_marks or ())


@pytest.mark.parametrize(
    ("queries", "pointer"),
    [
        ({"anyPointer": "none", "anyHover": False}, False),
        ({"anyPointer": "coarse", "anyHover": False}, True),
        ({"anyPointer": "none", "anyHover": True}, True),
        ({}, None),
    ],
)
def test_the_media_queries_report_whether_a_pointer_exists(queries: dict[str, Any], pointer: bool | None):
    device = {**sections()["device"], "mediaQueries": queries}
    assert read_report(sections(device=device), FACTS).claims.pointer is pointer


def test_a_person_with_open_developer_tools_is_not_a_suspect():
    """`cdp` is true for them: it is kept, and alone it is no proof."""
    seen = detect(read_report(sections(), FACTS), FACTS, Agent(), NOWHERE, "web")
    assert seen == (Observation("developer_tools", "low", ("debugger_attached",)),)
    told = read_report({**sections(), "developer_tools": True}, FACTS)
    assert [one.evidence for one in detect(told, FACTS, Agent(), NOWHERE, "web")] == [("developer_tools_open",)]


@pytest.mark.parametrize(
    "signals",
    [{**sections(), "developer_tools": False}, sections(device={"platform": "Linux x86_64"})],
    ids=["closed tools", "a contradiction"],
)
def test_a_debugger_without_developer_tools_or_with_a_contradiction_is_automation(signals: dict[str, Any]):
    seen = {one.signal: one for one in detect(read_report(signals, FACTS), FACTS, Agent(), NOWHERE, "web")}
    assert seen["automation"].evidence == ("debugger_attached",)


def test_a_value_that_changes_with_the_hour_is_not_an_attribute():
    queries = sections()["device"]["mediaQueries"] | {"prefersColorScheme": "light"}
    before, after = read_report(sections(), FACTS), read_report(sections(device={"mediaQueries": queries}), FACTS)
    assert after.attributes == before.attributes


def test_the_hash_of_the_standard_plugins_equals_that_of_the_library():
    number = 0
    for character in ",".join(STANDARD_PLUGINS):
        number = (number * 31 + ord(character)) & 0xFFFFFFFF
    assert f"{number - 2**32 if number >= 2**31 else number:x}" == STANDARD_PLUGINS_HASH


def test_brave_is_masked_by_its_feature_and_by_its_brand():
    feature = {"features": {"brave": True}}
    brand = {"highEntropyValues": {"brands": [{"brand": "Brave", "version": "144"}]}}
    for change in (feature, brand):
        shields_down = read_report(sections(browser=change), FACTS)
        assert Attribute.CANVAS in shields_down.masked
        assert Attribute.HARDWARE in shields_down.attributes
        plugins = {"plugins": {"pluginCount": 4, "pluginNamesHash": "1b2c"}}
        shields_up = read_report(sections(browser=change | plugins), FACTS)
        assert {Attribute.CANVAS, Attribute.HARDWARE, Attribute.PLUGINS} <= shields_up.masked
        assert shields_up.masked.isdisjoint(shields_up.attributes)


def test_firefox_with_resist_fingerprinting_is_masked():
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    screen = {"width": 1400, "height": 900, "availableWidth": 1400, "availableHeight": 900}
    report = read_report(
        sections(
            browser={"userAgent": firefox},
            device={"cpuCount": 2, "screenResolution": screen},
            locale={"internationalization": {"timezone": "UTC"}},
        ),
        FACTS,
    )
    assert {Attribute.CANVAS, Attribute.SCREEN, Attribute.TIMEZONE} <= report.masked


def test_the_model_of_a_phone_comes_from_its_hints():
    values = sections()["browser"]["highEntropyValues"] | {"model": "Pixel 8", "mobile": True, "platform": "Android"}
    report = read_report(sections(browser={"highEntropyValues": values}), FACTS)
    assert report.attributes[Attribute.MODEL] == "fpscanner:Pixel 8"


@pytest.mark.parametrize(
    ("change", "patched"),
    [
        ({}, False),
        ({"isValidPluginArray": False}, True),
        ({"pluginConsistency1": False}, True),
        ({"pluginOverflow": True}, True),
        (dict.fromkeys(("isValidPluginArray", "pluginConsistency1", "pluginOverflow"), "NA"), None),
    ],
)
def test_a_replaced_plugin_list_is_detected(change: dict[str, Any], patched: bool | None):
    plugins = sections()["browser"]["plugins"] | change
    assert read_report(sections(browser={"plugins": plugins}), FACTS).claims.plugins_patched is patched


def test_the_constants_for_detection_are_read():
    claims = read_report(sections(), FACTS).claims
    assert (claims.eval_length, claims.canvas_noise, claims.language) == (33, False, "en")
    assert (claims.vendor_flavors, claims.hints.grease) == (("chrome",), "Not(A:Brand")
    noisy = sections(graphics={"canvas": {"canvasFingerprint": "-421c84e0", "hasModifiedCanvas": True}})
    assert read_report(noisy, FACTS).claims.canvas_noise is True
