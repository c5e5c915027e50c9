"""Operating systems: as user agents and hints name them, as events show them, and the classes that matching compares.

What may live here: tables of names and the steps from one name to another. `macOS` is shown for what user agents call
`Mac OS X`; an iPad is shown as `iOS`, whichever page it asks for.
"""

from __future__ import annotations

import re

from ua_parser import OS
from ua_parser.core import Matcher
from ua_parser.matchers import OSMatcher

SYSTEM_CLASSES = {
    "Android": "android",
    "Android TV": "android",
    "Chrome OS": "chromeos",
    "Fire OS": "android",
    "Google TV": "android",
    "HarmonyOS": "android",
    "Linux": "linux",
    "Meta Horizon": "android",
    "PICO OS": "android",
    "Wear OS": "android",
    "Windows": "windows",
    "Windows CE": "windows",
    "iOS": "ios",
    "macOS": "mac",
}
"""Name shown -> class of matching."""

_LINUXES = frozenset(
    {"Arch Linux", "CentOS", "Debian", "Fedora", "Gentoo", "Kubuntu", "Linux Mint", "Mageia", "Mandriva", "Mint"}
    | {"Puppy", "Red Hat", "SUSE", "Slackware", "Ubuntu", "openSUSE"}
    | {"BrightSignOS", "Coolita OS", "Opera TV", "Ordissimo", "TiVo OS", "Vega OS", "ViziOS", "Whale OS"}
)

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

_SHOWN = {
    "ATV OS X": "tvOS",
    "BREW": "Brew",
    "Brew MP": "Brew",
    "Chromecast Android": "Android TV",
    "Chromecast Fuchsia": "Fuchsia",
    "Chromecast Linux": "Linux",
    "Chromecast SmartSpeaker": "Linux",
    "GoogleTV": "Google TV",
    "Kindle": "Linux",
    "Mac OS": "macOS",
    "Mac OS X": "macOS",
    "WatchOS": "watchOS",
    "Web0S": "webOS",
    "iPadOS": "iOS",
}
"""Name of ua-parser -> name shown, where they differ."""

_FIRST = (
    (r"PlayStation", "PlayStation"),
    (r"\bNintendo ", "Nintendo"),
    (r"\bKepler/", "Vega OS"),
    # Amazon's models: televisions AFT, tablets KF, speakers with a screen AEO. Only Amazon's devices run Silk.
    (r"(?:^|[^A-Za-z0-9])(?:AFT[A-Z][A-Z0-9]*|KF[A-Z]{2,6}|AEO[A-Z]{2})(?:[^A-Za-z0-9]|$)", "Fire OS"),
    (r"Linux.*\bSilk/", "Fire OS"),
    (r"Harmony(?:OS)?\b", "HarmonyOS"),
    (r"\bPICO .*\bOS ?\d|PicoBrowser", "PICO OS"),
    (r"OculusBrowser", "Meta Horizon"),
    (r"Tizen(?:[ /](\d+)\.(\d+))?", "Tizen"),
    (r"Wear ?OS|\bSM-R[89]\d\d|\bTicWatch\b", "Wear OS"),
    (r"Google ?TV", "Google TV"),
    # The browser of many televisions writes Android with a zero; a standard for broadcasts is met by televisions only.
    (r"Andr0id|Android ?TV|Android.*(?:Smart[-_ ]?TV|SMART[-_ ]?TV|UHD[-_ ]TV|BRAVIA|HbbTV)", "Android TV"),
    (r"Web0S|webOS\.TV", "webOS"),
    (r"\bVIDAA\b", "VIDAA"),
    (r"\bRoku", "Roku OS"),
    (r"ViziOS|\bVIZIO\b", "ViziOS"),
    (r"TiVo ?OS", "TiVo OS"),
    (r"\bZeasn/|\bWhale ?(?:OS|TV)", "Whale OS"),
    (r"Coolita OS", "Coolita OS"),
    (r"\bBrightSign\b", "BrightSignOS"),
    (r"Opera ?TV|Opera/9\.80 \(Linux mips", "Opera TV"),
    (r"Linux.*HbbTV|HbbTV.*Linux", "Linux"),
    (r"Linux like Android", "Linux"),
    (r"linux; (?:u; )?android (\d+)(?:\.(\d+))?", "Android"),
    (r"ArchLinux", "Arch Linux"),
    (r"Ordissimo", "Ordissimo"),
    (r"Windows CE|windows CE", "Windows CE"),
    (r"PalmSource|PalmOS|Palmscape", "Palm OS"),
    (r"Watch ?OS|^Watch\d+,\d", "watchOS"),
    (r"Apple ?TV|\btvOS\b", "tvOS"),
    (r"\bMRE/", "MRE"),
    # The kernel's name is all that an app's network library tells, and only a Macintosh has such a processor or model.
    (r"Darwin/.*(?:x86_64|i386|Power(?:%20)?Mac|PowerBook|Macintosh|MacBook|iMac|Mac ?OS)", "macOS"),
    (r"(?:Macintosh|Mac ?OS).*Darwin/", "macOS"),
)
"""Systems that ua-parser names by what they are built on, or by the make of the television; looked at before its own
patterns. Groups within a pattern are the version."""

