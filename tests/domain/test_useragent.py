"""What user agents and client hints are read as: single texts, one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.model import Agent, Claims, ClientHints, Report, RequestFacts
from svc.identify.useragent import read_agent, read_hints

WINDOWS_CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36"
)
MAC_SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 "
    "Safari/605.1.15"
)
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
ANDROID = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Mobile Safari/537.36"
)
WEB_VIEW = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 "
    "Chrome/137.0.7151.61 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/500.0.0.1.2;]"
)
BRANDS = (("Chromium", "137"), ("Google Chrome", "137"))


NO_HINTS = ClientHints()


def read(user_agent: str | None, hints: ClientHints = NO_HINTS, /, **claims: Any) -> Agent:
    facts = RequestFacts(ip="192.0.2.1", user_agent=user_agent, hints=hints)
    return read_agent(facts, Report(claims=Claims(**claims)))


@pytest.mark.parametrize(
    ("text", "agent", "version", "family", "number", "system", "release", "kind"),
    [
        (WINDOWS_CHROME, "Chrome", "137.0", "chrome", 1370, "windows", 1000, "desktop"),
        (WINDOWS_CHROME + " Edg/137.0.0.0", "Edge", "137.0", "edge", 1370, "windows", 1000, "desktop"),
        (WINDOWS_CHROME + " OPR/121.0.0.0", "Opera", "121.0", "opera", 1210, "windows", 1000, "desktop"),
        (MAC_SAFARI, "Safari", "17.4", "safari", 174, "mac", 1015, "desktop"),
        (
            IPHONE + "Version/17.4 Mobile/15E148 Safari/604.1",
            "Mobile Safari", "17.4", "safari", 174, "ios", 1704, "mobile",
        ),
        (
            IPHONE + "CriOS/137.0.1 Mobile/15E148 Safari/604.1",
            "Chrome Mobile iOS", "137.0", "chrome_ios", 1370, "ios", 1704, "mobile",
        ),
        (
            IPHONE + "FxiOS/139.1 Mobile/15E148 Safari/604.1",
            "Firefox iOS", "139.1", "firefox_ios", 1391, "ios", 1704, "mobile",
        ),
        (ANDROID, "Chrome Mobile", "137.0", "chrome", 1370, "android", 1000, "mobile"),
        (ANDROID.replace(" Mobile", ""), "Chrome", "137.0", "chrome", 1370, "android", 1000, "tablet"),
        (WEB_VIEW, "Facebook", "500.0", "webview", 1370, "android", 1400, "mobile"),
        (
            "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Firefox", "128.0", "firefox", 1280, "linux", 0, "desktop",
        ),
        (
            WINDOWS_CHROME.replace("Windows NT 10.0; Win64; x64", "X11; CrOS x86_64 14541.0.0"),
            "Chrome", "137.0", "chrome", 1370, "chromeos", 14541, "desktop",
        ),
    ],
)  # fmt: skip
def test_the_browser_of_a_person_is_named_and_classified(
    text: str, agent: str, version: str, family: str, number: int, system: str, release: int, kind: str
):
    found = read(text)
    assert (found.agent, found.agent_version, found.browser_family, found.browser_version) == (
        agent,
        version,
        family,
        number,
    )
    assert (found.os_family, found.os_release, found.device_kind) == (system, release, kind)
    assert found.mobile is (kind in ("mobile", "tablet"))
    assert found.program is found.crawler is found.operator is None


def test_a_headless_browser_stays_a_browser():
    found = read(WINDOWS_CHROME.replace("Chrome/", "HeadlessChrome/"))
    assert (found.agent, found.browser_family, found.browser_version) == ("HeadlessChrome", "chrome", 1370)
    assert found.program is None


@pytest.mark.parametrize(
    ("platform_version", "shown", "release"),
    [("15.0.0", "11", 1100), ("13.0.0", "11", 1100), ("10.0.0", "10", 1000), ("0.3.0", "8.1", 801), ("x", "10", 1000)],
)
def test_hints_give_the_release_of_windows(platform_version: str, shown: str, release: int):
    found = read(WINDOWS_CHROME, ClientHints(platform="Windows", platform_version=platform_version))
    assert (found.os, found.os_version, found.os_release) == ("Windows", shown, release)


def test_hints_give_the_real_version_of_android_and_macos():
    found = read(ANDROID, ClientHints(brands=BRANDS, mobile=True, platform="Android", platform_version="15.0.0"))
    assert (found.os_version, found.os_release, found.device_kind) == ("15.0.0", 1500, "mobile")
    mac = WINDOWS_CHROME.replace("Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7")
    assert read(mac, ClientHints(platform="macOS", platform_version="14.5.0")).os_release == 1405


@pytest.mark.parametrize(
    ("brand", "agent", "family"),
    [
        ("Brave", "Brave", "brave"),
        ("Microsoft Edge", "Edge", "edge"),
        ("Opera", "Opera", "opera"),
        ("Vivaldi", "Vivaldi", "vivaldi"),
        ("Google Chrome", "Chrome", "chrome"),
        ("Chromium", "Chrome", "chrome"),
    ],
)
def test_a_brand_shows_the_browser_that_the_user_agent_hides(brand: str, agent: str, family: str):
    found = read(WINDOWS_CHROME, ClientHints(brands=(("Chromium", "137"), (brand, "137"))))
    assert (found.agent, found.browser_family, found.browser_version) == (agent, family, 1370)


def test_a_chrome_brand_does_not_hide_the_browser_of_the_user_agent():
    assert read(WINDOWS_CHROME + " OPR/121.0.0.0", ClientHints(brands=BRANDS)).browser_family == "opera"


def test_hints_of_the_report_take_precedence_over_those_of_the_headers():
    reported = ClientHints(platform="Windows", platform_version="15.0.0")
    assert read(WINDOWS_CHROME, ClientHints(platform="Windows"), hints=reported).os_version == "11"
    assert read(WINDOWS_CHROME, reported).os_version == "11"


def test_the_reported_user_agent_applies_where_the_request_has_none():
    assert read(None, user_agent=MAC_SAFARI).agent == "Safari"
    assert read(WINDOWS_CHROME, user_agent=MAC_SAFARI).agent == "Chrome"
    assert read(None) == Agent()


def test_an_ipad_with_desktop_pages_is_not_a_mac():
    found = read(MAC_SAFARI, touch_points=5)
    assert (found.os_family, found.device_kind, found.os_release) == ("ios", "tablet", 0)
    assert read(MAC_SAFARI, touch_points=0).os_family == "mac"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("curl/8.5.0", "curl"),
        ("python-requests/2.32.3", "python-requests"),
        ("okhttp/4.12.0", "okhttp"),
        ("Go-http-client/2.0", "Go-http-client"),
        ("Mozilla/5.0 (compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)", "UptimeRobot"),
        ("Mozilla/5.0 (compatible; NobodyKnowsIt/0.1)", "NobodyKnowsIt"),
        ("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "facebookexternalhit"),
    ],
)
def test_a_program_is_named_and_runs_on_a_server(text: str, name: str):
    found = read(text)
    assert (found.program, found.agent, found.device_kind, found.browser_family) == (name, name, "server", "other")
    assert found.crawler is None


@pytest.mark.parametrize(
    ("text", "name", "kind", "operator"),
    [
        ("compatible; Googlebot/2.1; +http://www.google.com/bot.html", "Googlebot", "search_crawler", "Googlebot"),
        ("compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm", "bingbot", "search_crawler", "Bingbot"),
        ("compatible; DuckDuckBot/1.1", "DuckDuckBot", "search_crawler", "DuckDuckBot"),
        ("Applebot/0.1", "Applebot", "search_crawler", "Applebot"),
        ("compatible; YandexBot/3.0; +http://yandex.com/bots", "YandexBot", "search_crawler", None),
        ("compatible; GPTBot/1.2; +https://openai.com/gptbot", "GPTBot", "ai_bot", "GPTBot"),
        ("compatible; ChatGPT-User/1.0; +https://openai.com/bot", "ChatGPT-User", "ai_bot", "GPTBot"),
        ("compatible; ClaudeBot/1.0; +claudebot@anthropic.com", "ClaudeBot", "ai_bot", "ClaudeBot"),
        ("compatible; Claude-User/1.0; +Claude-User@anthropic.com", "Claude-User", "ai_bot", "Anthropic"),
        ("compatible; PerplexityBot/1.0", "PerplexityBot", "ai_bot", "PerplexityBot"),
        ("compatible; Amazonbot/0.1", "Amazonbot", "ai_bot", "Amazonbot"),
        ("compatible; Bytespider; spider-feedback@bytedance.com", "Bytespider", "ai_bot", None),
        ("compatible; AdsBot-Google; +http://www.google.com/adsbot.html", "AdsBot-Google", None, None),
    ],
)
def test_a_crawler_has_a_name_a_kind_and_an_operator(text: str, name: str, kind: str | None, operator: str | None):
    found = read(f"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; {text}) Chrome/137.0.0.0 Safari/537.36")
    assert (found.program, found.crawler, found.operator) == (name, kind, operator)


def test_operators_have_the_names_of_their_ranges_or_sources():
    from iporigin import dataset_info

    from svc.identify.network_data.sources import SOURCES
    from svc.identify.useragent.crawlers import _known

    operators = {program.operator for program in _known()[0] if program.operator}
    kept = {source.file.removeprefix("crawler-").removesuffix(".txt") for source in SOURCES}
    assert operators <= set(dataset_info()["providers"]) | kept


@pytest.mark.parametrize("word", ["Cursor", "Operator"])
def test_an_ordinary_word_names_an_ai_agent_only_where_programs_name_themselves(word: str):
    assert read(f"{word}/1.2 (+https://agent.example)").crawler == "ai_bot"
    named = read(f"Mozilla/5.0 (compatible; {word}/1.2; +https://agent.example)")
    assert (named.program, named.crawler) == (word, "ai_bot")
    editor = (
        f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 {word}/1.2 Chrome/138.0.0.0 Electron/37.0 Safari/537.36"
    )
    assert read(editor).crawler is None


def test_the_model_of_a_phone_is_not_a_program():
    for model in (
        "CUBOT NOTE 20",
        "HTC Butterfly",
        "Fever_Plus_J",
        "Expanse",
        "ViewSonic A8+ Build/JLS36C",
        "Robot X1",
    ):
        assert read(ANDROID.replace("; K)", f"; {model})")).program is None, model


def test_the_locale_of_an_app_is_not_the_address_of_a_program():
    text = IPHONE + "Mobile/21F79 Instagram 330.0.3.29.91 (iPhone14,3; iOS 17_5; en_IR@calendar=gregorian; en)"
    assert read(text).program is None


def test_a_derived_system_is_named_itself():
    fire = "Mozilla/5.0 (Linux; Android 9; KFTRWI) AppleWebKit/537.36 (KHTML, like Gecko) Silk/108.4 Safari/537.36"
    assert (read(fire).os, read(fire).os_family, read(fire).os_release) == ("Fire OS", "android", 900)
    assert read("Reeder/5 CFNetwork/1240.0.4 Darwin/20.6.0").os_family == "ios"


def test_client_hint_headers_are_read():
    headers = {
        "sec-ch-ua": '"Not/A)Brand";v="24", "Google Chrome";v="137", "Chromium";v="137"',
        "sec-ch-ua-mobile": "?1",
        "sec-ch-ua-platform": '"Android"',
        "sec-ch-ua-platform-version": '"15.0.0"',
        "sec-ch-ua-arch": '""',
        "sec-ch-ua-model": '"Pixel \\"8\\""',
    }
    assert read_hints(headers) == ClientHints(
        brands=(("Google Chrome", "137"), ("Chromium", "137")),
        grease="Not/A)Brand",
        mobile=True,
        platform="Android",
        platform_version="15.0.0",
        model='Pixel "8"',
    )
    assert read_hints({}) == ClientHints()


# Apps --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "user_agent",
    [None, "", "okhttp/4.12.0", "Shop/5.2 CFNetwork/3826.500.131 Darwin/24.5.0", "Dart/3.4 (dart:io)", MAC_SAFARI],
)
@pytest.mark.parametrize(
    ("platform", "version", "name", "release"),
    [("ios", "18.5.1", "iOS", 1805), ("android", "15", "Android", 1500), ("android", None, "Android", 0)],
)
def test_an_app_sdk_determines_the_system_whatever_library_sends_its_report(
    user_agent: str | None, platform: Any, version: str | None, name: str, release: int
):
    found = read(user_agent, native_platform=platform, native_os_version=version, native_kind="tablet")
    assert (found.os, found.os_version, found.os_family, found.os_release) == (name, version, platform, release)
    assert (found.browser_family, found.browser_version, found.mobile, found.device_kind) == ("app", 0, True, "tablet")


def test_an_app_without_a_release_has_that_of_its_user_agent():
    dalvik = "Dalvik/2.1.0 (Linux; U; Android 14; Pixel 8 Build/UP1A)"
    assert read(dalvik, native_platform="android").os_release == 1400
    assert read(dalvik, native_platform="ios").os_release == 0


def test_a_crawler_that_claims_to_be_an_app_stays_a_crawler():
    crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    assert read(crawler, native_platform="ios").crawler == "search_crawler"
    assert read("curl/8.5.0", native_platform="android").program == read("curl/8.5.0").program is not None
