"""Signs that a program drives the browser, beside BotD's own rules: what drivers leave, the missing window, and what
stealth tools cannot hide.

What may live here: checks that fire `automation` and `headless` from a report's claims. They run after the checks of
`tampering` and `graphics`, whose contradictions they weigh together.
"""

from __future__ import annotations

from svc.domain.detection.claimed import Claimed
from svc.domain.detection.findings import Findings
from svc.domain.detection.graphics import is_software_renderer
from svc.domain.model import Attribute, Claims, Report, RequestFacts

Size = tuple[float, float]

FIREFOX_HEADLESS_SCREEN = (1366.0, 768.0)
"""The screen that Firefox invents without a display, unless told another (its HeadlessScreenHelper)."""

CHROMIUM_HEADLESS_SCREEN = (800.0, 600.0)
"""The screen that Chromium invents without a display."""

LEAST_HEIGHT_WITHOUT_TASK_BAR = 575
"""No task bar fits beside a window this high on that screen; without a display the window is 780 by 580."""

LEAST_FRAME = 8
"""Pixels by which a window must exceed a screen to be larger; less is rounding, by systems that scale."""

LEAST_ZOOM_RATIO = 1.07
"""Whoever zooms out sees more page than the window has pixels, and at least this much more: the first step is 90 %."""

MARKS = {
    "selenium": "selenium_mark",
    "playwright": "playwright_mark",
    "webdriver_writable": "webdriver_writable",
}
"""Driver mark -> evidence. An honest `navigator.webdriver` cannot be written to: there, somebody replaced it."""


