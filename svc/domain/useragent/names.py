"""What browsers and systems are called: as ua-parser and hints name them, as events show them, and the classes that
matching compares.

What may live here: tables of names and the steps from one name to another. `macOS` is shown for what user agents call
`Mac OS X`; an iPad is shown as `iOS`, whichever page it asks for.
"""

from __future__ import annotations

import re
from functools import cache

import ua_parser
from ua_parser.core import Matcher
from ua_parser.matchers import UserAgentMatcher
from ua_parser.regex import Resolver

FAMILIES = {
    "Android": "android",
    "Amazon Silk": "silk",
    "Brave": "brave",
    "Chrome": "chrome",
    "Chrome Mobile": "chrome",
    "Chrome Mobile WebView": "webview",
    "Chrome Mobile iOS": "chrome_ios",
    "Chromium": "chrome",
    "DuckDuckGo": "duckduckgo",
    "DuckDuckGo Mobile": "duckduckgo",
    "Edge": "edge",
    "Edge Mobile": "edge",
    "Firefox": "firefox",
    "Firefox Alpha": "firefox",
    "Firefox Beta": "firefox",
    "Firefox Mobile": "firefox",
    "Firefox iOS": "firefox_ios",
    "HeadlessChrome": "chrome",
    "Huawei Browser": "huawei",
    "HuaweiBrowser": "huawei",
    "IE": "ie",
    "IE Mobile": "ie",
    "MiuiBrowser": "miui",
    "Mobile Safari": "safari",
    "Mobile Safari UI/WKWebView": "webview",
    "Opera": "opera",
    "Opera GX": "opera",
    "Opera Mini": "opera_mini",
    "Opera Mobile": "opera",
    "Opera Touch": "opera",
    "Other": "other",
    "QQ Browser": "qq",
    "QQ Browser Mobile": "qq",
    "Safari": "safari",
    "Samsung Internet": "samsung",
    "UC Browser": "uc",
    "Vivaldi": "vivaldi",
    "Whale": "whale",
    "Yandex Browser": "yandex",
}
"""Name shown -> class of matching."""

BRANDS = {
    "Android WebView": "Chrome Mobile WebView",
    "Brave": "Brave",
    "DuckDuckGo": "DuckDuckGo Mobile",
    "Edge": "Edge",
    "Google Chrome": "Chrome",
    "HeadlessChrome": "HeadlessChrome",
    "HeadlessEdg": "HeadlessEdge",
    "Huawei Browser": "Huawei Browser",
    "Microsoft Edge": "Edge",
    "Microsoft Edge WebView2": "Edge WebView2",
    "Naver Whale": "Whale",
    "Opera": "Opera",
    "Opera GX": "Opera",
    "Opera Mobile": "Opera Mobile",
    "Samsung Internet": "Samsung Internet",
    "Vivaldi": "Vivaldi",
    "Whale": "Whale",
    "Yandex": "Yandex Browser",
    "YaBrowser": "Yandex Browser",
}
"""Brand of client hints -> name shown. `Chromium` stands beside nearly every other brand and says nothing."""

MOBILE_NAMES = {"Chrome": "Chrome Mobile", "Edge": "Edge Mobile", "Opera": "Opera Mobile"}
"""How ua-parser calls the same browser on a phone."""

SYSTEM_FAMILIES = {
    "Android": "android",
    "Chrome OS": "chromeos",
    "Android TV": "android",
    "Fire OS": "android",
    "HarmonyOS": "android",
    "Linux": "linux",
    "Windows": "windows",
    "iOS": "ios",
    "macOS": "mac",
}
"""Name shown -> class of matching."""

_LINUXES = frozenset(
    {"Arch Linux", "CentOS", "Debian", "Fedora", "Gentoo", "Kubuntu", "Linux Mint", "Mageia", "Mandriva", "Mint"}
    | {"Puppy", "Red Hat", "SUSE", "Slackware", "Ubuntu", "openSUSE"}
)

_SHOWN_SYSTEMS = {"Mac OS X": "macOS", "Mac OS": "macOS", "Web0S": "webOS", "iPadOS": "iOS"}

HINTED_SYSTEMS = {
    "Android": "Android",
    "Chrome OS": "Chrome OS",
    "ChromeOS": "Chrome OS",
    "Chromium OS": "Chrome OS",
    "Linux": "Linux",
    "Mac OS X": "macOS",
    "Windows": "Windows",
    "iOS": "iOS",
    "macOS": "macOS",
}
"""Platform of client hints -> name shown."""

WINDOWS_RELEASES = {"XP": 500, "Vista": 600, "2000": 400, "NT": 400, "NT 4.0": 400, "ME": 400, "98": 300, "95": 300}
"""Releases whose names are no numbers, or numbers out of order."""

_HINTED_WINDOWS = {"0.1": "7", "0.2": "8", "0.3": "8.1"}

