"""`read_agent`: the user agent, its client hints and the report values that correct them, as one `Agent`.

What may live here: which source is believed for what, the kind of device that follows, and the names of browsers and
apps (`svc/identify/data/browsers.toml`): how one's own name is found beside those of what it is built on. Systems and
marks of devices stand in `systems`, programs in `crawlers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import msgspec
import ua_parser
from ua_parser import Domain, UserAgent
from ua_parser.core import Matcher
from ua_parser.lazy import UserAgentMatcher
from ua_parser.regex import Resolver

from svc.identify.data import read_tables
from svc.identify.model import Agent, Claims, ClientHints, DeviceKind, Report, RequestFacts
from svc.identify.report.values import is_grease
from svc.identify.useragent.crawlers import find_program
from svc.identify.useragent.systems import (
    HINTED_SYSTEMS,
    VERSION_NUMBERS,
    device_mark,
    hinted_windows,
    read_system,
    release_number,
    system_class,
    system_matchers,
)

LONGEST_HEADER = 1_024
MAX_BRANDS = 12
_BRAND = re.compile(r'"((?:[^"\\]|\\.){1,64})"(?:\s*;\s*v="([^"]{0,64})")?')
_ESCAPED = re.compile(r"\\(.)")
_NO_HINTS = ClientHints()


def read_hints(headers: Mapping[str, str]) -> ClientHints:
    """Return the client hints in headers (lower-case names); one that is malformed counts as not sent."""
    if _HEADERS.isdisjoint(headers):
        return _NO_HINTS
    full, _ = _brands(headers.get("sec-ch-ua-full-version-list"))
    brands, invented = _brands(headers.get("sec-ch-ua"))
    texts: dict[str, Any] = {field: _string(headers.get(name)) for field, name in _TEXTS.items()}
    mobile = {"?1": True, "?0": False}.get((headers.get("sec-ch-ua-mobile") or "")[:8].strip())
    return ClientHints(brands=full or brands, grease=invented, mobile=mobile, **texts)


def joined(reported: ClientHints, sent: ClientHints) -> ClientHints:
    """Return the client hints of both sources, field by field: the report's, else the header's. Brands with versions
    are preferred over bare ones.
    """
    if sent in (_NO_HINTS, reported):
        return reported
    if reported == _NO_HINTS:
        return sent
    # Some collectors list brands without versions: then the header says more.
    versionless = not any(version for _, version in reported.brands)
    return ClientHints(
        brands=sent.brands if versionless and sent.brands else reported.brands,
        mobile=sent.mobile if reported.mobile is None else reported.mobile,
        **{field: getattr(reported, field) or getattr(sent, field) for field in _TEXTS},
    )


_TEXTS = {
    "platform": "sec-ch-ua-platform",
    "platform_version": "sec-ch-ua-platform-version",
    "architecture": "sec-ch-ua-arch",
    "model": "sec-ch-ua-model",
}
"""Field of `ClientHints` -> header that has one quoted string."""
_HEADERS = frozenset({"sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-full-version-list", *_TEXTS.values()})


def _brands(value: str | None) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """Return (brand, version) of each brand, and the one that the browser invented, as written."""
    found = [(_unescaped(brand), version) for brand, version in _BRAND.findall((value or "")[:LONGEST_HEADER])]
    invented = (brand for brand, _ in found[:MAX_BRANDS] if is_grease(brand))
    return tuple(pair for pair in found[:MAX_BRANDS] if not is_grease(pair[0])), next(invented, None)


def _string(value: str | None) -> str | None:
    """Read a quoted string; the quotes may be missing."""
    if not value or len(value) > 130:
        return None
    text = value.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = _unescaped(text[1:-1])
    return text if text and text.isprintable() else None


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `browsers.toml`."""

    first: tuple[tuple[str, str], ...]
    last: tuple[tuple[str, str], ...]
    families: dict[str, str]
    brands: dict[str, str]


_TABLES = read_tables("browsers", _Tables)

BRANDS = _TABLES.brands
"""Brand of client hints -> name shown."""

MOBILE_NAMES = {"Chrome": "Chrome Mobile", "Edge": "Edge Mobile", "Opera": "Opera Mobile"}
"""How ua-parser calls the same browser on a phone."""

_NO_BROWSER = "(HbbTV)"
"""A standard of televisions, which ua-parser would name before the browser that meets it."""

_NAMELESS = frozenset(
    {None, "Android", "CFNetwork", "Chrome", "Chrome Mobile", "Chrome Mobile WebView", "Electron", "Mobile Safari"}
    | {"Mobile Safari UI/WKWebView", "Safari"}
)
"""Browsers that others are built on: a name beside one of these says more."""

