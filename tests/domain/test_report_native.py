"""Reports of SDKs inside Android and iOS apps: device, identifiers, flags, and the class of matching they get."""

from __future__ import annotations

from typing import Any

import pytest

from svc.domain.matching import extract
from svc.domain.model import Attribute, RequestFacts
from svc.domain.report import read_report
from svc.domain.useragent import read_agent

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
        Attribute.REST: report.attributes[Attribute.REST],
    }
    assert report.rest == ("disk_gb=128",)
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
    assert set(report.rest) == {"disk_gb=128", "sensors[]=LSM6DSR", "sensors[]=BMP390"}
    assert report.claims.native_platform == "android"


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
    ("signals", "token"),
    [
        (iphone(), VENDOR_ID),
        (android(), ANDROID_ID),
        (android(client_token="t" * 16), "t" * 16),
        (android(client_token="short"), ANDROID_ID),
        (android(android_id="a" * 15), None),
        (android(android_id="a" * 65), None),
        (android(android_id=1234567890123456), None),
        (android(android_id="9774d56d682e549c"), None),
        (android(android_id="0" * 16), None),
        (android(vendor_id="00000000-0000-0000-0000-000000000000"), ANDROID_ID),
        ({"userAgent": "Mozilla/5.0", "vendor_id": VENDOR_ID}, None),
    ],
)
def test_the_vendor_id_replaces_a_missing_token(signals: dict[str, Any], token: str | None):
    report = read_report(signals, FACTS)
    assert report.client_token == token
    assert report.client_token_is_new is False


def test_flags_that_are_true_are_listed_at_any_level():
    report = read_report(
        android(rooted=True, flags={"frida": True, "mitm": 1, "unknown": True}, device={"vpn_active": True}), FACTS
    )
    assert report.device_flags == ("frida", "rooted", "vpn_active")
    assert read_report(android(rooted="true", emulator=1), FACTS).device_flags == ()
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
