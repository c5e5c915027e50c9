"""Browsers and apps: as user agents and brands name them, as events show them, and the classes that matching compares.

What may live here: tables of names, and how a browser's or an app's own name is found beside those of what it is built
on. Versions and what follows from hints stand in `agent`.
"""

from __future__ import annotations

import re

from ua_parser import UserAgent
from ua_parser.core import Matcher
from ua_parser.matchers import UserAgentMatcher

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
    "Vewd Core": "Vewd Browser",
    "Vivaldi": "Vivaldi",
    "Whale": "Whale",
    "Yandex": "Yandex Browser",
    "YaBrowser": "Yandex Browser",
}
"""Brand of client hints -> name shown. `Chromium` stands beside nearly every other brand and says nothing."""

MOBILE_NAMES = {"Chrome": "Chrome Mobile", "Edge": "Edge Mobile", "Opera": "Opera Mobile"}
"""How ua-parser calls the same browser on a phone."""

_FIRST = (
    # Apps that show pages in a browser of theirs, which ua-parser names by that one
    (r"(FBAN/EMA)\b.*?FBAV/(\d+)\.(\d+)", "Facebook Lite"),
    (r"(FBAN/MessengerLite)\w*;.*?FBAV/(\d+)\.(\d+)", "Facebook Messenger Lite"),
    (r"(FB_IAB/Orca-Android|FBAN/MessengerForiOS|FBAN/Orca-Android);.*?FBAV/(\d+)\.(\d+)", "Facebook Messenger"),
    (r"\b(NAVER)\(inapp; \w+; \d+; (\d+)\.(\d+)", "Naver"),
    (r"AliApp\((DingTalk)/(\d+)\.(\d+)", "DingTalk"),
    (r"(Snapchat)/?(\d+)\.(\d+)", "Snapchat"),
    (r"(MicroMessenger)/(\d+)\.(\d+)", "WeChat"),
    (r"\b(QQ)/(\d+)\.(\d+)", "QQ"),
    (r"(DaumApps)/(\d+)\.(\d+)", "Daum"),
    (r"\b((?i:baiduboxapp))/(?:(\d+)\.(\d+)|\d+_)", "Baidu Box App"),
    (r"(SogouSearch)\b", "SogouSearch App"),
    # Browsers that ua-parser takes for the one they are built on, or does not know
    (r"(YaApp_Android|YaSearchBrowser|YaBrowser|YaSearchApp)/(\d+)(?:\.(\d+))?", "Yandex Browser"),
    (r"(HuaweiBrowser)/(\d+)(?:\.(\d+))?", "Huawei Browser"),
    (r"(HeyTapBrowser)/(\d+)(?:\.(\d+))?", "HeyTapBrowser"),
    (r"(VivoBrowser)/(\d+)(?:\.(\d+))?", "vivo Browser"),
    (r"(MiuiBrowser)/(\d+)(?:\.(\d+))?", "MiuiBrowser"),
    (r"(MZBrowser)/(\d+)(?:\.(\d+))?", "Meizu Browser"),
    (r"(LieBaoFast)/(\d+)(?:\.(\d+))?", "LieBaoFast"),
    (r"(ACHEETAHI)/(\d)", "CM Browser"),
    (r"(bdbrowser(?:_i18n)?|FlyFlow)/(\d+)(?:\.(\d+))?", "Baidu Browser"),
    (r"(BDSpark)/(\d+)(?:\.(\d+))?", "Baidu Spark"),
    (r"(SogouMobileBrowser)/(\d+)(?:\.(\d+))?", "Sogou Mobile Browser"),
    (r"(360 ?Aphone Browser) \((\d+)\.(\d+)", "360 Phone Browser"),
    (r"\) (UC) AppleWebKit", "UC Browser"),
    (r"Version/4\.0 (OPR)/(\d+)\.(\d+)", "Opera"),
    (r"(?:^|[^A-Za-z])(ABB)/(\d+)(?:\.(\d+))?", "AdBlock Browser"),
    (r"(Quark)/(\d+)(?:\.(\d+))?", "Quark"),
    (r"(PHX)/(\d+)(?:\.(\d+))?", "Phoenix Browser"),
    (r"(mCent)/(\d+)(?:\.(\d+))?", "mCent"),
    (r"(SalamWeb)/(\d+)(?:\.(\d+))?", "SalamWeb"),
    (r"(RakutenWebsearch)/(\d+)(?:\.(\d+))?", "Rakuten Web Search"),
    (r"\b(DuckDuckGo)/(\d+)(?:\.(\d+))?", "DuckDuckGo Mobile"),
    (r"\bVersion/4\.0 (Focus|Klar)/(\d+)(?:\.(\d+))?", "Firefox Focus"),
    (r"\b(Rocket)/(\d+)(?:\.(\d+))?\S* Chrome/", "Firefox Rocket"),
    (r"\b(Wolvic)/(\d+)(?:\.(\d+))?", "Wolvic"),
    (r"\b(Odd)/(\d+)(?:\.(\d+))?", "Odd Browser"),
    (r"\b(WIB)/(\d+)(?:\.(\d+))?", "Wear Internet Browser"),
    (r"(ChromePlus)/(\d+)(?:\.(\d+))?", "ChromePlus"),
    (r"(IceDragon)/(\d+)(?:\.(\d+))?", "IceDragon"),
    (r"(HeadlessChrome)/(\d+)(?:\.(\d+))?", "HeadlessChrome"),
    (r"\b(OPX)/(\d+)(?:\.(\d+))?", "Opera GX"),
    (r"(Webpositive)/(\d+)(?:\.(\d+))?", "WebPositive"),
    (r"(PocketBook)/(\d+)", "PocketBook Browser"),
    (r"^(Safari)\d[\d.]* CFNetwork/", "Safari"),
    (r"(Browser/Appl[el]+Web[Kk]it)/?53[0-4]", "Android"),
    (r"; (Maxthon) \((\d+)\.(\d+)", "Maxthon"),
    (r"\b(Falkon)/(\d+)\.(\d+)", "Falkon"),
    (r"\b(Dooble)/(\d+)(?:\.(\d+))?", "Dooble"),
    (r"\b(Surf)/(\d+)\.(\d+)", "Surf"),
    (r"\b(MiniBrowser)/(\d+)\.(\d+)", "MiniBrowser"),
    # Televisions
    (r"(Tizen)[ /][\d.]+;.* Version/(\d+)\.(\d+)(?:\.\d+)* (?:Mobile )?Safari", "Tizen Browser"),
    (r"(LG Browser)/(\d+)\.(\d+)", "LG Browser"),
    (r"\b(T[Bb]rowser)/(\d+)\.(\d+)", "T-Browser"),
    (r"\b(OMI)/(\d+)\.(\d+)", "Opera Devices"),
    (r"\b(Odin)/(\d+)\.(\d+)", "Odin"),
    (r"\b(SRAF)\b(?:/(\d+)\.(\d+))?", "Seraphic Sraf"),
    (r"\b(ANTGalio)/(\d+)\.(\d+)", "ANTGalio"),
    (r"\b(TV Bro)/(\d+)\.(\d+)", "TV Bro"),
    (r"\b(Quick Search TV)/(\d+)\.(\d+)", "Quick Search TV"),
)
"""What ua-parser's own patterns would name otherwise; the first that matches counts. Groups: mark, major, minor."""

