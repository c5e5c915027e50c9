"""Whatever arrives as a report gives a `Report`, and detection looks at it without failing.

Reports come from machines that nobody vouches for.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.identify.detection import detect
from svc.identify.model import Agent, ClientHints, Network, Report, RequestFacts
from svc.identify.report import fpscanner, native, read_report, thumbmark
from svc.identify.report.fingerprintjs import KNOWN
from svc.identify.report.plain import READ_HERE
from svc.identify.report.values import MAX_FIGURES, figures
from svc.identify.scoring.signals import CATALOG
from svc.identify.useragent import read_agent
from svc.kernel.values.fields import PLATFORMS
from tests.support.effort import effort

FACTS = RequestFacts(ip="192.0.2.1", user_agent="Mozilla/5.0")
DESKTOPS = tuple(
    RequestFacts(
        ip="192.0.2.1",
        user_agent=user_agent,
        accept_language="de",
        hints=ClientHints(brands=(("Chromium", "140"),), grease="Not A Brand", platform="Windows"),
    )
    for user_agent in (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML) Chrome/140.0.0.0 Safari/537.36",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML) Version/18.5 Safari/605.1.15",
    )
)
"""Every check of detection has something to say of one of them."""
ABROAD = Network(state="enriched", country_code="JP", vpn=True)
CAPTURES = Path(__file__).parents[3] / "shared" / "data"

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, -0.0, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["\ud800", "\x00", "a" * 5_000, "skipped", "Brave", "ANGLE (" * 40, "(" * 300, "Not;A=Brand"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["value", "duration", "state", "\ud800"]), inner, max_size=6
        )
    ),
    max_leaves=25,
)
names = st.sampled_from(sorted(KNOWN | READ_HERE | {"components", "botd", "extra", "client_token", "nonce", "tier"}))


def check(signals: dict[str, Any]) -> None:
    report = read_report(signals, FACTS)
    assert isinstance(report, Report)
    assert report == read_report(signals, FACTS)
    assert len(report.rest) <= 128
    assert list(report.rest) == sorted(report.rest)
    assert report.masked.isdisjoint(report.attributes)
    for value in report.attributes.values():
        assert value.split(":")[0] in report.collectors
        assert len(value) < 128
    assert list(report.device_flags) == sorted(set(report.device_flags))
    assert report.client_token is None or 16 <= len(report.client_token) <= 64
    # What is stored of it can be written.
    msgspec.json.encode((list(report.attributes.values()), report.rest, report.fonts, report.claims))
    msgspec.json.encode((report.client_token, report.device_flags, report.factory_reset_at_ms))
    for facts in (FACTS, *DESKTOPS):
        for platform in PLATFORMS:
            seen = detect(report, facts, Agent(), ABROAD, platform, 1_767_607_200_000)
            assert all(platform in CATALOG[observation.signal].weights for observation in seen)
    assert len(msgspec.json.encode(report.claims.contexts)) < 8_192


@pytest.mark.slow
@given(st.dictionaries(names | st.text(max_size=8), values, max_size=12))
def test_any_object_is_read(signals: dict[str, Any]):
    check(signals)


@pytest.mark.slow
@given(st.dictionaries(names, values.map(lambda value: {"value": value, "duration": 1}), max_size=12), st.booleans())
def test_components_of_any_type_are_read(entries: dict[str, Any], nested: bool):
    check({"components": entries} if nested else entries)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=8), values.map(lambda value: {"value": value, "state": 0}), max_size=12))
def test_botd_components_of_any_type_are_read(entries: dict[str, Any]):
    check({"botd": entries})


TREE = {
    "audio": {"sampleHash": 1169.65, "maxChannels": 1},
    "canvas": {"commonPixelsHash": "5b4ad8dbd2bc33ef"},
    "fonts": {"Arial": 329.77, "Calibri": 311.2},
    "hardware": {
        "videocard": {"vendor": "Qualcomm", "renderer": "Adreno (TM) 740"}, "architecture": 127, "deviceMemory": "8",
    },
    "locales": {"languages": ["de-DE"], "timezone": "Europe/Berlin"},
    "math": {"acos": 1.047, "cos": -4.8e-17},
    "permissions": {"camera": "granted"},
    "plugins": {"plugins": ["PDF Viewer|a|b"]},
    "screen": {"maxTouchPoints": 5, "colorDepth": 24, "mediaMatches": ["pointer: coarse"], "resolution": "915x412"},
    "system": {"platform": "Linux armv81", "useragent": "Mozilla/5.0", "hardwareConcurrency": 8, "cookieEnabled": True},
    "webgl": {"commonPixelsHash": "8c2f9d1e7a6b5c4d"},
    "webrtc": {"details": {"audio": {"count": 9, "hash": "aa"}}},
    "speech": {"details": {"voiceCount": 20, "voicesHash": "cc"}},
}  # fmt: skip
CONTEXT = {"webdriver": False, "userAgent": "Mozilla/5.0", "platform": "Win32", "memory": 8, "cpuCount": 4}
SECTIONS = {
    "automation": {"webdriver": False, "selenium": False, "cdp": True},
    "device": {
        "cpuCount": 14, "memory": 8, "platform": "MacIntel", "multimediaDevices": {"speakers": 1},
        "screenResolution": {"width": 2304, "height": 1296, "availableWidth": 2304, "availableHeight": 1265,
                             "colorDepth": 30, "innerWidth": 1444, "innerHeight": 1144},
        "mediaQueries": {"prefersReducedMotion": False, "colorGamut": "p3", "pointer": "fine", "colorDepth": 10},
    },
    "browser": {
        "userAgent": "Mozilla/5.0", "features": {"brave": True}, "extensions": {"extensions": []}, "etsl": 33,
        "plugins": {"pluginCount": 5, "pluginNamesHash": "-2cdc5c8b"}, "maths": "67d0b556",
        "highEntropyValues": {"brands": [{"brand": "Chromium", "version": "144"}], "mobile": False, "model": "x"},
    },
    "graphics": {"webGL": {"vendor": "a", "renderer": "b"}, "canvas": {"canvasFingerprint": "-421c84e0"}},
    "codecs": {"audioCanPlayTypeHash": "688c7345"},
    "locale": {"internationalization": {"timezone": "UTC"}, "languages": {"languages": ["en"], "language": "en"}},
    "contexts": {"iframe": CONTEXT, "webWorker": CONTEXT | {"vendor": "a", "renderer": "b"}},
}  # fmt: skip
APP = {
    "platform": "android", "device": {"model": "Pixel 8", "manufacturer": "Google", "android_id": "a1b2c3d4e5f60718"},
    "os_version": "15", "os_build": "AP4A", "screen": {"width": 1080, "height": 2400, "scale": 2.625}, "cores": 9,
    "memory_mb": 7532, "disk_gb": 110, "gpu": {"vendor": "ARM", "renderer": "Mali"}, "languages": ["en"],
    "timezone": "UTC", "font_scale": 1.15, "rooted": True, "flags": {"frida": True}, "abi": "arm64-v8a",
    "factory_reset_at": 1_767_607_200_000, "app": {"bundle": "com.example"},
}  # fmt: skip
PROBES: dict[str, Any] = {
    "version": 1,
    "contexts": {
        "page": {"userAgent": "Mozilla/5.0", "platform": "Win32", "language": "de", "languages": ["de"], "cores": 4,
                 "memory": 8, "webdriver": False, "timeZone": "Europe/Berlin"},
        "iframe": {"userAgent": "Mozilla/5.0", "timeZone": "Europe/Berlin", "cores": 4, "gpuVendor": "a"},
        "worker": {"userAgent": "Mozilla/5.0", "timeZone": "Europe/Berlin", "memory": 8, "gpuRenderer": "b"},
    },
    "hints": {"brands": [{"brand": "Chromium", "version": "144"}], "mobile": False, "platform": "Linux", "model": "x"},
    "drivers": {"webdriver": False, "webdriverWritable": False, "selenium": False, "playwright": True},
    "plugins": {"count": 5, "genuine": True, "linked": True, "overflows": False},
    "canvas": {"noise": False},
    "media": {"anyPointer": "fine", "anyHover": True},
}  # fmt: skip
SHAPES: list[dict[str, Any]] = [
    {"probes": PROBES},
    TREE,
    {"thumbmark": TREE},
    {"thumbmark": {"components": TREE}},
    SECTIONS,
    {"fpscanner": {"signals": SECTIONS}},
    APP,
    {**TREE, **SECTIONS, **APP},
]


def captures() -> list[dict[str, Any]]:
    """One report of each shape."""
    if not CAPTURES.is_dir():
        return []
    with gzip.open(CAPTURES / "bots" / "captures.jsonl.gz", "rt") as lines:
        capture = json.loads(next(lines))
    with gzip.open(CAPTURES / "linkage" / "small" / "fps.jsonl.gz", "rt") as lines:
        flat = json.loads(next(lines))["signals"]
    return [{"components": capture["components"], "botd": capture["botComponents"]}, capture["components"], flat]


REAL = captures()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:3]):
            found += places(inner, (*path, index))
    return found


def replaced(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    if not path:
        return change
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], change)
    return copy


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="needs the captures in shared/data, which are not here")
@given(st.data())
@settings(max_examples=effort(40, 300), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_real_capture_is_read_with_any_of_its_values_replaced(data: st.DataObject):
    signals = data.draw(st.sampled_from(REAL))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(places(signals)[1:]))
        signals = replaced(signals, path, data.draw(values))
        if len(places(signals)) < 2:
            break
    check(signals)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=effort(25, 400), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_report_of_every_shape_is_read_with_any_of_its_values_replaced(data: st.DataObject):
    signals = data.draw(st.sampled_from(SHAPES))
    for _ in range(data.draw(st.integers(1, 5))):
        signals = replaced(signals, data.draw(st.sampled_from(places(signals)[1:])), data.draw(values))
        if len(places(signals)) < 2:
            break
    check(signals)


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(sorted(native.READ_HERE)) | st.text(max_size=8), values, max_size=12),
    st.sampled_from(["ios", "android"]),
)
@settings(deadline=None)  # the first user agent takes its time
def test_app_fields_of_any_type_are_read(entries: dict[str, Any], platform: str):
    signals = {**entries, "platform": platform, "device": entries}
    check(signals)
    read_agent(FACTS, read_report(signals, FACTS))


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from([*sorted(thumbmark.KNOWN), *fpscanner.SECTIONS]), values, max_size=12))
def test_trees_and_sections_of_any_type_are_read(entries: dict[str, Any]):
    check({"thumbmark": {**TREE, **entries}, "fpscanner": {**SECTIONS, **entries}})


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    "signals",
    [
        {"userAgent": "x", "more": deep(15)},
        {"userAgent": "x", "fonts": ["f"] * 20_000},
        {"userAgent": "x" * 1_000_000, "platform": "p" * 1_000_000, "languages": ["l" * 1_000_000] * 10},
        {"userAgent": "x", "canvas": "c" * 1_000_000},
        {"userAgent": "x", **{f"key{number}": number for number in range(20_000)}},
        {"userAgent": "x", "k" * 1_000_000: {"k" * 1_000_000: 1}},
        {"components": {"fonts": {"value": 1}} | {f"key{number}": {"value": number} for number in range(9_000)}},
        {"components": {"webGlExtensions": {"value": {"parameters": ["A=1=2"] * 19_000}}}},
        {"components": {"plugins": {"value": [{"name": "n"}] * 9_000}, "languages": {"value": [["x"] * 9] * 900}}},
        {"components": {"webGlBasics": {"value": {"rendererUnmasked": "ANGLE (" + "(,)" * 80}}}},
        {"botd": {f"c{number}": {"state": 0, "value": [number] * 30} for number in range(600)}},
        {"thumbmark": TREE | {"fonts": {f"font{number}": number for number in range(20_000)}}},
        {"thumbmark": TREE | {"math": {f"m{number}": number for number in range(20_000)}, "x": deep(15)}},
        {"thumbmark": TREE | {"plugins": {"plugins": ["p" * 900] * 9_000}, "permissions": {"k" * 1_000_000: "x"}}},
        {"thumbmark": TREE | {"screen": {"mediaMatches": ["pointer: " + "x" * 50] * 9_000}}},
        {"fpscanner": SECTIONS | {"codecs": {f"c{number}": "h" * 1_000 for number in range(20_000)}}},
        {"fpscanner": SECTIONS | {"contexts": {"iframe": dict.fromkeys(CONTEXT, "x" * 1_000_000)}}},
        {"probes": PROBES | {"contexts": {"worker": dict.fromkeys(PROBES["contexts"]["page"], "x" * 1_000_000)}}},
        APP | {f"key{number}": number for number in range(20_000)},
        APP | {"model": "m" * 1_000_000, "device": deep(15), "languages": ["l" * 60] * 20_000},
    ],
    ids=lambda signals: ",".join(sorted(signals)[:3])[:40],
)  # fmt: skip
def test_very_large_and_deep_reports_are_read(signals: dict[str, Any]):
    check(signals)


def test_figures_are_the_numbers_of_an_object_of_bounded_size():
    many = {f"m{number}": number for number in range(MAX_FIGURES)}
    assert figures(many) == many
    assert figures(many | {"one": 1}) is None
    assert figures({"a": 1, "b": "1", "c" * 33: 1, "\ud800": 1, "d": True, "e": 1e16}) == {"a": 1}
    assert figures([1]) is figures(None) is None
