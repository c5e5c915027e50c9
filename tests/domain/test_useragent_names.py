"""The rules by which systems, browsers, apps and kinds of devices are named: each where it applies and where it does
not.
"""

from __future__ import annotations

import pytest

from svc.identify.model import Agent, ClientHints, Report, RequestFacts
from svc.identify.useragent import read_agent

CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0"
NO_HINTS = ClientHints()


def read(user_agent: str, hints: ClientHints = NO_HINTS) -> Agent:
    return read_agent(RequestFacts(ip="192.0.2.1", user_agent=user_agent, hints=hints), Report())


def chrome_on(system: str, more: str = "") -> str:
    return f"Mozilla/5.0 ({system}) {CHROME} {more}Safari/537.36"


@pytest.mark.parametrize(
    ("text", "system", "family", "release"),
    [
        (chrome_on("Linux; Android 11; AFTKA Build/RS8113"), "Fire OS", "android", 1100),
        (chrome_on("Linux; Android 7.1.2; AEOCW Build/NS6543; wv"), "Fire OS", "android", 701),
        (chrome_on("Linux; Android 11; AFTERSHOCK-9"), "Fire OS", "android", 1100),
        (chrome_on("Linux; Android 11; KF9 Pro"), "Android", "android", 1100),
        ("Mozilla/5.0 (Linux; U; de-de; Tablet) AppleWebKit/535 Silk/3.8 Safari/535", "Fire OS", "android", 0),
        (chrome_on("Linux; Andr0id 9; ATV R2"), "Android TV", "android", 900),
        (chrome_on("Linux; Android 9; SMART_TV Build/PPR1"), "Android TV", "android", 900),
        (chrome_on("Linux; Android 9; TVPhone X"), "Android", "android", 900),
        (chrome_on("Linux; Android 11; SM-R870"), "Wear OS", "android", 1100),
        (chrome_on("Linux; Android 11; SM-A870"), "Android", "android", 1100),
        (chrome_on("Linux; Tizen 2.3.2; SAMSUNG SM-R732"), "Tizen", "other", 203),
        (chrome_on("PC; OpenHarmony 5.0; HarmonyOS 5.0"), "HarmonyOS", "android", 0),
        (chrome_on("Web0S; Linux/SmartTV"), "webOS", "other", 0),
        (chrome_on("Linux armv7l", "HbbTV/1.2.1 (; Sony; KD-55; v3; 2015;) "), "Linux", "linux", 0),
        (chrome_on("X11; Linux x86_64"), "Linux", "linux", 0),
        (chrome_on("X11; Linux armv7l", "CrKey/1.56.500000 "), "Linux", "linux", 0),
        ("Opera/9.80 (Linux mips; ) Presto/2.12.407 Version/12.51", "Opera TV", "linux", 0),
        ("Opera/9.80 (X11; Linux x86_64) Presto/2.12.407 Version/12.51", "Linux", "linux", 0),
        ("Mozilla/4.0 (compatible; MSIE 6.0; Windows CE; IEMobile 8.12)", "Windows CE", "windows", 0),
        ("Player/5 CFNetwork/1111 Darwin/19.0.0 (x86_64)", "macOS", "mac", 0),
        ("Player/5 CFNetwork/1111 Darwin/19.0.0", "iOS", "ios", 1300),
        ("server-bag [Watch OS,7.0,18R382,Watch6,4]", "watchOS", "other", 0),
        ("Fly_E158/WAPBrowserProfile/MIDP2.0 Configuration/CLDC1.1", "Java ME", "other", 0),
        ("mozilla/5.0 (linux; android 9; armor_x6) chrome/83.0.4103.106 mobile", "Android", "android", 900),
        (chrome_on("Linux like Android"), "Linux", "linux", 0),
        ("nothing that anybody knows", None, "other", 0),
    ],
)  # fmt: skip
def test_a_derived_system_is_named_itself_and_not_its_base(text: str, system: str | None, family: str, release: int):
    found = read(text)
    assert (found.os, found.os_family, found.os_release) == (system, family, release)


