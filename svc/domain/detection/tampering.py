"""Places where a report contradicts itself: its system, its engine, its client hints, its languages.

What may live here: checks that fire the group `tampering`, except those on graphics. Each names the place of the
contradiction, so that many contradictions in one place count as one, and three places make an invented device.
"""

from __future__ import annotations

import re
from typing import Any

from svc.domain.detection.claimed import Claimed, Engine, read_claimed, system_of_hint, system_of_platform
from svc.domain.detection.findings import TOO_MANY_PLACES, Findings
from svc.domain.model import Attribute, Claims, ClientHints, Platform, Report, RequestFacts


def find(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Compare the parts of the report with the claimed browser and with each other."""
    # Firefox that resists fingerprinting, and Tor Browser, deliberately show one system in the header and another in
    # the page; what they mask is told apart from lies by `privacy_settings`.
    resisting = claimed.engine == "gecko" and bool(report.masked)
    if not resisting:
        _compare_systems(report, claimed, findings)
        _compare_headers(report.claims, facts, findings)
    _compare_engines(report.claims, report.botd or {}, claimed, findings)
    _compare_hints(report.claims.hints, claimed, findings)
    _compare_hints(facts.hints, claimed, findings)
    _look_at_natives(report.botd or {}, findings)


def compare_sdk(platform: Platform, claimed: Claimed, findings: Findings) -> None:
    """Compare the system that a native SDK runs on with the user agent of its requests."""
    expected = "apple" if platform == "ios" else "unix"
    if platform != "web" and claimed.system is not None and claimed.system != expected:
        findings.add("os_mismatch", "sdk_platform_vs_user_agent")


def conclude(findings: Findings) -> None:
    """Runs last: contradictions in three places are a device that somebody invented (signals.md 2)."""
    if len(findings.places) >= TOO_MANY_PLACES:
        for place, names in findings.places.items():
            for name in names:
                findings.add("anti_detect_browser", name, "proof", place)


def _compare_systems(report: Report, claimed: Claimed, findings: Findings) -> None:
    if claimed.system is None:
        return
    claims = report.claims
    platform = system_of_platform(claims.platform)
    if platform is not None and platform != claimed.system:
        findings.contradict("platform", "os_mismatch", "platform_vs_user_agent")
    if claimed.ios and claims.touch_points == 0:
        findings.contradict("touch", "os_mismatch", "ios_without_touch")
    stock = _STOCK_FONTS.get(claimed.system)
    # Only a collector whose list of fonts is known to hold the stock ones shows anything by not finding them.
    readable = "fingerprintjs" in report.collectors and Attribute.FONTS not in report.masked
    if stock and claimed.desktop and readable and claims.fonts is not None and stock.isdisjoint(claims.fonts):
        findings.contradict("fonts", "os_mismatch", "no_stock_fonts", "hint")


_STOCK_FONTS = {
    "windows": frozenset(("Calibri", "Franklin Gothic", "MS UI Gothic", "Marlett", "Segoe UI Light")),
    "apple": frozenset(("Arial Unicode MS", "Gill Sans", "Helvetica Neue", "Menlo")),
}
"""Fonts that come with the system and that FingerprintJS looks for."""


def _compare_headers(claims: Claims, facts: RequestFacts, findings: Findings) -> None:
    """The page and the header of one browser say the same user agent, or nearly."""
    if facts.user_agent and claims.user_agent and facts.user_agent != claims.user_agent:
        header, page = read_claimed(facts.user_agent), read_claimed(claims.user_agent)
        if header.system and page.system and header.system != page.system:
            findings.contradict("headers", "os_mismatch", "page_system_vs_header")
        if header.engine and page.engine and header.engine != page.engine:
            findings.contradict("headers", "engine_mismatch", "page_engine_vs_header")
        if header.version and page.version and header.version != page.version:
            findings.contradict("headers", "browser_tampering", "page_version_vs_header")
    if claims.languages and facts.accept_language:
        first = claims.languages[0][:2].lower()
        accepted = facts.accept_language[:256].lower()
        if len(first) == 2 and "*" not in accepted and not _accepts(accepted, first):
            findings.contradict("languages", None, "languages_vs_header")


def _accepts(accepted: str, language: str) -> bool:
    return any(part.lstrip()[:2] == language for part in accepted.split(","))


def _compare_engines(claims: Claims, components: dict[str, Any], claimed: Claimed, findings: Findings) -> None:
    """Constants of the engine, and the way it writes errors, against the engine of the user agent."""
    engine = claimed.engine
    if engine is None:
        return
    vendor = _VENDORS.get(claims.vendor) if claims.vendor else None
    if vendor is not None and vendor != engine:
        findings.contradict("engine", "engine_mismatch", "vendor_vs_user_agent")
    if claims.product_sub in _PRODUCTS and (claims.product_sub == "20100101") != (engine == "gecko"):
        findings.contradict("engine", "engine_mismatch", "product_sub_vs_user_agent")
    length = components.get("evalLength")
    if isinstance(length, int) and length in (33, 37) and (length == 33) != (engine == "chromium"):
        findings.contradict("engine", "engine_mismatch", "eval_length_vs_user_agent")
    trace = components.get("errorTrace")
    if isinstance(trace, str):
        start = trace[:2048]
        chromium = "\n    at " in start
        if (chromium or "@" in start) and chromium != (engine == "chromium"):
            findings.contradict("engine", "engine_mismatch", "error_stack_vs_user_agent")


_VENDORS: dict[str, Engine] = {"Google Inc.": "chromium", "Apple Computer, Inc.": "webkit"}
_PRODUCTS = ("20030107", "20100101")


def _compare_hints(hints: ClientHints, claimed: Claimed, findings: Findings) -> None:
    system = system_of_hint(hints.platform)
    if system is not None and claimed.system is not None and system != claimed.system:
        findings.contradict("hints", "os_mismatch", "hints_vs_user_agent")
    if claimed.engine != "chromium":
        return
    # Version 99 stood still in user agents for a while, so that sites would not misread a third digit.
    versions = [version for brand, version in hints.brands if brand == "Chromium"]
    if claimed.version > 99 and versions and not versions[0].startswith(str(claimed.version)):
        findings.contradict("version", "browser_tampering", "brand_version_vs_user_agent")
    # Since version 95 Chromium gives three numbers on Windows, and always did on macOS. What was put there by a
    # driver's command is cut from a user agent instead: `10.0`, `10_15_7`.
    version = hints.platform_version
    whole = version is None or version == "" or _THREE_NUMBERS.match(version[:64]) is not None
    if claimed.version > 95 and hints.platform in ("Windows", "macOS") and not whole:
        findings.contradict("hints", "browser_tampering", "hinted_version_of_no_release")
        findings.driver_traces.append("hinted_version_of_no_release")


_THREE_NUMBERS = re.compile(r"\d+\.\d+\.\d+\Z")


def _look_at_natives(components: dict[str, Any], findings: Findings) -> None:
    bind = components.get("functionBind")
    if isinstance(bind, str) and "[native code]" not in bind[:1024]:
        findings.contradict("natives", "browser_tampering", "function_bind_not_native")
