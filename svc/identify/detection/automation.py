"""Signs that a program drives the browser, beside BotD's own rules: what drivers leave, the missing window, and what
stealth tools cannot hide.

What may live here: checks that fire `automation` and `headless` from a report's claims. They run after the checks of
`tampering` and `graphics`, whose contradictions they weigh together.
"""

from __future__ import annotations

from svc.identify.detection.claimed import Claimed, is_overridden, may_be_a_phone, names_itself
from svc.identify.detection.findings import Findings
from svc.identify.detection.graphics import draws_in_software, is_software_renderer
from svc.identify.model import Attribute, Claims, Report, RequestFacts

Size = tuple[float, float]

FIREFOX_HEADLESS_SCREEN = (1366.0, 768.0)
"""The screen that Firefox invents without a display, unless told another (its HeadlessScreenHelper)."""

FIREFOX_FIRST_WINDOW = (1280.0, 1040.0)
"""The window of a new profile, cut to nine tenths of what the screen leaves. It is maximized where both are cut."""

HEADLESS_SCREEN = (800.0, 600.0)
"""The screen that Chromium and WebKit invent without a display."""

OFFSCREEN_SCREEN = (800.0, 800.0)
"""The screen that Qt 6 invents where it shows nothing (its offscreen platform)."""

HEADLESS_COLOR_DEPTH = 24
"""Bits of a pixel that Firefox invents without a display."""

TALLEST_BARS = 200
"""Pixels of a window above its page, with every bar shown."""

LEAST_HEIGHT_WITHOUT_TASK_BAR = 575
"""No task bar fits beside a window this high on that screen; without a display the window is 780 by 580."""

DRIVERS_VIEWPORT = (800.0, 600.0)
"""The page of Puppeteer, unless told another."""

LEAST_ROOM = 50
"""Pixels beside a page that are not a frame of its window."""

LEAST_FRAME = 8
"""Pixels by which a window must exceed a screen to be larger; less is rounding, by systems that scale."""

LEAST_ZOOM_RATIO = 1.07
"""A window that is zoomed out shows at least this much more page than it has pixels: the first step is 90 %."""

MARKS = {
    "selenium": "selenium_mark",
    "playwright": "playwright_mark",
    "webdriver_writable": "webdriver_writable",
}
"""Driver mark -> evidence. A `navigator.webdriver` that can be written to was replaced."""


