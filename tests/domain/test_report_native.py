"""Reports of SDKs inside Android and iOS apps: device, identifiers, flags, and the class of matching they get."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.matching import extract
from svc.identify.model import Attribute, RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent

FACTS = RequestFacts(ip="192.0.2.1")
VENDOR_ID = "8C5E2F0A-1B7D-4E39-9A66-2D0C4B8F1E73"
ANDROID_ID = "a1b2c3d4e5f60718"


def iphone(**changes: Any) -> dict[str, Any]:
    report: dict[str, Any] = {
        "platform": "ios",
        "device": {"model": "iPhone16,1", "manufacturer": "Apple", "vendor_id": VENDOR_ID, "os_version": "18.5"},
        "os_build": "22F76",
        "screen": {"width": 393, "height": 852, "scale": 3},
        "cores": 6,
        "memory_mb": 7_680,
        "disk_gb": 127.8,
        "gpu": "Apple A17 Pro GPU",
        "languages": ["de-DE", "en-DE"],
        "timezone": "Europe/Berlin",
        "font_scale": 1.0,
        "app": {"bundle": "com.example.shop", "version": "5.2", "signature": "ab"},
        "rooted": False,
        "jailbroken": False,
    }
    return report | changes


def android(**changes: Any) -> dict[str, Any]:
    report: dict[str, Any] = {
        "platform": "android",
        "device_model": "Pixel 8",
        "manufacturer": "Google",
        "os_version": "15",
        "os_build": "AP4A.250105.002",
        "android_id": ANDROID_ID,
        "abi": "arm64-v8a",
        "screen": {"width": 1080, "height": 2400, "scale": 2.625},
        "cores": 9,
        "memory_mb": 7_532,
        "disk_gb": 110,
        "gpu": {"vendor": "ARM", "renderer": "Mali-G715"},
        "locale": "en_GB",
        "timezone": "Europe/London",
        "font_scale": 1.15,
        "sensors": ["LSM6DSR", "BMP390"],
    }
    return report | changes


def attribute(name: Attribute, signals: dict[str, Any]) -> str | None:
    return read_report(signals, FACTS).attributes.get(name)


def test_an_ios_report_gives_attributes_and_claims():
    report = read_report(iphone(), FACTS)
    assert report.collectors == ("native",)
    assert report.attributes == {
        Attribute.MODEL: "native:/iPhone16,1",
        Attribute.GPU: "native:apple a17 pro gpu",
        Attribute.HARDWARE: "native:6/8",
        Attribute.SCREEN: "native:852x393",
        Attribute.PIXEL_RATIO: "native:3",
        Attribute.LANGUAGES: "native:de-de,en-de",
        Attribute.FIRST_LANGUAGE: "native:de-de",
        Attribute.TIMEZONE: "native:Europe/Berlin",
        Attribute.ACCESSIBILITY: "native:default",
    }
    assert report.rest == ()
    assert report.device_id == VENDOR_ID
    claims = report.claims
    assert (claims.native_platform, claims.native_os_version, claims.native_kind) == ("ios", "18.5", "mobile")
    assert (claims.screen, claims.cores, claims.memory_gb, claims.timezone) == ((393, 852), 6, 7.5, "Europe/Berlin")


def test_an_android_report_gives_attributes_and_claims():
    report = read_report(android(), FACTS)
    assert report.collectors == ("native",)
    assert report.attributes[Attribute.MODEL] == "native:google/Pixel 8"
    assert report.attributes[Attribute.GPU] == "native:mali-g715"
    assert report.attributes[Attribute.HARDWARE] == "native:9/7"
    assert report.attributes[Attribute.TOUCH] == "native:arm64-v8a"
    assert report.attributes[Attribute.LANGUAGES] == "native:en-gb"
    assert report.attributes[Attribute.ACCESSIBILITY] == "native:fontScale=1.15"
    assert report.rest == ("disk_gb=128",)
    assert report.claims.native_platform == "android"
    assert report.device_id == ANDROID_ID


@pytest.mark.parametrize("name", ["model", "manufacturer", "os_version", "os_build", "vendor_id"])
def test_values_may_be_in_device_or_at_the_top_level(name: str):
    nested = {"platform": "ios", "device": {name: "abc-123-def-456-ghi"}, "cores": 6}
    flat = {"platform": "ios", name: "abc-123-def-456-ghi", "cores": 6}
    assert read_report(nested, FACTS) == read_report(flat, FACTS)
    assert read_report(flat, FACTS).collectors == ("native",)


@pytest.mark.parametrize("platform", ["ios", "react-native-ios", "android", "capacitor-android"])
def test_bridges_are_native_too(platform: str):
    report = read_report({"platform": platform, "model": "x"}, FACTS)
    assert report.claims.native_platform == platform.rpartition("-")[2]


@pytest.mark.parametrize(
    "signals",
    [
        {"platform": "Android", "model": "Pixel 8", "screen": {"width": 412, "height": 915}, "timezone": "UTC"},
        {"platform": "android", "screen": {"width": 412, "height": 915}, "timezone": "UTC"},
        {"platform": "iPhone", "screen": {"width": 393, "height": 852}, "timezone": "UTC"},
        {"model": "Pixel 8", "screen": {"width": 412, "height": 915}, "timezone": "UTC"},
        {"platform": ["ios"], "model": "x", "screen": {"width": 1, "height": 1}, "timezone": "UTC"},
    ],
)
def test_a_web_page_on_a_phone_is_not_a_native_report(signals: dict[str, Any]):
    assert read_report(signals, FACTS).collectors == ("plain",)


def test_values_of_a_release_or_an_app_are_not_compared():
    before, after = read_report(android(), FACTS), read_report(
        android(
            os_version="16",
            os_build="BP1A.250305.019",
            app={"bundle": "com.example.other", "version": "9", "signature": "cd"},
            rooted=True,
            android_id="0011223344556677",
            memory_mb=7_529,
            factory_reset_at="2026-01-05T10:00:00Z",
        ),
        FACTS,
    )  # fmt: skip
    assert before.attributes == after.attributes
    assert before.rest == after.rest


@pytest.mark.parametrize("name", ["screen", "cores", "gpu", "timezone", "font_scale", "locale", "device_model"])
def test_null_and_absent_are_not_compared(name: str):
    absent = android(memory_mb=None)
    del absent[name]
    null = read_report(android(memory_mb=None) | {name: None}, FACTS)
    assert null == read_report(absent, FACTS)
    assert len(null.attributes) < len(read_report(android(memory_mb=None), FACTS).attributes)


def test_devices_with_different_memory_or_storage_are_distinguished():
    assert attribute(Attribute.HARDWARE, android(memory_mb=11_480)) == "native:9/11"
    assert "disk_gb=256" in read_report(android(disk_gb=229), FACTS).rest


def test_a_native_value_never_equals_one_of_a_web_page():
    page = {"userAgent": "Mozilla/5.0", "timezone": "Europe/Berlin", "screen": {"width": 393, "height": 852}}
    app = read_report(iphone(), FACTS)
    assert set(read_report(page, FACTS).attributes.values()).isdisjoint(app.attributes.values())
    assert all(value.startswith("native:") for value in app.attributes.values())


@pytest.mark.parametrize(
    ("signals", "device_id"),
    [
        (iphone(), VENDOR_ID),
        (iphone(identifier_for_vendor=ANDROID_ID + "00"), ANDROID_ID + "00"),
        (iphone(device={"vendor_id": "0" * 16}, android_id=ANDROID_ID), ANDROID_ID),
        (android(), ANDROID_ID),
        (android(vendor_id=VENDOR_ID), ANDROID_ID),
        (android(android_id="9774d56d682e549c", vendor_id=VENDOR_ID), VENDOR_ID),
        (android(android_id=None, device={"android_id": ANDROID_ID}), ANDROID_ID),
        (android(android_id="a1b2c3d4e5f6071"), None),
        (android(android_id="a1b2c3" * 11), None),
        (android(android_id=1234567890123456), None),
        (android(android_id="0" * 16), None),
        (android(android_id="V816.0.10.0.TKHMIXM", os_build="V816.0.10.0.TKHMIXM"), None),
        ({"userAgent": "Mozilla/5.0", "vendor_id": VENDOR_ID}, None),
    ],
)
def test_the_device_id_is_the_first_that_is_of_one_device(signals: dict[str, Any], device_id: str | None):
    report = read_report(signals, FACTS)
    assert report.device_id == device_id
    assert report.client_token is None


@pytest.mark.parametrize("made", [iphone, android])
def test_the_token_and_the_device_id_stand_side_by_side(made: Any):
    report = read_report(made(client_token="t" * 16), FACTS)
    assert (report.client_token, report.device_id) == ("t" * 16, read_report(made(), FACTS).device_id)
    assert read_report(made(client_token="short"), FACTS).client_token is None


@pytest.mark.parametrize("made", [iphone, android])
def test_a_new_token_of_an_app_is_a_token_like_any_other(made: Any):
    """It says that a window is private, or storage was cleared, of a browser alone."""
    said = read_report(made(client_token="t" * 16, client_token_is_new=True), FACTS)
    assert said == read_report(made(client_token="t" * 16), FACTS)
    inside = {"components": {"colorDepth": {"value": 24, "duration": 1}}, "client_token_is_new": True}
    assert not read_report(made(client_token="t" * 16, **inside), FACTS).client_token_is_new


@pytest.mark.parametrize(
    "unknown",
    [
        {"sdk_int": 34, "security_patch": "2025-11-05", "product": "shiba"},
        {"drm_id": "a" * 64, "gsf_id": "b" * 16},
        {"sensors": ["LSM6DSR"], "codecs": {"c2": "x"}, "left_out": ["gpu"]},
        {"bridge": {"name": "react-native", "version": "0.1.0"}},
        {"app": {"package": "com.example.shop", "version": "42", "left_out": ["gpu"]}},
        {"flags": {"haunted": True}},
        {"settings": {"animation_scale": 1}},
        {"device": {"serial": "R58M", "sdk_int": 34}},
    ],
)
@pytest.mark.parametrize("made", [iphone, android])
def test_a_field_without_a_name_is_not_compared(made: Any, unknown: dict[str, Any]):
    """A new field of an SDK changes nobody's confidence."""
    before = made()
    after = before | {
        name: before.get(name, {}) | value if isinstance(value, dict) else value for name, value in unknown.items()
    }
    assert read_report(after, FACTS) == read_report(before, FACTS)


