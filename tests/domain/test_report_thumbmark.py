"""ThumbmarkJS component trees and the traps of its real output (docs/report-fields.md)."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.matching import extract
from svc.identify.model import Attribute, ClientHints, RequestFacts
from svc.identify.report import read_report
from svc.identify.report.masks import STANDARD_PLUGINS
from svc.identify.useragent import read_agent

FACTS = RequestFacts(ip="192.0.2.1")
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
)
ADRENO = {"vendor": "Qualcomm", "renderer": "Adreno (TM) 740", "version": "WebGL 1.0", "shadingLanguageVersion": "1.0"}


def tree(**changes: Any) -> dict[str, Any]:
    """Components as the library sends them; a change replaces a component."""
    components: dict[str, Any] = {
        "audio": {"sampleHash": 1169.6506528854370, "maxChannels": 1, "channelCountMode": "max"},
        "canvas": {"commonPixelsHash": "5b4ad8dbd2bc33ef2b2a2b1a0c9c8d9e"},
        "fonts": {"Arial": 329.77, "Calibri": 311.2, "Georgia": 349.1},
        "hardware": {
            "videocard": ADRENO,
            "architecture": 127,
            "deviceMemory": "8",
            "jsHeapSizeLimit": 4294967296,
        },
        "locales": {"languages": "de-DE", "timezone": "Europe/Berlin"},
        "math": {"acos": 1.0471975511965979, "cos": -4.8572e-17, "largeCos": 0.7639704044417283},
        "permissions": {"camera": "granted", "push": "prompt"},
        "plugins": {"plugins": [f"{name}|internal-pdf-viewer|Portable Document Format" for name in STANDARD_PLUGINS]},
        "screen": {
            "is_touchscreen": True,
            "maxTouchPoints": 5,
            "colorDepth": 24,
            "mediaMatches": ["any-pointer: coarse", "prefers-reduced-motion: reduce", "update: fast"],
            "resolution": "915x412",
        },
        "system": {
            "platform": "Linux armv81",
            "productSub": "20030107",
            "product": "Gecko",
            "useragent": CHROME,
            "hardwareConcurrency": 8,
            "browser": {"name": "Chrome", "version": "142.0"},
            "mobile": True,
            "applePayVersion": 0,
            "cookieEnabled": True,
        },
        "webgl": {"commonPixelsHash": "8c2f9d1e7a6b5c4d3e2f1a0b9c8d7e6f"},
        "webrtc": {"details": {"supported": True, "audio": {"count": 9, "hash": "aa"}, "candidateType": "host"}},
        "mathml": {"details": {"fontStyleHash": "x", "dimensions": []}, "hash": "bb"},
        "speech": {"details": {"voiceCount": 20, "voicesHash": "cc"}, "hash": "dd"},
    }
    return components | changes


def attribute(name: Attribute, **changes: Any) -> str | None:
    return read_report({"thumbmark": tree(**changes)}, FACTS).attributes.get(name)


def test_a_tree_gives_attributes_and_claims():
    report = read_report({"thumbmark": tree()}, FACTS)
    assert report.collectors == ("thumbmark",)
    assert report.attributes[Attribute.GPU] == "thumbmark:adreno 740"
    assert report.attributes[Attribute.SCREEN] == "thumbmark:915x412"
    assert report.attributes[Attribute.HARDWARE] == "thumbmark:8/8"
    assert report.attributes[Attribute.TOUCH] == "thumbmark:5/127/Linux armv81"
    assert report.attributes[Attribute.FIRST_LANGUAGE] == "thumbmark:de-de"
    assert report.attributes[Attribute.AUDIO] == "thumbmark:1169.6507"
    assert report.attributes[Attribute.ACCESSIBILITY] == "thumbmark:reducedMotion=reduce"
    assert report.fonts == ("Arial", "Calibri", "Georgia")
    claims = report.claims
    assert (claims.user_agent, claims.platform, claims.product_sub) == (CHROME, "Linux armv81", "20030107")
    assert (claims.screen, claims.touch_points, claims.plugin_count) == ((915, 412), 5, 5)
    assert (claims.cores, claims.memory_gb, claims.timezone) == (8, 8, "Europe/Berlin")
    assert "permissions.camera=granted" in report.rest
    assert not any("push" in leaf or "candidateType" in leaf for leaf in report.rest)


@pytest.mark.parametrize(
    "signals",
    [
        {"thumbmark": tree()},
        {"thumbmark": {"components": tree(), "info": {}, "version": "1.3.0", "thumbmark": "ab" * 16}},
        {"components": tree(), "info": {}, "version": "1.3.0", "thumbmark": "ab" * 16},
        tree(),
    ],
    ids=["named", "named whole answer", "whole answer", "top level"],
)
def test_the_tree_is_found_at_any_level(signals: dict[str, Any]):
    report = read_report(signals, FACTS)
    assert report.collectors == ("thumbmark",)
    assert report.attributes == read_report({"thumbmark": tree()}, FACTS).attributes
    assert report.rest == read_report({"thumbmark": tree()}, FACTS).rest


def test_every_value_names_its_collector():
    assert all(value.startswith("thumbmark:") for value in read_report(tree(), FACTS).attributes.values())


def test_values_of_two_collectors_are_never_equal():
    flat = {"userAgent": CHROME, "timezone": "Europe/Berlin", "hardwareConcurrency": 8, "deviceMemory": 8}
    plain = read_report(flat, FACTS)
    mine = read_report(tree(), FACTS)
    assert set(plain.attributes.values()).isdisjoint(mine.attributes.values())
    first, second = (extract(report, read_agent(FACTS, report), FACTS) for report in (plain, mine))
    assert first.collector != second.collector
    assert first.values[Attribute.TIMEZONE] != second.values[Attribute.TIMEZONE]


def test_a_second_collector_fills_what_the_first_left_unset():
    components = {
        "timezone": {"value": "Europe/Paris", "duration": 1},
        "platform": {"value": "Win32", "duration": 0},
    }
    report = read_report({"components": components, "thumbmark": tree()}, FACTS)
    assert report.collectors == ("fingerprintjs", "thumbmark")
    assert report.attributes[Attribute.TIMEZONE] == "fingerprintjs:Europe/Paris"
    assert report.attributes[Attribute.CANVAS].startswith("thumbmark:")


@pytest.mark.parametrize("failed", [{"timeout": "true"}, {"error": "denied"}, None, "undefined", 7, []])
@pytest.mark.parametrize(
    "name",
    ["audio", "canvas", "fonts", "hardware", "locales", "math", "permissions", "plugins", "screen", "system", "webgl"],
)
def test_a_component_that_failed_is_not_compared(name: str, failed: Any):
    absent = tree()
    del absent[name]
    report = read_report({"thumbmark": tree(**{name: failed})}, FACTS)
    assert report == read_report({"thumbmark": absent}, FACTS)
    assert report != read_report({"thumbmark": tree()}, FACTS)


def test_failed_components_are_not_mistaken_for_those_of_fingerprintjs():
    failed = {name: {"error": "x"} for name in ("audio", "fonts", "plugins", "math")}
    assert read_report(tree(**failed), FACTS).collectors == ("thumbmark",)
    assert read_report({"components": tree(**failed)}, FACTS).collectors == ("thumbmark",)


@pytest.mark.parametrize("heard", [0, -1, -4.0, None, "1169", True])
def test_a_failed_audio_measurement_is_not_compared(heard: Any):
    assert attribute(Attribute.AUDIO, audio={"sampleHash": heard}) is None


@pytest.mark.parametrize("memory", ["0", "undefined", "", 0, None, "eight", "-8"])
def test_unreported_memory_is_not_compared(memory: Any):
    hardware = {"videocard": ADRENO, "deviceMemory": memory}
    assert attribute(Attribute.HARDWARE, hardware=hardware) == "thumbmark:8/"
    assert attribute(Attribute.HARDWARE, hardware=hardware | {"deviceMemory": 8}) == "thumbmark:8/8"


@pytest.mark.parametrize(
    "card",
    ["undefined", None, {}, {"vendor": "WebKit", "renderer": "WebKit WebGL"}, {"vendor": "", "renderer": ""}],
)
def test_a_generic_renderer_name_is_ignored(card: Any):
    assert attribute(Attribute.GPU, hardware={"videocard": card}) is None


def test_the_unmasked_renderer_takes_precedence_over_the_masked_one():
    card = {"vendor": "WebKit", "renderer": "WebKit WebGL", "rendererUnmasked": "Apple M2", "vendorUnmasked": "Apple"}
    assert attribute(Attribute.GPU, hardware={"videocard": card}) == "thumbmark:apple m2"


def test_canvas_has_one_value_under_either_of_its_names():
    older = attribute(Attribute.CANVAS, canvas={"commonImageDataHash": "5b4ad8dbd2bc33ef2b2a2b1a0c9c8d9e"})
    assert older == attribute(Attribute.CANVAS)
    assert attribute(Attribute.WEBGL, webgl={"webgl": "unsupported"}) is None


def test_languages_may_be_a_list_or_the_first_one():
    assert attribute(Attribute.LANGUAGES, locales={"languages": ["de-DE", "en"]}) == "thumbmark:de-de,en"
    assert attribute(Attribute.LANGUAGES, locales={"languages": "de-DE"}) == "thumbmark:de-de"


def test_values_that_change_with_the_hour_or_the_release_are_not_attributes():
    before = read_report({"thumbmark": tree()}, FACTS)
    screen = tree()["screen"] | {
        "mediaMatches": ["prefers-color-scheme: dark", "any-pointer: coarse", "prefers-reduced-motion: reduce"]
    }
    hardware = tree()["hardware"] | {"jsHeapSizeLimit": 2172649472}
    math = tree()["math"] | {"cos": 1.1102230246251565e-16}
    after = read_report({"thumbmark": tree(screen=screen, hardware=hardware, math=math)}, FACTS)
    assert after.attributes == before.attributes


def test_an_installed_font_leaves_the_widths_of_the_standard_ones():
    more = tree()["fonts"] | {"Fira Code": 432.0}
    assert attribute(Attribute.FONTS, fonts=more) != attribute(Attribute.FONTS)
    assert attribute(Attribute.FONT_PREFERENCES, fonts=more) == attribute(Attribute.FONT_PREFERENCES)
    assert attribute(Attribute.FONTS, fonts={}) == "thumbmark:none"


def test_voices_that_have_not_loaded_are_not_compared():
    early = {"details": {"voiceCount": 0, "voicesHash": "empty"}, "hash": "x"}
    assert "speech=cc" in read_report({"thumbmark": tree()}, FACTS).rest
    assert not any(leaf.startswith("speech") for leaf in read_report({"thumbmark": tree(speech=early)}, FACTS).rest)


def test_custom_components_of_the_page_are_in_the_rest():
    report = read_report({"thumbmark": tree(shop={"theme": "dark"}, late={"timeout": "true"})}, FACTS)
    assert "shop.theme=dark" in report.rest
    assert not any(leaf.startswith("late") for leaf in report.rest)


def test_brave_is_masked_by_its_header_and_by_the_verdict_of_the_library():
    brand = RequestFacts(ip="192.0.2.1", hints=ClientHints(brands=(("Brave", "142"),)))
    system = tree()["system"] | {"browser": {"name": "Brave", "version": "142.0"}}
    random = {"plugins": ["x7Gh|a|b"]}
    for report in (
        read_report(tree(plugins=random), brand),
        read_report(tree(plugins=random, system=system), FACTS),
    ):
        assert {Attribute.CANVAS, Attribute.AUDIO, Attribute.FONTS, Attribute.HARDWARE} <= report.masked
        assert report.masked.isdisjoint(report.attributes)
        assert report.fonts == ()
    assert Attribute.HARDWARE in read_report(tree(), brand).attributes


def test_safari_is_masked_in_private_windows():
    safari = (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
        "Safari/605.1.15"
    )
    report = read_report(tree(system={"useragent": safari}) | {"incognito": True}, FACTS)
    assert Attribute.CANVAS in report.masked


@pytest.mark.parametrize(
    "signals",
    [
        {"thumbmark": "5b4ad8db"},
        {"thumbmark": {}},
        {"thumbmark": {"audio": {"other": 1}}},
        {"audio": {"sampleHash": 1169.65}},
        {"components": {"locales": {"timezone": "UTC"}}},
    ],
)
def test_without_its_marker_fields_it_is_not_a_thumbmark_tree(signals: dict[str, Any]):
    assert read_report(signals, FACTS).collectors == ()


def test_a_flat_report_beside_the_tree_keeps_its_own_values():
    report = read_report({"userAgent": CHROME, "vendor": "Google Inc.", "theme": "dark", **tree()}, FACTS)
    assert report.collectors == ("thumbmark", "plain")
    assert report.claims.vendor == "Google Inc."
    assert report.attributes[Attribute.CANVAS].startswith("thumbmark:")
    assert "theme=dark" in report.rest
