"""User agents that come with an app's report: those of phones fire nothing, those of programs `bot_user_agent`."""

from __future__ import annotations

import pytest

from svc.identify.detection import detect
from svc.identify.model import Network, Observation, Report, RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from svc.kernel.values.fields import Platform

NOWHERE = Network(state="unavailable", reason="private_address")


def fired_on(platform: Platform, user_agent: str) -> dict[str, Observation]:
    """What fires on an app's report that comes with this user agent."""
    facts = RequestFacts(ip="192.0.2.1", user_agent=user_agent)
    report = read_report({"platform": platform, "model": "x", "os_version": "15"}, facts)
    seen = detect(report, facts, read_agent(facts, report), NOWHERE, platform)
    return {observation.signal: observation for observation in seen}


@pytest.mark.parametrize(
    ("platforms", "user_agent"),
    [
        (("android", "ios"), "Dart/3.4 (dart:io)"),
        (("android", "ios"), "Ktor client"),
        (("android", "ios"), "ktor-client"),
        (("android", "ios"), "UnityPlayer/2022.3.10f1 (UnityWebRequest/1.0, libcurl/8.1.1-DEV)"),
        (("android", "ios"), "Cronet/120.0.6099.43"),
        (("android", "ios"), "Shop/42"),
        (("android", "ios"), "com.example.shop/42"),
        (("android", "ios"), "RestSharp/106.11.7.0"),
        (("android", "ios"), "UnrealEngine/5.3"),
        (("android", "ios"), "x"),
        (("android", "ios"), ""),
        (("android",), "okhttp/4.12.0"),
        (("android",), "Dalvik/2.1.0 (Linux; U; Android 15; Pixel 8 Build/AP4A.250105.002)"),
        (("android",), "Apache-HttpClient/UNAVAILABLE (java 1.4)"),
        (("android",), "android-async-http/1.4.9 (http://loopj.com/android-async-http)"),
        (("android",), "svc-android/0.1.0 (Android 15; com.example.shop/42)"),
        (("android",), "com.example.shop/42 (Linux; U; Android 15; en_GB; Pixel 8; Build/AP4A; Cronet/120.0.6099.43)"),
        (("ios",), "Shop/42 CFNetwork/1494.0.7 Darwin/23.4.0"),
        (("ios",), "Shop/5.2 (com.example.shop; build:42; iOS 17.4.1) Alamofire/5.8.1"),
        (("ios",), "Shop/5.2 (iPhone; iOS 17.4.1; Scale/3.00)"),
        (("ios",), "svc-ios/0.1.0 (iOS 17.4.1; com.example.shop/42)"),
    ],
)
def test_what_an_app_sends_with_is_no_program(platforms: tuple[Platform, ...], user_agent: str) -> None:
    for platform in platforms:
        assert fired_on(platform, user_agent) == {}


@pytest.mark.parametrize(
    "user_agent",
    [
        # Android's runtime calls itself Dalvik, and has no `java.net.http`.
        "Java/17.0.1",
        "Java/1.8.0_391",
        "Java-http-client/17.0.9",
        "Apache-HttpClient/4.5.13 (Java/17.0.1)",
        "Jakarta Commons-HttpClient/3.1",
        "curl/8.5.0",
        "curl/7.64.1 (x86_64-apple-darwin18.0)",
        "Wget/1.19.4 (darwin17.3.0)",
        "python-requests/2.31.0",
        "Python-urllib/3.11",
        "aiohttp/3.9",
        "Go-http-client/2.0",
        "axios/1.6.2",
        "node-fetch/3",
        "PostmanRuntime/7.36",
        "HTTPie/3",
        "GuzzleHttp/7",
        "libwww-perl/6",
        "scrapy/2",
    ],
)
@pytest.mark.parametrize("platform", ["android", "ios"])
def test_a_program_that_no_phone_runs_is_one_in_an_apps_report_too(platform: Platform, user_agent: str) -> None:
    assert set(fired_on(platform, user_agent)) == {"bot_user_agent"}


@pytest.mark.parametrize("user_agent", ["Shop/42", "com.example.shop/42", "x"])
def test_a_bare_name_is_a_program_on_the_web(user_agent: str) -> None:
    facts = RequestFacts(ip="192.0.2.1", user_agent=user_agent)
    seen = detect(Report(), facts, read_agent(facts, Report()), NOWHERE, "web")
    assert [observation.signal for observation in seen] == ["bot_user_agent"]
