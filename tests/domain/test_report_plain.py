"""Flat reports, and what every report may carry whatever its shape."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from svc.identify.model import Attribute, ClientHints, RequestFacts
from svc.identify.report import read_report
from svc.identify.report.canonical import canonical_gpu, time_zone
from svc.identify.report.masks import STANDARD_PLUGINS
from svc.identify.report.table import IN_ANY_REPORT

FACTS = RequestFacts(ip="192.0.2.1")
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:139.0) Gecko/20100101 Firefox/139.0"
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 "
    "Safari/605.1.15"
)


def plain(**changes: Any) -> dict[str, Any]:
    report: dict[str, Any] = {
        "userAgent": CHROME,
        "uaData": {
            "brands": [{"brand": "Not/A)Brand", "version": "24"}, {"brand": "Google Chrome", "version": "137"}],
            "mobile": False,
            "platform": "Windows",
        },
        "platform": "Win32",
        "vendor": "Google Inc.",
        "productSub": "20030107",
        "oscpu": None,
        "languages": ["es-ES", "en"],
        "timezone": "Europe/Madrid",
        "screen": {
            "width": 1536,
            "height": 864,
            "availWidth": 1536,
            "availHeight": 824,
            "colorDepth": 24,
            "devicePixelRatio": 1.25,
        },
        "hardwareConcurrency": 20,
        "deviceMemory": 8,
        "maxTouchPoints": 0,
        "webgl": {
            "vendor": "Google Inc. (Intel)",
            "renderer": "ANGLE (Intel, Intel(R) UHD Graphics (0x00009A60) Direct3D11 vs_5_0 ps_5_0, D3D11)",
        },
        "fonts": ["Marlett", "Calibri"],
        "plugins": list(STANDARD_PLUGINS),
        "canvas": "38a423674a6732394f5a768468a80785",
        "audio": "124.04347523790784",
        "audioCodecs": {"ogg": "probably"},
    }
    return report | changes


def attribute(name: Attribute, **changes: Any) -> str | None:
    return read_report(plain(**changes), FACTS).attributes.get(name)


def test_a_flat_report_gives_attributes_and_claims():
    report = read_report(plain(), FACTS)
    assert report.collectors == ("plain",)
    assert report.attributes[Attribute.SCREEN] == "plain:1536x864"
    assert report.attributes[Attribute.HARDWARE] == "plain:20/8"
    assert report.attributes[Attribute.GPU] == "plain:intel uhd graphics 0x00009a60"
    assert report.attributes[Attribute.FRAME] == "plain:0,40"
    assert report.attributes[Attribute.FIRST_LANGUAGE] == "plain:es-es"
    assert report.fonts == ("Calibri", "Marlett")
    assert report.rest == ("audioCodecs.ogg=probably",)
    claims = report.claims
    assert (claims.user_agent, claims.platform, claims.cores) == (CHROME, "Win32", 20)
    assert (claims.screen, claims.plugin_count, claims.touch_points) == ((1536, 864), 5, 0)
    assert claims.hints == ClientHints(
        brands=(("Google Chrome", "137"),), grease="Not/A)Brand", mobile=False, platform="Windows"
    )


def test_every_value_names_its_collector():
    assert all(value.startswith("plain:") for value in read_report(plain(), FACTS).attributes.values())


@pytest.mark.parametrize("name", ["screen", "languages", "timezone", "canvas", "audio", "fonts", "webgl", "plugins"])
def test_null_and_absent_are_not_compared(name: str):
    absent = plain()
    del absent[name]
    null = read_report(plain(**{name: None}), FACTS)
    assert null.attributes == read_report(absent, FACTS).attributes
    assert len(null.attributes) < len(read_report(plain(), FACTS).attributes)


@pytest.mark.parametrize("audio", [-1, -2.0, "-1", "unsupported", "", True, [], float(10**300)])
def test_a_failed_audio_measurement_is_not_compared(audio: Any):
    assert attribute(Attribute.AUDIO, audio=audio) is None


@pytest.mark.parametrize("canvas", ["", "unstable", "skipped", "unsupported", 7, None, {}])
def test_a_failed_canvas_is_not_compared(canvas: Any):
    assert attribute(Attribute.CANVAS, canvas=canvas) is None


def test_rotating_a_phone_does_not_change_its_screen():
    assert attribute(Attribute.SCREEN, screen={"width": 402, "height": 874}) == "plain:874x402"
    assert attribute(Attribute.SCREEN, screen={"width": 874, "height": 402}) == "plain:874x402"


def test_memory_is_compared_only_up_to_what_all_releases_report():
    old, new = read_report(plain(deviceMemory=8), FACTS), read_report(plain(deviceMemory=16), FACTS)
    assert old.attributes[Attribute.HARDWARE] == new.attributes[Attribute.HARDWARE]
    assert "deviceMemory=16" in new.rest
    assert new.claims.memory_gb == 16


def test_a_renamed_time_zone_keeps_its_name():
    assert time_zone("Asia/Calcutta") == time_zone("Asia/Kolkata") == "Asia/Kolkata"


def test_a_locale_is_the_same_language_with_and_without_its_encoding():
    first = attribute(Attribute.LANGUAGES, languages=["de_DE.UTF-8@euro", "en"])
    assert first == attribute(Attribute.LANGUAGES, languages=["de-DE", "en"])


def test_a_browser_without_a_locale_reports_no_language():
    report = read_report(plain(languages=["en-US@posix"]), FACTS)
    assert not {Attribute.LANGUAGES, Attribute.FIRST_LANGUAGE} & set(report.attributes)
    assert read_report(plain(languages=["en-US@posix"]), FACTS).claims.languages == ("en-US@posix",)


def test_fonts_are_a_set():
    first = attribute(Attribute.FONTS, fonts=["B", "A", "B"])
    assert first == attribute(Attribute.FONTS, fonts=["A", "B"])
    assert first != attribute(Attribute.FONTS, fonts=["A"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002504) Direct3D11 vs_5_0 ps_5_0, D3D11)",
            "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002504) Direct3D11 vs_5_0 ps_5_0, D3D11-31.0.15.3623)",
        ),
        (
            "ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL ES 3.2)",
            "ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6 (Core Profile) Mesa 23.0.4)",
        ),
        ("ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)", "Apple M2"),
        ("ANGLE (Apple, Apple M2, OpenGL 4.1 Metal - 83.1)", "Apple M2"),
        ("NVIDIA GeForce GTX 980/PCIe/SSE2", "NVIDIA GeForce GTX 980, or similar"),
        ("Adreno (TM) 650, or similar", "Adreno (TM) 650"),
        (
            "ANGLE (Intel, Vulkan 1.2.182 (Intel(R) UHD Graphics 620 (0x00003EA0)), Intel open-source Mesa driver)",
            "ANGLE (Intel, Vulkan 1.3.0 (Intel(R) UHD Graphics 620 (0x00003EA0)), Intel open-source Mesa driver)",
        ),
    ],
)
def test_drivers_and_interfaces_are_not_part_of_the_name_of_a_graphics_processor(first: str, second: str):
    assert canonical_gpu("", first) == canonical_gpu("", second) != ""


def test_different_graphics_processors_have_different_names():
    names = [
        canonical_gpu("", f"ANGLE (Apple, ANGLE Metal Renderer: Apple {name}, x)") for name in ("M1", "M2", "M2 Pro")
    ]
    assert len(set(names)) == 3
    assert canonical_gpu("Apple Inc.", "") == "apple"


def test_values_that_change_by_the_minute_are_left_out_of_the_rest():
    volatile = {
        "timestamp": 1, "duration": 2, "nonce": "x", "uuid": "y", "sessionId": "z", "battery": {"level": 0.5},
        "visitorId": "v", "requestId": "r", "deviceId": "d", "appVersion": "5.0", "storage": {"id": "abc"},
    }  # fmt: skip
    assert read_report(plain(**volatile), FACTS).rest == read_report(plain(), FACTS).rest


def test_the_rest_is_bounded():
    report = read_report(plain(more={f"k{number}": "v" * 5_000 for number in range(5_000)}), FACTS)
    assert len(report.rest) <= 128
    assert max(map(len, report.rest)) < 300


def test_an_unknown_shape_has_no_collector_but_its_common_fields_are_read():
    report = read_report({"some": {"thing": 1}, "client_token": "t" * 16, "incognito": True}, FACTS)
    assert report.collectors == ()
    assert report.attributes == {}
    assert report.rest == ()
    assert (report.client_token, report.incognito) == ("t" * 16, True)


@pytest.mark.parametrize(
    ("token", "kept"),
    [
        ("t" * 15, False),
        ("t" * 16, True),
        ("t" * 64, True),
        ("t" * 65, False),
        (1234567890123456, False),
        (None, False),
    ],
)
def test_a_client_token_has_16_to_64_characters(token: Any, kept: bool):
    report = read_report(plain(client_token=token, client_token_is_new=True), FACTS)
    assert report.client_token == (token if kept else None)
    assert report.client_token_is_new is kept


def test_storage_is_not_a_client_token():
    assert read_report(plain(storage={"id": "x" * 20, "fresh": True}), FACTS).client_token is None


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (1_767_607_200_000, 1_767_607_200_000),
        (1_767_607_200_000.9, 1_767_607_200_000),
        ("2026-01-05T10:00:00Z", 1_767_607_200_000),
        ("2026-01-05T11:00:00.123+01:00", 1_767_607_200_123),
        ("2026-01-05t10:00:00z", 1_767_607_200_000),
        ("2026-01-05T10:00:00", None),
        ("2026-13-05T10:00:00Z", None),
        ("2026-W01", None),
        ("yesterday", None),
        (-1, None),
        (10**30, None),
        (True, None),
        (None, None),
    ],
)
def test_the_collection_time_is_a_date_or_milliseconds(value: Any, milliseconds: int | None):
    assert read_report(plain(collected_at=value), FACTS).collected_at_ms == milliseconds


def test_the_other_common_fields_are_read():
    report = read_report(plain(nonce="n" * 8, developer_tools=True, incognito="yes", tier="deferred"), FACTS)
    assert (report.nonce, report.developer_tools, report.incognito, report.deferred) == ("n" * 8, True, None, True)
    assert read_report(plain(nonce="short"), FACTS).nonce is None
    assert read_report(plain(tier="full"), FACTS).deferred is False


@pytest.mark.parametrize("name", sorted(IN_ANY_REPORT.names))
def test_a_common_field_is_not_compared_as_an_unknown_one(name: str):
    """What is said of the visit would make two devices of one."""
    assert not [leaf for leaf in read_report(plain(**{name: True}), FACTS).rest if leaf.startswith(name)]
    assert read_report(plain(unheard=True), FACTS).rest[-1] == "unheard=true"


def brave(**changes: Any) -> dict[str, Any]:
    return plain(uaData={"brands": [{"brand": "Brave", "version": "137"}]}, **changes)


def test_values_that_brave_randomizes_are_not_compared():
    report = read_report(brave(plugins=["Online PDF tool", "x7Gh"]), FACTS)
    assert {Attribute.CANVAS, Attribute.AUDIO, Attribute.FONTS, Attribute.HARDWARE, Attribute.PLUGINS} <= report.masked
    assert report.masked.isdisjoint(report.attributes)
    assert report.fonts == ()
    assert Attribute.SCREEN in report.attributes


def test_brave_with_its_shields_down_still_has_its_rendering_masked():
    report = read_report(brave(), FACTS)
    assert Attribute.CANVAS in report.masked
    assert Attribute.HARDWARE in report.attributes


def test_brave_is_recognized_by_its_header_too():
    facts = RequestFacts(ip="192.0.2.1", hints=ClientHints(brands=(("Brave", "137"),)))
    assert Attribute.CANVAS in read_report(plain(plugins=None), facts).masked


def test_firefox_with_resist_fingerprinting_is_masked_where_that_is_evident():
    resisting: dict[str, Any] = {
        "userAgent": FIREFOX,
        "uaData": None,
        "timezone": "UTC",
        "hardwareConcurrency": 2,
        "screen": {"width": 1400, "height": 900, "availWidth": 1400, "availHeight": 900},
    }
    report = read_report(plain(**resisting), FACTS)
    assert {Attribute.CANVAS, Attribute.SCREEN, Attribute.TIMEZONE} <= report.masked
    for ordinary in (
        {"timezone": "Europe/Paris"},
        {"hardwareConcurrency": 12},
        {"screen": {"width": 1920, "height": 1080, "availWidth": 1920, "availHeight": 1040}},
        {"innerWidth": 1280, "innerHeight": 654},
    ):
        assert read_report(plain(**resisting | ordinary), FACTS).masked == frozenset()
    assert read_report(plain(**resisting, innerWidth=1400, innerHeight=900), FACTS).masked == report.masked


def test_firefox_with_resist_fingerprinting_is_recognized_by_its_nameless_renderer():
    size = {"outerWidth": 1400, "outerHeight": 843, "innerWidth": 1400, "innerHeight": 843}
    resisting: dict[str, Any] = {
        "userAgent": FIREFOX,
        "uaData": None,
        "timezone": "Atlantic/Reykjavik",
        "screen": {"width": 1400, "height": 843, "availWidth": 1400, "availHeight": 843},
        "webgl": {"vendor": "Mozilla", "renderer": "Mozilla"},
        **size,
    }
    assert Attribute.CANVAS in read_report(plain(**resisting), FACTS).masked
    for ordinary in ({"timezone": "Europe/Paris"}, {"innerHeight": 758}, {"webgl": None}):
        assert Attribute.CANVAS not in read_report(plain(**resisting | ordinary), FACTS).masked


def test_safari_is_masked_in_private_windows_only():
    private = read_report(plain(userAgent=SAFARI, uaData=None, incognito=True), FACTS)
    assert Attribute.CANVAS in private.masked
    assert read_report(plain(userAgent=SAFARI, uaData=None), FACTS).masked == frozenset()
    assert read_report(plain(incognito=True), FACTS).masked == frozenset()


@pytest.mark.slow
def test_the_visit_streams_are_read_completely(shared_data: Path):
    shares: dict[Attribute, int] = defaultdict(int)
    total = 0
    with gzip.open(shared_data / "linkage" / "small" / "fps.jsonl.gz", "rt") as lines:
        for line in lines:
            report = read_report(json.loads(line)["signals"], FACTS)
            assert report.collectors == ("plain",)
            total += 1
            for found in report.attributes:
                shares[found] += 1
    assert min(shares[Attribute.SCREEN], shares[Attribute.TIMEZONE], shares[Attribute.TOUCH]) == total
    assert shares[Attribute.GPU] > 0.99 * total
