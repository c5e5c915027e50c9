"""Cases of `report.json`, with what the service reads of each, and of `canonical.json`."""

from __future__ import annotations

import copy
from typing import Any

from canonical import canonical, digest
from reporting import signals

from svc.identify.model import RequestFacts
from svc.identify.report import read_report

NONCE = "019b8e9c-4f00-7a3e-9b64-5c1d2e3f4a5b"
COLLECTED_AT = 1_772_359_200_000
CLIENT_ID = "8d0cbe8bdbd64a3f9a4c2f1b7a5e6d01"
SIGNER = "5a" * 32

PIXEL: dict[str, Any] = {
    "build": {
        "manufacturer": "Google", "model": "Pixel 8", "os_version": "15", "os_build": "AP4A.250105.002",
        "abis": ["arm64-v8a", "armeabi-v7a"], "api_level": 35,
    },
    "cores": "0-8",
    "memory": 7_898_066_944,
    "disk": 114_898_755_584,
    "screen": {"modes": [[1080, 2400], [720, 1600]], "density": 420},
    "languages": ["en-GB", "de-DE"],
    "timezone": "Europe/London",
    "font_scale": 1.0,
    "clock_24": True,
    "input_method": "com.example.keyboard/.Service",
    "night_mode": 0,
    "screen_off": 30_000,
    "android_id": "a1b2c3d4e5f60718",
    "app": {"package": "com.example.shop", "version": "42", "installer": "com.android.vending", "signer": SIGNER},
}  # fmt: skip
IPHONE: dict[str, Any] = {
    "build": {"machine": "iPhone15,3", "os_version": "17.4.1", "os_build": "21E236"},
    "cores": 6,
    "memory": 5_965_119_488,
    "screen": {"width": 1290, "height": 2796, "scale": 3.0},
    "languages": ["en-GB", "de-DE"],
    "timezone": "Europe/London",
    "font_scale": 1.0,
    "clock_24": True,
    "night_mode": None,
    "identifier_for_vendor": "6F1C2B9A-3D4E-4F50-8A6B-7C8D9E0F1A2B",
    "app": {"package": "com.example.shop", "version": "42"},
}
OPTIONS: dict[str, Any] = {"storage": True, "device_id": True, "minimal": False, "bridge": None}


def _without(device: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in device.items() if name not in names}


def _all_faults(device: dict[str, Any]) -> dict[str, Any]:
    return {name: {"fault": "error"} for name in device}


def _other(device: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(device)
    *groups, last = path.split(".")
    part = changed
    for group in groups:
        part = part[group]
    part[last] = value
    return changed


ALL_FLAGS = (
    "rooted", "emulator", "frida", "hooked", "debugger", "app_tampering", "cloned_app", "vpn_active",
    "location_spoofing", "developer_options", "unofficial_store", "mitm",
)  # fmt: skip


def _longest(device: dict[str, Any]) -> dict[str, Any]:
    build = {
        "manufacturer": "m" * 64,
        "model": "M" * 128,
        "os_version": "1" * 32,
        "os_build": "b" * 96,
        "abis": ["a" * 32],
    }
    app = {"package": "p" * 128, "version": "v" * 64, "installer": "i" * 128, "signer": SIGNER}
    return {
        **device, "build": {**build, "api_level": 35}, "app": app,
        "languages": ["l" * 35] * 5, "timezone": "t" * 64,
        "input_method": "k" * 96, "memory": 2**50, "disk": 10**15, "android_id": "a1b2c3d4e5f60718" * 4,
    }  # fmt: skip


def report_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, device: dict[str, Any], options: dict[str, Any] | None = None, **changes: Any) -> None:
        given = {
            "platform": name.partition(":")[0], "device": device, "options": {**OPTIONS, **(options or {})},
            "flags": [], "failed_checks": [], "token": CLIENT_ID, "nonce": NONCE,
            "collected_at": COLLECTED_AT, **changes,
        }  # fmt: skip
        found = signals(given)
        expect = {"signals": found, "bytes": len(canonical(found).encode()), "read": _read(found)}
        cases.append({"name": name, "kind": "report", "given": given, "expect": expect})

    case("android: a Pixel", PIXEL)
    case("android: without token", PIXEL, token=None)
    case("android: nothing may be stored", PIXEL, {"storage": False}, token=None)
    case("android: no device id is wanted", PIXEL, {"device_id": False})
    case("android: minimal", PIXEL, {"minimal": True})
    case("android: by a bridge", PIXEL, {"bridge": "react-native/0.1.0"})
    case("android: flags", PIXEL, flags=["rooted", "frida", "vpn_active"])
    case("android: a check that failed", PIXEL, flags=["emulator"], failed_checks=["flags.rooted"])
    case("android: before version 8 the id is hashed", _other(PIXEL, "build.api_level", 25))
    case("android: before version 8, signed by another", _other(
        _other(PIXEL, "build.api_level", 24), "app.signer", "a5" * 32))  # fmt: skip
    case("android: before version 8 without signer", _other(_other(PIXEL, "build.api_level", 25), "app.signer", None))
    case("android: the id that many devices have", _other(PIXEL, "android_id", "9774d56d682e549c"))
    case("android: an id of zeros", _other(PIXEL, "android_id", "0" * 16))
    case("android: an id that is too short", _other(PIXEL, "android_id", "a1b2c3d4"))
    case("android: clusters of processors", _other(PIXEL, "cores", "0-3,4-6,7\n"))
    case("android: processors as a number", _other(PIXEL, "cores", 8))
    case("android: processors that make no sense", _other(PIXEL, "cores", "many"))
    case("android: the largest mode of the screen", _other(PIXEL, "screen.modes", [[720, 1600], [1440, 3200]]))
    case("android: a tablet", _other(_other(PIXEL, "screen", {"modes": [[2560, 1600]], "density": 320}),
                                     "build.model", "SM-X700"))  # fmt: skip
    case("android: a density that is no round number", _other(PIXEL, "screen.density", 391))
    case("android: a large font", _other(PIXEL, "font_scale", 1.2999999523162842))
    case("android: many languages", _other(PIXEL, "languages", ["en", "de", "fr", "es", "it", "pl", "nl"]))
    for number, mode in enumerate(("auto", "no", "yes", "custom")):
        case(f"android: night mode {mode}", _other(PIXEL, "night_mode", number))
    case("android: a model in Chinese", _other(PIXEL, "build.model", "荣耀50"))
    case("android: no model", _other(PIXEL, "build.model", ""))
    case("android: a model without end", _other(PIXEL, "build.model", "x" * 10_000))
    case("android: sources that are missing", _without(PIXEL, "disk", "input_method", "screen_off"))
    case("android: sources that fail", {**PIXEL, "memory": {"fault": "error"}, "screen": {"fault": "timeout"}})
    case("android: everything at its longest", _longest(PIXEL), {"bridge": "react-native/0.1.0"}, flags=list(ALL_FLAGS))
    case("android: every source fails", _all_faults(PIXEL))
    case("android: nonsense everywhere", dict.fromkeys(PIXEL, -1))
    case("android: texts where numbers belong", {**PIXEL, "memory": "8 GB", "disk": True, "screen_off": 30_000.5})
    case("ios: an iPhone", IPHONE)
    case("ios: an iPad", _other(_other(IPHONE, "build.machine", "iPad13,8"), "screen",
                                {"width": 2048, "height": 2732, "scale": 2.0}))  # fmt: skip
    case("ios: without token", IPHONE, token=None)
    case("ios: nothing may be stored", IPHONE, {"storage": False}, token=None)
    case("ios: minimal", IPHONE, {"minimal": True})
    case("ios: a fixed interface style", _other(IPHONE, "night_mode", "yes"))
    case("ios: by a bridge, in a simulator", IPHONE, {"bridge": "flutter/0.1.0"}, flags=["simulator"])
    case("ios: no vendor id yet", _other(IPHONE, "identifier_for_vendor", None))
    case("ios: a vendor id of zeros", _other(
        IPHONE, "identifier_for_vendor", "00000000-0000-0000-0000-000000000000"))  # fmt: skip
    case("ios: the size of the disk is never sent", {**IPHONE, "disk": 10**11})
    case("ios: every source fails", _all_faults(IPHONE))
    return cases


