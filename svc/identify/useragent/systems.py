"""Operating systems: as user agents and hints name them, as events show them, and the classes that matching compares.

What may live here: the names of `svc/identify/data/systems.toml`, the steps from one name to another, and the marks of
televisions, tablets and phones. `macOS` is shown for what user agents call `Mac OS X`; an iPad is shown as `iOS`,
whichever page it asks for.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec
import ua_parser
from ua_parser import OS
from ua_parser.core import Matcher
from ua_parser.lazy import OSMatcher, UserAgentMatcher
from ua_parser.regex import Resolver

from svc.identify.data import read_tables


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `systems.toml`."""

    first: tuple[tuple[str, str], ...]
    last: tuple[tuple[str, str], ...]
    classes: dict[str, str]
    hinted: dict[str, str]
    shown: dict[str, str]


_TABLES = read_tables("systems", _Tables)

HINTED_SYSTEMS = _TABLES.hinted
"""Platform of client hints -> name shown."""

WINDOWS_RELEASES = {"XP": 500, "Vista": 600, "2000": 400, "NT": 400, "NT 4.0": 400, "ME": 400, "98": 300, "95": 300}
"""Releases whose names are not numbers, or numbers out of order."""

_HINTED_WINDOWS = {"0.1": "7", "0.2": "8", "0.3": "8.1"}

_ANDROID = re.compile(r"Andr[o0]id[ /](\d{1,2})(?:\.(\d{1,2}))?")


def system_matchers(builtins: list[Matcher[OS]]) -> list[Matcher[OS]]:
    """Return the patterns for systems: ours, then ua-parser's, then the rest of ours; the first that matches counts."""
    first = [OSMatcher(f"({pattern})", name) for pattern, name in _TABLES.first]
    last = [OSMatcher(f"({pattern})", name) for pattern, name in _TABLES.last]
    return [*first, *builtins, *last]


def read_system(text: str, found: OS | None) -> tuple[str | None, str | None, int]:
    """Return (shown name, version, release: see `release_number`) of what ua-parser found in a user agent; `None`,
    `None`, 0 if it found nothing.
    """
    if found is None or found.family == "Other":
        return None, None, 0
    name = _TABLES.shown.get(found.family, found.family)
    version = ".".join(part for part in (found.major, found.minor, found.patch) if part) or None
    if name == "Linux" and found.family != name:
        return name, None, 0
    if name == "Windows" and version in WINDOWS_RELEASES:
        return name, version, WINDOWS_RELEASES[version]
    if version is None and system_class(name) == "android":
        # Systems built on Android are released with it, but have numbers of their own.
        android = _ANDROID.search(text)
        return name, None, release_number(f"{android[1]}.{android[2] or 0}") if android is not None else 0
    return name, version, release_number(version)


def system_class(name: str | None) -> str:
    """Return the class by which matching groups systems, for a system's shown name; `other` for an unknown one."""
    return _TABLES.classes.get(name or "", "other")


VERSION_NUMBERS = re.compile(r"(\d{1,5})(?:[._](\d{1,5}))?")


def release_number(version: str | None) -> int:
    """Return a growing number: major times 100 plus minor, or a build number alone, as of ChromeOS; 0 = unknown."""
    numbers = VERSION_NUMBERS.match(version or "")
    if numbers is None:
        return 0
    major = int(numbers[1])
    return major if major >= 1_000 else major * 100 + min(int(numbers[2] or 0), 99)


def hinted_windows(version: str) -> str | None:
    """Return the release of Windows behind a platform version of client hints: 13 and above is Windows 11, 1 to 10 is
    Windows 10; `None` for text that is not a version.
    """
    major = version.partition(".")[0]
    if not (major.isascii() and major.isdigit()) or len(major) > 4:
        return None
    if int(major) >= 13:
        return "11"
    return "10" if int(major) > 0 else _HINTED_WINDOWS.get(version[:3])


_MARKS = (
    (r"\bTV\b|Smart-?TV|SMART-TV|GoogleTV|AppleTV|Android ?TV|HbbTV|\bAFT[A-Z]|BRAVIA|\bCrKey|Web0S", "screen"),
    (r"PlayStation|Nintendo|Xbox|Andr0id|\bRoku|ViziOS|TiVo ?OS|BrightSign|NETTV|\bOMI/", "screen"),
    (r"(?i:watch ?os)|^Watch\d", "phone"),
    (r"iPad|Tablet|\bKF[A-Z]{2,}|PlayBook|Kindle|\bNexus (?:7|9|10)\b|\bSM-[TX]\d{3}", "tablet"),
    (r"(?i:\btab(?:[ _-]?[a-z]?\d+)?\b|(?:media|mate)pad|\bpad\b)|Lenovo (?:TB-|YT-)", "tablet"),
    (r"Mobile|iPhone|iPod|Phone|BlackBerry|\bBB10|Symbian|Series ?[346]0|KAIOS|MIDP|Opera Mini|webOS|Bada", "phone"),
    (r"Nokia|NOKIA|SonyEricsson|UCWEB|J2ME|CLDC|MAUI|UP\.Browser|B(?:rew|REW)|KaiOS|Palm", "phone"),
)
"""Patterns of user agents and the kind of device that each shows; the first that matches counts."""


def device_mark(text: str) -> str | None:
    """Return `screen` (a television or a console), `tablet` or `phone` if the user agent says so, else `None`."""
    found = _device_marks()(text, ua_parser.Domain.USER_AGENT).user_agent
    return found.family if found else None


@cache
def _device_marks() -> Resolver:
    matchers: list[Matcher[ua_parser.UserAgent]] = [UserAgentMatcher(pattern, mark) for pattern, mark in _MARKS]
    return Resolver((matchers, [], []))
