"""People who look a little like programs, and the programs that look most like them: each with the other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from svc.identify.model import Claims, ClientHints
from tests.domain.test_detection_drivers import ANDROID, DIRECT3D, FIREFOX, KHTML, LINUX, SWIFTSHADER, WINDOWS, look

NVIDIA = "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060/PCIe/SSE2, OpenGL 4.5.0)"
ORIGINAL = {"gpu_renderer": SWIFTSHADER, "gpu_vendor": "Google Inc. (Google)", "cores": 4, "timezone": "Europe/Berlin"}
EVERYWHERE = {"iframe": ORIGINAL, "worker": ORIGINAL}

# Extensions -----------------------------------------------------------------------------------------------------------


def test_a_renamed_graphics_card_is_tampering_and_nothing_else():
    """By an extension, on a machine without one: one lie, which limits, iframe and worker tell of."""
    page = Claims(gpu_renderer=NVIDIA, point_size_limit=1023, contexts=EVERYWHERE)
    seen = look(page, LINUX)
    assert {name: one.evidence for name, one in seen.items()} == {
        "browser_tampering": ("limits_of_software_renderer", "renderer_in_iframe", "renderer_in_worker")
    }
    assert set(look(msgspec.structs.replace(page, driver_marks=("cdp",)), LINUX)) == {
        "browser_tampering",
        "developer_tools",
    }


@pytest.mark.parametrize("changed", [{"cores": 12}, {"timezone": "UTC"}, {"cores": 12, "timezone": "UTC"}])
def test_an_extension_that_changes_more_of_the_device_is_no_program_either(changed: dict[str, Any]):
    page = Claims(gpu_renderer=NVIDIA, point_size_limit=1023, contexts=EVERYWHERE, **changed)
    assert "automation" not in look(page, LINUX)


def test_a_renamed_graphics_card_of_an_invented_system_is_automation():
    seen = look(Claims(gpu_renderer=DIRECT3D, point_size_limit=1023, fonts=()), collectors=("fingerprintjs",))
    assert seen["automation"].evidence == ("limits_of_software_renderer", "no_stock_fonts")
    headless = Claims(gpu_renderer=NVIDIA, point_size_limit=1023, screen=(800, 600), outer_window=(780, 580))
    assert "automation" in look(headless, LINUX)


# Programs that show pages ---------------------------------------------------------------------------------------------

UNFILLED = ClientHints(emptied=True, overridden=True, mobile=False)


@pytest.mark.parametrize("name", ["QtWebEngine/6.4.3 Chrome/102.0.5005.177", "Chrome/102.0.5005.177"])
def test_the_client_hints_of_an_engine_that_never_fills_them_in_are_its_own(name: str):
    user_agent = f"Mozilla/5.0 (X11; Linux x86_64) {KHTML} {name} Safari/537.36"
    assert look(Claims(hints=UNFILLED), user_agent) == {}
    younger = msgspec.structs.replace(UNFILLED, form_factors=True)
    assert look(Claims(hints=younger), user_agent)["browser_tampering"].evidence == (
        "hints_emptied",
        "user_agent_overridden",
    )


@pytest.mark.parametrize("version", [103, 108, 113, 140])
def test_empty_client_hints_of_a_younger_engine_are_tampering(version: int):
    assert set(look(Claims(hints=UNFILLED), LINUX.replace("140", str(version)))) == {"browser_tampering"}


@pytest.mark.parametrize("size", [(1204, 804), (604, 404)])
def test_a_program_on_the_screen_that_qt_invents_is_headless(size: tuple[float, float]):
    page = (size[0] - 4, size[1] - 4)
    claims = Claims(screen=(800, 800), outer_window=size, inner_window=page, webgl=False, pointer=True)
    assert look(claims, LINUX)["headless"].confidence == "low"
    assert look(msgspec.structs.replace(claims, screen=(1280, 800)), LINUX) == {}


# Headless browsers under their own name -------------------------------------------------------------------------------

RENAMED = ClientHints(overridden=True, mobile=False, platform="Linux", brands=(("Chromium", "140"),))
WINDOW: dict[str, Any] = {"screen": (1920, 1080), "outer_window": (1600, 900), "inner_window": (1600, 757)}


@pytest.mark.parametrize(
    "graphics", [{"gpu_renderer": SWIFTSHADER}, {"gpu_renderer": NVIDIA, "point_size_limit": 1023}]
)
def test_a_renamed_browser_that_draws_in_software_and_has_nothing_to_point_with_is_headless(graphics: dict[str, Any]):
    seen = look(Claims(hints=RENAMED, pointer=False, **graphics, **WINDOW), LINUX)
    assert seen["headless"].evidence == ("user_agent_overridden", "software_renderer", "nothing_to_point_with")
    assert seen["headless"].confidence == "low"


def test_a_renamed_browser_without_graphics_or_of_another_system_is_headless_too():
    seen = look(Claims(hints=RENAMED, pointer=False, webgl=False, **WINDOW), LINUX)
    assert seen["headless"].evidence == ("user_agent_overridden", "no_graphics", "nothing_to_point_with")
    assert "headless" in look(Claims(hints=RENAMED, pointer=False, gpu_renderer=SWIFTSHADER, **WINDOW), WINDOWS)


def test_where_nobody_asked_for_a_pointer_the_user_agent_must_be_its_own():
    software = Claims(hints=RENAMED, gpu_renderer=SWIFTSHADER, **WINDOW)
    assert look(software, LINUX)["headless"].evidence == ("user_agent_overridden", "software_renderer")
    assert "headless" not in look(software, LINUX.replace("140", "139"))
    assert "headless" not in look(software, WINDOWS)


@pytest.mark.parametrize(
    "claims",
    [
        Claims(hints=RENAMED, pointer=True, gpu_renderer=SWIFTSHADER, **WINDOW),
        Claims(hints=RENAMED, pointer=False, gpu_renderer=NVIDIA, **WINDOW),
        Claims(hints=RENAMED, pointer=False, **WINDOW),
        Claims(hints=RENAMED, gpu_renderer=NVIDIA, **WINDOW),
        Claims(hints=ClientHints(platform="Linux"), pointer=False, gpu_renderer=SWIFTSHADER, **WINDOW),
    ],
    ids=["a virtual machine", "a kiosk", "unknown graphics", "a developer", "a display without a mouse"],
)
def test_people_who_have_half_of_what_shows_a_renamed_browser_are_not_headless(claims: Claims):
    assert "headless" not in look(claims, LINUX)


def test_a_television_is_not_headless():
    television = f"Mozilla/5.0 (Web0S; Linux/SmartTV) {KHTML} Chrome/108.0.5359.211 Safari/537.36 WebAppManager"
    assert "headless" not in look(Claims(hints=RENAMED, pointer=False, webgl=False, **WINDOW), television)


# The page of a driver -------------------------------------------------------------------------------------------------

PUPPETEER: dict[str, Any] = {"outer_window": (945, 1060), "inner_window": (800, 600), "screen": (1920, 1080)}


def test_a_page_of_puppeteers_size_in_a_wider_window_is_automation():
    seen = look(Claims(framed=False, **PUPPETEER), LINUX)
    assert (seen["automation"].evidence, seen["automation"].confidence) == (("default_viewport",), "low")


@pytest.mark.parametrize(
    ("claims", "report"),
    [
        ({"framed": True}, {}),
        ({"framed": None}, {}),
        ({"framed": False, "outer_window": (816, 672)}, {}),
        ({"framed": False, "inner_window": (801, 600)}, {}),
        ({"framed": False, "inner_window": (600, 800)}, {}),
        ({"framed": False}, {"developer_tools": True}),
    ],
    ids=["a frame", "not asked", "a small window", "another size", "upright", "trying out"],
)
def test_an_ordinary_page_of_about_puppeteers_size_is_not_automation(claims: dict[str, Any], report: dict[str, Any]):
    assert "automation" not in look(Claims(**{**PUPPETEER, **claims}), LINUX, **report)
    assert "automation" not in look(Claims(framed=False, **PUPPETEER), ANDROID)


# An inspector ---------------------------------------------------------------------------------------------------------

INSPECTED: dict[str, Any] = {"driver_marks": ("cdp",), "framed": False, "outer_window": (1050, 980)}
FILLED = (1042, 833)
"""The page of such a window without developer tools in it, and with bars above it."""


def test_an_inspector_beside_a_page_that_fills_its_window_is_a_driver_by_a_rule_of_thumb():
    seen = look(Claims(inner_window=FILLED, **INSPECTED), LINUX)
    assert {name: (one.confidence, one.evidence) for name, one in seen.items()} == {
        "automation": ("low", ("debugger_attached",))
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"inner_window": (487, 833)},
        {"inner_window": (1042, 533)},
        {"inner_window": (1555, 795)},
        {"framed": True},
        {"framed": None},
        {"outer_window": None},
    ],
    ids=["beside the page", "below the page", "zoomed out", "a frame", "not asked", "no size"],
)
def test_an_inspector_that_may_be_docked_in_the_window_is_a_persons(changed: dict[str, Any]):
    seen = look(Claims(**{"inner_window": FILLED, **INSPECTED, **changed}), LINUX)
    assert set(seen) == {"developer_tools"}


def test_tools_that_show_a_page_as_a_phone_would_see_it_are_a_persons():
    phone = Claims(platform="Linux x86_64", touch_points=0, inner_window=(412, 915), **INSPECTED)
    assert set(look(phone, ANDROID)) == {"developer_tools", "os_mismatch"}


def test_an_inspector_of_a_browser_that_says_that_it_is_driven_is_more_evidence_of_the_driver():
    seen = look(Claims(webdriver=True, inner_window=(800, 600), **INSPECTED), LINUX)
    assert set(seen) == {"automation"}
    assert "debugger_attached" in seen["automation"].evidence


# Private windows ------------------------------------------------------------------------------------------------------


def test_firefox_without_cookies_is_not_private():
    """It refuses private files then, too, and earlier versions of the web SDK took that for a private window."""
    assert "incognito" not in look(Claims(cookies=False), FIREFOX, incognito=True, collectors=("probes",))
    assert "incognito" in look(Claims(cookies=True), FIREFOX, incognito=True, collectors=("probes",))
    assert "incognito" in look(Claims(), FIREFOX, incognito=True, collectors=("probes",))
    assert "incognito" in look(Claims(cookies=False), FIREFOX, incognito=True), "said by a library that knows more"
