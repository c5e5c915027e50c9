"""What a user agent text claims, in the few coarse terms that the checks compare.

What may live here: reading texts such as user agents, `navigator.platform` and hinted platforms into groups of systems
and engines. The groups are as wide as innocent reports need them to be: a phone that asks for desktop pages calls
itself X11, an iPad calls itself a Macintosh, and neither contradicts anything.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from svc.identify.model import Claims, ClientHints

System = Literal["windows", "apple", "unix"]
"""`apple` is macOS, iOS and iPadOS; `unix` is Linux, Android and ChromeOS."""
BrowserEngine = Literal["chromium", "gecko", "webkit"]

_TEXT_LIMIT = 1024
_PURE_CHROME = re.compile(r"\) (?:Headless)?Chrome/[\d.]{1,32} Safari/537\.36$")
_ADDS_NOISE = ("SamsungBrowser/", "DuckDuckGo/", "Ddg/", "Avast/", "AVG/", "CCleaner/")
_LAST_HEADLESS_WITHOUT_HINTS = 112
"""Up to here headless Chromium has client hints without a word in them (`tests/captures/sdk-upgrades.jsonl.gz`)."""
_LAST_EMBEDDED_WITHOUT_HINTS = 102
"""The Chromium of QtWebEngine 6.4, which never fills client hints in; that of 6.5 does
(`tests/captures/sdk-browsers.jsonl.gz`). Programs may give themselves the name of an ordinary browser."""
_CHROMIUM_VERSION = re.compile(r"Chrom(?:e|ium)/(\d{1,4})")


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """What one user agent text claims. `None` and 0 = it does not say."""

    system: System | None = None
    engine: BrowserEngine | None = None
    version: int = 0
    """Major version of Chromium."""
    ios: bool = False
    android: bool = False
    mobile: bool = False
    """An Android device that says it is a phone; tablets and televisions don't."""
    headless: bool = False
    pure_chrome: bool = False
    """Chrome, or a Chromium that names no product of its own, as the browsers that are embedded in programs do."""
    adds_noise: bool = False
    """A browser on Chromium that adds noise to images by itself."""
    ported_webkit: bool = False
    """WebKit on a system that is not Apple's, such as WebKitGTK: it shares Apple's disguises, not its constants."""
    desktop: bool = False
    """It names a system and neither iOS nor Android; an iPad that asks for desktop pages counts as one."""


def read_claimed(user_agent: str | None) -> Claimed:
    """Read a user agent; only its first 1,024 characters count. Without one every field has its default."""
    return _read(user_agent[:_TEXT_LIMIT]) if user_agent else _SILENT


@lru_cache(maxsize=1024)
def _read(text: str) -> Claimed:
    android = "Android" in text
    ios = not android and ("iPhone" in text or "iPad" in text or "iPod" in text)
    system = _system(text, ios=ios, android=android)
    found = _CHROMIUM_VERSION.search(text)
    return Claimed(
        system=system,
        engine=_engine(text, system, chromium=found is not None, android=android),
        version=int(found[1]) if found else 0,
        ios=ios,
        android=android,
        mobile=android and "Mobile" in text,
        headless="headless" in text.lower(),
        pure_chrome=_PURE_CHROME.search(text) is not None,
        adds_noise=any(name in text for name in _ADDS_NOISE),
        ported_webkit="AppleWebKit/" in text and found is None and system != "apple",
        desktop=system is not None and not (ios or android),
    )


def _system(text: str, *, ios: bool, android: bool) -> System | None:
    if "Windows NT" in text:
        return "windows"
    if android:
        return "unix"
    if ios or "Macintosh" in text:
        return "apple"
    return "unix" if "Linux" in text or "CrOS" in text or "X11" in text else None


COMPARED = {"system": "os_mismatch", "engine": "engine_mismatch", "version": "browser_tampering"}
"""What two texts of one browser must agree on -> the signal if they do not."""