_OWN_BROWSERS = (
    ("YaApp_Android|YaSearchBrowser|YaBrowser|YaSearchApp", "Yandex Browser"),
    ("HuaweiBrowser", "Huawei Browser"),
    ("HeyTapBrowser", "HeyTapBrowser"),
    ("VivoBrowser", "vivo Browser"),
    ("Quark", "Quark"),
    ("PHX", "Phoenix Browser"),
    (r"\bDuckDuckGo", "DuckDuckGo Mobile"),
    ("HeadlessChrome", "HeadlessChrome"),
    (r"\bOPX", "Opera GX"),
)
"""Browsers that ua-parser takes for the one they are built on, or does not know."""

_NOT_IN_A_CLASS = re.compile(r"[^a-z0-9]+")


_MARKS = (
    (r"\bTV\b|Smart-?TV|SMART-TV|GoogleTV|AppleTV|Android ?TV|HbbTV|\bAFT[A-Z]|BRAVIA|\bCrKey|Web0S", "screen"),
    (r"PlayStation|Nintendo|Xbox", "screen"),
    (r"iPad|Tablet|\bKF[A-Z]{2,}|PlayBook|Kindle|\bNexus (?:7|9|10)\b|\bSM-[TX]\d{3}", "tablet"),
    (r"Mobile|iPhone|iPod|Phone|BlackBerry|\bBB10|Symbian|Series ?[346]0|KAIOS|MIDP|Opera Mini|webOS|Bada", "phone"),
    (r"Nokia|NOKIA|SonyEricsson|UCWEB|J2ME|MAUI|B(?:rew|REW)", "phone"),
)
"""What tells the kind of a device; the first that matches counts."""


@cache
def resolver() -> Resolver:
    """ua-parser's patterns for browsers and systems after our own; those for devices are not needed. Built once."""
    browsers, systems, _ = ua_parser.load_builtins()
    own = [UserAgentMatcher(rf"({mark})/(\d+)(?:\.(\d+))?", name) for mark, name in _OWN_BROWSERS]
    return Resolver(([*own, *browsers], systems, []))


def device_mark(text: str) -> str | None:
    """`screen`, `tablet` or `phone`, as far as a user agent says so."""
    found = _device_marks()(text, ua_parser.Domain.USER_AGENT).user_agent
    return found.family if found else None


@cache
def _device_marks() -> Resolver:
    matchers: list[Matcher[ua_parser.UserAgent]] = [UserAgentMatcher(pattern, mark) for pattern, mark in _MARKS]
    return Resolver((matchers, [], []))


def browser_class(name: str, *, in_app: bool) -> str:
    """The class of matching of a browser's name. What an app shows in its own window is `webview`, whatever the app."""
    family = FAMILIES.get(name)
    if in_app and family in (None, "chrome", "safari", "android", "other"):
        return "webview"
    return family or _NOT_IN_A_CLASS.sub("_", name.lower()).strip("_")[:32] or "other"


_BUILT_ON_OTHERS = (
    (re.compile(r"\b(?:AFT[A-Z0-9]{1,6}|KF[A-Z]{3,6})\b"), "Fire OS"),
    (re.compile(r"Harmony(?:OS)?\b"), "HarmonyOS"),
    (re.compile(r"Android ?TV|GoogleTV|BRAVIA|\bCrKey"), "Android TV"),
    (re.compile(r"\bVIDAA\b"), "VIDAA"),
    (re.compile(r"Darwin/.*(?:x86_64|i386|Macintosh|MacBook|iMac|Mac ?OS)|(?:Macintosh|Mac ?OS).*Darwin/"), "macOS"),
    (re.compile(r"Darwin/"), "iOS"),
    (re.compile(r"(?i:\bAndroid)"), "Android"),
    (re.compile(r"(?i:iPhone|iPad|\biOS\b)"), "iOS"),
    (re.compile(r"(?i:Macintosh|\bMac ?OS|\bOS X\b)"), "macOS"),
)
"""Systems built on Android or Linux, which ua-parser names by what they are built on, and Apple's by the name of the
kernel, which is all that an app's network library tells."""


def exact_system(text: str, name: str | None) -> str | None:
    """The system that a user agent means where ua-parser found none, or only what that system is built on."""
    if name in (None, "Android", "Linux"):
        for pattern, exact in _BUILT_ON_OTHERS:
            if pattern.search(text) is not None:
                return exact
    return name


def shown_system(name: str) -> str | None:
    """As events show a system that ua-parser named."""
    return None if name == "Other" else _SHOWN_SYSTEMS.get(name, name)


def system_class(name: str | None) -> str:
    """The class of matching of a system's shown name."""
    if name is None:
        return "other"
    return SYSTEM_FAMILIES.get(name) or ("linux" if name in _LINUXES else "other")


def hinted_windows(version: str) -> str | None:
    """The release of Windows behind a platform version: 13 and above is Windows 11, 1 to 10 is Windows 10."""
    major = version.partition(".")[0]
    if not (major.isascii() and major.isdigit()) or len(major) > 4:
        return None
    if int(major) >= 13:
        return "11"
    return "10" if int(major) > 0 else _HINTED_WINDOWS.get(version[:3])
