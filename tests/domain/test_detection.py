"""Signals both ways: each fires on what it is for, and not on the nearest innocent visitor."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from svc.identify.detection import detect, visitor_kind
from svc.identify.model import Agent, Attribute, Claims, ClientHints, Network, Observation, Report, RequestFacts
from svc.identify.scoring.score import default_profile, score
from svc.identify.scoring.signals import CATALOG, CATALOG_ORDER
from svc.kernel.values.fields import Platform

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

KHTML = "AppleWebKit/537.36 (KHTML, like Gecko)"
WINDOWS_CHROME = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {KHTML} Chrome/140.0.0.0 Safari/537.36"
LINUX_CHROME = f"Mozilla/5.0 (X11; Linux x86_64) {KHTML} Chrome/140.0.0.0 Safari/537.36"
MAC_CHROME = f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {KHTML} Chrome/140.0.0.0 Safari/537.36"
ANDROID_CHROME = f"Mozilla/5.0 (Linux; Android 10; K) {KHTML} Chrome/140.0.0.0 Mobile Safari/537.36"
CHROMEOS = f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {KHTML} Chrome/140.0.0.0 Safari/537.36"
MAC_SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Safari/605.1.15"
)
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Mobile/15E148 Safari/604.1"
)
LINUX_FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
WINDOWS_FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"

D3D = "ANGLE (Intel, Intel(R) UHD Graphics (0x00009A60) Direct3D11 vs_5_0 ps_5_0, D3D11)"
METAL = "ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)"
SWIFTSHADER = "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)"
NOWHERE = Network(state="unavailable", reason="private_address")
GOOGLEBOT = Agent(program="Googlebot", crawler="search_crawler", operator="Google")

V8_STACK = "TypeError: x\n    at getErrorTrace (https://a.example/b.js:1:1)"
GECKO_STACK = "getErrorTrace@https://a.example/b.js:1:1\n"


def look(
    claims: Claims | None = None,
    *,
    header: str | None = WINDOWS_CHROME,
    accept_language: str | None = None,
    header_hints: ClientHints | None = None,
    agent: Agent | None = None,
    network: Network = NOWHERE,
    platform: Platform = "web",
    **report: Any,
) -> dict[str, Observation]:
    facts = RequestFacts(
        ip="192.0.2.1", user_agent=header, accept_language=accept_language, hints=header_hints or ClientHints()
    )
    seen = detect(Report(claims=claims or Claims(), **report), facts, agent or Agent(), network, platform)
    assert [CATALOG_ORDER[observation.signal] for observation in seen] == sorted(
        CATALOG_ORDER[observation.signal] for observation in seen
    )
    assert all(platform in CATALOG[observation.signal].weights for observation in seen)
    return {observation.signal: observation for observation in seen}


def weigh(observations: Sequence[Observation]) -> int:
    return score(observations, default_profile("web"), "web").score


def windows_hints(version: str = "19.0.0") -> ClientHints:
    return ClientHints(brands=(("Chromium", "140"),), mobile=False, platform="Windows", platform_version=version)


STEALTH = Claims(
    hints=windows_hints("10.0"),
    platform="Win32",
    vendor="Google Inc.",
    vendor_flavors=("chrome",),
    product_sub="20030107",
    screen=(800, 600),
    outer_window=(780, 578),
    inner_window=(780, 493),
    touch_points=0,
    gpu_vendor="Intel Inc.",
    gpu_renderer="Intel Iris OpenGL Engine",
    plugin_count=5,
    fonts=(),
)
HEADLESS_FIREFOX = Claims(
    platform="Linux x86_64",
    product_sub="20100101",
    screen=(768, 1366),
    outer_window=(1366, 768),
    inner_window=(1366, 683),
    plugin_count=5,
    webgl=False,
)


# Who must be left alone -----------------------------------------------------------------------------------------------

PEOPLE: dict[str, tuple[str, Claims]] = {
    "Windows, Chrome": (
        WINDOWS_CHROME,
        Claims(hints=windows_hints(), platform="Win32", vendor="Google Inc.", product_sub="20030107",
               gpu_vendor="Google Inc. (Intel)", gpu_renderer=D3D, plugin_count=5, fonts=("Marlett", "Calibri")),
    ),
    "Windows on ARM": (
        WINDOWS_CHROME,
        Claims(platform="Win32", gpu_renderer="ANGLE (Qualcomm, Qualcomm(R) Adreno(TM) X1-85 GPU (0x1) Direct3D11)"),
    ),
    "Windows before the three numbers": (
        WINDOWS_CHROME.replace("140.", "94."),
        Claims(hints=ClientHints(platform="Windows", platform_version="10.0"), platform="Win32"),
    ),
    "Linux, Firefox without plugins": (
        LINUX_FIREFOX, Claims(platform="Linux x86_64", vendor="", product_sub="20100101", plugin_count=0),
    ),
    "Linux on Apple's chip": (
        LINUX_CHROME, Claims(platform="Linux aarch64", gpu_renderer="ANGLE (Apple, Apple M1 (G13G B0), OpenGL ES 3.2)"),
    ),
    "Linux, UTC, no graphics, no fonts": (
        LINUX_CHROME,
        Claims(platform="Linux x86_64", timezone="UTC", screen=(1920, 1080), outer_window=(945, 1060), fonts=(),
               plugin_count=5, vendor_flavors=("chrome",)),
    ),
    "an old laptop with a bare window manager, Firefox": (
        LINUX_FIREFOX,
        Claims(platform="Linux x86_64", screen=(1366, 768), outer_window=(1366, 768), inner_window=(1366, 683),
               gpu_renderer="Intel(R) HD Graphics, or similar"),
    ),
    "Firefox in full screen in a virtual display": (
        LINUX_FIREFOX, Claims(screen=(1366, 768), outer_window=(1366, 768), inner_window=(1366, 768)),
    ),
    "Android, Chrome": (
        ANDROID_CHROME,
        Claims(platform="Linux armv81", plugin_count=0, touch_points=5, gpu_renderer="Adreno (TM) 740",
               hints=ClientHints(platform="Android", mobile=True, platform_version="15")),
    ),
    "Android asking for desktop pages": (
        LINUX_CHROME,
        Claims(platform="Linux armv81", plugin_count=0, touch_points=5, gpu_renderer="Mali-G78", vendor_flavors=(),
               hints=ClientHints(platform="Android")),
    ),
    "an Android WebView": (
        ANDROID_CHROME.replace("; K)", "; K; wv) Version/4.0"),
        Claims(platform="Linux aarch64", plugin_count=0, vendor="Google Inc.", vendor_flavors=(), touch_points=5),
    ),
    "ChromeOS": (CHROMEOS, Claims(platform="Linux x86_64", hints=ClientHints(platform="Chrome OS"), plugin_count=5)),
    "Mac, Safari": (
        MAC_SAFARI,
        Claims(platform="MacIntel", vendor="Apple Computer, Inc.", product_sub="20030107", vendor_flavors=(),
               gpu_renderer="Apple GPU", plugin_count=5, touch_points=0),
    ),
    "Mac, Chrome": (
        MAC_CHROME,
        Claims(platform="MacIntel", gpu_renderer=METAL, fonts=("Menlo",), languages=("pt-BR", "en"),
               hints=ClientHints(platform="macOS", platform_version="26.0.1", brands=(("Chromium", "140"),))),
    ),
    "iPad asking for desktop pages": (
        MAC_SAFARI,
        Claims(platform="MacIntel", touch_points=5, gpu_renderer="Apple GPU", vendor="Apple Computer, Inc."),
    ),
    "iPhone": (
        IPHONE, Claims(platform="iPhone", touch_points=5, gpu_renderer="Apple GPU", plugin_count=0),
    ),
    "two monitors side by side": (
        WINDOWS_CHROME, Claims(screen=(1920, 1080), outer_window=(3840, 1040), gpu_renderer=D3D, plugin_count=5),
    ),
    "a portrait monitor whose sides were sorted": (
        WINDOWS_CHROME, Claims(screen=(1920, 1080), outer_window=(1080, 1880), gpu_renderer=SWIFTSHADER),
    ),
    "a tab opened in the background": (WINDOWS_CHROME, Claims(outer_window=(0, 0), plugin_count=5)),
    "someone who downloads documents": (WINDOWS_CHROME, Claims(plugin_count=0, vendor_flavors=("chrome",))),
}  # fmt: skip


@pytest.mark.parametrize("person", PEOPLE)
def test_ordinary_visitors_score_nothing_except_for_a_virtual_machine(person: str) -> None:
    header, claims = PEOPLE[person]
    seen = look(claims, header=header, collectors=("fingerprintjs",) if claims.fonts else ("plain",))
    assert set(seen) <= {"virtual_machine"}
    assert visitor_kind(tuple(seen.values()), Agent(), NOWHERE) == "human"


@pytest.mark.parametrize(
    "renderer", [SWIFTSHADER, "ANGLE (Microsoft, Microsoft Basic Render Driver (0x8C) Direct3D11)"]
)
def test_a_virtual_machine_or_a_remote_desktop_is_not_automation(renderer: str) -> None:
    seen = look(Claims(platform="Win32", gpu_renderer=renderer, plugin_count=5, screen=(1024, 768),
                       outer_window=(1024, 728)))  # fmt: skip
    assert list(seen) == ["virtual_machine"]
    assert seen["virtual_machine"].confidence == "low"
    assert weigh(tuple(seen.values())) < 30


def test_ordinary_privacy_behavior_together_stays_below_the_default_threshold() -> None:
    network = Network(state="enriched", country_code="DE", vpn=True, hosting=True)
    seen = look(
        Claims(timezone="America/New_York"), network=network, incognito=True, masked=frozenset((Attribute.CANVAS,))
    )
    assert list(seen) == ["vpn_public", "vpn_timezone_mismatch", "vpn_high", "incognito", "privacy_settings"]
    assert weigh(tuple(seen.values())) == 23


# bot ------------------------------------------------------------------------------------------------------------------


def test_the_webdriver_flag_is_definitive() -> None:
    assert look(Claims(webdriver=True))["automation"] == Observation("automation", "high", ("webdriver",))
    assert "automation" not in look(Claims(webdriver=False))
    assert look(Claims(webdriver=True), platform="ios", header=None)["automation"].confidence == "high"


def test_the_stealth_plugin_is_detected_in_headless_mode() -> None:
    automation = look(STEALTH, collectors=("fingerprintjs",))["automation"]
    assert automation.confidence == "high"
    assert automation.evidence == (
        "renderer_vs_system", "stealth_default_renderer", "no_stock_fonts", "hinted_version_of_no_release",
    )  # fmt: skip


def test_the_stealth_plugin_is_detected_with_a_window_and_no_graphics() -> None:
    with_window = Claims(hints=windows_hints("10.0"), platform="Win32", vendor="Google Inc.", fonts=(),
                         screen=(1920, 1080), outer_window=(945, 1060))  # fmt: skip
    automation = look(with_window, collectors=("fingerprintjs", "botd"))["automation"]
    assert automation.evidence == ("no_stock_fonts", "hinted_version_of_no_release")


def test_a_single_trace_of_a_stealth_tool_is_not_yet_automation() -> None:
    overridden = look(Claims(hints=windows_hints("10.0"), platform="Win32"))
    assert list(overridden) == ["browser_tampering"]
    spoofed_renderer = look(Claims(gpu_vendor="Intel Inc.", gpu_renderer="Intel Iris OpenGL Engine", platform="Win32"))
    assert list(spoofed_renderer) == ["gpu_mismatch"]


@pytest.mark.parametrize("header", [LINUX_CHROME.replace("Chrome/", "HeadlessChrome/"), WINDOWS_CHROME])
def test_a_browser_that_calls_itself_headless_is_headless(header: str) -> None:
    hints = ClientHints() if "Headless" in header else ClientHints(brands=(("HeadlessChrome", "140"),))
    assert look(header=header, header_hints=hints)["headless"].confidence == "high"
    assert look(Claims(hints=hints), header=header)["headless"].confidence == "high"


@pytest.mark.parametrize(
    "claims",
    [
        Claims(plugin_count=0, vendor_flavors=()),
        Claims(outer_window=(0, 0), gpu_renderer=SWIFTSHADER),
        Claims(outer_window=(0, 0), plugin_count=0),
        Claims(screen=(800, 600), outer_window=(780, 580), inner_window=(780, 437), gpu_renderer=SWIFTSHADER),
        Claims(screen=(800, 600), outer_window=(1920, 1080), inner_window=(1920, 937), gpu_renderer=SWIFTSHADER),
        Claims(screen=(640, 480), outer_window=(1538, 866), gpu_renderer=SWIFTSHADER),
    ],
)
def test_two_headless_traits_are_a_heuristic_and_one_is_not(claims: Claims) -> None:
    assert look(claims, header=LINUX_CHROME)["headless"].confidence == "low"
    # The same values are ordinary on a phone, and say nothing of an engine that is not Chromium.
    assert "headless" not in look(claims, header=ANDROID_CHROME)
    assert "headless" not in look(claims, header=LINUX_FIREFOX)


def test_firefox_without_a_display_is_detected_by_its_invented_screen() -> None:
    headless = look(HEADLESS_FIREFOX, header=LINUX_FIREFOX)["headless"]
    assert headless.evidence == ("window_fills_screen", "no_graphics")
    assert "headless" not in look(HEADLESS_FIREFOX, header=LINUX_FIREFOX, masked=frozenset((Attribute.CANVAS,)))


def test_a_program_fires_by_name_and_a_browser_does_not() -> None:
    seen = look(header="curl/8.5.0", agent=Agent(program="curl"))
    assert seen["bot_user_agent"].confidence == "high"
    assert visitor_kind(tuple(seen.values()), Agent(program="curl"), NOWHERE) == "automation"
    assert "bot_user_agent" not in look(agent=Agent(agent="Chrome"))


def test_the_http_library_of_an_app_is_not_a_bot_on_its_own_platform() -> None:
    okhttp = Agent(program="okhttp")
    for platform in ("android", "ios"):
        seen = look(header="okhttp/4.12.0", agent=okhttp, platform=platform)
        assert seen == {}
        assert visitor_kind(tuple(seen.values()), okhttp, NOWHERE) == "human"
    assert "bot_user_agent" in look(header="okhttp/4.12.0", agent=okhttp, platform="web")
    assert "bot_user_agent" in look(header="curl/8.5.0", agent=Agent(program="curl"), platform="android")


def test_a_search_crawler_from_its_operators_address_is_accepted_even_when_headless() -> None:
    network = Network(state="enriched", crawlers_of=("Google",), hosting=True)
    seen = look(Claims(plugin_count=0, vendor_flavors=()), header=LINUX_CHROME, agent=GOOGLEBOT, network=network)
    assert list(seen) == ["headless", "search_crawler"]
    assert visitor_kind(tuple(seen.values()), GOOGLEBOT, network) == "search_crawler"


@pytest.mark.parametrize(
    "network", [Network(state="enriched"), Network(state="enriched", crawlers_of=("Bing",)), NOWHERE]
)
def test_a_search_crawler_from_anywhere_else_is_spoofed(network: Network) -> None:
    seen = look(agent=GOOGLEBOT, network=network)
    assert list(seen) == ["spoofed_crawler"]
    assert visitor_kind(tuple(seen.values()), GOOGLEBOT, network) == "automation"


def test_a_crawler_is_not_spoofed_where_its_address_could_not_be_looked_up() -> None:
    assert look(agent=GOOGLEBOT, network=Network(state="unavailable", reason="lookup_failed")) == {}


def test_a_search_crawler_without_published_addresses_is_accepted_by_name() -> None:
    small = Agent(program="SmallSearch", crawler="search_crawler")
    seen = look(agent=small, network=Network(state="enriched"))
    assert list(seen) == ["search_crawler"]
    assert visitor_kind(tuple(seen.values()), small, NOWHERE) == "search_crawler"


def test_an_ai_agent_is_its_own_kind_of_visitor() -> None:
    agent = Agent(program="GPTBot", crawler="ai_bot", operator="OpenAI")
    genuine = Network(state="enriched", crawlers_of=("OpenAI",))
    seen = look(agent=agent, network=genuine)
    assert list(seen) == ["ai_agent"]
    assert visitor_kind(tuple(seen.values()), agent, genuine) == "ai_bot"
    assert list(look(agent=agent, network=Network(state="enriched"))) == ["spoofed_crawler", "ai_agent"]


# tampering ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "claims", "evidence"),
    [
        (MAC_CHROME, Claims(platform="Linux x86_64"), "platform_vs_user_agent"),
        (WINDOWS_CHROME, Claims(platform="MacIntel"), "platform_vs_user_agent"),
        (WINDOWS_CHROME, Claims(hints=ClientHints(platform="Linux")), "hints_vs_user_agent"),
        (IPHONE, Claims(platform="iPhone", touch_points=0), "ios_without_touch"),
        (WINDOWS_CHROME, Claims(fonts=("Ubuntu",)), "no_stock_fonts"),
        (MAC_CHROME, Claims(fonts=()), "no_stock_fonts"),
        (WINDOWS_CHROME, Claims(user_agent=LINUX_CHROME), "page_system_vs_header"),
    ],
)
def test_two_operating_systems_in_one_report_are_a_mismatch(header: str, claims: Claims, evidence: str) -> None:
    seen = look(claims, header=header, collectors=("fingerprintjs",))
    assert seen["os_mismatch"].evidence == (evidence,)
    assert list(seen) == ["os_mismatch"]


def test_fonts_prove_nothing_when_masked_or_when_the_font_list_is_unknown() -> None:
    assert look(Claims(fonts=()), collectors=("fingerprintjs",), masked=frozenset((Attribute.FONTS,))).keys() == {
        "privacy_settings"
    }
    assert look(Claims(fonts=()), collectors=("plain",)) == {}
    assert look(Claims(fonts=None), collectors=("fingerprintjs",)) == {}


def test_firefox_with_resist_fingerprinting_may_name_another_system_in_the_header() -> None:
    seen = look(Claims(user_agent=LINUX_FIREFOX, platform="Linux x86_64"), header=WINDOWS_FIREFOX,
                masked=frozenset((Attribute.CANVAS, Attribute.HARDWARE)))  # fmt: skip
    assert list(seen) == ["privacy_settings"]
    assert seen["privacy_settings"].evidence == ("masked_hardware", "masked_canvas")
    assert "os_mismatch" in look(Claims(platform="Linux x86_64"), header=WINDOWS_FIREFOX)


@pytest.mark.parametrize(("platform", "header"), [("ios", ANDROID_CHROME), ("android", WINDOWS_CHROME)])
def test_a_native_report_from_another_system_is_a_mismatch(platform: Platform, header: str) -> None:
    assert list(look(header=header, platform=platform)) == ["os_mismatch"]
    assert look(header=IPHONE if platform == "ios" else ANDROID_CHROME, platform=platform) == {}


@pytest.mark.parametrize(
    ("header", "claims", "components", "evidence"),
    [
        (MAC_SAFARI, Claims(vendor="Google Inc."), {}, "vendor_vs_user_agent"),
        (LINUX_FIREFOX, Claims(product_sub="20030107"), {}, "product_sub_vs_user_agent"),
        (LINUX_CHROME, Claims(product_sub="20100101"), {}, "product_sub_vs_user_agent"),
        (LINUX_FIREFOX, Claims(eval_length=33), {}, "eval_length_vs_user_agent"),
        (LINUX_FIREFOX, Claims(), {"errorTrace": V8_STACK}, "error_stack_vs_user_agent"),
        (LINUX_CHROME, Claims(), {"errorTrace": GECKO_STACK}, "error_stack_vs_user_agent"),
        (LINUX_CHROME, Claims(user_agent=LINUX_FIREFOX), {}, "page_engine_vs_header"),
    ],
)
def test_an_engine_other_than_that_of_the_user_agent_is_a_mismatch(
    header: str, claims: Claims, components: dict[str, Any], evidence: str
) -> None:
    seen = look(claims, header=header, botd=components)
    assert seen["engine_mismatch"].evidence == (evidence,)
    assert weigh(tuple(seen.values())) == 12


def test_the_engine_of_the_user_agent_is_not_a_mismatch() -> None:
    for header, length, trace in (
        (LINUX_FIREFOX, 37, GECKO_STACK), (MAC_SAFARI, 37, GECKO_STACK), (LINUX_CHROME, 33, V8_STACK),
    ):  # fmt: skip
        assert look(Claims(eval_length=length), header=header, botd={"errorTrace": trace}) == {}


@pytest.mark.parametrize(
    ("header", "renderer"),
    [
        (LINUX_CHROME, D3D), (MAC_CHROME, D3D), (WINDOWS_CHROME, METAL), (ANDROID_CHROME, METAL),
        (IPHONE, "Adreno (TM) 640"), (WINDOWS_CHROME, "Adreno (TM) 640"), (IPHONE, "NVIDIA GeForce RTX 4090"),
        (MAC_SAFARI, "Mali-G78"),
    ],
)  # fmt: skip
def test_an_impossible_renderer_is_a_mismatch(header: str, renderer: str) -> None:
    assert list(look(Claims(gpu_renderer=renderer), header=header)) == ["gpu_mismatch"]


@pytest.mark.parametrize(
    ("header", "renderer"),
    [
        (LINUX_CHROME, "ANGLE (Microsoft Corporation, D3D12 (NVIDIA GeForce RTX 3060), OpenGL ES 3.1)"),
        (ANDROID_CHROME, "Android Emulator OpenGL ES Translator (ANGLE (Intel, Direct3D11 vs_5_0))"),
        (WINDOWS_FIREFOX, "ANGLE (NVIDIA, NVIDIA GeForce GTX 980 Direct3D11 vs_5_0 ps_5_0), or similar"),
        (MAC_CHROME, "ANGLE (Intel Inc., Intel(R) Iris(TM) Graphics 6100, OpenGL 4.1)"),
        (IPHONE, "WebKit WebGL"),
    ],
)
def test_an_unusual_but_possible_renderer_is_not_a_mismatch(header: str, renderer: str) -> None:
    assert look(Claims(gpu_renderer=renderer), header=header) == {}


def test_patched_natives_and_hints_of_another_version_are_tampering() -> None:
    assert look(botd={"functionBind": "function bind() { return 1 }"})["browser_tampering"].confidence == "medium"
    assert look(botd={"functionBind": "function bind() { [native code] }"}) == {}
    older = Claims(hints=ClientHints(brands=(("Chromium", "120"),)))
    assert look(older)["browser_tampering"].evidence == ("brand_version_vs_user_agent",)
    assert look(older, header=WINDOWS_CHROME.replace("140.", "120.")) == {}


def test_contradictions_in_three_areas_are_an_anti_detect_browser_and_in_two_are_not() -> None:
    two = Claims(platform="Linux x86_64", gpu_renderer=METAL)
    assert list(look(two)) == ["os_mismatch", "gpu_mismatch"]
    three = Claims(platform="Linux x86_64", gpu_renderer=METAL, languages=("ru-RU",))
    seen = look(three, accept_language="en-US,en;q=0.9")
    assert seen["anti_detect_browser"].evidence == (
        "renderer_vs_system", "platform_vs_user_agent", "languages_vs_header",
    )  # fmt: skip
    assert "anti_detect_browser" not in look(three, accept_language="en-US,en;q=0.9,ru;q=0.8")


def test_many_contradictions_in_one_area_count_once() -> None:
    engine = Claims(vendor="Google Inc.", product_sub="20030107", platform="Linux x86_64")
    assert list(look(engine, header=LINUX_FIREFOX, botd={"evalLength": 33, "errorTrace": V8_STACK})) == [
        "engine_mismatch"
    ]


# network, environment, privacy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "signals"),
    [
        (Network(state="enriched", tor=True, hosting=True), ["tor"]),
        (Network(state="enriched", vpn=True, hosting=True), ["vpn_public", "vpn_medium"]),
        (Network(state="enriched", relay=True, hosting=True), ["vpn_relay"]),
        (Network(state="enriched", proxy=True), ["public_proxy"]),
        (Network(state="enriched", hosting=True), ["hosting"]),
        (Network(state="enriched", proxy=True, hosting=True), ["public_proxy", "hosting"]),
        (Network(state="enriched"), []),
    ],
)
def test_an_address_fires_the_signals_of_its_network_facts(network: Network, signals: list[str]) -> None:
    assert list(look(network=network)) == signals


@pytest.mark.parametrize(
    ("zone", "country", "foreign"),
    [
        ("America/New_York", "DE", True),
        ("Asia/Tokyo", "US", True),
        ("Europe/Berlin", "DE", False),
        ("Europe/Vienna", "DE", False),
        ("Asia/Calcutta", "IN", False),
        ("America/Argentina/Buenos_Aires", "AR", False),
        ("Pacific/Honolulu", "US", False),
        ("UTC", "DE", False),
        ("Etc/GMT+5", "DE", False),
        ("Nowhere/Atlantis", "DE", False),
        ("Asia/Tokyo", None, False),
        ("Asia/Tokyo", "ZZ", False),
        (None, "DE", False),
    ],
)
def test_a_time_zone_of_another_country_is_a_heuristic(zone: str | None, country: str | None, *, foreign: bool) -> None:
    seen = look(Claims(timezone=zone), network=Network(state="enriched", country_code=country))
    assert list(seen) == (["vpn_timezone_mismatch", "vpn_low"] if foreign else [])
    masked = frozenset((Attribute.TIMEZONE,))
    assert "vpn_low" not in look(Claims(timezone=zone), network=Network(state="enriched", country_code=country),
                                 masked=masked)  # fmt: skip


@pytest.mark.parametrize("renderer", ["VMware SVGA 3D", "ANGLE (Parallels, Parallels Display Adapter Direct3D11)"])
def test_a_hypervisor_renderer_is_a_virtual_machine_with_high_confidence(renderer: str) -> None:
    assert look(Claims(gpu_renderer=renderer))["virtual_machine"].confidence == "high"


def test_privacy_signals_follow_the_report() -> None:
    assert list(look(incognito=True, developer_tools=True)) == ["developer_tools", "incognito"]
    assert look(incognito=False, developer_tools=False) == {}
    assert look(incognito=True, developer_tools=True, platform="ios", header=None) == {}


def test_an_empty_report_without_headers_fires_nothing() -> None:
    assert look(header=None) == {}


# real captures, and ordinary people --------------------------------------------------------------------------------


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        yield from map(json.loads, lines)


def read_hints(hints: dict[str, Any] | None) -> ClientHints:
    """Client hints as the page gives them, without the entry that Chromium puts in so that nobody relies on brands."""
    if not hints:
        return ClientHints()
    brands = tuple((entry["brand"], entry["version"]) for entry in hints.get("brands", ()))
    return ClientHints(
        brands=tuple(entry for entry in brands if "Brand" not in entry[0]),
        mobile=hints.get("mobile"),
        platform=hints.get("platform") or None,
        platform_version=hints.get("platformVersion"),
    )


def look_at_capture(capture: dict[str, Any]) -> dict[str, Observation]:
    """What is seen of a capture, read here without the adapters: only what FingerprintJS and BotD carry."""
    values = {name: part.get("value") for name, part in capture["components"].items()}
    components = {name: part["value"] for name, part in capture["botComponents"].items() if part["state"] == 0}
    # A number says that there are no graphics.
    graphics: dict[str, Any] = {} if isinstance(values["webGlBasics"], int) else values["webGlBasics"]
    window, headers = components["windowSize"], capture["headers"]
    claims = Claims(
        user_agent=components["userAgent"],
        hints=read_hints(values["userAgentData"] and capture["uaData"]),
        platform=values["platform"],
        vendor=values["vendor"],
        vendor_flavors=tuple(values["vendorFlavors"]),
        product_sub=components["productSub"],
        languages=tuple(values["languages"][0]),
        timezone=values["timezone"],
        screen=tuple(values["screenResolution"]),
        outer_window=(window["outerWidth"], window["outerHeight"]),
        inner_window=(window["innerWidth"], window["innerHeight"]),
        touch_points=values["touchSupport"]["maxTouchPoints"],
        gpu_vendor=graphics.get("vendorUnmasked"),
        gpu_renderer=graphics.get("rendererUnmasked"),
        plugin_count=len(values["plugins"]),
        fonts=tuple(values["fonts"]),
    )
    return look(
        claims,
        header=headers["User-Agent"],
        accept_language=headers.get("Accept-Language"),
        botd=components,
        collectors=("fingerprintjs", "botd"),
    )


def test_every_automated_capture_is_detected_and_no_plain_one_is(shared_data: Path) -> None:
    automated = 0
    for name in ("bots/captures", "browsers/ladder"):
        for capture in lines_of(shared_data / f"{name}.jsonl.gz"):
            seen = look_at_capture(capture)
            if "headful" in capture["tag"]:
                assert seen == {}, capture["tag"]
                continue
            automated += 1
            assert {"automation", "headless"} & set(seen), capture["tag"]
            assert visitor_kind(tuple(seen.values()), Agent(), NOWHERE) == "automation"
            assert weigh(tuple(seen.values())) >= 30
    assert automated >= 35


def test_a_headless_capture_that_hides_its_name_and_its_flag_is_still_detected(shared_data: Path) -> None:
    """What `--user-agent` and a deleted flag leave: no plugins in the shell, an invented screen in the new mode."""
    for capture in lines_of(shared_data / "browsers/ladder.jsonl.gz"):
        if capture["kind"] == "headful":
            continue
        hidden = json.loads(json.dumps(capture).replace("HeadlessChrome", "Chrome"))
        hidden["botComponents"]["webDriver"]["value"] = False
        hidden["botComponents"]["notificationPermissions"]["value"] = False
        assert "headless" in look_at_capture(hidden), capture["tag"]


@pytest.mark.slow
def test_of_thousands_of_ordinary_visitors_hardly_one_reaches_the_threshold(shared_data: Path) -> None:
    """The one in small/ claims Safari and hints at HeadlessChrome: the source of these values knows some bots too."""
    people = suspects = 0
    for line in lines_of(shared_data / "linkage/small/fps.jsonl.gz"):
        person = line["signals"]
        claims = Claims(
            user_agent=person["userAgent"],
            hints=read_hints(person["uaData"]),
            platform=person["platform"],
            vendor=person["vendor"],
            vendor_flavors=tuple(person["extra"]["vendorFlavors"]),
            product_sub=person["productSub"],
            languages=tuple(person["languages"]),
            timezone=person["timezone"],
            screen=(person["screen"]["width"], person["screen"]["height"]),
            touch_points=person["maxTouchPoints"],
            gpu_vendor=person["webgl"]["vendor"],
            gpu_renderer=person["webgl"]["renderer"],
            plugin_count=len(person["plugins"]),
            fonts=tuple(person["fonts"]),
        )
        people += 1
        suspects += weigh(tuple(look(claims, header=person["userAgent"], collectors=("plain",)).values())) >= 30
    assert people == 5057
    assert suspects <= 1