def test_the_settings_with_a_name_are_compared_one_by_one():
    chosen = {
        "clock_24": True,
        "input_method": "com.example.keyboard",
        "night_mode": "yes",
        "screen_off_ms": 30_000,
        "animation_scale": 1,
    }
    report = read_report(android(settings=chosen), FACTS)
    assert report.rest == (
        "disk_gb=128",
        "settings.clock_24=true",
        "settings.input_method=com.example.keyboard",
        "settings.night_mode=yes",
        "settings.screen_off_ms=30000",
    )
    other = read_report(android(settings=chosen | {"night_mode": "no"}), FACTS)
    assert len(set(report.rest) & set(other.rest)) == 4
    unusable = {"clock_24": None, "input_method": "k" * 97, "night_mode": ["yes"], "screen_off_ms": {}}
    assert read_report(android(settings=unusable), FACTS).rest == ("disk_gb=128",)
    assert read_report(iphone(settings={"clock_24": False}), FACTS).rest == ("settings.clock_24=false",)


def test_the_size_of_the_disk_of_an_iphone_is_not_read():
    """Apple does not allow it to leave the device."""
    without = {name: value for name, value in iphone().items() if name != "disk_gb"}
    assert read_report(iphone(), FACTS) == read_report(without, FACTS)


@pytest.mark.parametrize("spelling", [True, 1, "true", "1"])
def test_a_flag_is_set_however_a_bridge_spells_it(spelling: Any):
    assert read_report(android(flags={"frida": spelling}), FACTS).device_flags == ("frida",)
    assert read_report(android(rooted=spelling), FACTS).device_flags == ("rooted",)
    assert read_report(iphone(device={"model": "x", "debugger": spelling}), FACTS).device_flags == ("debugger",)


