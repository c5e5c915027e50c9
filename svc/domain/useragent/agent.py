"""`read_agent`: the user agent, its client hints and the report values that correct them, as one `Agent`.

What may live here: which source is believed for what, and the kind of device that follows. Names stand in `names`,
programs in `crawlers`.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
from ua_parser import OS, Domain, UserAgent

from svc.domain.model import Agent, Claims, ClientHints, DeviceKind, Report, RequestFacts
from svc.domain.useragent.crawlers import find_program
from svc.domain.useragent.hints import joined
from svc.domain.useragent.names import (
    BRANDS,
    HINTED_SYSTEMS,
    MOBILE_NAMES,
    WINDOWS_RELEASES,
    browser_class,
    device_mark,
    exact_system,
    hinted_windows,
    resolver,
    shown_system,
    system_class,
)

LONGEST_USER_AGENT = 1_024
CACHED_AGENTS = 8_192
"""Distinct pairs of user agent and hints kept: a site sees few thousand."""

_NO_HINTS = ClientHints()
_SILENT = Agent()


def read_agent(facts: RequestFacts, report: Report) -> Agent:
    """Who asks, by the header's user agent, else the reported one. Total on any text; equal input is parsed once.

    Client hints override what they say better: the real Windows 11, the version of macOS that user agents stopped
    telling, the brand that hides behind Chrome. The report's hints count before those of the headers. An app's SDK
    knows its system better than the user agent of the library that it sends with.
    """
    agent = _read_sender(facts, report)
    return agent if report.claims.native_platform is None else _in_app(agent, report.claims)


def _read_sender(facts: RequestFacts, report: Report) -> Agent:
    user_agent = facts.user_agent or report.claims.user_agent or ""
    hints = joined(report.claims.hints, facts.hints)
    if not user_agent and hints == _NO_HINTS:
        return _SILENT
    # An iPad asks for desktop pages under the name of a Macintosh, and no Macintosh has a touch screen.
    tablet = (report.claims.touch_points or 0) > 2 and "Macintosh" in user_agent[:LONGEST_USER_AGENT]
    return _read(user_agent[:LONGEST_USER_AGENT], hints, tablet)


def _in_app(sender: Agent, claims: Claims) -> Agent:
    """The class of an app on its system. What the sender was found to be, such as a crawler, it stays."""
    family = claims.native_platform or "other"
    same = sender.os_family == family
    version = claims.native_os_version or (sender.os_version if same else None)
    return msgspec.structs.replace(
        sender,
        os="iOS" if family == "ios" else "Android",
        os_version=version,
        os_family=family,
        os_release=_release(version),
        device_kind=claims.native_kind or "mobile",
        browser_family="app",
        browser_version=0,
        mobile=True,
    )


@lru_cache(maxsize=CACHED_AGENTS)
def _read(user_agent: str, hints: ClientHints, disguised_tablet: bool) -> Agent:  # noqa: FBT001  part of the cache's key
    text = user_agent if user_agent.isascii() else user_agent.encode("utf-8", "replace").decode()
    found = resolver()(text, Domain.USER_AGENT | Domain.OS)
    os, os_version, os_release = _hinted_system(hints, *_system(text, found.os))
    program = find_program(text) if text else None
    if program is not None:
        return Agent(
            agent=program.name,
            agent_version=_version(found.user_agent),
            os=os,
            os_version=os_version,
            device_kind="server",
            os_family=system_class(os),
            os_release=os_release,
            program=program.name,
            crawler=program.crawler,
            operator=program.operator,
        )
    if disguised_tablet:
        os, os_version, os_release = "iOS", None, 0
    kind: DeviceKind | None = "tablet" if disguised_tablet else _device_kind(text, os, hints)
    agent, version, family, number = _browser(text, found.user_agent, hints, mobile=kind == "mobile")
    return Agent(
        agent=agent,
        agent_version=version,
        os=os,
        os_version=os_version,
        device_kind=kind,
        browser_family=family,
        browser_version=number,
        os_family=system_class(os),
        os_release=os_release,
        mobile=kind in ("mobile", "tablet"),
    )


_NUMBERS = re.compile(r"(\d{1,5})(?:[._](\d{1,5}))?")
_ENGINE = re.compile(r"Chrom(?:e|ium)/(\d{1,5})(?:\.(\d{1,5}))?")
_IN_APP = re.compile(r"; ?wv\)|Version/4\.0 Chrome/|\[FB|FBAN/|FBAV/|Instagram|MicroMessenger")
_APPLE_HAND_HELD = re.compile(r"iPhone|iPad|iPod")


def _browser(
    text: str, found: UserAgent | None, hints: ClientHints, *, mobile: bool
) -> tuple[str | None, str | None, str, int]:
    """Name, version, class of matching, and the version as a number that grows with releases."""
    name = found.family if found is not None else None
    version = _version(found)
    in_app = _IN_APP.search(text) is not None or (
        _APPLE_HAND_HELD.search(text) is not None and "Safari/" not in text and "AppleWebKit" in text
    )
    family = browser_class(name or "Other", in_app=in_app)
    if family in ("chrome", "other"):
        hinted, hinted_version = _hinted_browser(hints)
        # Chromium's own brand says no more than a user agent that names Chrome already does.
        if hinted is not None and (name is None or browser_class(hinted, in_app=False) != family):
            name = MOBILE_NAMES.get(hinted, hinted) if mobile else hinted
            family = browser_class(hinted, in_app=in_app)
        version = hinted_version or version
    if family == "webview":
        engine = _ENGINE.search(text)
        return name, version, family, _growing(engine[1], engine[2]) if engine is not None else 0
    numbers = _NUMBERS.match(version or "")
    return name, version, family, _growing(numbers[1], numbers[2]) if numbers is not None else 0


def _hinted_browser(hints: ClientHints) -> tuple[str | None, str | None]:
    """The brand that says most: any that is not Chrome's, then Chrome's. `Chromium` stands beside nearly all."""
    best: tuple[str | None, str | None] = (None, None)
    for brand, version in hints.brands:
        name = BRANDS.get(brand)
        if name is not None and (best[0] is None or best[0] == "Chrome"):
            best = name, version or None
    return best


def _growing(major: str, minor: str | None) -> int:
    """Major version times ten plus the minor one, of which nine is as far as one digit counts."""
    return int(major) * 10 + min(int(minor or 0), 9)


def _version(found: UserAgent | None) -> str | None:
    if found is None or found.major is None:
        return None
    return f"{found.major}.{found.minor}" if found.minor else found.major


def _system(text: str, found: OS | None) -> tuple[str | None, str | None, int]:
    """Name, version, and the release as a number."""
    name = shown_system(found.family) if found is not None else None
    exact = exact_system(text, name)
    if found is None or name is None:
        return exact, None, 0
    version = ".".join(part for part in (found.major, found.minor, found.patch) if part) or None
    if name == "Windows" and version in WINDOWS_RELEASES:
        return name, version, WINDOWS_RELEASES[version]
    # A release grows in the same way whatever is built on it, but its number is not the number of that.
    return exact, version if exact == name else None, _release(version)


def _hinted_system(
    hints: ClientHints, name: str | None, version: str | None, release: int
) -> tuple[str | None, str | None, int]:
    hinted = HINTED_SYSTEMS.get(hints.platform or "")
    if hinted is None:
        return name, version, release
    if system_class(name) != system_class(hinted):
        name, version, release = hinted, None, 0
    said = hints.platform_version or ""
    if hinted == "Windows":
        real = hinted_windows(said)
    else:
        # Linux hints its kernel's version and ChromeOS its platform's: neither is a release as people know it.
        real = said if hinted in ("Android", "macOS", "iOS") and _NUMBERS.match(said) else None
    return (name, version, release) if real is None else (name, real, _release(real))


def _release(version: str | None) -> int:
    """Major times 100 plus minor; build numbers, as ChromeOS has them, count alone. 0 = unknown."""
    numbers = _NUMBERS.match(version or "")
    if numbers is None:
        return 0
    major = int(numbers[1])
    return major if major >= 1_000 else major * 100 + min(int(numbers[2] or 0), 99)


def _device_kind(text: str, os: str | None, hints: ClientHints) -> DeviceKind | None:
    """Screens that stay in their place, such as televisions, count as desktops."""
    mark = device_mark(text)
    if mark == "screen":
        return "desktop"
    if mark == "tablet":
        return "tablet"
    if mark == "phone" or hints.mobile:
        return "mobile"
    family = system_class(os)
    if family == "android":
        return "tablet"
    if family == "ios":
        return "mobile"
    return "desktop" if os is not None else None