def find(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Look for drivers and for missing windows."""
    find_flag(report, findings)
    _find_marks(report.claims, findings)
    _find_headless_name(report, facts, claimed, findings)
    traits: list[str] = []
    if claimed.desktop and claimed.engine == "chromium":
        traits = _headless_chromium(report, claimed)
    elif claimed.desktop and claimed.engine == "gecko":
        traits = _headless_firefox(report)
    if claimed.desktop and _is_screen_invented(report):
        findings.add("automation", "emulated_screen")
    if len(traits) >= 2:
        for trait in traits:
            findings.add("headless", trait, "hint")
    _find_stealth(traits, findings)
    _find_foreign_webkit(findings)
    _find_debugger(report, traits, findings)


def find_flag(report: Report, findings: Findings) -> None:
    """The flag that a browser sets while a driver is attached."""
    if report.claims.webdriver:
        findings.add("automation", "webdriver", "definitive", "webdriver")


def _find_marks(claims: Claims, findings: Findings) -> None:
    for mark in claims.driver_marks or ():
        evidence = MARKS.get(mark)
        if evidence is not None:
            findings.add("automation", evidence, "definitive")


def _find_headless_name(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    if claimed.headless:
        findings.add("headless", "headless_user_agent", "definitive", "user_agent")
    for hints in (report.claims.hints, facts.hints):
        if any(brand.startswith("Headless") for brand, _ in hints.brands):
            findings.add("headless", "headless_brand", "definitive")


def _headless_chromium(report: Report, claimed: Claimed) -> list[str]:
    """Traits of a browser without a window. Each has an innocent owner, but two rarely the same one.

    No plugins: people who download documents instead of viewing them. No outer window: a tab that was opened in the
    background. A window beyond its screen: two monitors. These three lead; what is common in virtual machines
    (software rendering) and in browsers inside other programs (no `chrome` object) only supports them.
    """
    claims = report.claims
    traits = _window_traits(claims)
    if claims.plugin_count == 0 and Attribute.PLUGINS not in report.masked and not _may_be_a_phone(report):
        traits.insert(0, "no_plugins")
    if not traits:
        return []
    if claims.vendor_flavors == () and claimed.pure_chrome:
        traits.append("no_chrome_object")
    if is_software_renderer(claims.gpu_renderer):
        traits.append("software_renderer")
    if claims.languages and claims.languages[0].endswith("@posix"):
        traits.append("no_locale")
    return traits


def _window_traits(claims: Claims) -> list[str]:
    """What the window shows: that it is none, or none of the screen it says."""
    outer, screen = _long_side_first(claims.outer_window), _long_side_first(claims.screen)
    if outer == (0, 0):
        return ["no_outer_window"]
    traits: list[str] = []
    if outer is not None and screen is not None and screen[1] > 0:
        full_screen = claims.inner_window == claims.outer_window
        beyond = outer[0] > 1.5 * screen[0] or outer[1] > 1.5 * screen[1]
        if screen == CHROMIUM_HEADLESS_SCREEN and outer[1] >= LEAST_HEIGHT_WITHOUT_TASK_BAR and not full_screen:
            traits.append("headless_default_screen")
        if beyond:
            traits.append("window_larger_than_screen")
    if _is_page_larger(claims.inner_window, claims.outer_window):
        traits.append("page_larger_than_window")
    return traits


def _is_page_larger(inner: Size | None, outer: Size | None) -> bool:
    """A page larger than its window in both directions, by less than zooming out makes it: a viewport that was set."""
    if inner is None or outer is None:
        return False
    return inner[1] > outer[1] and outer[0] < inner[0] < LEAST_ZOOM_RATIO * outer[0]


def _is_screen_invented(report: Report) -> bool:
    """A page that fills the screen exactly, in a window that is larger than the screen: drivers that set a viewport set
    the screen with it. Whoever tries out another screen with the developer tools does the same.
    """
    claims = report.claims
    outer, inner = _long_side_first(claims.outer_window), _long_side_first(claims.inner_window)
    screen = _long_side_first(claims.screen)
    if outer is None or inner is None or screen is None or report.developer_tools:
        return False
    larger = outer[0] >= screen[0] and outer[1] >= screen[1] + LEAST_FRAME
    return inner == screen and larger and screen[1] > 0


def _long_side_first(sides: Size | None) -> Size | None:
    """FingerprintJS sorts the sides of a screen, by their digits: which one is the width is not known."""
    if sides is None:
        return None
    return sides if sides[0] >= sides[1] else (sides[1], sides[0])


def _may_be_a_phone(report: Report) -> bool:
    """Phones that ask for desktop pages drop their name from the user agent, but keep their fingers and their chip."""
    platform = report.claims.platform or ""
    return platform.startswith(("Linux arm", "Linux aarch", "Android")) or (
        platform.startswith("Linux") and bool(report.claims.touch_points)
    )


def _headless_firefox(report: Report) -> list[str]:
    """A window that fills exactly the invented screen, or is larger, with its own bars there, and no graphics hardware.

    A person comes close with a bare window manager on an old laptop, but draws with its graphics chip.
    """
    claims = report.claims
    outer, inner = claims.outer_window, claims.inner_window
    if outer is None or inner is None or report.masked:
        return []
    if _long_side_first(claims.screen) != FIREFOX_HEADLESS_SCREEN:
        return []
    fills = outer[0] >= FIREFOX_HEADLESS_SCREEN[0] and outer[1] >= FIREFOX_HEADLESS_SCREEN[1]
    if not fills or not outer[1] - 200 <= inner[1] < outer[1]:
        return []
    traits = ["headless_default_screen"]
    if claims.gpu_renderer is None or is_software_renderer(claims.gpu_renderer):
        traits.append("no_graphics_hardware")
    return traits


def _find_stealth(traits: list[str], findings: Findings) -> None:
    """A trace of the kind that stealth tools leave proves nothing alone: developers override user agents too.

    With a contradiction in another place, or without a window, somebody took pains to look like another device.
    """
    if not findings.driver_traces or (len(findings.places) < 2 and not traits):
        return
    for place, names in findings.places.items():
        for name in names:
            findings.add("automation", name, "proof", place)


def _find_foreign_webkit(findings: Findings) -> None:
    """WebKit for Linux and Windows that calls itself Safari on a Mac, with none of Apple's fonts, nor the font that
    only Apple's WebKit knows: browsers like that are built for drivers, such as Playwright.
    """
    if {"no_stock_fonts", "no_apple_font"} <= set(findings.places.get("fonts", ())):
        findings.add("automation", "webkit_without_apples_fonts")


def _find_debugger(report: Report, traits: list[str], findings: Findings) -> None:
    """A debugger is attached: the developer tools of a person, or a driver where the tools are known to be closed or
    anything else is wrong.
    """
    if "cdp" not in (report.claims.driver_marks or ()):
        return
    if report.developer_tools is False or traits or findings.driver_traces or findings.places:
        findings.add("automation", "debugger_attached")
    elif not report.developer_tools:
        findings.add("developer_tools", "debugger_attached", "hint")
