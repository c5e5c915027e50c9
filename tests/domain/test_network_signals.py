"""Signals of the operator's lists: each fires on its list, and not on an address that is merely beside it."""

from __future__ import annotations

import pytest

from svc.identify.detection import detect
from svc.identify.model import Agent, Network, Report, RequestFacts
from svc.identify.scoring.score import default_profile, score
from svc.kernel.values.fields import Platform


def fired(network: Network, platform: Platform = "web") -> list[str]:
    seen = detect(Report(), RequestFacts(ip="81.2.69.160"), Agent(), network, platform)
    return [observation.signal for observation in seen]


@pytest.mark.parametrize("platform", ["web", "android", "ios"])
@pytest.mark.parametrize(
    ("network", "signals"),
    [
        (Network(state="enriched", attack_source=True), ["ip_attack_source"]),
        (Network(state="enriched", spam_source=True), ["ip_email_spam"]),
        (Network(state="enriched", residential_proxy=True), ["residential_proxy_listed", "residential_proxy_medium"]),
        (Network(state="enriched", asn="3301", asn_name="Telia Company AB", country_code="SE"), []),
        (Network(state="unavailable", reason="no_network_data"), []),
    ],
)
def test_each_list_fires_its_own_signals(network: Network, signals: list[str], platform: Platform) -> None:
    assert fired(network, platform) == signals


def test_an_attacking_tor_exit_fires_both_signals() -> None:
    assert fired(Network(state="enriched", tor=True, attack_source=True)) == ["tor", "ip_attack_source"]


def test_a_listed_residential_proxy_counts_once_in_either_mode() -> None:
    seen = detect(
        Report(), RequestFacts(ip="81.2.69.160"), Agent(), Network(state="enriched", residential_proxy=True), "web"
    )
    assert score(seen, default_profile("web"), "web").score == 15