_BROWSER_OF_A_NAME = re.compile(r"(?<![\w.])((?!UP\.)\w[\w.-]{0,30} ?[Bb]rowser)/v?(\d{1,5})(?:\.(\d{1,5}))?")
_APP_IN_FRONT = re.compile(r"([A-Za-z][^/;()\[\]]{1,40})/v?(\d{1,9})(?:\.(\d{1,5}))?")
_NO_APP = re.compile(
    r"Mozilla|Opera|Dalvik|Android(?!Download)|Linux|UCWEB|HbbTV|CFNetwork|Darwin|AppleWebKit|Safari|Java|smarttv|samsung|nokia|lg-|mot-",
    re.IGNORECASE,
)
_OLD_PHONE = re.compile(r"MIDP|CLDC|MAUI|Browser/|Profile/|Release/")


def browser_matchers(builtins: list[Matcher[UserAgent]]) -> list[Matcher[UserAgent]]:
    """Return the patterns for browsers, of which the first match counts: ours, ua-parser's, the rest of ours."""
    kept = [matcher for matcher in builtins if not matcher.regex.startswith(_NO_BROWSER)]
    first, last = (
        [UserAgentMatcher(pattern, name) for pattern, name in table] for table in (_TABLES.first, _TABLES.last)
    )
    return [*first, *kept, *last]


def own_name(text: str, name: str | None) -> tuple[str, str] | None:
    """Return the name and version of a browser or app whose `name` is only that of the software it is based on. Two
    forms are recognized: `SomeBrowser/1.2` anywhere, and `Some App/1.2` at the very beginning of a text that is not a
    browser's.
    """
    if name not in _NAMELESS:
        return None
    found = _BROWSER_OF_A_NAME.search(text) if "rowser/" in text else None
    if found is None and _OLD_PHONE.search(text) is None:
        found = _APP_IN_FRONT.match(text)
        if found is not None and _NO_APP.match(found[1]) is not None:
            found = None
    if found is None:
        return None
    return found[1].replace("%20", " ").strip(), found[2] + (f".{found[3]}" if found[3] else "")


_NAMED_BY_ENGINE = frozenset({"chrome", "qt_web_engine", "safari"})
_DESKTOP = re.compile(r"Mozilla/5\.0 \((?:X11|Wayland|Windows NT [\d.]{1,8}|Macintosh)[;)]")
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_PRODUCT = re.compile(r"(?<!\S)([A-Za-z][A-Za-z-]{2,30})/\d")
_PRODUCT_OR_WORD = re.compile(r"(?<!\S)([A-Za-z][A-Za-z-]{2,30})(?:/\d\S*)?(?!\S)")
_OF_ENGINES = frozenset(
    {"applewebkit", "chrome", "chromium", "crkey", "gecko", "hbbtv", "headlesschrome", "khtml", "mobile", "mozilla"}
    | {"qtwebengine", "safari", "ubuntu", "version"}
)
"""Products that stand in user agents of many browsers."""


def product_class(text: str, family: str) -> str:
    """Return the class of a desktop browser that is known by its engine alone: a product of its own sets it apart, if
    unknown.

    `Mozilla/5.0 (X11; ...) AppleWebKit/537.36 (KHTML, like Gecko) Unheard/1.0 Chrome/120.0.0.0 Safari/537.36` is of
    another class than Chrome. Beside QtWebEngine, which is never a browser itself, a bare `Unheard` is enough. On
    phones such names are those of apps, which come and go.
    """
    if family not in _NAMED_BY_ENGINE or _DESKTOP.match(text) is None:
        return family
    bare = _IN_BRACKETS.sub(" ", _IN_BRACKETS.sub(" ", text))
    named = _PRODUCT_OR_WORD if family == "qt_web_engine" else _PRODUCT
    products = (found[1].lower() for found in named.finditer(bare))
    return next((product for product in products if product not in _OF_ENGINES), family)


_NOT_IN_A_CLASS = re.compile(r"[^a-z0-9]+")


def browser_class(name: str, *, in_app: bool) -> str:
    """Return the class by which matching groups browsers, for a browser's name. What an app shows in its own window is
    `webview`, whatever the app; an unknown browser is a class of its own.
    """
    family = _TABLES.families.get(name)
    if in_app and family in (None, "chrome", "safari", "android", "other"):
        return "webview"
    return family or _NOT_IN_A_CLASS.sub("_", name.lower()).strip("_")[:32] or "other"


LONGEST_USER_AGENT = 1_024
LONGEST_MODEL = 64
CACHED_AGENTS = 8_192
"""Distinct pairs of user agent and hints kept: a site sees few thousand."""

_SILENT = Agent()


def load_patterns() -> None:
    """Compile the patterns of `read_agent`, which takes 0.15 s that the first visitor would otherwise wait for.
    Processes that are forked afterwards inherit them.
    """
    _read("Mozilla/5.0", _NO_HINTS, False)


