"""Names of operating systems, as data, and what client hints say of them.

What may live here: patterns for what the `ua-parser` list does not know or calls otherwise, names shown on events, and
the families and release numbers that matching compares.
"""

from __future__ import annotations

import re

from ua_parser.lazy import OSMatcher

from svc.domain.model import ClientHints

_DOTTED = r"(\d+)?[._]?(\d+)?[._]?(\d+)?"

_TOKENS: tuple[tuple[str, str], ...] = (
    (r"\biPad(?:;.*?OS | ?OS[/ ])", "iPadOS"),
    (r"\b(?:AFT[A-Z0-9]{1,6}|KF[A-Z]{3,6})\b", "Fire OS"),
    (r"\bVIDAA\b/?", "VIDAA"),
    (r"Web0S|webOS(?:\.TV|TV)?|NetCast[./]|LG Browser", "webOS"),
    (r"OpenHarmony[/ ]?|HarmonyOS[/ ]?", "HarmonyOS"),
    (r"Tizen[/ ]?", "Tizen"),
    (r"KAIOS/|KaiOS/", "KaiOS"),
    (r"Roku(?:OS)?(?:/DVP-|/)?", "Roku OS"),
    (r"TiVo(?:, TiVo_|OS|_)?", "TiVo OS"),
    (r"WhaleTV|Whale OS", "Whale OS"),
    (r"BrightSign/?", "BrightSignOS"),
    (r"CyanogenMod[/-]?", "CyanogenMod"),
    (r"MocorDroid", "MocorDroid"),
    (r"Wear OS|Android Wear|wearable", "Wear OS"),
    (r"(?:Android TV|AndroidTV|BRAVIA|SHIELD Android TV|Chromecast|Google ?TV)[^)]*?(?:Android )?", "Android TV"),
    (r"watchOS[/, ]|Watch OS[/, ]?|Watch", "watchOS"),
    (r"tvOS[/ ]|Apple ?TV(?:OS)?[/ ]?", "tvOS"),
    (r"Windows Phone (?:OS )?", "Windows Phone"),
    (r"Windows CE|WindowsCE|Windows Mobile", "Windows CE"),
    (r"J2ME/MIDP|MIDP-|Profile/MIDP", "Java ME"),
    (r"MAUI[ _-]|MRE/", "MRE"),
    (r"SymbianOS/|Symbian/|Symbian OS|Series ?60/?|S60/?|SymbOS", "Symbian OS"),
    (r"CrOS \S+ ", "Chrome OS"),
    (r"PlayStation|PLAYSTATION", "PlayStation"),
    (r"Nintendo", "Nintendo"),
    (r"AmigaOS|Amiga|MorphOS", "AmigaOS"),
    (r"Haiku", "Haiku"),
)
MATCHERS = [OSMatcher(rf"({token}){_DOTTED}", family=name) for token, name in _TOKENS]

DISPLAYED = {
    "Mac OS X": "macOS",
    "Mac OS": "macOS",
    "WatchOS": "watchOS",
    "ATV OS X": "tvOS",
    "Web0S": "webOS",
    "GoogleTV": "Android TV",
    "Chromecast Android": "Android TV",
    "Chromecast Fuchsia": "Fuchsia",
    "Chromecast Linux": "Linux",
    "Brew MP": "Brew",
    "BREW": "Brew",
    "Panasonic": "Linux",
    "Sony": "Linux",
    "Samsung": "Tizen",
}
FAMILIES = {
    "Windows": "windows",
    "macOS": "mac",
    "iOS": "ios",
    "iPadOS": "ios",
    "Android": "android",
    "Fire OS": "android",
    "Android TV": "android",
    "HarmonyOS": "android",
    "CyanogenMod": "android",
    "MocorDroid": "android",
    "Wear OS": "android",
    "Chrome OS": "chromeos",
    "Linux": "linux",
    "Ubuntu": "linux",
    "Debian": "linux",
    "Fedora": "linux",
    "CentOS": "linux",
    "Gentoo": "linux",
    "Slackware": "linux",
    "Mageia": "linux",
    "Arch Linux": "linux",
    "Linux Mint": "linux",
    "Red Hat": "linux",
    "SUSE": "linux",
}
"""Name -> family of matching; all else is `other`."""

_HINTED = {
    "windows": "Windows",
    "macos": "macOS",
    "mac os x": "macOS",
    "android": "Android",
    "chrome os": "Chrome OS",
    "chromium os": "Chrome OS",
    "linux": "Linux",
    "ios": "iOS",
}
_MORE_EXACT = {
    "Android": ("Fire OS", "Android TV", "HarmonyOS", "Wear OS", "CyanogenMod"),
    "Linux": ("Ubuntu", "Debian", "Fedora", "CentOS", "Gentoo", "Arch Linux", "Linux Mint"),
}
"""Hinted system -> what a user agent may call it more exactly."""
_NUMBERS = re.compile(r"(\d{1,5})(?:[._](\d{1,5}))?")
_DARWIN = re.compile(r"Darwin/(\d{1,3})")
_APPLE_DESKTOP = re.compile(r"\((?:x86_64|i386|Macintosh|MacBook|iMac)|Mac ?OS|macOS|Macintosh", re.IGNORECASE)


def from_hints(hints: ClientHints, name: str | None, version: str | None) -> tuple[str | None, str | None]:
    """What the hints make of a system that the user agent names; unchanged where they say nothing."""
    hinted = _HINTED.get((hints.platform or "").lower())
    if hinted is None:
        return name, version
    if name != hinted and name not in _MORE_EXACT.get(hinted, ()):
        name, version = hinted, None
    said = _NUMBERS.match(hints.platform_version or "")
    if said is None:
        return name, version
    if hinted == "Windows":
        return name, _windows_release(int(said[1]), int(said[2] or 0), version)
    if hinted in ("macOS", "Android", "iOS"):
        numbers = (hints.platform_version or "").replace("_", ".").split(".")[:3]
        while len(numbers) > 1 and numbers[-1] == "0":
            numbers.pop()
        return name, ".".join(numbers)
    # Linux hints the kernel's version, ChromeOS the platform's: neither is a release of the system as people know it.
    return name, version


def _windows_release(major: int, minor: int, version: str | None) -> str | None:
    """The API contract's version: 13 and more is Windows 11, 1 to 10 is 10, 0 the older ones (W3C UA Client Hints)."""
    if major >= 13:
        return "11"
    if major >= 1:
        return "10"
    return {1: "7", 2: "8", 3: "8.1"}.get(minor, version)


def from_network_library(user_agent: str) -> tuple[str, str | None] | None:
    """Apple's network library names the kernel instead of the system: `App/1 CFNetwork/808.3 Darwin/16.3.0`."""
    if _DARWIN.search(user_agent) is None:
        return None
    return ("macOS" if _APPLE_DESKTOP.search(user_agent) else "iOS"), None


def release(version: str | None) -> int:
    """Major times 100 plus minor; 0 = unknown."""
    found = _NUMBERS.match(version or "")
    return int(found[1]) * 100 + min(int(found[2] or 0), 99) if found else 0
