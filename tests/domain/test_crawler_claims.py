"""Crawlers that say whose they are, judged by the address they come from."""

from __future__ import annotations

import pytest

from svc.domain.detection import detect, visitor_kind
from svc.domain.model import Agent, Network, Report, RequestFacts

BINGBOT = Agent(program="bingbot", crawler="search_crawler", operator="Bingbot")
PUBLISHED = Network(state="enriched", crawler_of="Bingbot", asn_name="Bingbot")
AZURE = Network(state="enriched", hosting=True, asn_name="Microsoft Azure")
MICROSOFT = Network(state="enriched", hosting=True, asn="8075", asn_name="Microsoft Corporation")
ELSEWHERE = Network(state="enriched", hosting=True, asn="24940", asn_name="Hetzner Online GmbH")
HOME = Network(state="enriched")


def fired(network: Network, agent: Agent = BINGBOT) -> tuple[list[str], str]:
    seen = detect(Report(), RequestFacts(ip="81.2.69.160"), agent, network, "web")
    return [observation.signal for observation in seen], visitor_kind(seen, agent, network)


@pytest.mark.parametrize("network", [PUBLISHED, AZURE, MICROSOFT])
def test_bing_is_believed_in_its_ranges_and_in_the_cloud_that_hides_them(network: Network) -> None:
    assert fired(network) == (["search_crawler"], "search_crawler")


@pytest.mark.parametrize("network", [ELSEWHERE, HOME])
def test_bing_from_anywhere_else_is_spoofed(network: Network) -> None:
    signals, kind = fired(network)
    assert "spoofed_crawler" in signals
    assert kind == "automation"


def test_the_cloud_of_one_operator_is_nobody_elses() -> None:
    googlebot = Agent(program="Googlebot", crawler="search_crawler", operator="Googlebot")
    assert "spoofed_crawler" in fired(MICROSOFT, googlebot)[0]