def differ(one: Claimed, other: Claimed, part: str) -> bool:
    """Return whether both texts claim a part of `COMPARED`, with different values."""
    said, also_said = getattr(one, part), getattr(other, part)
    return bool(said and also_said and said != also_said)


def system_of_connection(seen: str | None) -> System | None:
    """Return the group of systems that passive TCP fingerprinting names, as in `Linux 3.x`; `None` for others."""
    if not seen:
        return None
    text = seen[:_TEXT_LIMIT].lower()
    for system, names in _CONNECTIONS:
        if any(name in text for name in names):
            return system
    return None


_CONNECTIONS: tuple[tuple[System, tuple[str, ...]], ...] = (
    ("windows", ("windows",)),
    ("apple", ("mac", "ios", "darwin", "iphone", "ipad")),
    ("unix", ("linux", "android", "chromeos", "cros")),
)


def _engine(text: str, system: System | None, *, chromium: bool, android: bool) -> BrowserEngine | None:
    if "Trident/" in text or "MSIE " in text or "Edge/" in text:
        return None
    if chromium:
        return "chromium"
    if "Gecko/" in text and "Firefox/" in text:
        return "gecko"
    # Other WebKits than Apple's (consoles, televisions, early Android) do not share its constants.
    return "webkit" if "AppleWebKit/" in text and system == "apple" and not android else None


def system_of_platform(platform: str | None) -> System | None:
    """Return the group of systems of a `navigator.platform` such as `Win32`; `None` if it is missing or unknown."""
    if not platform:
        return None
    if platform.startswith("Win"):
        return "windows"
    if platform.startswith(("Mac", "iPhone", "iPad", "iPod")):
        return "apple"
    return "unix" if platform.startswith(("Linux", "Android", "CrOS")) else None


def system_of_hint(platform: str | None) -> System | None:
    """Return the group of systems of an unquoted `Sec-CH-UA-Platform`, such as `macOS`; `None` if not known."""
    return _HINTED_SYSTEMS.get(platform) if platform else None


def may_be_a_phone(claims: Claims) -> bool:
    """Return whether an Android phone may hide behind this report: one that asks for desktop pages drops its name from
    the user agent, but its platform still shows the ARM chip or the touch screen.
    """
    platform = claims.platform or ""
    return platform.startswith(("Linux arm", "Linux aarch", "Android")) or (
        platform.startswith("Linux") and bool(claims.touch_points)
    )


def may_have_empty_hints(hints: ClientHints, claimed: Claimed) -> bool:
    """Return whether a Chromium of this age may have client hints without a word in them although nobody touched them.
    One that only claims the age shows by its list of form factors that it is younger.
    """
    last = _LAST_HEADLESS_WITHOUT_HINTS if claimed.headless else _LAST_EMBEDDED_WITHOUT_HINTS
    return claimed.engine == "chromium" and claimed.version <= last and not hints.form_factors


def is_overridden(claims: Claims, claimed: Claimed) -> bool:
    """Return whether a desktop browser on Chromium was started with another user agent: its hints then lack the
    processor. Brave's always do, and are not counted, nor are those that may be empty.
    """
    hints = claims.hints
    unfilled = hints.emptied and may_have_empty_hints(hints, claimed)
    innocent = unfilled or may_be_a_phone(claims) or any(brand == "Brave" for brand, _ in hints.brands)
    return hints.overridden and not innocent


def names_itself(hints: ClientHints, claimed: Claimed) -> bool:
    """Return whether the user agent names the system and the version that the hints name, and the hints name both."""
    version = next((version for brand, version in hints.brands if brand == "Chromium"), "")
    same_version = version.partition(".")[0] == str(claimed.version)
    return same_version and claimed.system is not None and system_of_hint(hints.platform) == claimed.system


_SILENT = Claimed()
_HINTED_SYSTEMS: dict[str, System] = {
    "Windows": "windows",
    "macOS": "apple",
    "Mac OS X": "apple",
    "iOS": "apple",
    "Linux": "unix",
    "Android": "unix",
    "Chrome OS": "unix",
    "Chromium OS": "unix",
    "ChromeOS": "unix",
}
