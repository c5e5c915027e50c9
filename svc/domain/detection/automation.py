"""Signs that a program drives the browser, beside BotD's own rules: the driver's flag, the missing window, and what
stealth tools leave behind.

What may live here: checks that fire `automation` and `headless` from a report's claims. They run after the checks of
`tampering` and `graphics`, whose contradictions they weigh together.
"""

from __future__ import annotations

from svc.domain.detection.claimed import Claimed
from svc.domain.detection.findings import Findings
from svc.domain.detection.graphics import is_software_renderer
from svc.domain.model import Attribute, Claims, Report, RequestFacts

FIREFOX_HEADLESS_SCREEN = (1366.0, 768.0)
"""The screen that Firefox invents without a display, unless told another (its HeadlessScreenHelper)."""

CHROMIUM_HEADLESS_SCREEN = (800.0, 600.0)
"""The screen that Chromium invents without a display."""

LEAST_HEIGHT_WITHOUT_TASK_BAR = 575
"""No task bar fits beside a window this high on that screen; without a display the window is 780 by 580."""


def find(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Look for drivers and for missing windows."""
    find_flag(report, findings)
    _find_headless_name(report, facts, claimed, findings)
    if claimed.desktop and claimed.engine == "chromium":
        _find_headless_chromium(report, findings)
    elif claimed.desktop and claimed.engine == "gecko":
        _find_headless_firefox(report, findings)
    _find_stealth(findings)


def find_flag(report: Report, findings: Findings) -> None:
    """The flag that a browser sets while a driver is attached."""
    if report.claims.webdriver:
        findings.add("automation", "webdriver", "definitive", "webdriver")


def _find_headless_name(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    if claimed.headless:
        findings.add("headless", "headless_user_agent", "definitive", "user_agent")
    for hints in (report.claims.hints, facts.hints):
        if any(brand.startswith("Headless") for brand, _ in hints.brands):
            findings.add("headless", "headless_brand", "definitive")


def _find_headless_chromium(report: Report, findings: Findings) -> None:
    """Two traits that each have an innocent owner, and rarely the same one.

    No plugins: people who download documents instead of viewing them. No outer window: a tab that was opened in the
    background. Software rendering: virtual machines and remote desktops. A window beyond its screen: two monitors.
    """
    claims = report.claims
    traits: list[str] = []
    if claims.plugin_count == 0 and Attribute.PLUGINS not in report.masked and not _may_be_a_phone(report):
        traits.append("no_plugins")
    window = _window_trait(claims)
    if window is not None:
        traits.append(window)
    if not traits:
        return
    if claims.vendor_flavors == ():
        traits.append("no_chrome_object")
    if is_software_renderer(claims.gpu_renderer):
        traits.append("software_renderer")
    if len(traits) >= 2:
        for trait in traits:
            findings.add("headless", trait, "hint")


def _window_trait(claims: Claims) -> str | None:
    outer, screen = _long_side_first(claims.outer_window), _long_side_first(claims.screen)
    if outer == (0, 0):
        return "no_outer_window"
    if outer is None or screen is None or screen[1] <= 0:
        return None
    if screen == CHROMIUM_HEADLESS_SCREEN and outer[1] >= LEAST_HEIGHT_WITHOUT_TASK_BAR:
        full_screen = claims.inner_window == claims.outer_window
        return None if full_screen else "headless_default_screen"
    return "window_larger_than_screen" if outer[0] > 1.5 * screen[0] or outer[1] > 1.5 * screen[1] else None


def _long_side_first(sides: tuple[float, float] | None) -> tuple[float, float] | None:
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


def _find_headless_firefox(report: Report, findings: Findings) -> None:
    """A window that fills exactly the invented screen, with its own bars still there, and no graphics hardware.

    A person comes close with a bare window manager on an old laptop, but draws with its graphics chip.
    """
    claims = report.claims
    outer, inner = claims.outer_window, claims.inner_window
    if outer is None or inner is None or report.masked:
        return
    if outer != FIREFOX_HEADLESS_SCREEN or _long_side_first(claims.screen) != FIREFOX_HEADLESS_SCREEN:
        return
    renderer = claims.gpu_renderer
    if outer[1] - 200 <= inner[1] < outer[1] and (renderer is None or is_software_renderer(renderer)):
        findings.add("headless", "headless_default_screen", "hint")
        findings.add("headless", "no_graphics_hardware", "hint")


def _find_stealth(findings: Findings) -> None:
    """A trace of the kind that stealth tools leave proves nothing alone: developers override user agents too.

    With a contradiction in another place, somebody took pains to look like another device.
    """
    if findings.driver_traces and len(findings.places) >= 2:
        for place, names in findings.places.items():
            for name in names:
                findings.add("automation", name, "proof", place)
