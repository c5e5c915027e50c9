"""FingerprintJS components and the traps of its real output (docs/report-fields.md)."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from svc.identify.model import Attribute, RequestFacts
from svc.identify.report import read_report

FACTS = RequestFacts(ip="192.0.2.1")
VALUES: dict[str, Any] = {
    "fonts": ["Calibri"],
    "fontPreferences": {"default": 149.3, "apple": 149.3, "serif": 149.3, "sans": 144.0, "mono": 133.0, "min": 9.3},
    "audio": 124.04347527516074,
    "screenFrame": [0, 0, 40, 0],
    "canvas": {"winding": True, "geometry": "data:image/png;base64,AAA", "text": "data:image/png;base64,BBB"},
    "languages": [["en-US"], ["en-US", "de"]],
    "colorDepth": 24,
    "deviceMemory": 8,
    "screenResolution": [1920, 1080],
    "hardwareConcurrency": 8,
    "timezone": "Europe/Berlin",
    "sessionStorage": True,
    "localStorage": True,
    "indexedDB": True,
    "openDatabase": False,
    "platform": "Linux x86_64",
    "plugins": [{"name": "PDF Viewer", "description": "x", "mimeTypes": []}],
    "touchSupport": {"maxTouchPoints": 0, "touchEvent": False, "touchStart": False},
    "vendor": "Google Inc.",
    "vendorFlavors": ["chrome"],
    "cookiesEnabled": True,
    "colorGamut": "srgb",
    "contrast": 0,
    "reducedMotion": False,
    "hdr": False,
    "math": {"acos": 1.4473588658278522, "powPI": 1.9275814160560204e-50, "atanhPf": 0.5493061443340548},
    "architecture": 255,
    "webGlBasics": {"vendorUnmasked": "Google Inc. (Apple)", "rendererUnmasked": "ANGLE (Apple, Apple M2, Metal 3)"},
    "webGlExtensions": {
        "parameters": ["MAX_TEXTURE_SIZE=3379=16384", "RGBA=6408", "STENCIL_WRITEMASK=2968=2147483647"],
        "shaderPrecisions": ["FRAGMENT_SHADER.HIGH_FLOAT=127,127,23"],
        "extensions": ["EXT_clip_control", "WEBGL_compressed_texture_astc"],
        "extensionParameters": ["MAX_TEXTURE_MAX_ANISOTROPY_EXT=34047=16", "LOWER_LEFT_EXT=36001"],
    },
    "userAgentData": {"brands": ["Chromium"], "mobile": False, "platform": "Linux", "model": "", "platformVersion": ""},
}


def components(**changes: Any) -> dict[str, Any]:
    """Components as the library sends them; an entry that is given as a whole replaces a component."""
    entries = {name: {"value": value, "duration": 1} for name, value in VALUES.items()}
    for name, change in changes.items():
        entries[name] = {"value": change, "duration": 1}
    return entries


def read(entries: dict[str, Any]) -> dict[Attribute, str]:
    report = read_report({"components": entries}, FACTS)
    assert report.collectors == ("fingerprintjs",)
    return report.attributes


def changed(**changes: Any) -> set[Attribute]:
    """The attributes that differ, appear or vanish with a change."""
    before, after = read(components()), read(components(**changes))
    return {name for name in Attribute if before.get(name) != after.get(name)}


def test_components_give_attributes_and_claims():
    report = read_report({"components": components()}, FACTS)
    assert len(report.attributes) == 17
    assert all(value.startswith("fingerprintjs:") for value in report.attributes.values())
    claims = report.claims
    assert (claims.languages, claims.timezone, claims.screen) == (("en-US", "de"), "Europe/Berlin", (1920, 1080))
    assert (claims.vendor, claims.vendor_flavors, claims.plugin_count) == ("Google Inc.", ("chrome",), 1)
    assert (claims.gpu_vendor, claims.math) == ("Google Inc. (Apple)", VALUES["math"])
    assert claims.hints.platform == "Linux"
    assert claims.hints.model is None
    assert claims.user_agent is None


def test_components_may_be_at_the_top_level():
    beside = components() | {"client_token": "t" * 16}
    report = read_report(beside, FACTS)
    assert report.collectors == ("fingerprintjs",)
    assert report.attributes == read(components())
    assert report.client_token == "t" * 16


def test_a_flat_user_agent_beside_the_components_is_read():
    report = read_report({"components": components(), "userAgent": "Mozilla/5.0", "devicePixelRatio": 2}, FACTS)
    assert report.collectors == ("fingerprintjs", "plain")
    assert report.claims.user_agent == "Mozilla/5.0"
    assert report.attributes[Attribute.PIXEL_RATIO] == "plain:2"
    assert report.attributes[Attribute.SCREEN] == "fingerprintjs:1920x1080"


def test_values_of_two_libraries_are_never_equal():
    flat = {"userAgent": "x", "screen": {"width": 1920, "height": 1080}, "timezone": "Europe/Berlin"}
    theirs, ours = read_report(flat, FACTS).attributes, read(components())
    assert all(theirs[name] != ours[name] for name in theirs if name in ours)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_undefined_null_and_error_are_all_not_compared(name: str):
    undefined, null, failed = components(), components(**{name: None}), components()
    undefined[name] = {"duration": 3}
    failed[name] = {"error": {"message": "Timeout"}, "duration": 3}
    absent = components()
    del absent[name]
    assert read(undefined) == read(null) == read(failed) == read(absent)


@pytest.mark.parametrize("sentinel", ["skipped", "unsupported", "unstable", ""])
@pytest.mark.parametrize("part", ["geometry", "text"])
def test_a_canvas_that_could_not_be_drawn_is_not_compared(part: str, sentinel: str):
    assert Attribute.CANVAS not in read(components(canvas=VALUES["canvas"] | {part: sentinel}))


@pytest.mark.parametrize("audio", [-1, -2, -3, -4, 0, None, "x"])
def test_audio_that_could_not_be_rendered_is_not_compared(audio: Any):
    assert Attribute.AUDIO not in read(components(audio=audio))


@pytest.mark.parametrize("code", [-1, -2])
def test_unsupported_graphics_are_not_compared(code: int):
    attributes = read(components(webGlBasics=code, webGlExtensions=code))
    assert Attribute.GPU not in attributes
    assert Attribute.WEBGL not in attributes


@pytest.mark.parametrize("code", [-1, -2, -3])
def test_an_unsupported_apple_pay_counts_as_absent(code: int):
    assert changed(applePay=code) == set()
    assert changed(applePay=1) == {Attribute.MISCELLANEOUS}


def test_a_frame_of_unknown_size_is_not_compared():
    assert Attribute.FRAME not in read(components(screenFrame=[None, None, None, None]))


def test_the_fields_for_detection_are_read():
    claims = read_report(components(osCpu="Linux x86_64"), FACTS).claims
    assert (claims.os_cpu, claims.apple_font, claims.canvas_noise, claims.point_size_limit) == (
        "Linux x86_64", False, None, None,
    )  # fmt: skip
    parameters = ["ALIASED_LINE_WIDTH_RANGE=33902=1,1", "ALIASED_POINT_SIZE_RANGE=33901=1,1023", "RGBA=6408"]
    claims = read_report(
        components(
            canvas={"winding": True, "geometry": "unstable", "text": "unstable"},
            fontPreferences={"default": 149.3, "apple": 151.8},
            webGlExtensions={"parameters": parameters},
        ),
        FACTS,
    ).claims
    assert (claims.apple_font, claims.canvas_noise, claims.point_size_limit) == (True, True, 1023)


@pytest.mark.parametrize("range_", ["", "=", "=33901=1", "=33901=1,x", "=33901=1,99999999999999", 7, None])
def test_an_invalid_range_of_point_sizes_is_not_compared(range_: Any):
    parameter = f"ALIASED_POINT_SIZE_RANGE{range_}" if isinstance(range_, str) else range_
    changed = components(webGlExtensions={"parameters": [parameter]})
    assert read_report(changed, FACTS).claims.point_size_limit is None


def test_hints_emptied_by_a_driver_differ_from_hints_not_requested():
    emptied = {"brands": [], "mobile": False, "platform": "", "architecture": ""}
    assert read_report(components(userAgentData=emptied), FACTS).claims.hints.emptied
    for asked in (VALUES["userAgentData"], {"mobile": False}, {"brands": [], "platform": "Windows"}):
        assert not read_report(components(userAgentData=asked), FACTS).claims.hints.emptied


def test_canvases_are_hashed():
    long = VALUES["canvas"] | {"text": "data:image/png;base64," + "A" * 50_000}
    assert len(read(components(canvas=long))[Attribute.CANVAS]) < 64


def test_values_that_change_between_releases_are_not_compared():
    assert changed(openDatabase=True) == set()
    assert changed(reducedTransparency=False) == set()
    assert changed(audio=124.04347776696522) == set()
    assert changed(math=VALUES["math"] | {"powPI": 1.9275814160560206e-50, "atanhPf": 0.5493061443340549}) == set()
    newer = {
        "parameters": [
            "MAX_TEXTURE_SIZE=3379=16384", "RGBA=6408", "RGB8=32849", "STENCIL_WRITEMASK=2968=4294967295",
        ],
        "extensions": ["EXT_clip_control", "EXT_depth_clamp", "WEBGL_compressed_texture_astc"],
        "extensionParameters": ["MAX_TEXTURE_MAX_ANISOTROPY_EXT=34047=16", "CLIP_ORIGIN_EXT=37724"],
    }  # fmt: skip
    assert changed(webGlExtensions=VALUES["webGlExtensions"] | newer) == set()
    assert changed(languages=[["en-US@posix"], ["en-US", "de"]]) == set()
    assert changed(deviceMemory=16) == {Attribute.REST}


def test_values_that_differ_between_devices_are_compared():
    fewer = VALUES["webGlExtensions"] | {"parameters": ["MAX_TEXTURE_SIZE=3379=8192"]}
    assert changed(webGlExtensions=fewer) == {Attribute.WEBGL}
    assert changed(math=VALUES["math"] | {"acos": 1.4473588658278520}) == {Attribute.MISCELLANEOUS}
    assert changed(reducedMotion=True) == {Attribute.ACCESSIBILITY}
    assert changed(hardwareConcurrency=4) == {Attribute.HARDWARE}
    assert changed(timezone="Europe/Paris") == {Attribute.TIMEZONE}
    assert changed(audio=124.08) == {Attribute.AUDIO}


def test_unknown_components_and_a_few_known_ones_form_the_rest():
    report = read_report({"components": components(domBlockers=["easyList"], newOne={"a": 1})}, FACTS)
    assert report.rest == ("domBlockers[]=easyList", "newOne.a=1")
    assert report.attributes[Attribute.REST].startswith("fingerprintjs:")


def test_brave_is_recognized_by_its_brand():
    report = read_report({"components": components(userAgentData={"brands": ["Brave", "Chromium"]})}, FACTS)
    assert Attribute.CANVAS in report.masked
    assert Attribute.CANVAS not in report.attributes


def test_one_device_stays_one_through_real_upgrades(shared_data: Path):
    profiles: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(shared_data / "browsers" / "ladder.jsonl.gz", "rt") as lines:
        for line in lines:
            step = json.loads(line)
            if step["kind"] == "headless_shell" and step["major"] > 109:  # 109 told the languages of the machine
                profiles[step["profile"]].append(step["components"])
    assert profiles
    for steps in profiles.values():
        for before, after in pairwise(steps):
            old, new = read(before), read(after)
            differing = {name for name in Attribute if old.get(name) != new.get(name)}
            rendering = {Attribute.CANVAS, Attribute.FONT_PREFERENCES, Attribute.REST}
            assert differing - rendering <= {Attribute.SCREEN}, differing


def test_real_captures_of_different_devices_differ(shared_data: Path):
    with gzip.open(shared_data / "browsers" / "ladder.jsonl.gz", "rt") as lines:
        steps = [json.loads(line) for line in lines]
    devices = [read(step["components"]) for step in steps if step["tag"].endswith("shell138")]
    assert len(devices) == len({tuple(sorted(device.items())) for device in devices})