@pytest.mark.parametrize(
    ("text", "agent", "version"),
    [
        (chrome_on("Linux; Android 9", "HbbTV/1.6.1 (+DRM;) "), "Chrome", "137.0"),
        ("HbbTV/1.1.1 (;;;;;) Something", "HbbTV", "1.1"),
        (chrome_on("Linux", "OPR/46.0.2207.0 OMI/4.20.5.61.LIMA "), "Opera Devices", "4.20"),
        (chrome_on("Linux", "OPR/46.0.2207.0 "), "Opera", "46.0"),
        (chrome_on("Web0S; Linux/SmartTV", "LG Browser/8.00.00(LGE; WEBOS5) "), "LG Browser", "8.00"),
        (chrome_on("Linux; Android 9", "Mobile ABB/3.2.1 "), "AdBlock Browser", "3.2"),
        (chrome_on("Linux; Android 9", "Mobile ABBA/3.2.1 "), "Chrome Mobile", "137.0"),
        (chrome_on("Linux; Android 9; wv", "MicroMessenger/8.0.2 "), "WeChat", "8.0"),
        (chrome_on("Linux; Android 9; wv", "Version/4.0 Focus/8.0.9 "), "Firefox Focus", "8.0"),
        (
            "Mozilla/5.0 (Linux; U; Android 9; X) AppleWebKit/533.1 Version/4.0 MQQBrowser/5.4 Mobile Safari/533.1",
            "QQ Browser Mobile", "5.4",
        ),
        ("LightSpeed [FBAN/MessengerLiteForiOS;FBAV/255.0.0.30;FBDV/iPhone10,4]", "Facebook Messenger Lite", "255.0"),
        ("Safari5530.18 CFNetwork/438.12 Darwin/9.7.1 (i386)", "Safari", None),
        ("samsung-GT-I8550/1.0 Linux/2.6 Android/4.2.2 Browser/AppleWebKit533.1 (KHTML, like Gecko)", "Android", None),
    ],
)  # fmt: skip
def test_a_derived_browser_is_named_itself_and_not_its_base(text: str, agent: str, version: str | None):
    assert (read(text).agent, read(text).agent_version) == (agent, version)


@pytest.mark.parametrize(
    ("text", "agent", "version", "family"),
    [
        (chrome_on("Linux; Android 9; X", "Mobile NoxBrowser/2.0.0 "), "NoxBrowser", "2.0", "chrome"),
        (chrome_on("Linux; Android 9; X", "Mobile HiBrowser/v2.6.4 "), "HiBrowser", "2.6", "chrome"),
        (chrome_on("Windows NT 10.0", "OPR/46.0.2207.0 NoxBrowser/2.0.0 "), "Opera", "46.0", "opera"),
        (chrome_on("Windows NT 10.0", "NoxBrowser "), "Chrome", "137.0", "chrome"),
        ("TuneIn Radio/25.7.3 (Linux;Android 10) ExoPlayerLib/2.11.8", "TuneIn Radio", "25.7", "android"),
        ("Microsoft Office Word/16.44.1213 (Mac OS/11.1; Desktop)", "Microsoft Office Word", "16.44", "other"),
        ("Dalvik/2.1.0 (Linux; U; Android 9; X)", "Android", "9", "android"),
        ("Nokia2323c-2/2.0 (08.20) Profile/MIDP-2.1 Configuration/CLDC-1.1", "Nokia Services (WAP) Browser", None, ""),
    ],
)
def test_a_specific_name_takes_precedence_over_a_common_base(text: str, agent: str, version: str | None, family: str):
    found = read(text)
    assert found.agent == agent
    assert version is None or found.agent_version == version
    assert not family or found.browser_family == family


def test_a_specific_name_does_not_change_the_class_and_version_used_for_matching():
    plain, named = (read(chrome_on("Linux; Android 9; X", f"Mobile {more}")) for more in ("", "NoxBrowser/2.0.0 "))
    assert named.agent != plain.agent
    assert (named.browser_family, named.browser_version) == (plain.browser_family, plain.browser_version)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (chrome_on("Linux; Android 9; Lenovo TB-8505F", "Mobile "), "tablet"),
        (chrome_on("Linux; Android 9; TAB A10", "Mobile "), "tablet"),
        (chrome_on("Linux; Android 9; Stabilo", "Mobile "), "mobile"),
        (chrome_on("Linux; Andr0id 9; X"), "desktop"),
        ("server-bag [Watch OS,7.0,18R382,Watch6,4]", "mobile"),
        ("RokuBrowser/104.11.20 (TV-G000X) Chrome/104.0.5112.70", "desktop"),
        (chrome_on("X11; Linux x86_64"), "desktop"),
    ],
)
def test_markers_give_the_kind_of_device(text: str, kind: str):
    assert read(text).device_kind == kind