_LAST = (
    (r"Darwin/", "iOS"),
    (r"(?i:\bAndroid)|\bAdr \d|FBAN/FB4A", "Android"),
    (r"(?i:iPhone|iPad|iPod|\biOS\b)|\biPh\d+,\d", "iOS"),
    (r"(?i:Macintosh|\bMac ?OS|\bOS X\b)", "macOS"),
    (r"KaiOS", "KaiOS"),
    (r"\bHaiku\b", "Haiku"),
    (r"\bOS/2\b", "OS/2"),
    (r"RISC OS", "RISC OS"),
    (r"OpenVMS", "OpenVMS"),
    (r"AmigaOS|\bAmiga\b", "AmigaOS"),
    (r"Symb(?:ian|OS)|Series ?60", "Symbian"),
    (r"(?i:\bBREW\b)", "Brew"),
    (r"\bMTK\b|Nucleus", "MTK / Nucleus"),
    # Before phones had systems that anybody could name, they ran programs for this one.
    (r"MIDP|CLDC|J2ME|UP\.Browser", "Java ME"),
    (r"(?i:\bwindows\b|\bwin(?:10|32|64|nt|32nt)\b)|CYGWIN_NT|ms-office", "Windows"),
    (r"(?i:\bLinux\b)", "Linux"),
)
"""Looked at where ua-parser found no system."""

_ANDROID = re.compile(r"Andr[o0]id[ /](\d{1,2})(?:\.(\d{1,2}))?")


def system_matchers(builtins: list[Matcher[OS]]) -> list[Matcher[OS]]:
    """ua-parser's patterns between our own; the first that matches counts."""
    first = [OSMatcher(f"({pattern})", name) for pattern, name in _FIRST]
    last = [OSMatcher(f"({pattern})", name) for pattern, name in _LAST]
    return [*first, *builtins, *last]


def read_system(text: str, found: OS | None) -> tuple[str | None, str | None, int]:
    """Name as shown, version, and the release as a number (`release_number`)."""
    if found is None or found.family == "Other":
        return None, None, 0
    name = _SHOWN.get(found.family, found.family)
    version = ".".join(part for part in (found.major, found.minor, found.patch) if part) or None
    if name == "Linux" and found.family != name:
        return name, None, 0
    if name == "Windows" and version in WINDOWS_RELEASES:
        return name, version, WINDOWS_RELEASES[version]
    if version is None and system_class(name) == "android":
        # What is built on Android grows with it, but Android's number is not the number of that.
        android = _ANDROID.search(text)
        return name, None, release_number(f"{android[1]}.{android[2] or 0}") if android is not None else 0
    return name, version, release_number(version)


def system_class(name: str | None) -> str:
    """The class of matching of a system's shown name."""
    if name is None:
        return "other"
    return SYSTEM_CLASSES.get(name) or ("linux" if name in _LINUXES else "other")


VERSION_NUMBERS = re.compile(r"(\d{1,5})(?:[._](\d{1,5}))?")


def release_number(version: str | None) -> int:
    """Major times 100 plus minor; build numbers, as ChromeOS has them, count alone. 0 = unknown."""
    numbers = VERSION_NUMBERS.match(version or "")
    if numbers is None:
        return 0
    major = int(numbers[1])
    return major if major >= 1_000 else major * 100 + min(int(numbers[2] or 0), 99)


def hinted_windows(version: str) -> str | None:
    """The release of Windows behind a platform version: 13 and above is Windows 11, 1 to 10 is Windows 10."""
    major = version.partition(".")[0]
    if not (major.isascii() and major.isdigit()) or len(major) > 4:
        return None
    if int(major) >= 13:
        return "11"
    return "10" if int(major) > 0 else _HINTED_WINDOWS.get(version[:3])
