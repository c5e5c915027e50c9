"""Places where a report contradicts itself: its system, its engine, its client hints, its languages.

What may live here: checks that fire the group `tampering`, except those on graphics. Each names the topic of the
contradiction, so that many contradictions on one topic count as one, and three lies make an invented device.
"""

from __future__ import annotations

import re
from typing import Any

from svc.identify.detection.claimed import (
    COMPARED,
    BrowserEngine,
    Claimed,
    differ,
    is_overridden,
    may_have_empty_hints,
    read_claimed,
    system_of_hint,
    system_of_platform,
)
from svc.identify.detection.findings import TOO_MANY_LIES, Findings
from svc.identify.model import Attribute, Claims, ClientHints, Report, RequestFacts
from svc.kernel.values.fields import Platform


def detect_tampering(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Add contradictions between parts of the report, the request's headers and the claimed browser: `os_mismatch`,
    `engine_mismatch`, `browser_tampering` and others (docs/signals.md).
    """
    # Firefox that resists fingerprinting, and Tor Browser, deliberately show one system in the header and another in
    # the page; what they mask is distinguished from lies by `privacy_settings`.
    resisting = claimed.engine == "gecko" and bool(report.masked)
    if not resisting:
        _compare_systems(report, claimed, findings)
        _compare_phone(report.claims, facts, claimed, findings)
        _compare_headers(report.claims, facts, findings)
        detect_contexts(report, claimed, findings)
    detect_engine(report.claims, facts.hints, report.botd or {}, claimed, findings)
    detect_hints(report.claims.hints, claimed, findings)
    detect_hints(facts.hints, claimed, findings)
    _look_for_override(report.claims, claimed, findings)
    _look_at_natives(report, claimed, findings)
    _look_at_canvas(report, claimed, findings)


def compare_sdk(report: Report, platform: Platform, claimed: Claimed, findings: Findings) -> None:
    """Add `os_mismatch` where the SDK's platform contradicts the user agent or the system that the report names."""
    expected = "apple" if platform == "ios" else "unix"
    if claimed.system is not None and claimed.system != expected:
        findings.add("os_mismatch", "sdk_platform_vs_user_agent")
    if report.claims.native_platform not in (None, platform):
        findings.add("os_mismatch", "sdk_platform_vs_report")


def conclude(findings: Findings) -> None:
    """Add `anti_detect_browser` for contradictions about `TOO_MANY_LIES` things. Call this after all other checks."""
    if len(findings.lies) >= TOO_MANY_LIES:
        findings.add_contradictions("anti_detect_browser")


def _compare_systems(report: Report, claimed: Claimed, findings: Findings) -> None:
    if claimed.system is None:
        return
    claims = report.claims
    platform = system_of_platform(claims.platform)
    if platform is not None and platform != claimed.system:
        findings.contradict("platform", "os_mismatch", "platform_vs_user_agent")
    os_cpu = system_of_platform(claims.os_cpu)
    if os_cpu is not None and os_cpu != claimed.system:
        findings.contradict("platform", "os_mismatch", "os_cpu_vs_user_agent")
    if claimed.ios and claims.touch_points == 0:
        findings.contradict("touch", "os_mismatch", "ios_without_touch")
    stock = _STOCK_FONTS.get(claimed.system)
    # Only a collector whose list of fonts is known to hold the stock ones shows anything by not finding them.
    readable = "fingerprintjs" in report.collectors and Attribute.FONTS not in report.masked
    if stock and not claimed.android and readable and claims.fonts is not None and stock.isdisjoint(claims.fonts):
        findings.contradict("fonts", "os_mismatch", "no_stock_fonts", "hint")
    if claimed.engine == "webkit" and claims.apple_font is False:
        findings.contradict("fonts", "os_mismatch", "no_apple_font", "hint")


def _compare_phone(claims: Claims, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Report a desktop that calls itself an Android device. The other checks see "unix" in both.

    Hints of another system are enough. Some Android devices have a desktop's processor, and televisions have no touch
    screen, but hardly any device has both, or one of them together with hints of a desktop.
    """
    if not claimed.android:
        return
    said = (claims.hints, facts.hints)
    elsewhere = any(hint.platform in _DESKTOPS for hint in said)
    unlike = claimed.mobile and any(hint.mobile is False for hint in said)
    processor = (claims.platform or "").startswith(("Linux x86", "Linux i686", "Linux i586"))
    touchless = claims.touch_points == 0
    if elsewhere or (unlike and (processor or touchless)):
        findings.contradict("hints", "os_mismatch", "hinted_desktop_vs_android")
    if (elsewhere or unlike) + processor + touchless >= 2:
        if processor:
            findings.contradict("platform", "os_mismatch", "desktop_processor_vs_android")
        if touchless:
            findings.contradict("touch", "os_mismatch", "android_without_touch")


_DESKTOPS = frozenset({"Linux", "Chrome OS", "ChromeOS", "Chromium OS", "Windows", "macOS"})
_STOCK_FONTS = {
    "windows": frozenset(("Calibri", "Franklin Gothic", "MS UI Gothic", "Marlett", "Segoe UI Light")),
    "apple": frozenset(("Arial Unicode MS", "Gill Sans", "Helvetica Neue", "Menlo")),
}
"""Fonts that come with the system and that FingerprintJS looks for."""


def _compare_headers(claims: Claims, facts: RequestFacts, findings: Findings) -> None:
    """Compare page and headers: one browser gives both nearly the same user agent and the same languages."""
    if facts.user_agent and claims.user_agent and facts.user_agent != claims.user_agent:
        header, page = read_claimed(facts.user_agent), read_claimed(claims.user_agent)
        for part in COMPARED:
            if differ(header, page, part):
                findings.contradict("headers", COMPARED[part], f"page_{part}_vs_header")
    if claims.languages and facts.accept_language:
        first = claims.languages[0][:2].lower()
        accepted = facts.accept_language[:256].lower()
        languages = {part.lstrip()[:2] for part in accepted.split(",")}
        if len(first) == 2 and "*" not in accepted and first not in languages:
            findings.contradict("languages", None, "languages_vs_header")
    if claims.languages and claims.language and claims.language.lower() != claims.languages[0].lower():
        findings.contradict("languages", None, "language_vs_languages")


def _look_for_override(claims: Claims, claimed: Claimed, findings: Findings) -> None:
    recent = claimed.engine == "chromium" and claimed.version >= FIRST_WITH_HINTS
    if claimed.desktop and recent and is_overridden(claims, claimed):
        findings.contradict("hints", "browser_tampering", "user_agent_overridden")


def _look_at_natives(report: Report, claimed: Claimed, findings: Findings) -> None:
    bind = (report.botd or {}).get("functionBind")
    if isinstance(bind, str) and "[native code]" not in bind[:1024]:
        findings.contradict("natives", "browser_tampering", "function_bind_not_native")
    # Brave's shields replace the plugins, too.
    patched = report.claims.plugins_patched and Attribute.PLUGINS not in report.masked
    if patched and claimed.desktop and claimed.engine == "chromium":
        findings.contradict("natives", "browser_tampering", "plugins_patched")
        findings.driver_traces.append("plugins_patched")


def _look_at_canvas(report: Report, claimed: Claimed, findings: Findings) -> None:
    """Report noise in the canvas. It is a privacy setting of browsers that add it themselves, as Firefox and Safari do
    in private windows. In others it comes from an extension.
    """
    if not report.claims.canvas_noise or Attribute.CANVAS in report.masked:
        return
    if claimed.engine == "chromium" and not claimed.adds_noise:
        findings.add("browser_tampering", "canvas_noise", "hint")
    else:
        findings.add("privacy_settings", "canvas_noise", "proof", "masked")


FIRST_WITH_DERIVED_GREASE = 111
"""Chromium derives the invented brand from its own version since about 103; from 111 on none was seen without."""

FIRST_WITH_HINTS = 100
"""From this version on every desktop fills in its hints."""

_GREASE_CHARACTERS = (" ", "(", ":", "-", ".", "/", ")", ";", "=", "?", "_")
_THREE_NUMBERS = re.compile(r"\d+\.\d+\.\d+\Z")


def detect_hints(hints: ClientHints, claimed: Claimed, findings: Findings) -> None:
    """Add contradictions of one source of client hints (report, headers) with system, version, brands claimed."""
    system = system_of_hint(hints.platform)
    if system is not None and claimed.system is not None and system != claimed.system:
        findings.contradict("hints", "os_mismatch", "hints_vs_user_agent")
    if claimed.engine != "chromium":
        return
    chromium = next((version for brand, version in hints.brands if brand == "Chromium"), "")
    # Some user agents kept version 99 for a while, so that sites would not misread a third digit. Collectors that
    # list brands without versions say nothing.
    if claimed.version > 99 and chromium and not chromium.startswith(str(claimed.version)):
        findings.contradict("version", "browser_tampering", "brand_version_vs_user_agent")
    if claimed.desktop:
        for evidence, written in (
            ("hinted_version_of_no_release", _is_version_of_no_release(hints, claimed)),
            ("invented_brand_of_another_release", _is_grease_of_another(hints.grease, chromium, claimed)),
            ("hints_emptied", _is_emptied(hints, claimed)),
        ):
            if written:
                findings.contradict("hints", "browser_tampering", evidence)
                findings.driver_traces.append(evidence)


def _is_emptied(hints: ClientHints, claimed: Claimed) -> bool:
    return hints.emptied and claimed.version >= FIRST_WITH_HINTS and not may_have_empty_hints(hints, claimed)


def _is_version_of_no_release(hints: ClientHints, claimed: Claimed) -> bool:
    """Return whether no Chromium gives this platform version. It gives three numbers on Windows since version 95, and
    always did on macOS. A value that was set by a driver is cut from a user agent instead: `10.0`, `10_15_7`.
    """
    if claimed.version <= 95 or hints.platform not in ("Windows", "macOS") or not hints.platform_version:
        return False
    return _THREE_NUMBERS.match(hints.platform_version[:64]) is None


def _is_grease_of_another(grease: str | None, chromium: str, claimed: Claimed) -> bool:
    """Return whether the invented brand belongs to another version. The browser writes `Not{a}A{b}Brand` with two
    characters that follow from its version. Tools that forge the list keep one spelling, often that of 2021. The
    version is taken from the same list: whether it contradicts the user agent is checked elsewhere.
    """
    major = chromium[:8].partition(".")[0]
    version = int(major) if major.isascii() and major.isdecimal() else claimed.version
    if grease is None or version < FIRST_WITH_DERIVED_GREASE:
        return False
    first, second = (_GREASE_CHARACTERS[(version + step) % len(_GREASE_CHARACTERS)] for step in (0, 1))
    return grease != f"Not{first}A{second}Brand"


_VENDORS: dict[str, BrowserEngine] = {"Google Inc.": "chromium", "Apple Computer, Inc.": "webkit"}
_PRODUCTS = ("20030107", "20100101")
_LENGTH_OF_EVAL = {33: ("chromium",), 37: ("gecko", "webkit")}
"""Length of `eval.toString()` -> the engines that write it so."""

FIRST_STEADY_CHROMIUM = 100
"""The first version that has the interfaces which the checks look for."""

V8_MATHS = {
    "acos": 1.4473588658278522,
    "acosh": 709.889355822726,
    "acoshPf": 355.291251501643,
    "asin": 0.12343746096704435,
    "asinh": 0.881373587019543,
    "atanh": 0.5493061443340548,
    "atan": 0.4636476090008061,
    "sin": 0.8178819121159085,
    "sinh": 1.1752011936438014,
    "cos": -0.8390715290095377,
    "cosh": 1.5430806348152437,
    "tan": -1.4214488238747245,
    "tanh": 0.7615941559557649,
    "expm1": 1.718281828459045,
    "log1p": 2.3978952727983707,
}
"""The results of V8, which computes these in software, equally on all machines. Unchanged in Chromium 109 to 156."""

FEWEST_WRONG_MATHS = 3
"""Results that must differ: a single one that a compiler rounds otherwise shows nothing."""


def detect_engine(
    claims: Claims, sent: ClientHints, components: dict[str, Any], claimed: Claimed, findings: Findings
) -> None:
    """Add contradictions between the browser's engine, as its answers show it, and the engine that is claimed; add
    nothing if none is claimed. `sent`: the hints of the request's headers; `components`: those of BotD.
    """
    engine = claimed.engine
    if engine is None:
        return
    vendor = _VENDORS.get(claims.vendor) if claims.vendor else None
    checks = {
        "vendor_vs_user_agent": vendor is not None and vendor != engine,
        "product_sub_vs_user_agent": (
            claims.product_sub in _PRODUCTS and (claims.product_sub == "20100101") != (engine == "gecko")
        ),
        "eval_length_vs_user_agent": engine not in _LENGTH_OF_EVAL.get(claims.eval_length or 0, (engine,)),
        "error_stack_vs_user_agent": _is_stack_of_another(engine, components.get("errorTrace")),
        "features_vs_user_agent": _are_features_of_another(claimed, components.get("browserEngineKind")),
        "math_vs_user_agent": _is_math_of_another(claimed, claims.math),
        # Neither Firefox nor Safari has client hints.
        "hints_of_another_engine": engine != "chromium" and bool(claims.hints.brands or sent.brands),
        "os_cpu_of_another_engine": engine != "gecko" and claims.os_cpu is not None,
    }
    for evidence, differs in checks.items():
        if differs:
            findings.contradict("engine", "engine_mismatch", evidence)


def _is_stack_of_another(engine: BrowserEngine, trace: Any) -> bool:
    """Recognize another engine's stack trace: V8 writes `at function (location)`, others `function@location`."""
    if not isinstance(trace, str):
        return False
    start = trace[:2048]
    chromium = "\n    at " in start
    return (chromium or "@" in start) and chromium != (engine == "chromium")


def _are_features_of_another(claimed: Claimed, kind: Any) -> bool:
    """Return whether BotD's count of interfaces shows another engine. Web views of phones lack too many of them."""
    if kind not in ("chromium", "gecko", "webkit") or not claimed.desktop:
        return False
    recent = claimed.engine != "chromium" or claimed.version >= FIRST_STEADY_CHROMIUM
    return recent and kind != claimed.engine


def _is_math_of_another(claimed: Claimed, math: dict[str, float] | None) -> bool:
    if math is None or claimed.engine != "chromium" or claimed.version < FIRST_STEADY_CHROMIUM:
        return False
    wrong = sum(math[name] != value for name, value in V8_MATHS.items() if name in math)
    return wrong >= FEWEST_WRONG_MATHS


_GRAPHICS = ("gpu_vendor", "gpu_renderer")


def detect_contexts(report: Report, claimed: Claimed, findings: Findings) -> None:
    """Add findings where frames and workers differ from the page. A value on one side alone shows nothing."""
    for name, answers in (report.claims.contexts or {}).items():
        if answers.get("webdriver") is True:
            findings.add("automation", f"webdriver_in_{name}", "definitive", "webdriver")
        _compare_agents(name, report.claims, answers, claimed, findings)
        _compare_values(name, report, answers, claimed, findings)


def _compare_agents(name: str, claims: Claims, answers: dict[str, Any], claimed: Claimed, findings: Findings) -> None:
    """Compare system, engine and version: on an iPad that asks for desktop pages, only the page says Macintosh."""
    inner = read_claimed(answers.get("user_agent"))
    if inner.headless:
        findings.add("headless", f"headless_user_agent_in_{name}", "definitive", "user_agent")
    system = system_of_platform(answers.get("platform"))
    outer_system = system_of_platform(claims.platform) or claimed.system
    if system is not None and outer_system is not None and system != outer_system:
        findings.contradict(name, "os_mismatch", f"platform_in_{name}")
    outer = read_claimed(claims.user_agent) if claims.user_agent else claimed
    for part in COMPARED:
        if differ(inner, outer, part):
            findings.contradict(name, COMPARED[part], f"user_agent_{part}_in_{name}")


def _compare_values(name: str, report: Report, answers: dict[str, Any], claimed: Claimed, findings: Findings) -> None:
    """Compare all but the user agents. Masked values are left out: they may differ from place to place."""
    claims = report.claims
    if Attribute.HARDWARE not in report.masked and _is_other_hardware(claims, answers, claimed):
        findings.contradict(name, "browser_tampering", f"hardware_in_{name}")
    if report.masked.isdisjoint((Attribute.GPU, Attribute.WEBGL)) and _differs(claims, answers, _GRAPHICS):
        findings.contradict(name, "browser_tampering", f"renderer_in_{name}", about="graphics")
    if Attribute.TIMEZONE not in report.masked and _is_other_zone(claims.timezone, answers.get("timezone")):
        findings.contradict(name, "browser_tampering", f"timezone_in_{name}", about="timezone")
    page = claims.language or (claims.languages[0] if claims.languages else None)
    language = answers.get("language")
    if page is not None and language is not None and page[:2].lower() != language[:2].lower():
        findings.contradict(name, None, f"language_in_{name}", about="languages")


def _is_other_hardware(claims: Claims, answers: dict[str, Any], claimed: Claimed) -> bool:
    page, there = claims.cores, answers.get("cores")
    if page is not None and there is not None:
        rounded = claimed.engine == "gecko"
        if _level(page) != _level(there) if rounded else page != there:
            return True
    return _differs(claims, answers, ("memory_gb",))


def _is_other_zone(page: str | None, there: str | None) -> bool:
    """Compare the names of time zones. FingerprintJS gives an offset, such as `UTC+2`, if the page knows none."""
    if page is None or there is None or page.startswith(("UTC+", "UTC-")):
        return False
    return page != there


def _level(cores: float) -> int:
    """Round cores to 4 or 8, as collectors do for Firefox. An iframe or a worker gives the exact number."""
    return 8 if cores >= 8 else 4


def _differs(claims: Claims, answers: dict[str, Any], questions: tuple[str, ...]) -> bool:
    for question in questions:
        page, there = getattr(claims, question), answers.get(question)
        if page is not None and there is not None and page != there:
            return True
    return False