def detect_automation(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Add `automation` by flags and traces of drivers, `headless` by traits of a missing window (docs/signals.md)."""
    find_flag(report, findings)
    _find_marks(report.claims, findings)
    _find_headless_name(report, facts, claimed, findings)
    traits: list[str] = []
    if claimed.desktop and claimed.engine == "chromium":
        traits = _headless_chromium(report, claimed)
    elif claimed.desktop and claimed.engine == "gecko":
        traits = _headless_firefox(report)
    elif claimed.desktop and claimed.ported_webkit:
        traits = _headless_webkit(report.claims)
    if claimed.desktop and report.claims.pointer is False and not report.claims.touch_points:
        traits.append("nothing_to_point_with")
    if claimed.engine == "gecko" and len(traits) < 2:
        traits = []
    if claimed.desktop and _is_screen_invented(report):
        findings.add("automation", "emulated_screen")
    if claimed.desktop and _is_viewport_of_a_driver(report):
        findings.add("automation", "default_viewport", "hint")
    if len(traits) >= 2:
        for trait in traits:
            findings.add("headless", trait, "hint")
    _find_stealth(traits, findings)
    _find_debugger(report, claimed, traits, findings)


def find_flag(report: Report, findings: Findings) -> None:
    """Add `automation` where `navigator.webdriver` is true, as while a driver is attached (W3C WebDriver)."""
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
    """Return traits of a Chromium without a window. Each has an innocent cause, but two rarely have the same one.

    No outer window: a tab that was opened in the background. A window larger than its screen: two monitors. Neither
    plugins nor the `chrome` object: browsers embedded in other programs. These traits count by themselves. Software
    rendering only supports them, since it is common in virtual machines. So does a missing list of plugins: it is also
    missing if a person downloads documents instead of viewing them, and in browsers built on QtWebEngine.
    """
    claims = report.claims
    traits = _window_traits(claims)
    bare = claims.vendor_flavors == () and claimed.pure_chrome
    no_plugins = claims.plugin_count == 0 and Attribute.PLUGINS not in report.masked and not may_be_a_phone(claims)
    if no_plugins and (bare or "no_outer_window" in traits):
        traits.insert(0, "no_plugins")
    if not traits:
        return _renamed_without_window(claims, claimed)
    if bare:
        traits.append("no_chrome_object")
    if is_overridden(claims, claimed):
        traits.append("user_agent_overridden")
    if is_software_renderer(claims.gpu_renderer):
        traits.append("software_renderer")
    if claims.webgl is False and _long_side_first(claims.screen) == OFFSCREEN_SCREEN:
        traits.append("no_graphics")
    if claims.languages and claims.languages[0].endswith("@posix"):
        traits.append("no_locale")
    return traits


def _renamed_without_window(claims: Claims, claimed: Claimed) -> list[str]:
    """Return traits of a browser without a window that was given a screen and another user agent, which hide that.

    People override user agents, too, and virtual machines draw in software, but both have a pointer. Unless the report
    says that there is none, the user agent must be the browser's own: nobody who has a window overrides it with that.
    Televisions have no pointer and a user agent of their maker, but a graphics card.
    """
    if not is_overridden(claims, claimed):
        return []
    in_software = draws_in_software(claims)
    if claims.pointer is False and (in_software or (claims.webgl is False and claimed.pure_chrome)):
        return ["user_agent_overridden", "software_renderer" if in_software else "no_graphics"]
    if claims.pointer is None and in_software and claimed.pure_chrome and names_itself(claims.hints, claimed):
        return ["user_agent_overridden", "software_renderer"]
    return []


def _window_traits(claims: Claims) -> list[str]:
    """Return traits of a missing window, and of one that does not fit the reported screen."""
    outer, screen = _long_side_first(claims.outer_window), _long_side_first(claims.screen)
    if outer == (0, 0):
        return [] if claims.focused is False else ["no_outer_window"]
    traits: list[str] = []
    if outer is not None and screen is not None and screen[1] > 0:
        full_screen = claims.inner_window == claims.outer_window
        beyond = outer[0] > 1.5 * screen[0] or outer[1] > 1.5 * screen[1]
        if screen == OFFSCREEN_SCREEN:
            traits.append("headless_default_screen")
        if screen == HEADLESS_SCREEN and outer[1] >= LEAST_HEIGHT_WITHOUT_TASK_BAR and not full_screen:
            traits.append("headless_default_screen")
        if beyond:
            traits.append("window_larger_than_screen")
    if _is_page_larger(claims.inner_window, claims.outer_window):
        traits.append("page_larger_than_window")
    return traits


def _is_page_larger(inner: Size | None, outer: Size | None) -> bool:
    """Return whether the page exceeds its window both ways, by less than zooming out: a driver set its size."""
    if inner is None or outer is None:
        return False
    return inner[1] > outer[1] and outer[0] < inner[0] < LEAST_ZOOM_RATIO * outer[0]


def _is_screen_invented(report: Report) -> bool:
    """Return whether the page fills the screen exactly, in a window that is larger than the screen. Drivers that set a
    viewport set the screen with it. So do developer tools that emulate a device.
    """
    claims = report.claims
    outer, inner = _long_side_first(claims.outer_window), _long_side_first(claims.inner_window)
    screen = _long_side_first(claims.screen)
    if outer is None or inner is None or screen is None or report.developer_tools:
        return False
    larger = outer[0] >= screen[0] and outer[1] >= screen[1] + LEAST_FRAME
    return inner == screen and larger and screen[1] > 0


def _is_viewport_of_a_driver(report: Report) -> bool:
    """Return whether the page has the size that Puppeteer gives it by default, in a window that is wider. A person's
    page fills its window, except for docked tools and side bars, which leave exactly this size only by chance.
    """
    claims = report.claims
    outer, inner = claims.outer_window, claims.inner_window
    if claims.framed is not False or report.developer_tools or outer is None or inner != DRIVERS_VIEWPORT:
        return False
    return outer[0] >= DRIVERS_VIEWPORT[0] + LEAST_ROOM and outer[1] > DRIVERS_VIEWPORT[1]


def _long_side_first(sides: Size | None) -> Size | None:
    """Put the longer side first: FingerprintJS sorts sides by their digits, so that the width is not known."""
    if sides is None:
        return None
    return sides if sides[0] >= sides[1] else (sides[1], sides[0])


def _headless_firefox(report: Report) -> list[str]:
    """Return traits of Firefox without a display: a window alone on its screen, and no graphics hardware.

    Each has an innocent cause. Bare window managers give a window the whole screen. Old laptops have small screens,
    though few windows on them leave a part free. Careful people switch WebGL off, and displays of few colors have none.
    Software rendering counts only where the window does not fit, since virtual machines use it, too.
    """
    claims = report.claims
    outer, inner, screen = claims.outer_window, claims.inner_window, _long_side_first(claims.screen)
    if outer is None or inner is None or screen is None or report.masked:
        return []
    traits: list[str] = []
    if inner[0] <= outer[0] and outer[1] - TALLEST_BARS <= inner[1] < outer[1]:
        if outer == screen:
            traits.append("window_fills_screen")
        elif screen == FIREFOX_HEADLESS_SCREEN and outer[0] >= screen[0] and outer[1] >= screen[1]:
            traits.append("window_larger_than_screen")
        elif inner[0] == outer[0] and outer == _first_firefox_window(screen):
            traits.append("first_window_without_desktop")
        elif inner[0] == outer[0] and screen == FIREFOX_HEADLESS_SCREEN and outer[0] < screen[0]:
            traits.append("headless_default_screen")
    if claims.webgl is False and claims.color_depth in (None, HEADLESS_COLOR_DEPTH):
        traits.append("no_graphics")
    elif "window_larger_than_screen" in traits and is_software_renderer(claims.gpu_renderer):
        traits.append("software_renderer")
    return traits


def _first_firefox_window(screen: Size) -> Size | None:
    """Return the size of a new profile's first window on an empty screen; `None` if that is too high to tell."""
    width, height = 0.9 * screen[0], 0.9 * screen[1]
    if height >= FIREFOX_FIRST_WINDOW[1]:
        return None
    return (float(min(int(width), FIREFOX_FIRST_WINDOW[0])), float(int(height)))


def _headless_webkit(claims: Claims) -> list[str]:
    """Return traits of WebKit for embedded devices on the screen that it invents if it has none. Devices have other
    screens, and desktops have plugins.
    """
    if claims.screen == claims.outer_window == claims.inner_window == HEADLESS_SCREEN and claims.plugin_count == 0:
        return ["headless_default_screen", "no_plugins"]
    return []


def _find_stealth(traits: list[str], findings: Findings) -> None:
    """Report stealth tools. A trace of them proves nothing alone: developers override user agents, too.

    A contradiction about something else, or no window, shows that the browser was made to look like another device. A
    renamed graphics card is one lie, wherever it shows, and extensions that rename it change similar values.
    """
    if findings.driver_traces and (traits or (len(findings.lies) >= 2 and _lies_beyond_extensions(findings))):
        findings.add_contradictions("automation")


def _lies_beyond_extensions(findings: Findings) -> bool:
    names = (name for evidence in findings.topics.values() for name in evidence)
    return any(not name.startswith(_CHANGED_BY_EXTENSIONS) for name in names)


_CHANGED_BY_EXTENSIONS = ("hardware_", "language_", "limits_", "renderer_", "timezone_")
"""Prefixes of contradictions in values that extensions change in a page to prevent identification."""


def _find_debugger(report: Report, claimed: Claimed, traits: list[str], findings: Findings) -> None:
    """Report an attached debugger: a person's developer tools, or a driver. It is a driver if the tools are known to be
    closed or anything else is wrong. If they are not docked in the window, a driver is likelier: few people have them
    in a window of their own.
    """
    if "cdp" not in (report.claims.driver_marks or ()):
        return
    invented = claimed.desktop and _lies_beyond_extensions(findings)  # developer tools emulate phones
    wrong = traits or invented or findings.has("automation")
    if report.developer_tools is False or wrong:
        findings.add("automation", "debugger_attached")
    elif not report.developer_tools:
        closed = claimed.desktop and _fills_its_window(report.claims)
        findings.add("automation" if closed else "developer_tools", "debugger_attached", "hint")


def _fills_its_window(claims: Claims) -> bool:
    """Return whether there is nothing but bars around the page. A page that is zoomed out is larger than its window, so
    that nothing is known of what is beside it.
    """
    outer, inner = claims.outer_window, claims.inner_window
    if claims.framed is not False or outer is None or inner is None:
        return False
    return 0 <= outer[0] - inner[0] < LEAST_ROOM and 0 <= outer[1] - inner[1] <= TALLEST_BARS
