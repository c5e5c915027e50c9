"""What drivers and stealth tools leave behind, and the people who look a little like them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from svc.identify.detection import detect
from svc.identify.detection.tampering import V8_MATHS
from svc.identify.model import Agent, Attribute, Claims, ClientHints, Network, Observation, Report, RequestFacts

KHTML = "AppleWebKit/537.36 (KHTML, like Gecko)"
WINDOWS = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {KHTML} Chrome/140.0.0.0 Safari/537.36"
LINUX = f"Mozilla/5.0 (X11; Linux x86_64) {KHTML} Chrome/140.0.0.0 Safari/537.36"
ANDROID = f"Mozilla/5.0 (Linux; Android 10; K) {KHTML} Chrome/140.0.0.0 Mobile Safari/537.36"
SAMSUNG = f"Mozilla/5.0 (X11; Linux x86_64) {KHTML} SamsungBrowser/29.0 Chrome/136.0.0.0 Safari/537.36"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Safari/605.1.15"
)
IPAD = (
    "Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Mobile/15E148 Safari/604.1"
)
SWIFTSHADER = "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)"
DIRECT3D = "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002504) Direct3D11 vs_5_0 ps_5_0, D3D11)"
NOWHERE = Network(state="unavailable", reason="private_address")


def look(claims: Claims, user_agent: str = WINDOWS, **report: Any) -> dict[str, Observation]:
    facts = RequestFacts(ip="192.0.2.1", user_agent=user_agent)
    seen = detect(Report(claims=claims, **report), facts, Agent(), NOWHERE, "web")
    return {observation.signal: observation for observation in seen}


# Marks of drivers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "evidence"),
    [
        ("selenium", "selenium_mark"),
        ("playwright", "playwright_mark"),
        ("webdriver_writable", "webdriver_writable"),
    ],
)
def test_a_driver_mark_is_definitive(mark: str, evidence: str):
    assert look(Claims(driver_marks=(mark,)))["automation"] == Observation("automation", "high", (evidence,))
    assert look(Claims(driver_marks=())) == {}


@pytest.mark.parametrize("context", ["iframe", "worker"])
def test_a_driver_hidden_from_the_page_is_detected_in_other_contexts(context: str):
    seen = look(Claims(webdriver=False, contexts={context: {"webdriver": True}}))
    assert seen["automation"] == Observation("automation", "high", (f"webdriver_in_{context}",))
    headless = WINDOWS.replace("Chrome/", "HeadlessChrome/")
    seen = look(Claims(contexts={context: {"user_agent": headless}}))
    assert seen["headless"].confidence == "high"
    assert look(Claims(contexts={context: {"webdriver": False, "user_agent": WINDOWS}})) == {}


# The page, its iframes and its workers --------------------------------------------------------------------------------

PAGE = Claims(
    user_agent=WINDOWS, platform="Win32", language="de-DE", cores=4, memory_gb=8, gpu_vendor="Google Inc. (NVIDIA)",
    gpu_renderer=DIRECT3D,
)  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "signal", "evidence"),
    [
        ({"platform": "Linux x86_64"}, "os_mismatch", "platform_in_worker"),
        ({"user_agent": LINUX}, "os_mismatch", "user_agent_system_in_worker"),
        ({"user_agent": WINDOWS.replace("140", "139")}, "browser_tampering", "user_agent_version_in_worker"),
        ({"cores": 2}, "browser_tampering", "hardware_in_worker"),
        ({"memory_gb": 16}, "browser_tampering", "hardware_in_worker"),
        ({"gpu_renderer": SWIFTSHADER}, "browser_tampering", "renderer_in_worker"),
    ],
)
def test_a_worker_with_values_other_than_the_page_is_a_contradiction(
    answers: dict[str, Any], signal: str, evidence: str
):
    seen = look(msgspec.structs.replace(PAGE, contexts={"worker": answers}))
    assert {name: one.evidence for name, one in seen.items()} == {signal: (evidence,)}


def test_another_engine_in_a_worker_is_a_mismatch():
    seen = look(Claims(user_agent=FIREFOX, contexts={"worker": {"user_agent": LINUX}}), FIREFOX)
    assert seen["engine_mismatch"].evidence == ("user_agent_engine_in_worker",)


def test_contexts_that_agree_or_are_incomplete_fire_nothing():
    same = {"user_agent": WINDOWS, "platform": "Win32", "language": "de", "cores": 4, "gpu_renderer": DIRECT3D}
    assert look(msgspec.structs.replace(PAGE, contexts={"iframe": same, "worker": same})) == {}
    assert look(msgspec.structs.replace(PAGE, contexts={"worker": {"language": "fr"}})) == {}
    assert look(Claims(contexts={"worker": {"cores": 2, "platform": "Win32"}})) == {}


def test_an_ipad_with_desktop_pages_claims_a_mac_in_the_page_only():
    page = Claims(user_agent=SAFARI, platform="MacIntel", contexts={"worker": {"platform": "iPad", "user_agent": IPAD}})
    assert look(page, SAFARI) == {}


@pytest.mark.parametrize(("page", "there", "differs"), [(4, 2, False), (8, 12, False), (4, 12, True), (8, 2, True)])
def test_core_counts_of_firefox_are_compared_as_shown_in_private_windows(page: int, there: int, differs: bool):
    claims = Claims(user_agent=FIREFOX, cores=page, contexts={"worker": {"cores": there}})
    assert ("browser_tampering" in look(claims, FIREFOX)) is differs


def test_webkit_disguises_its_graphics_everywhere_and_chromium_nowhere():
    webkit = SAFARI.replace("Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64")
    assert look(Claims(gpu_renderer="Apple GPU"), webkit) == {}
    assert set(look(Claims(gpu_renderer="Apple GPU"), LINUX)) == {"gpu_mismatch"}


def test_a_browser_that_randomizes_its_hardware_may_differ_in_a_worker():
    page = msgspec.structs.replace(PAGE, contexts={"worker": {"cores": 2}})
    assert set(look(page, masked=frozenset((Attribute.HARDWARE,)))) == {"privacy_settings"}


# Stealth --------------------------------------------------------------------------------------------------------------

EMPTIED = ClientHints(emptied=True, mobile=False)


def test_a_headless_browser_with_an_overridden_user_agent_is_automation():
    claims = Claims(hints=EMPTIED, screen=(800, 600), outer_window=(780, 580), inner_window=(780, 437))
    seen = look(claims)
    assert seen["automation"].evidence == ("hints_emptied",)
    assert "automation" not in look(Claims(hints=ClientHints(mobile=False), screen=(800, 600), outer_window=(780, 580)))


def test_an_overridden_user_agent_alone_is_tampering_at_most():
    assert {name: one.evidence for name, one in look(Claims(hints=EMPTIED)).items()} == {
        "browser_tampering": ("hints_emptied",)
    }
    assert look(Claims(hints=EMPTIED), ANDROID) == {}
    assert look(Claims(hints=EMPTIED), FIREFOX) == {}


@pytest.mark.parametrize(("version", "is_its_own"), [(109, True), (112, True), (113, False), (140, False)])
def test_old_headless_chromium_has_empty_hints_by_itself(version: int, is_its_own: bool):
    hints = ClientHints(emptied=True, overridden=True, mobile=False)
    headless = LINUX.replace("Chrome/140", f"HeadlessChrome/{version}")
    assert ("browser_tampering" not in look(Claims(hints=hints), headless)) is is_its_own
    renamed = look(Claims(hints=hints), headless.replace("Headless", ""))
    assert renamed["browser_tampering"].evidence == ("hints_emptied", "user_agent_overridden")


@pytest.mark.parametrize(
    ("version", "grease"),
    [
        (115, "Not/A)Brand"), (119, "Not?A_Brand"), (120, "Not_A Brand"), (124, "Not-A.Brand"), (127, "Not)A;Brand"),
        (138, "Not)A;Brand"), (148, "Not/A)Brand"), (156, "Not:A-Brand"),
    ],
)  # fmt: skip
def test_the_grease_brand_follows_from_the_version(version: int, grease: str):
    user_agent = WINDOWS.replace("140", str(version))
    assert look(Claims(hints=ClientHints(grease=grease)), user_agent) == {}
    for invented in (" Not A;Brand", ";Not A Brand", grease.replace("A", " A", 1)):
        seen = look(Claims(hints=ClientHints(grease=invented)), user_agent)
        assert seen["browser_tampering"].evidence == ("invented_brand_of_another_release",)


def test_a_browser_that_claims_another_version_keeps_its_own_grease_brand():
    hints = ClientHints(brands=(("Chromium", "156"),), grease="Not:A-Brand")
    assert look(Claims(hints=hints))["browser_tampering"].evidence == ("brand_version_vs_user_agent",)


def test_old_chromium_and_emulated_phones_may_use_any_grease_brand():
    assert look(Claims(hints=ClientHints(grease=" Not A;Brand")), WINDOWS.replace("140", "99")) == {}
    assert look(Claims(hints=ClientHints(grease="Not:A-Brand")), ANDROID) == {}


def test_brands_without_versions_contradict_no_version():
    assert look(Claims(hints=ClientHints(brands=(("Chromium", ""),)))) == {}


def test_software_renderer_limits_reveal_a_false_renderer_name():
    seen = look(Claims(gpu_renderer=DIRECT3D, point_size_limit=1023))
    assert {name: one.evidence for name, one in seen.items()} == {"browser_tampering": ("limits_of_software_renderer",)}
    seen = look(Claims(gpu_renderer=DIRECT3D, point_size_limit=1023, fonts=()), collectors=("fingerprintjs",))
    assert seen["automation"].evidence == ("limits_of_software_renderer", "no_stock_fonts")


@pytest.mark.parametrize(
    ("user_agent", "renderer", "limit"),
    [
        (WINDOWS, DIRECT3D, 1024),
        (LINUX, SWIFTSHADER, 1023),
        (ANDROID, "Adreno (TM) 740", 1023),
        (LINUX, "Adreno (TM) 740", 1023),
    ],
)
def test_genuine_limits_fire_nothing(user_agent: str, renderer: str, limit: float):
    seen = look(Claims(gpu_renderer=renderer, point_size_limit=limit), user_agent)
    assert set(seen) <= {"virtual_machine"}


def test_a_replaced_plugin_list_is_tampering():
    assert look(Claims(plugins_patched=True))["browser_tampering"].evidence == ("plugins_patched",)
    assert look(Claims(plugins_patched=False)) == {}
    assert set(look(Claims(plugins_patched=True), masked=frozenset((Attribute.PLUGINS,)))) == {"privacy_settings"}


OVERRIDDEN = ClientHints(brands=(("Chromium", "140"),), platform="Linux", overridden=True)


def test_a_desktop_started_with_another_user_agent_has_no_processor_hint():
    seen = look(Claims(hints=OVERRIDDEN), LINUX)
    assert {name: one.evidence for name, one in seen.items()} == {"browser_tampering": ("user_agent_overridden",)}
    brave = msgspec.structs.replace(OVERRIDDEN, brands=(("Brave", "140"), ("Chromium", "140")))
    assert look(Claims(hints=brave), LINUX) == {}
    phone = Claims(hints=OVERRIDDEN, platform="Linux aarch64")
    assert look(phone, LINUX) == {}
    assert look(Claims(hints=msgspec.structs.replace(OVERRIDDEN, platform="Android")), ANDROID) == {}


def test_an_overridden_user_agent_supports_a_missing_window():
    claims = Claims(hints=OVERRIDDEN, screen=(800, 600), outer_window=(1280, 720), inner_window=(1280, 577))
    assert look(claims, LINUX)["headless"].evidence == (
        "headless_default_screen", "window_larger_than_screen", "user_agent_overridden",
    )  # fmt: skip


# Windows and screens --------------------------------------------------------------------------------------------------


def test_a_page_that_fills_a_screen_smaller_than_its_window_is_automation():
    playwright = Claims(screen=(720, 1280), inner_window=(1280, 720), outer_window=(1288, 805))
    assert look(playwright, LINUX)["automation"].evidence == ("emulated_screen",)
    assert "automation" not in look(playwright, LINUX, developer_tools=True)
    assert look(playwright, ANDROID) == {}


@pytest.mark.parametrize(
    "claims",
    [
        Claims(screen=(1920, 1080), inner_window=(1920, 1080), outer_window=(1920, 1080)),
        Claims(screen=(1536, 864), inner_window=(1536, 864), outer_window=(1537, 865)),
        Claims(screen=(1920, 1080), inner_window=(1920, 969), outer_window=(1936, 1056)),
        Claims(screen=(1440, 900), inner_window=(2880, 1500), outer_window=(1440, 875)),
        Claims(screen=(1920, 1080), inner_window=(900, 500), outer_window=(800, 600)),
    ],
    ids=["full screen", "rounded", "maximized", "half zoom", "an iframe"],
)
def test_ordinary_windows_fire_nothing(claims: Claims):
    assert look(claims) == {}


def test_a_page_larger_than_its_window_is_a_headless_trait():
    puppeteer = Claims(screen=(1024, 768), outer_window=(780, 580), inner_window=(800, 600), gpu_renderer=SWIFTSHADER)
    assert look(puppeteer)["headless"].evidence == ("page_larger_than_window", "software_renderer")
    assert "headless" not in look(msgspec.structs.replace(puppeteer, inner_window=(867, 644)))


def test_an_embedded_browser_has_neither_plugins_nor_a_chrome_object():
    embedded = Claims(plugin_count=0, vendor_flavors=())
    assert "headless" in look(embedded)
    assert look(embedded, WINDOWS + " Edg/140.0.0.0") == {}


def test_headless_firefox_is_also_detected_in_a_larger_window():
    claims = Claims(screen=(1366, 768), outer_window=(1920, 1080), inner_window=(1920, 995), gpu_renderer="llvmpipe")
    assert look(claims, FIREFOX)["headless"].evidence == ("window_larger_than_screen", "software_renderer")
    assert look(msgspec.structs.replace(claims, gpu_renderer="NVIDIA GeForce GTX 980, or similar"), FIREFOX) == {}


FIRST_WINDOW = Claims(screen=(1920, 1080), outer_window=(1280, 972), inner_window=(1280, 826), webgl=False)


def test_headless_firefox_is_detected_on_a_common_screen():
    seen = look(FIRST_WINDOW, FIREFOX)["headless"]
    assert seen == Observation("headless", "low", ("first_window_without_desktop", "no_graphics"))
    maximized = Claims(screen=(720, 1280), outer_window=(1280, 720), inner_window=(1280, 574), webgl=False)
    assert look(maximized, FIREFOX)["headless"].evidence == ("window_fills_screen", "no_graphics")
    smaller = Claims(screen=(768, 1366), outer_window=(1280, 720), inner_window=(1280, 574), webgl=False)
    assert look(smaller, FIREFOX)["headless"].evidence == ("headless_default_screen", "no_graphics")


@pytest.mark.parametrize(
    "changes",
    [
        {"webgl": None},
        {"outer_window": (1282, 999), "inner_window": (1280, 830)},
        {"outer_window": (1280, 947), "inner_window": (1280, 862)},
        {"outer_window": (1280, 1040), "inner_window": (1280, 955), "screen": (2560, 1440)},
        {"outer_window": (1920, 1080), "inner_window": (1920, 1080)},
        {"outer_window": (1366, 741), "inner_window": (1366, 656), "screen": (1366, 768)},
        {"outer_window": (1920, 1080), "inner_window": (1920, 995), "webgl": None, "gpu_renderer": "llvmpipe"},
    ],
    ids=["graphics", "frame", "panel", "large screen", "full screen", "old laptop", "virtual machine"],
)
def test_disabled_graphics_or_a_missing_desktop_is_not_headless_firefox(changes: dict[str, Any]):
    assert "headless" not in look(msgspec.structs.replace(FIRST_WINDOW, **changes), FIREFOX)


@pytest.mark.parametrize("user_agent", [FIREFOX, LINUX])
def test_a_missing_pointer_is_only_a_headless_trait(user_agent: str):
    bare = Claims(pointer=False, screen=(1920, 1080), outer_window=(1920, 1080), inner_window=(1920, 934))
    assert look(bare, LINUX) == {}
    missing = msgspec.structs.replace(bare, outer_window=(0, 0)) if user_agent == LINUX else bare
    assert "nothing_to_point_with" in look(missing, user_agent)["headless"].evidence
    assert look(msgspec.structs.replace(missing, pointer=True), user_agent) == {}


def test_webkit_on_its_invented_screen_is_headless():
    size = (800, 600)
    webkit = SAFARI.replace("Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64")
    claims = Claims(screen=size, outer_window=size, inner_window=size, plugin_count=0, gpu_renderer="Apple GPU")
    assert {name: one.evidence for name, one in look(claims, webkit).items()} == {
        "headless": ("headless_default_screen", "no_plugins")
    }
    for changes in ({"plugin_count": 5}, {"screen": (800, 480)}, {"inner_window": (800, 562)}):
        assert look(msgspec.structs.replace(claims, **changes), webkit) == {}


@pytest.mark.parametrize(
    "claims",
    [
        Claims(plugin_count=0),
        Claims(plugin_count=0, gpu_renderer=SWIFTSHADER),
        Claims(plugin_count=0, screen=(800, 600), outer_window=(780, 580), inner_window=(780, 437)),
        Claims(plugin_count=0, screen=(1920, 1080), outer_window=(0, 0), focused=False),
    ],
    ids=["ordinary", "virtual machine", "small screen", "background tab"],
)
def test_a_browser_that_downloads_pdfs_instead_of_viewing_them_is_not_headless(claims: Claims):
    assert set(look(claims, LINUX)) <= {"virtual_machine"}


# Desktops that say they are phones ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "evidence"),
    [
        ({}, ("hinted_desktop_vs_android", "desktop_processor_vs_android", "android_without_touch")),
        ({"hints": ClientHints()}, ("desktop_processor_vs_android", "android_without_touch")),
        ({"platform": "Linux armv81", "touch_points": 5}, ("hinted_desktop_vs_android",)),
    ],
    ids=["Chromium", "Firefox", "hints alone"],
)
def test_a_desktop_with_the_name_of_a_phone_contradicts_itself(changes: dict[str, Any], evidence: tuple[str, ...]):
    desktop = Claims(hints=ClientHints(mobile=False, platform="Linux"), platform="Linux x86_64", touch_points=0)
    assert look(msgspec.structs.replace(desktop, **changes), ANDROID)["os_mismatch"].evidence == evidence


@pytest.mark.parametrize(
    "claims",
    [
        Claims(platform="Linux x86_64", touch_points=10, hints=ClientHints(mobile=True, platform="Android")),
        Claims(platform="Linux armv8l", touch_points=0),
        Claims(platform="Linux armv81", touch_points=5, hints=ClientHints(mobile=False, platform="Android")),
    ],
    ids=["emulator", "television", "tablet"],
)
def test_android_devices_other_than_phones_fire_nothing(claims: Claims):
    assert look(claims, ANDROID) == {}
    assert look(claims, ANDROID.replace(" Mobile", "")) == {}


# Engines --------------------------------------------------------------------------------------------------------------


def test_webkit_under_the_name_of_safari_is_tampering_and_no_driver():
    """GNOME Web gives some sites that name."""
    claims = Claims(platform="MacIntel", vendor="Apple Computer, Inc.", fonts=("Lucida Bright",), apple_font=False)
    seen = look(claims, SAFARI, collectors=("fingerprintjs",))
    assert set(seen) == {"os_mismatch"}
    assert seen["os_mismatch"].evidence == ("no_stock_fonts", "no_apple_font")
    at_home = msgspec.structs.replace(claims, fonts=("Menlo",), apple_font=True)
    assert look(at_home, SAFARI, collectors=("fingerprintjs",)) == {}


@pytest.mark.parametrize(
    ("user_agent", "claims", "botd", "evidence"),
    [
        (SAFARI, Claims(hints=ClientHints(brands=(("Chromium", "140"),))), {}, "hints_of_another_engine"),
        (WINDOWS, Claims(os_cpu="Windows NT 10.0"), {}, "os_cpu_of_another_engine"),
        (SAFARI, Claims(), {"browserEngineKind": "chromium"}, "features_vs_user_agent"),
        (WINDOWS, Claims(math=dict.fromkeys(V8_MATHS, 0.5)), {}, "math_vs_user_agent"),
    ],
)
def test_a_feature_of_another_engine_is_a_mismatch(
    user_agent: str, claims: Claims, botd: dict[str, Any], evidence: str
):
    assert look(claims, user_agent, botd=botd)["engine_mismatch"].evidence == (evidence,)


def test_genuine_engine_behavior_fires_nothing():
    assert look(Claims(math=V8_MATHS | {"tan": -1.4214488238747243, "powPI": 1.0})) == {}
    assert look(Claims(math=dict.fromkeys(V8_MATHS, 0.5)), FIREFOX) == {}
    assert look(Claims(os_cpu="Linux x86_64"), FIREFOX) == {}
    assert look(Claims(), ANDROID, botd={"browserEngineKind": "webkit"}) == {}


def test_the_system_that_firefox_names_must_match_the_user_agent():
    assert look(Claims(os_cpu="Windows NT 10.0; Win64; x64"), FIREFOX)["os_mismatch"].evidence == (
        "os_cpu_vs_user_agent",
    )


def test_canvas_noise_is_tampering_where_the_browser_adds_none():
    assert look(Claims(canvas_noise=True))["browser_tampering"] == Observation(
        "browser_tampering", "low", ("canvas_noise",)
    )
    for user_agent in (FIREFOX, SAFARI, SAMSUNG):
        assert set(look(Claims(canvas_noise=True), user_agent)) == {"privacy_settings"}
    assert look(Claims(canvas_noise=False)) == {}
    masked = look(Claims(canvas_noise=True), masked=frozenset((Attribute.CANVAS,)))
    assert masked["privacy_settings"].evidence == ("masked_canvas",)
    assert set(masked) == {"privacy_settings"}
