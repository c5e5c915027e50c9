"""Crawlers that say whose they are, judged by the address they come from."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from svc.identify.detection import detect, visitor_kind
from svc.identify.identification import Submission, assess
from svc.identify.model import Agent, Network, Report, RequestFacts

BINGBOT = Agent(program="bingbot", crawler="search_crawler", operator="Bingbot")
PUBLISHED = Network(state="enriched", crawlers_of=("Bingbot",), asn_name="Bingbot")
AZURE = Network(state="enriched", hosting=True, asn_name="Microsoft Azure")
MICROSOFT = Network(state="enriched", hosting=True, asn="8075", asn_name="Microsoft Corporation")
ELSEWHERE = Network(state="enriched", hosting=True, asn="24940", asn_name="Hetzner Online GmbH")
HOME = Network(state="enriched")


def fired(network: Network, agent: Agent = BINGBOT) -> tuple[list[str], str]:
    seen = detect(Report(), RequestFacts(ip="81.2.69.160"), agent, network, "web")
    return [observation.signal for observation in seen], visitor_kind(seen, agent, network)


@pytest.mark.parametrize("network", [PUBLISHED, AZURE, MICROSOFT])
def test_bing_is_accepted_from_its_ranges_and_from_the_cloud_that_hides_them(network: Network) -> None:
    assert fired(network) == (["search_crawler"], "search_crawler")


def test_a_crawler_is_accepted_from_a_range_that_is_published_under_another_name_too() -> None:
    """Anthropic publishes that of ClaudeBot with those of its other agents, and a file may be named in another case."""
    network = replace(HOME, crawlers_of=("Anthropic", "bingbot", "Bingbot"))
    assert fired(network) == (["search_crawler"], "search_crawler")


@pytest.mark.parametrize("network", [ELSEWHERE, HOME])
def test_bing_from_anywhere_else_is_spoofed(network: Network) -> None:
    signals, kind = fired(network)
    assert "spoofed_crawler" in signals
    assert kind == "automation"


def test_the_cloud_of_one_operator_is_valid_for_that_operator_only() -> None:
    googlebot = Agent(program="Googlebot", crawler="search_crawler", operator="Googlebot")
    assert "spoofed_crawler" in fired(MICROSOFT, googlebot)[0]


def test_a_crawler_whose_operator_publishes_no_addresses_is_not_spoofed() -> None:
    assert signals_of(Knows("Googlebot")) == {"ai_agent"}
    assert signals_of(Knows("MistralAI")) == {"ai_agent", "spoofed_crawler"}


class Knows:
    """Ranges with the addresses of one operator, none of which anybody comes from."""

    def __init__(self, operator: str) -> None:
        self._operator = operator

    def find(self, _: object, /) -> None:
        return None

    def publishes(self, operator: str, /) -> bool:
        return operator == self._operator


def signals_of(ranges: Knows) -> set[str]:
    sent = Submission(
        request_id=UUID(int=1),
        new_visitor_id="0" * 20,
        at_ms=1_770_000_000_000,
        organization=1,
        key_id="key_" + "0" * 20,
        touched_key=None,
        environment="production",
        sdk_platform=None,
        sdk_version=None,
        origin=None,
        tag=None,
        idempotency=None,
        facts=RequestFacts(ip="81.2.69.160", user_agent="Mozilla/5.0 (compatible; MistralAI-User/1.0)"),
        signals={},
        signals_json=b"{}",
    )
    return {observation.signal for observation in assess(sent, ranges).observations}
