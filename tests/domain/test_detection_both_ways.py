"""Each signal of the catalog fires on what it is for, and not on its nearest innocent neighbor.

Cases are whole requests: a report as a collector sends it, the headers beside it, what is known of the address. Each is
read by the adapters and by the user agent's reader, as in production.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from svc.identify.detection import detect
from svc.identify.model import Network, Observation, RequestFacts
from svc.identify.report import read_report
from svc.identify.report.masks import STANDARD_PLUGINS
from svc.identify.scoring.signals import CATALOG, default_weights
from svc.identify.useragent import read_agent
from svc.identify.useragent.agent import read_hints
from svc.kernel.values.fields import Platform

KHTML = "AppleWebKit/537.36 (KHTML, like Gecko)"
CHROME = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {KHTML} Chrome/140.0.0.0 Safari/537.36"
LINUX_CHROME = f"Mozilla/5.0 (X11; Linux x86_64) {KHTML} Chrome/140.0.0.0 Safari/537.36"
ANDROID = f"Mozilla/5.0 (Linux; Android 10; K) {KHTML} Chrome/140.0.0.0 Mobile Safari/537.36"
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Safari/605.1.15"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
GPTBOT = f"Mozilla/5.0 {KHTML}; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
OKHTTP = "okhttp/4.12.0"

ORDINARY = Network(state="enriched", country_code="DE")
DIRECT3D = "ANGLE (Intel, Intel(R) UHD Graphics (0x00009A60) Direct3D11 vs_5_0 ps_5_0, D3D11)"
METAL = "ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)"
DAY = 24 * 3600 * 1000
NOW = 1_767_607_200_000


@dataclass(frozen=True)
class Visit:
    """One request. What is not said is what an ordinary desktop has."""

    signals: dict[str, Any] = field(default_factory=dict)
    user_agent: str = CHROME
    headers: dict[str, str] = field(default_factory=dict)
    network: Network = ORDINARY
    platform: Platform = "web"
    connection_os: str | None = None

    def fired(self) -> dict[str, Observation]:
        headers = {"accept-language": "de-DE,de;q=0.9", **self.headers}
        facts = RequestFacts(
            ip="203.0.113.7",
            user_agent=self.user_agent,
            accept_language=headers["accept-language"],
            hints=read_hints(headers),
            connection_os=self.connection_os,
        )
        report = read_report(self.signals, facts)
        seen = detect(report, facts, read_agent(facts, report), self.network, self.platform, NOW)
        return {observation.signal: observation for observation in seen}


def page(**changes: Any) -> dict[str, Any]:
    """The flat report of an ordinary Windows desktop."""
    return {
        "userAgent": CHROME, "platform": "Win32", "vendor": "Google Inc.", "productSub": "20030107",
        "languages": ["de-DE", "de"], "timezone": "Europe/Berlin", "screen": {"width": 1920, "height": 1080},
        "outerWidth": 1920, "outerHeight": 1040, "innerWidth": 1920, "innerHeight": 910, "maxTouchPoints": 0,
        "hardwareConcurrency": 8, "deviceMemory": 8, "plugins": list(STANDARD_PLUGINS), "vendorFlavors": ["chrome"],
        "webgl": {"vendor": "Google Inc. (Intel)", "renderer": DIRECT3D}, "webdriver": False, **changes,
    }  # fmt: skip


def web(user_agent: str = CHROME, **changes: Any) -> Visit:
    return Visit(page(userAgent=user_agent, **changes), user_agent)


def app(platform: Platform = "android", **changes: Any) -> Visit:
    device = {"platform": platform, "model": "Pixel 8" if platform == "android" else "iPhone17,1", "timezone": "UTC"}
    return Visit({**device, **changes}, OKHTTP if platform == "android" else "App/1 CFNetwork/1490", platform=platform)


def at(user_agent: str = CHROME, **network: Any) -> Visit:
    return replace(web(user_agent), network=replace_network(**network))


def replace_network(**changes: Any) -> Network:
    return Network(**{"state": "enriched", "country_code": "DE", **changes})


LINUX = {"platform": "Linux x86_64", "webgl": {"vendor": "Mesa", "renderer": "Mesa Intel(R) UHD Graphics 620"}}
MAC = {"platform": "MacIntel", "vendor": "Apple Computer, Inc.", "deviceMemory": None, "vendorFlavors": [],
       "webgl": {"vendor": "Apple Inc.", "renderer": "Apple GPU"}}  # fmt: skip
INVENTED = {**LINUX, "vendor": "Apple Computer, Inc."}

BOTH_WAYS: dict[str, tuple[Visit, Visit]] = {
    "automation": (web(webdriver=True), web(webdriver=False)),
    "headless": (web(plugins=[], outerWidth=0, outerHeight=0), web(outerWidth=0, outerHeight=0)),
    "bot_user_agent": (Visit(user_agent="curl/8.5.0"), app()),
    "spoofed_crawler": (at(GOOGLEBOT), at(GOOGLEBOT, crawlers_of=("Googlebot",))),
    "ai_agent": (at(GPTBOT), at(GOOGLEBOT, crawlers_of=("Googlebot",))),
    "search_crawler": (at(GOOGLEBOT, crawlers_of=("Googlebot",)), at(GPTBOT)),
    "anti_detect_browser": (
        replace(web(**INVENTED), headers={"accept-language": "zh-CN"}), web(platform="Linux x86_64"),
    ),
    "browser_tampering": (
        web(botd={"functionBind": {"state": 0, "value": "function () { return 1 }"}}),
        web(botd={"functionBind": {"state": 0, "value": "function bind() { [native code] }"}}),
    ),
    "os_mismatch": (web(platform="MacIntel"), web(LINUX_CHROME, **LINUX)),
    "engine_mismatch": (web(productSub="20100101"), web(FIREFOX, **LINUX, productSub="20100101", vendor="")),
    "gpu_mismatch": (web(webgl={"vendor": "Google Inc. (Apple)", "renderer": METAL}), web()),
    "developer_tools": (web(developer_tools=True), web(developer_tools=False)),
    "app_tampering": (app(app_tampering=True), app(app_tampering=False)),
    "tor": (at(tor=True), at(vpn=True)),
    "vpn_public": (at(vpn=True), at(hosting=True)),
    "vpn_timezone_mismatch": (at(country_code="JP"), at(country_code="FR")),
    "vpn_os_mismatch": (
        replace(web(), connection_os="Linux 3.11 and newer"), replace(web(), connection_os="Windows NT kernel"),
    ),
    "vpn_auxiliary_mobile": (app(vpn_active=True), app(vpn_active="yes")),
    "vpn_relay": (at(relay=True), at(vpn=True)),
    "vpn_low": (at(country_code="JP"), at(country_code="JP", vpn=True)),
    "vpn_medium": (at(vpn=True), at(country_code="JP")),
    "vpn_high": (at(vpn=True, country_code="JP"), at(vpn=True)),
    "public_proxy": (at(proxy=True), at(hosting=True)),
    "hosting": (at(hosting=True), at(hosting=True, vpn=True)),
    "virtual_machine": (
        web(webgl={"vendor": "VMware, Inc.", "renderer": "SVGA3D; build: RELEASE; LLVM;"}), web(),
    ),
    "emulator": (app(emulator=True), app(emulator=None)),
    "simulator": (app("ios", simulator=True), app("ios", emulator=True)),
    "cloned_app": (app(cloned_app=True), app("ios", cloned_app=True)),
    "rooted": (app(rooted=True), app(rooted=False)),
    "jailbroken": (app("ios", jailbroken=True), app("ios", rooted=True)),
    "frida": (app(frida=True), app(frida=0)),
    "hooked": (app(flags={"hooked": True}), app(flags={"hooked": False})),
    "debugger": (app("ios", debugger=True), app("ios", debugger="no")),
    "developer_options": (app(developer_options=True), app("ios", developer_options=True)),
    "unofficial_store": (app(unofficial_store=True), app("ios", unofficial_store=True)),
    "clock_tampered": (app(collected_at=NOW - 700_000), app(collected_at=NOW - 500_000)),
    "mitm_attack": (app(mitm=True), app(mitm={})),
    "factory_reset": (app(factory_reset_at=NOW - 6 * DAY), app(factory_reset_at=NOW - 8 * DAY)),
    "location_spoofing": (app("ios", location_spoofing=True), app("ios", location_spoofing=[])),
    "incognito": (web(incognito=True), web(incognito=False)),
    "privacy_settings": (
        replace(web(uaData={"brands": [{"brand": "Brave", "version": "140"}]})),
        web(uaData={"brands": [{"brand": "Google Chrome", "version": "140"}]}),
    ),
}  # fmt: skip
"""Signal -> a visit on which it fires, and the nearest one on which it does not."""

SHOWN_ELSEWHERE = {
    "multi_account", "account_testing", "account_sharing", "account_new_device",
    # What a store remembers: beside the identification's transaction.
    "high_activity", "velocity_ip", "velocity_country", "token_conflict", "replayed", "rare_device",
    "residential_proxy_behavior", "residential_proxy_low", "residential_proxy_high", "repeated_report",
    "repeated_rare_report", "network_new_for_visitor",
    # The same of farms, shared keys and proofs: in tests/spec/test_farms.py.
    "storage_renewed", "new_visitor_burst", "key_shared", "proof_failed", "unseen_rendering",
    # What the request lacks of what its browser sends: beside the captures of browsers.
    "forged_report",
    # What lists of the operator say: beside the facts of the network.
    "ip_attack_source", "ip_email_spam", "residential_proxy_listed", "residential_proxy_medium",
    # What a challenge and a chain of certificates prove: beside attestation.
    "attestation_failed", "attestation_missing",
}  # fmt: skip


def test_every_signal_of_the_catalog_is_tested_both_ways():
    assert set(BOTH_WAYS).isdisjoint(SHOWN_ELSEWHERE)
    assert set(BOTH_WAYS) | SHOWN_ELSEWHERE == set(CATALOG)


@pytest.mark.parametrize("signal", BOTH_WAYS)
def test_a_signal_fires_on_what_it_detects(signal: str):
    fires, _ = BOTH_WAYS[signal]
    observation = fires.fired()[signal]
    assert observation.evidence
    assert fires.platform in CATALOG[signal].weights


@pytest.mark.parametrize("signal", BOTH_WAYS)
def test_a_signal_ignores_its_nearest_innocent_case(signal: str):
    _, innocent = BOTH_WAYS[signal]
    assert signal not in innocent.fired()


@pytest.mark.parametrize("signal", BOTH_WAYS)
def test_a_signal_does_not_fire_on_a_platform_without_it(signal: str):
    fires, _ = BOTH_WAYS[signal]
    for platform in ("web", "android", "ios"):
        seen = replace(fires, platform=platform).fired()
        assert seen.keys() <= default_weights(platform).keys()


@pytest.mark.parametrize(
    "visit",
    [
        web(),
        web(LINUX_CHROME, **LINUX),
        web(FIREFOX, **LINUX, productSub="20100101", vendor="", deviceMemory=None, vendorFlavors=[]),
        web(SAFARI, **MAC),
        web(ANDROID, platform="Linux armv81", maxTouchPoints=5, plugins=[], webgl={"renderer": "Adreno (TM) 740"}),
        app(),
        app("ios"),
    ],
    ids=["Windows", "Linux", "Firefox", "Safari", "Android", "Android app", "iOS app"],
)
def test_ordinary_visits_fire_nothing(visit: Visit):
    assert visit.fired() == {}
