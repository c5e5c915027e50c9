"""Browsers and apps: as user agents and brands name them, as events show them, and the classes that matching compares.

What may live here: the names of `svc/domain/data/browsers.toml`, and how a browser's or an app's own name is found
beside those of what it is built on. Versions and what follows from hints stand in `agent`.
"""

from __future__ import annotations

import re

import msgspec
from ua_parser import UserAgent
from ua_parser.core import Matcher
from ua_parser.lazy import UserAgentMatcher

from svc.domain.data import read_tables


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`browsers.toml`."""

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
"""What others are built on: then a name beside it says more."""

_BROWSER_OF_A_NAME = re.compile(r"(?<![\w.])((?!UP\.)\w[\w.-]{0,30} ?[Bb]rowser)/v?(\d{1,5})(?:\.(\d{1,5}))?")
_APP_IN_FRONT = re.compile(r"([A-Za-z][^/;()\[\]]{1,40})/v?(\d{1,9})(?:\.(\d{1,5}))?")
_NO_APP = re.compile(
    r"Mozilla|Opera|Dalvik|Android(?!Download)|Linux|UCWEB|HbbTV|CFNetwork|Darwin|AppleWebKit|Safari|Java|smarttv|samsung|nokia|lg-|mot-",
    re.IGNORECASE,
)
_OLD_PHONE = re.compile(r"MIDP|CLDC|MAUI|Browser/|Profile/|Release/")


def browser_matchers(builtins: list[Matcher[UserAgent]]) -> list[Matcher[UserAgent]]:
    """The patterns for browsers: ours, then ua-parser's, then the rest of ours; the first that matches counts."""
    kept = [matcher for matcher in builtins if not matcher.regex.startswith(_NO_BROWSER)]
    first, last = (
        [UserAgentMatcher(pattern, name) for pattern, name in table] for table in (_TABLES.first, _TABLES.last)
    )
    return [*first, *kept, *last]


def own_name(text: str, name: str | None) -> tuple[str, str] | None:
    """Name and version by which a browser or an app goes where `name` is only that of what it is built on.

    Two forms are looked for: `SomeBrowser/1.2` anywhere, and `Some App/1.2` at the very front of a text that is not a
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
    """The class of a desktop browser that is known by its engine alone: a product of its own sets it apart, if unknown.

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
    """The class by which matching groups browsers, for a browser's name. What an app shows in its own window is
    `webview`, whatever the app; an unknown browser is a class of its own.
    """
    family = _TABLES.families.get(name)
    if in_app and family in (None, "chrome", "safari", "android", "other"):
        return "webview"
    return family or _NOT_IN_A_CLASS.sub("_", name.lower()).strip("_")[:32] or "other"