def read_agent(facts: RequestFacts, report: Report) -> Agent:
    """Return the agent that sent the request, from the user agent in the header, else the reported one. Any text is
    accepted; equal input is parsed once. Client hints override what they know better: the real Windows 11, the version
    of macOS that user agents no longer tell, the brand behind Chrome. Hints in the report have priority over those in
    the headers. An app's SDK knows its system better than the user agent of its HTTP library.
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
    """Return the sender with the class of an app on its system; anything else found of it, such as a crawler, stays."""
    family = claims.native_platform or "other"
    same = sender.os_family == family
    version = claims.native_os_version or (sender.os_version if same else None)
    return msgspec.structs.replace(
        sender,
        os="iOS" if family == "ios" else "Android",
        os_version=version,
        os_family=family,
        os_release=release_number(version),
        device_kind=claims.native_kind or "mobile",
        browser_family="app",
        browser_version=0,
        mobile=True,
    )


@lru_cache(maxsize=CACHED_AGENTS)
def _read(user_agent: str, hints: ClientHints, disguised_tablet: bool) -> Agent:  # noqa: FBT001  part of the cache's key
    text = _with_model(user_agent, hints.model)
    text = text if text.isascii() else text.encode("utf-8", "replace").decode()
    found = _resolver()(text, Domain.USER_AGENT | Domain.OS)
    os, os_version, os_release = _hinted_system(hints, *read_system(text, found.os))
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
            is_bare_name=program.is_bare_name,
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


_FROZEN_MODEL = "; K)"
"""What Chromium writes for every model of Android since version 110 (User-Agent reduction)."""


def _with_model(user_agent: str, model: str | None) -> str:
    """Put the model back into a frozen user agent: models distinguish televisions, tablets and watches."""
    if not model or _FROZEN_MODEL not in user_agent:
        return user_agent
    return user_agent.replace(_FROZEN_MODEL, f"; {model[:LONGEST_MODEL]})", 1)


@cache
def _resolver() -> Resolver:
    """Compile ua-parser's patterns for browsers and systems with our own, once. Those for devices are not needed."""
    browsers, systems, _ = ua_parser.load_lazy_builtins()  # ua-parser-rs compiles them, Python need not
    return Resolver((browser_matchers(browsers), system_matchers(systems), []))


_ENGINE = re.compile(r"Chrom(?:e|ium)/(\d{1,5})(?:\.(\d{1,5}))?")
_NUMBERED_BY_ENGINE = frozenset({"qt_web_engine", "webview"})
"""Views that apps show pages in: releases of what they are part of say little of how far the engine went."""
_IN_APP = re.compile(r"; ?wv\)|Version/4\.0 Chrome/|\[FB|FBAN/|FBAV/|Instagram|MicroMessenger")
_APPLE_HAND_HELD = re.compile(r"iPhone|iPad|iPod")


def _browser(
    text: str, found: UserAgent | None, hints: ClientHints, *, mobile: bool
) -> tuple[str | None, str | None, str, int]:
    """Return name, version, class of matching, and the version as a number that grows with releases.

    On phones and televisions, a browser that differs from the one it is built on only by its own name has that one's
    class: updates add and drop such names.
    """
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
    number = _number(text, version, family)
    if not in_app and device_mark(text) is None:
        family = product_class(text, family)
    own = own_name(text, name)
    return (name, version, family, number) if own is None else (*own, family, number)


def _number(text: str, version: str | None, family: str) -> int:
    """Return the version as `Agent.browser_version`."""
    found = _ENGINE.search(text) if family in _NUMBERED_BY_ENGINE else VERSION_NUMBERS.match(version or "")
    return int(found[1]) * 10 + min(int(found[2] or 0), 9) if found is not None else 0


def _hinted_browser(hints: ClientHints) -> tuple[str | None, str | None]:
    """Return the most specific brand: any other than Chrome, then Chrome. Nearly all have `Chromium` beside it."""
    best: tuple[str | None, str | None] = (None, None)
    for brand, version in hints.brands:
        name = BRANDS.get(brand)
        if name is not None and (best[0] is None or best[0] == "Chrome"):
            best = name, version or None
    return best


def _version(found: UserAgent | None) -> str | None:
    if found is None or found.major is None:
        return None
    return f"{found.major}.{found.minor}" if found.minor else found.major


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
        real = said if hinted in ("Android", "macOS", "iOS") and VERSION_NUMBERS.match(said) else None
    return (name, version, release) if real is None else (name, real, release_number(real))


def _device_kind(text: str, os: str | None, hints: ClientHints) -> DeviceKind | None:
    """Return the kind of device. Screens that stay in their place, such as televisions, count as desktops."""
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