@pytest.mark.parametrize("spelling", [False, 0, 1.0, 2, "false", "0", "yes", "TRUE", "", None, [], [True], {}])
def test_any_other_value_leaves_a_flag_unset(spelling: Any):
    assert read_report(android(flags={"frida": spelling}, rooted=spelling), FACTS).device_flags == ()


def test_flags_that_are_set_are_listed_at_any_level():
    report = read_report(
        android(rooted=True, flags={"frida": True, "mitm": 1, "unknown": True}, device={"vpn_active": True}), FACTS
    )
    assert report.device_flags == ("frida", "mitm", "rooted", "vpn_active")
    assert read_report({"userAgent": "Mozilla/5.0", "rooted": True}, FACTS).device_flags == ()


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("2026-01-05T10:00:00Z", 1_767_607_200_000),
        (1_767_607_200_000, 1_767_607_200_000),
        ("lately", None),
        (None, None),
    ],
)
def test_the_factory_reset_is_a_date_or_milliseconds(value: Any, milliseconds: int | None):
    assert read_report(android(factory_reset_at=value), FACTS).factory_reset_at_ms == milliseconds


@pytest.mark.parametrize(
    ("signals", "kind"),
    [
        (iphone(), "mobile"),
        (iphone(device={"model": "iPad14,3"}), "tablet"),
        (android(), "mobile"),
        (android(screen={"width": 1600, "height": 2560, "scale": 2}), "tablet"),
        (android(screen={"width": 1600, "height": 2560, "scale": 0}), "mobile"),
        (android(screen=None), "mobile"),
    ],
)
def test_a_tablet_is_distinguished_from_a_phone(signals: dict[str, Any], kind: str):
    report = read_report(signals, FACTS)
    assert report.claims.native_kind == kind
    assert read_agent(FACTS, report).device_kind == kind


def test_values_of_a_web_view_fill_those_that_the_sdk_left_unset():
    components = {
        "timezone": {"value": "Europe/Paris", "duration": 1},
        "colorDepth": {"value": 24, "duration": 1},
    }
    report = read_report(iphone(components=components), FACTS)
    assert report.collectors == ("native", "fingerprintjs")
    assert report.attributes[Attribute.TIMEZONE] == "native:Europe/Berlin"
    assert report.attributes[Attribute.COLOUR] == "fingerprintjs:24//"


def test_one_device_keeps_its_class_whatever_library_sends_its_report():
    features = []
    for user_agent in ("okhttp/4.12.0", "Dalvik/2.1.0 (Linux; U; Android 15; Pixel 8)", None):
        facts = RequestFacts(ip="192.0.2.1", user_agent=user_agent)
        report = read_report(android(), facts)
        features.append(extract(report, read_agent(facts, report), facts))
    assert len({found.family for found in features}) == 1
    assert {(found.native, found.mobile, found.os_release) for found in features} == {(True, True, 1500)}
    assert len({found.exact for found in features}) == 1
    assert features[0].identifiable
    apple = read_report(iphone(), FACTS)
    assert extract(apple, read_agent(FACTS, apple), FACTS).family != features[0].family