_LAST = (
    (r"(Dalvik/\d.*Android|Android.*AppleWebKit)", "Android"),
    (r"(MAUI)\b", "MAUI WAP Browser"),
    (r"(UP\.Browser)/(\d+)(?:\.(\d+))?", "UP.Browser"),
    (r"\b(NetFront)/(\d+)\.(\d+)", "NetFront"),
    (r"(?i:\b(opera))[/ ](\d+)(?:\.(\d+))?", "Opera"),
    (r"(Chromium)_(\d+)\.(\d+)", "Chromium"),
    (r"(HbbTV)/(\d+)\.(\d+)", "HbbTV"),
    (r"\b(chrome)/(\d+)\.(\d+)", "Chrome"),
)
"""Looked at where ua-parser found nothing."""

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
    """ua-parser's patterns between our own; the first that matches counts."""
    kept = [matcher for matcher in builtins if not matcher.regex.startswith(_NO_BROWSER)]
    first, last = ([UserAgentMatcher(pattern, name) for pattern, name in table] for table in (_FIRST, _LAST))
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
    """The class of matching of a browser's name. What an app shows in its own window is `webview`, whatever the app."""
    family = FAMILIES.get(name)
    if in_app and family in (None, "chrome", "safari", "android", "other"):
        return "webview"
    return family or _NOT_IN_A_CLASS.sub("_", name.lower()).strip("_")[:32] or "other"
