"""`read_agent`: the user agent, its client hints and the few report values that correct them, as one `Agent`.

What may live here: which source is believed for what, and the kind of device that follows.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from ua_parser import OS, Domain, UserAgent
from ua_parser.loaders import load_builtins
from ua_parser.regex import Resolver

from svc.domain.model import Agent, ClientHints, DeviceKind, Report, RequestFacts
from svc.domain.useragent import browsers, systems
from svc.domain.useragent.hints import joined
from svc.domain.useragent.programs import read_program

LONGEST_USER_AGENT = 1_024
_NOTHING_SAID = Agent()


def read_agent(facts: RequestFacts, report: Report) -> Agent:
    """Who asks, by the header's user agent, else the reported one; client hints override what they say better.

    Equal input gives the same object, from a bounded cache: a site sees few thousand distinct browsers.
    """
    user_agent = facts.user_agent or report.claims.user_agent
    hints = joined(report.claims.hints, facts.hints)
    if not user_agent:
        if hints == _NO_HINTS:
            return _NOTHING_SAID
        user_agent = ""
    touch_points = report.claims.touch_points or 0
    # An iPad asks for desktop pages under the name of a Macintosh, and no Macintosh has a touch screen.
    disguised = touch_points > 2 and "Macintosh" in user_agent
    return _read(user_agent[:LONGEST_USER_AGENT], hints, disguised)


_NO_HINTS = ClientHints()


@lru_cache(maxsize=8_192)
def _read(user_agent: str, hints: ClientHints, disguised: bool) -> Agent:  # noqa: FBT001 - part of the cache's key
    resolved = _names()(user_agent, Domain.USER_AGENT | Domain.OS)
    agent, agent_version = _browser(resolved.user_agent, hints)
    os, os_version = _system(user_agent, resolved.os, hints)
    family, family_version = browsers.class_of(user_agent)
    if disguised and family == "safari":
        # Safari's version is that of the system it comes with.
        os, os_version = "iPadOS", agent_version
    if any(brand == "Brave" for brand, _ in hints.brands):
        family = "brave"
    program = read_program(user_agent)
    kind = _device_kind(user_agent, os, hints) if program is None else "server"
    return Agent(
        agent=agent if program is None else program.name,
        agent_version=agent_version,
        os=os,
        os_version=os_version,
        device_kind=kind,
        browser_family=family,
        browser_version=family_version,
        os_family=systems.FAMILIES.get(os or "", "other"),
        os_release=systems.release(os_version),
        mobile=kind in ("mobile", "tablet"),
        program=None if program is None else program.name,
        crawler=None if program is None else program.crawler,
        operator=None if program is None else program.operator,
    )


@cache
def _names() -> Resolver:
    """The project's own patterns before those of the `ua-parser` list."""
    user_agents, operating_systems, _ = load_builtins()
    return Resolver(([*browsers.MATCHERS, *user_agents], [*systems.MATCHERS, *operating_systems], []))


def _browser(found: UserAgent | None, hints: ClientHints) -> tuple[str | None, str | None]:
    name, version = None, None
    if found is not None and found.family != "Other":
        name = browsers.DISPLAYED.get(found.family, found.family)
        parts = (found.major, found.minor, found.patch, found.patch_minor)
        version = ".".join(part for part in parts if part) or None
    for brand, brand_version in hints.brands:
        hinted = browsers.BRANDS.get(brand)
        if hinted is not None:
            return hinted, brand_version or version
    if name is not None and name.startswith("Chrom"):
        # The user agent stops at the major version; a full version may be hinted.
        full = [number for brand, number in hints.brands if brand in ("Google Chrome", "Chromium") and "." in number]
        version = full[-1] if full else version
    return name, version


def _system(user_agent: str, found: OS | None, hints: ClientHints) -> tuple[str | None, str | None]:
    name, version = None, None
    if found is not None and found.family != "Other":
        name = systems.DISPLAYED.get(found.family, found.family)
        version = ".".join(part for part in (found.major, found.minor, found.patch) if part) or None
    else:
        name, version = systems.from_network_library(user_agent) or (None, None)
    return systems.from_hints(hints, name, version)


_PHONE = re.compile(r"iPhone|iPod|Mobi|Windows Phone|Opera Mini|BlackBerry|BB10|KAIOS|Symb(?:ian|OS)|MIDP|Phone")
_TABLET = re.compile(r"iPad|Tablet|PlayBook|Kindle|Silk/|\bKF[A-Z]{3,6}\b|Nexus (?:7|9|10)\b")
_STATIONARY = re.compile(
    r"\bTV\b|SmartTV|SMART-TV|GoogleTV|HbbTV|AFT[A-Z]|BRAVIA|Web0S|Tizen.*TV|CrKey|PlayStation|Xbox"
)
_HAND_HELD_SYSTEMS = frozenset(("iOS", "Android", "HarmonyOS", "KaiOS", "Windows Phone", "Symbian OS", "Java ME"))


def _device_kind(user_agent: str, os: str | None, hints: ClientHints) -> DeviceKind | None:
    """Screens that stay in their place count as desktops."""
    if os == "iPadOS" or _TABLET.search(user_agent):
        return "tablet"
    if _STATIONARY.search(user_agent) or os in ("Android TV", "tvOS", "webOS", "Roku OS"):
        return "desktop"
    if hints.mobile or _PHONE.search(user_agent):
        return "mobile"
    if os == "Android" and hints.mobile is None:
        return "tablet" if "Mozilla/" in user_agent else "mobile"
    if os in _HAND_HELD_SYSTEMS:
        return "tablet" if os == "Android" else "mobile"
    return "desktop" if os is not None else None
