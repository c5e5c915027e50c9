"""Client hints against the user agent: they are two ways of saying one thing, and drivers rewrite one of them by hand.

What may live here: checks on User-Agent Client Hints, from the page and from the headers (W3C UA Client Hints).
"""

from __future__ import annotations

import re

from svc.domain.detection.claimed import Claimed, may_have_empty_hints, system_of_hint
from svc.domain.detection.findings import Findings
from svc.domain.model import ClientHints

FIRST_WITH_DERIVED_GREASE = 111
"""Chromium derives the invented brand from its own version since about 103; from 111 on none was seen without."""

FIRST_WITH_HINTS = 100
"""Every desktop has filled its hints in for a while by then."""

_GREASE_CHARACTERS = (" ", "(", ":", "-", ".", "/", ")", ";", "=", "?", "_")
_THREE_NUMBERS = re.compile(r"\d+\.\d+\.\d+\Z")


def detect_hints(hints: ClientHints, claimed: Claimed, findings: Findings) -> None:
    """Add contradictions of one source of client hints (report or headers) with the user agent: system, version,
    brands.
    """
    system = system_of_hint(hints.platform)
    if system is not None and claimed.system is not None and system != claimed.system:
        findings.contradict("hints", "os_mismatch", "hints_vs_user_agent")
    if claimed.engine != "chromium":
        return
    chromium = next((version for brand, version in hints.brands if brand == "Chromium"), "")
    # Version 99 stood still in user agents for a while, so that sites would not misread a third digit. Collectors that
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
    """Since version 95 Chromium gives three numbers on Windows, and always did on macOS. What was put there by a
    driver's command is cut from a user agent instead: `10.0`, `10_15_7`.
    """
    if claimed.version <= 95 or hints.platform not in ("Windows", "macOS") or not hints.platform_version:
        return False
    return _THREE_NUMBERS.match(hints.platform_version[:64]) is None


def _is_grease_of_another(grease: str | None, chromium: str, claimed: Claimed) -> bool:
    """The browser writes `Not{a}A{b}Brand` with two characters that follow from its version; tools that make the list
    up keep one spelling, often that of 2021. The version is that of the same list: whether the user agent's is another
    is a question of its own.
    """
    major = chromium[:8].partition(".")[0]
    version = int(major) if major.isascii() and major.isdecimal() else claimed.version
    if grease is None or version < FIRST_WITH_DERIVED_GREASE:
        return False
    first, second = (_GREASE_CHARACTERS[(version + step) % len(_GREASE_CHARACTERS)] for step in (0, 1))
    return grease != f"Not{first}A{second}Brand"