@pytest.mark.parametrize(
    ("model", "system", "kind"),
    [
        ("SM-X700", "Android", "tablet"),
        ("Pixel 8", "Android", "mobile"),
        ("SM-R870", "Wear OS", "mobile"),
        ("AFTKA", "Fire OS", "desktop"),
        (None, "Android", "mobile"),
    ],
)
def test_a_hinted_model_replaces_the_frozen_one(model: str | None, system: str, kind: str):
    frozen = chrome_on("Linux; Android 10; K", "Mobile ")
    found = read(frozen, ClientHints(platform="Android", platform_version="14.0.0", mobile=True, model=model))
    assert (found.os, found.device_kind, found.agent) == (system, kind, "Chrome Mobile")


def test_a_hinted_model_does_not_replace_one_in_the_user_agent():
    named = chrome_on("Linux; Android 10; Pixel 8", "Mobile ")
    assert read(named, ClientHints(model="SM-X700")).device_kind == "mobile"


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("Mozilla/5.0 (compatible; Bard-AI/1.0; +https://example.com/crawling-indexing)", "Bard-AI", "ai_bot"),
        ("Mozilla/5.0 (compatible; AcmeGPT-Bot/1.0)", "AcmeGPT-Bot", "ai_bot"),
        ("Mozilla/5.0 (compatible; YandexAdditionalBot/1.0; +http://yandex.com/bots)", "YandexAdditionalBot", "ai_bot"),
        ("Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", "YandexBot", "search_crawler"),
        ("Mozilla/5.0 (compatible; HYUNDAI/1.0)", "HYUNDAI", None),
        ("New-Sogou-Spider/1.0 (compatible; MSIE 5.5; Windows 98)", "Sogou", "search_crawler"),
        ("Google-Safety", "Google-Safety", None),
        ("Mozilla/5.0 (compatible; Foo/1.0; +https://foo.example/robots)", "Foo", None),
        ("Mozilla/5.0 (compatible; SomeRobot/1.0; +https://foo.example/)", "SomeRobot", None),
        ("Unheard/1.0 (+https://bot.example)", "Unheard", None),
        ("GoogleOther-Image/1.0", "GoogleOther-Image", None),
        ("AI2Bot-DeepResearchEval", "AI2Bot-DeepResearchEval", "ai_bot"),
        ("Mozilla/5.0 (compatible; YaK/1.0; http://linkfluence.com/; bot@linkfluence.com)", "YaK", "ai_bot"),
        # Servers of audio services, whose apps say on which system they run
        ("Spotify/1.0", "Spotify", None),
        ("beehiiv-podcast-importer/1.0", "beehiiv-podcast-importer", None),
        ("podcast-stt-worker/1.0", "podcast-stt-worker", None),
        ("Overcast%20Transcriber/1 CFNetwork/3855.100.1 Darwin/25.0.0", "20Transcriber", None),
    ],
)
def test_a_program_is_named_and_classified_by_policy(text: str, name: str, kind: str | None):
    assert (read(text).program, read(text).crawler) == (name, kind)