def _read(found: dict[str, Any]) -> dict[str, Any]:
    """What matching and detection read of the report."""
    report = read_report(found, RequestFacts(ip="203.0.113.7", user_agent="Shop/42"))
    return {
        "attributes": {attribute.name: value for attribute, value in sorted(report.attributes.items())},
        "device_id": report.device_id,
        "client_token": report.client_token,
        "flags": list(report.device_flags),
    }


def canonical_cases() -> list[dict[str, Any]]:
    values: dict[str, Any] = {
        "null": None, "true": True, "false": False, "zero": 0, "minus one": -1, "a large whole number": 2**53 - 1,
        "milliseconds": COLLECTED_AT, "a fraction": 2.625, "a whole number as a fraction": 3.0, "minus zero": -0.0,
        "a tenth": 0.1, "a third": 1 / 3, "1e20": 1e20, "1e21": 1e21, "1e-6": 1e-6, "1e-7": 1e-7,
        "the smallest number": 5e-324, "the largest number": 1.7976931348623157e308,
        "an asymmetric power of two": 2**-44,
        "2^70": float(2**70), "-1.5e-9": -1.5e-9, "123456.789": 123456.789, "1.3": 1.3,
        "17 digits": 0.30000000000000004,
        "an empty text": "", "quotes": 'a "b" \\ c', "a slash": "a/b", "control characters": "\x00\x01\x1f\b\f\n\r\t",
        "DEL and C1": "\x7f\x85", "line separators": "\u2028\u2029", "Chinese": "荣耀50", "an emoji": "😀",
        "an empty list": [], "an empty object": {}, "lists": [[], [1, [2.0, "x"]], None],
        "names out of order": {"b": 1, "a": 2, "C": 3}, "names of one beginning": {"ab": 1, "a": 2, "abc": 3},
        "names by UTF-16 unit": {"\uff5e": 1, "😀": 2, "é": 3, "z": 4},
        "an empty name": {"": 1, "a": 2}, "nested objects": {"z": {"y": {"x": 1, "w": [{"b": 1, "a": 2}]}}},
        "nulls stay": {"a": None}, "a name with quotes": {'a"b': 1, "a\\": 2},
        "a report": {"sdk": {"version": "0.1.0", "platform": "android"},
            "signals": {"screen": {"width": 1080, "scale": 2.625}}},
    }  # fmt: skip
    cases = [_canonical_case(name, value) for name, value in values.items()]
    numeric = _canonical_case("names that are numbers", {"10": 1, "9": 2, "a": 3})
    half = _canonical_case("half of an emoji", "a\ud83db")
    return [
        *cases,
        {**numeric, "only": ["python", "kotlin", "swift"]},  # JavaScript keeps such names in an order of its own
        {**half, "only": ["python", "typescript", "kotlin"]},  # no text of Swift holds one
    ]


def _canonical_case(name: str, value: Any) -> dict[str, Any]:
    text = canonical(value)
    return {"name": name, "kind": "canonical", "given": value, "expect": {"text": text, "sha256": digest(text)}}
