"""Names of browsers and apps, as data.

What may live here: patterns for what the `ua-parser` list does not know or calls otherwise, the names shown on events,
and the classes in which matching keeps browsers apart.
"""

from __future__ import annotations

import re

from ua_parser.lazy import UserAgentMatcher

_VERSION = r"[/ ]?v?(\d+)?\.?(\d+)?\.?(\d+)?\.?(\d+)?"

_TOKENS: tuple[tuple[str, str], ...] = (
    # In-app browsers first: they carry the tokens of the browser that they embed.
    (r"MicroMessenger", "WeChat"),
    (r"Instagram", "Instagram"),
    (r"FBAN/(?:MessengerForiOS|MessengerLite)|\[FB_IAB/(?:Orca-Android|MESSENGER)", "Facebook Messenger"),
    (r"FBAN/|FBAV/|\[FB_IAB/|FB4A", "Facebook"),
    (r"TikTok|musical_ly|trill_|BytedanceWebview", "TikTok"),
    (r"Snapchat", "Snapchat"),
    (r"KAKAOTALK", "KakaoTalk"),
    (r"NAVER\(inapp", "Naver"),
    (r"DaumApps", "Daum"),
    (r"Pinterest(?: for|/)", "Pinterest"),
    (r"LinkedInApp", "LinkedIn"),
    (r"WhatsApp", "WhatsApp"),
    (r"Line", "Line"),
    (r"GSA", "Google Search App"),
    (r"SogouSearch", "Sogou Search"),
    (r"baiduboxapp|baiduboxlite", "Baidu Box App"),
    (r"Weibo", "Sina Weibo"),
    (r"\bQQ", "QQ"),
    (r"YaApp_Android|YaSearchBrowser|YandexSearch|YaBrowser", "Yandex Browser"),
    (r"OPRGX|OPX", "Opera GX"),
    (r"OPT", "Opera Touch"),
    (r"OPiOS", "Opera Mini"),
    (r"Opera Mini", "Opera Mini"),
    (r"Vivaldi", "Vivaldi"),
    (r"DuckDuckGo|Ddg", "DuckDuckGo"),
    (r"Whale", "Whale"),
    (r"Quark", "Quark"),
    (r"MQQBrowser|QQBrowser(?:Lite)?", "QQ Browser"),
    (r"UCBrowser|UCWEB|UC Browser|UCTurbo", "UC Browser"),
    (r"(?:XiaoMi/)?MiuiBrowser", "Mi Browser"),
    (r"MintBrowser|Mint Browser", "Mint Browser"),
    (r"HuaweiBrowser", "Huawei Browser"),
    (r"VivoBrowser", "vivo Browser"),
    (r"HeyTapBrowser", "HeyTap Browser"),
    (r"OppoBrowser", "Oppo Browser"),
    (r"MZBrowser", "Meizu Browser"),
    (r"PHX", "Phoenix Browser"),
    (r"Sogou(?:MobileBrowser|MSE)|SogouMobileBrowser", "Sogou Mobile Browser"),
    (r"LieBaoFast", "LieBaoFast"),
    (r"Aloha(?:Browser|Lite)?", "Aloha Browser"),
    (r"Puffin", "Puffin"),
    (r"HiBrowser", "Hi Browser"),
    (r"SeaMonkey", "SeaMonkey"),
    (r"OculusBrowser", "Oculus Browser"),
    (r"TV ?Bro", "TV Bro"),
    (r"Odd(?:Browser)?", "Odd Browser"),
    (r"Ecosia[^/]*", "Ecosia"),
    (r"EdgA|EdgiOS|Edg|Edge", "Microsoft Edge"),
    (r"SamsungBrowser", "Samsung Browser"),
    (r"Silk", "Amazon Silk"),
    (r"HeadlessChrome", "Chrome Headless"),
    (r"PhantomJS", "PhantomJS"),
    (r"QtWebEngine", "QtWebEngine"),
    (r"Electron", "Electron"),
    (r"NetFront", "NetFront"),
)

MATCHERS = [UserAgentMatcher(rf"({token}){_VERSION}", family=name) for token, name in _TOKENS]

DISPLAYED = {
    "Android": "Android Browser",
    "Baidu Explorer": "Baidu Box App",
    "BlackBerry WebKit": "BlackBerry Browser",
    "Chrome Mobile WebView": "Chrome WebView",
    "Edge Mobile": "Microsoft Edge",
    "Edge": "Microsoft Edge",
    "Firefox iOS": "Firefox Mobile",
    "Chrome Mobile iOS": "Chrome Mobile",
    "IE": "Internet Explorer",
    "IE Mobile": "IE Mobile",
    "LINE": "Line",
    "Mobile Safari UI/WKWebView": "Safari WebView",
    "Qt Web Engine": "QtWebEngine",
    "Samsung Internet": "Samsung Browser",
    "UP.Browser": "Openwave Mobile Browser",
}
"""Name in the list -> name shown on events."""

BRANDS = {
    "Brave": "Brave",
    "Microsoft Edge": "Microsoft Edge",
    "Opera": "Opera",
    "Opera GX": "Opera GX",
    "OperaMobile": "Opera Mobile",
    "Vivaldi": "Vivaldi",
    "YaBrowser": "Yandex Browser",
    "Yandex": "Yandex Browser",
    "Samsung Internet": "Samsung Browser",
    "DuckDuckGo": "DuckDuckGo",
    "Whale": "Whale",
    "Avast Secure Browser": "Avast Secure Browser",
    "Android WebView": "Chrome WebView",
    "HeadlessChrome": "Chrome Headless",
    "Huawei Browser": "Huawei Browser",
}
"""Brand of the client hints -> name shown on events, for brands that say more than `Chromium` does."""

_FAMILIES = (
    ("edge", re.compile(r"Edg(?:e|A|iOS)?/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("opera", re.compile(r"(?:OPR|OPX|OPT|OPiOS|Opera Mini)/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("opera", re.compile(r"Opera[/ ](?:.*Version/)?(\d{1,5})(?:\.(\d{1,5}))?")),
    ("samsung", re.compile(r"SamsungBrowser/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("vivaldi", re.compile(r"Vivaldi/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("yandex", re.compile(r"YaBrowser/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("uc", re.compile(r"UC ?Browser/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("firefox", re.compile(r"(?:Firefox|FxiOS)/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("chrome", re.compile(r"(?:Chrom(?:e|ium)|CriOS)/(\d{1,5})(?:\.(\d{1,5}))?")),
    ("ie", re.compile(r"(?:MSIE |Trident/.*rv:)(\d{1,5})(?:\.(\d{1,5}))?")),
    ("safari", re.compile(r"Version/(\d{1,5})(?:\.(\d{1,5}))?.*Safari/")),
    ("safari", re.compile(r"(?:iPhone|iPad|iPod).*AppleWebKit()()")),
)
"""Class of matching -> where its version stands. The first that is found counts."""


def class_of(user_agent: str) -> tuple[str, int]:
    """(family, version as a growing number) for matching. The embedded engine counts for apps that embed one."""
    for family, pattern in _FAMILIES:
        found = pattern.search(user_agent)
        if found is not None:
            return family, growing(found[1], found[2])
    return "other", 0


def growing(major: str | None, minor: str | None) -> int:
    """Major version times ten plus the minor one, of which nine is as far as one digit counts."""
    return int(major) * 10 + min(int(minor or 0), 9) if major else 0
