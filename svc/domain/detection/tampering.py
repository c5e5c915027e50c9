"""Places where a report contradicts itself: its system, its engine, its client hints, its languages.

What may live here: checks that fire the group `tampering`, except those on graphics. Each names the place of the
contradiction, so that many contradictions in one place count as one, and three lies make an invented device.
"""

from __future__ import annotations

from svc.domain.detection import contexts, engine, hints
from svc.domain.detection.claimed import COMPARED, Claimed, differ, is_overridden, read_claimed, system_of_platform
from svc.domain.detection.findings import TOO_MANY_LIES, Findings
from svc.domain.model import Attribute, Claims, Platform, Report, RequestFacts


def detect_tampering(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Add contradictions between parts of the report, the request's headers and the claimed browser: `os_mismatch`,
    `engine_mismatch`, `browser_tampering` and others (signals.md 2).
    """
    # Firefox that resists fingerprinting, and Tor Browser, deliberately show one system in the header and another in
    # the page; what they mask is distinguished from lies by `privacy_settings`.
    resisting = claimed.engine == "gecko" and bool(report.masked)
    if not resisting:
        _compare_systems(report, claimed, findings)
        _compare_phone(report.claims, facts, claimed, findings)
        _compare_headers(report.claims, facts, findings)
        contexts.detect_contexts(report, claimed, findings)
    engine.detect_engine(report.claims, facts.hints, report.botd or {}, claimed, findings)
    hints.detect_hints(report.claims.hints, claimed, findings)
    hints.detect_hints(facts.hints, claimed, findings)
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
    """Add `anti_detect_browser` where the findings so far contradict each other about `TOO_MANY_LIES` things
    (signals.md 2). To be called after all other checks.
    """
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
    """A desktop under the name of an Android device: both are "unix" to the other checks.

    Hints of another system settle it. A processor of desktops is found in some Android devices, too, and televisions
    have nothing to touch, but hardly both, nor one of them beside hints of a desktop.
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
    """The page and the header of one browser say the same user agent, or nearly."""
    if facts.user_agent and claims.user_agent and facts.user_agent != claims.user_agent:
        header, page = read_claimed(facts.user_agent), read_claimed(claims.user_agent)
        for part in COMPARED:
            if differ(header, page, part):
                findings.contradict("headers", COMPARED[part], f"page_{part}_vs_header")
    if claims.languages and facts.accept_language:
        first = claims.languages[0][:2].lower()
        accepted = facts.accept_language[:256].lower()
        if len(first) == 2 and "*" not in accepted and not _accepts(accepted, first):
            findings.contradict("languages", None, "languages_vs_header")
    if claims.languages and claims.language and claims.language.lower() != claims.languages[0].lower():
        findings.contradict("languages", None, "language_vs_languages")


def _accepts(accepted: str, language: str) -> bool:
    return any(part.lstrip()[:2] == language for part in accepted.split(","))


def _look_for_override(claims: Claims, claimed: Claimed, findings: Findings) -> None:
    recent = claimed.engine == "chromium" and claimed.version >= hints.FIRST_WITH_HINTS
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
    """Noise that browsers add themselves is a setting for privacy: Firefox and Safari do so in private windows. In
    others it comes from an extension.
    """
    if not report.claims.canvas_noise or Attribute.CANVAS in report.masked:
        return
    if claimed.engine == "chromium" and not claimed.adds_noise:
        findings.add("browser_tampering", "canvas_noise", "hint")
    else:
        findings.add("privacy_settings", "canvas_noise", "proof", "masked")
