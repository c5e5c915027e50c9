"""Signals from an SDK's flags, both ways: each fires on its flag and platform, and on nothing else."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.identify.detection import detect
from svc.identify.detection.sdk_flags import CLOCK_WRONG_MS, RECENT_MS, SIGNALS
from svc.identify.identification import Submission, assess
from svc.identify.model import Agent, Network, Observation, Report, RequestFacts
from svc.identify.report import read_report
from svc.identify.report.native import FLAGS
from svc.identify.scoring.signals import CATALOG
from svc.kernel.values.fields import PLATFORMS, Platform

FACTS = RequestFacts(ip="192.0.2.1", user_agent="okhttp/4.12.0")
NOWHERE = Network(state="unavailable", reason="private_address")
NOW = 1_767_607_200_000
HOUR = 3_600_000
NATIVE: dict[Platform, str] = {"web": "android", "android": "android", "ios": "ios"}
"""The system that the report names where a request is scored on a platform."""


def look(platform: Platform, at_ms: int | None = None, **signals: Any) -> dict[str, Observation]:
    """What fires on an SDK's report with these signals beside the model of the device."""
    report = read_report({"platform": NATIVE[platform], "model": "Pixel 8", **signals}, FACTS)
    return {seen.signal: seen for seen in detect(report, FACTS, Agent(), NOWHERE, platform, at_ms)}


def test_a_device_without_flags_fires_nothing():
    for platform in ("android", "ios"):
        assert look(platform, NOW) == {}
        assert look(platform, NOW, **dict.fromkeys(FLAGS, False), factory_reset_at=None) == {}


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_flag_fires_its_signal_on_the_platforms_that_have_it(flag: str, platform: Platform):
    signal = SIGNALS[flag]
    known = platform in CATALOG[signal].weights
    assert set(look(platform, **{flag: True})) == ({signal} if known else set())
    assert look(platform, **{flag: "false"}) == {}


def test_every_flag_has_a_signal_that_no_web_page_can_fire():
    assert set(SIGNALS) == set(FLAGS)
    for signal in SIGNALS.values():
        assert "web" not in CATALOG[signal].weights


@pytest.mark.parametrize(
    ("flag", "platform", "confidence"),
    [
        ("rooted", "android", "medium"),
        ("jailbroken", "ios", "medium"),
        ("emulator", "android", "medium"),
        ("simulator", "ios", "high"),
        ("frida", "android", "high"),
        ("frida", "ios", "high"),
        ("cloned_app", "android", "medium"),
        ("app_tampering", "ios", "medium"),
        ("mitm", "android", "medium"),
        ("location_spoofing", "ios", "medium"),
        ("vpn_active", "android", "medium"),
        ("hooked", "android", "medium"),
        ("debugger", "ios", "medium"),
        ("developer_options", "android", "medium"),
        ("unofficial_store", "android", "medium"),
    ],
)
def test_the_confidence_of_an_sdk_flag_depends_on_other_explanations(flag: str, platform: Platform, confidence: str):
    seen = look(platform, **{flag: True})[SIGNALS[flag]]
    assert (seen.confidence, seen.evidence) == (confidence, (f"sdk_{flag}",))


def test_an_unknown_flag_fires_nothing():
    report = Report(device_flags=("haunted", "rooted"))
    assert [seen.signal for seen in detect(report, FACTS, Agent(), NOWHERE, "android")] == ["rooted"]


@pytest.mark.parametrize(
    ("collected_at", "reset_at", "at_ms", "recent"),
    [
        (NOW, NOW - HOUR, None, True),
        (NOW, NOW, None, True),
        (NOW, NOW - RECENT_MS + 1, None, True),
        (NOW, NOW - RECENT_MS, None, False),
        (NOW, NOW + HOUR, None, False),
        (None, NOW - HOUR, NOW, True),
        (None, NOW - RECENT_MS, NOW, False),
        (None, NOW - HOUR, None, False),
        (NOW, None, NOW, False),
        # A device whose clock is wrong told both moments by it.
        (HOUR, 0, NOW, True),
    ],
)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_factory_reset_fires_for_seven_days(
    platform: Platform, collected_at: int | None, reset_at: int | None, at_ms: int | None, recent: bool
):
    seen = look(platform, at_ms, collected_at=collected_at, factory_reset_at=reset_at)
    assert ("factory_reset" in seen) is (recent and platform != "web")
    if "factory_reset" in seen:
        assert seen["factory_reset"].confidence == "medium"


@pytest.mark.parametrize(
    ("collected_at", "at_ms", "wrong"),
    [
        (NOW, NOW, False),
        (NOW - CLOCK_WRONG_MS, NOW, False),
        (NOW + CLOCK_WRONG_MS, NOW, False),
        (NOW - CLOCK_WRONG_MS - 1, NOW, True),
        (NOW + CLOCK_WRONG_MS + 1, NOW, True),
        (0, NOW, True),
        (None, NOW, False),
        ("lately", NOW, False),
        (0, None, False),
    ],
)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_clock_is_wrong_from_ten_minutes_on(platform: Platform, collected_at: Any, at_ms: int | None, wrong: bool):
    seen = look(platform, at_ms, collected_at=collected_at)
    assert ("clock_tampered" in seen) is (wrong and platform != "web")
    if "clock_tampered" in seen:
        assert (seen["clock_tampered"].confidence, seen["clock_tampered"].evidence) == (
            "medium",
            ("collected_at_vs_arrival",),
        )


def test_an_app_cannot_say_that_its_clock_is_wrong():
    """The service finds it, or nobody does."""
    assert look("android", NOW, collected_at=NOW, clock_tampered=True, flags={"clock_tampered": True}) == {}


def test_flags_of_a_web_page_fire_nothing():
    page = {"userAgent": "Mozilla/5.0 (Linux; Android 15)", "rooted": True, "frida": True, "factory_reset_at": NOW}
    for platform in PLATFORMS:
        assert detect(read_report(page, FACTS), FACTS, Agent(), NOWHERE, platform, NOW) == ()


def test_an_identification_measures_a_factory_reset_by_its_time_of_arrival():
    signals = {"platform": "android", "model": "Pixel 8", "factory_reset_at": NOW - HOUR}
    submission = Submission(
        request_id=UUID(int=1), new_visitor_id="v", at_ms=NOW, organization=1, key_id="k", touched_key=None,
        environment="production", sdk_platform="android", sdk_version=None, origin=None, tag=None, idempotency=None,
        facts=FACTS, signals=signals, signals_json=b"{}",
    )  # fmt: skip
    later = msgspec.structs.replace(submission, at_ms=NOW + RECENT_MS)
    assert [seen.signal for seen in assess(submission, None).observations] == ["factory_reset", "attestation_missing"]
    assert [seen.signal for seen in assess(later, None).observations] == ["attestation_missing"]


@pytest.mark.parametrize(
    ("platform", "named", "differs"),
    [
        ("ios", "android", True),
        ("android", "react-native-ios", True),
        ("android", "flutter-android", False),
        ("ios", "ios", False),
    ],
)
def test_a_report_that_names_another_system_than_its_request_is_a_mismatch(
    platform: Platform, named: str, differs: bool
):
    report = read_report({"platform": named, "model": "Pixel 8"}, FACTS)
    seen = detect(report, FACTS, Agent(), NOWHERE, platform)
    expected = (Observation("os_mismatch", "medium", ("sdk_platform_vs_report",)),)
    assert seen == (expected if differs else ())