@pytest.mark.parametrize(
    "text",
    [
        "Mozilla/5.0 (Unknown; Linux x86_64) AppleWebKit/602.1 (KHTML, like Gecko) Viewer/2.0 Safari/602.1",
        chrome_on("Windows NT 10.0; Win64; x64") + " <?=print(6*7)?>",
        "() { :;}; /bin/ping -c 1 192.0.2.1",
        "${${lower:j}ndi:x}",
        "../../../etc/passwd",
    ],
)
def test_what_no_browser_writes_is_a_program(text: str):
    assert read(text).program == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "Spotify/8.7.70 iOS/16.0 (iPhone14,8)",
        "Garmin Venu 2S/17.4",
        "Xiaoyuzhou/1.9.0",
        "Megaphone.fm",
        "Bullhorn (https://bullhorn.fm)",
        "Tweetbot/53300 CFNetwork/1335.0.3 Darwin/21.6.0",
        chrome_on("Macintosh; Intel Mac OS X 10_15_7") + " PocketCasts/2.2.0 Electron/40.6.1",
        "NRC-Nieuws/5.4.0 (com.twipemobile.nrc; build:540; Android:13; Sdk:33; Model: SM-A528B) OkHttp/4.11.0",
        "Alcatel OT800 WAP2.0",
        "MyBox UHD 4.1",
        "Micromax X265",
        "Mozilla/5.0 (Unknown; Linux armv7l) AppleWebKit/537.1+ (KHTML, like Gecko) Safari/537.1+ LG Browser/6.00.00",
    ],
)
def test_an_app_or_a_device_with_a_short_name_is_a_persons(text: str):
    assert read(text).program is None


def test_a_crawler_that_sends_with_the_library_of_an_app_is_a_program():
    assert read("SomeBot/1.0 (Android 13) okhttp/4.12.0").program == "SomeBot"


def test_a_phone_whose_model_ends_in_ai_is_not_an_ai_agent():
    assert read(chrome_on("Linux; Android 9; Walton-AI Search", "Mobile ")).program is None


WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
QT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("text", "name", "family"),
    [
        (f"{QT} Falkon/22.12.1 QtWebEngine/5.15.13 Chrome/87.0.4280.144 Safari/537.36", "Falkon", "falkon"),
        (f"{QT} QtWebEngine/5.15.13 Chrome/87.0.4280.144 Safari/537.36", "Qt Web Engine", "qt_web_engine"),
        (f"{QT} QtWebEngine/5.15.13 Chrome/87.0.4280.144 Desktop Safari/537.36", "Qt Web Engine", "desktop"),
        (f"{QT} Konqueror/22.12.3 Safari/537.36", "Konqueror", "konqueror"),
        (f"{QT} qutebrowser/2.5.3 Chrome/87.0.4280.144 Safari/537.36", "qutebrowser", "qutebrowser"),
        (f"{QT} Dooble/2023.11 Chrome/108.0.5359.220 Safari/537.36", "Dooble", "dooble"),
        (f"{WEBKIT} Version/60.5 Safari/605.1.15 Surf/2.1", "Surf", "surf"),
        (f"{WEBKIT} Version/60.5 Safari/605.1.15 Epiphany/605.1.15", "Epiphany", "epiphany"),
        (f"{WEBKIT} Version/60.5 Safari/605.1.15 MiniBrowser/2.50", "MiniBrowser", "minibrowser"),
        (f"{WEBKIT} Version/60.5 Safari/605.1.15", "Safari", "safari"),
    ],
)
def test_browsers_on_one_engine_are_of_different_classes(text: str, name: str, family: str):
    found = read(f"Mozilla/5.0 (X11; Linux x86_64) {text}")
    assert (found.agent, found.browser_family) == (name, family)


@pytest.mark.parametrize(
    "system", ["X11; Linux x86_64", "Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7"]
)
def test_an_unknown_product_on_a_desktop_is_a_class_of_its_own(system: str):
    found = read(chrome_on(system, "Unheard/3.1 "))
    assert (found.agent, found.browser_family, found.browser_version) == ("Chrome", "unheard", 1370)
    assert read(chrome_on(system, "Unheard/4.0 ")).browser_family == "unheard"
    assert read(chrome_on(system, "Unheard ")).browser_family == "chrome"
    assert read(chrome_on(system)).browser_family == "chrome"


@pytest.mark.parametrize(
    "text",
    [
        chrome_on("Linux; Android 10; K", "Unheard/3.1 "),
        chrome_on("X11; Linux armv7l", "HbbTV/1.5.1 (Sony; KD-55) Unheard/3.1 "),
        chrome_on("X11; Linux x86_64", "(Unheard/3.1) "),
        chrome_on("X11; Linux x86_64", "Ubuntu/22.04 "),
        chrome_on("X11; Linux x86_64", "V1/3.1 "),
    ],
    ids=["phone", "television", "in brackets", "distribution", "number"],
)
def test_other_names_beside_an_engine_do_not_split_its_class(text: str):
    assert read(text).browser_family == "chrome"
