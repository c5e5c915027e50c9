"""Visitors that say themselves that they are programs, and whether crawlers come from where they should.

What may live here: checks on what the user agent was read as, and the kind of visitor that follows from everything
observed (docs: useragents.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from svc.identify.detection.findings import Findings
from svc.identify.model import Agent, Network, Observation, RequestFacts, VisitorKind
from svc.kernel.values.fields import Platform


def detect_programs(
    facts: RequestFacts, agent: Agent, network: Network, platform: Platform, findings: Findings
) -> None:
    """Add `search_crawler`, `ai_agent`, `spoofed_crawler` and `bot_user_agent` by the program that the user agent
    names.
    """
    spoofed = agent.crawler is not None and _is_spoofed(agent, network)
    if spoofed:
        findings.add("spoofed_crawler", "address_not_of_operator")
    if agent.crawler == "ai_bot":
        verified = comes_from_operator(agent, network)
        findings.add("ai_agent", "ai_user_agent", "definitive" if verified else "proof")
    elif agent.crawler == "search_crawler":
        if agent.operator is None:
            findings.add("search_crawler", "crawler_user_agent")
        elif agent.operator in network.crawlers_of:
            findings.add("search_crawler", "address_of_operator", "definitive")
        elif comes_from_operator(agent, network):
            findings.add("search_crawler", "cloud_of_operator")
    elif agent.program is not None and not _is_an_apps_own(facts, agent, platform):
        findings.add("bot_user_agent", "program_user_agent", "definitive")


def visitor_kind(observations: Sequence[Observation], agent: Agent, network: Network) -> VisitorKind:
    """Return the kind of visitor (interface 2.3). A crawler that is what it claims stays one, although it runs without
    a window; one that is not counts as `automation`.
    """
    fired = frozenset(observation.signal for observation in observations)
    if agent.crawler == "search_crawler":
        genuine = agent.operator is None or comes_from_operator(agent, network)
        return "search_crawler" if genuine else "automation"
    if agent.crawler == "ai_bot":
        return "ai_bot"
    driven = "automation" in fired or "headless" in fired or "bot_user_agent" in fired
    return "automation" if driven else "human"


_CLOUDS = {"Bingbot": "Microsoft"}
"""Operator whose crawler shares ranges with its own cloud -> prefix of the names of that network."""


def comes_from_operator(agent: Agent, network: Network) -> bool:
    """Return whether the address is one that the crawler's operator publishes, or of the cloud that it uses; `False`
    without an operator.
    """
    if agent.operator is None:
        return False
    cloud = _CLOUDS.get(agent.operator)
    in_cloud = cloud is not None and network.asn_name is not None and network.asn_name.startswith(cloud)
    return agent.operator in network.crawlers_of or in_cloud


def _is_spoofed(agent: Agent, network: Network) -> bool:
    """Return whether a crawler's address is not its operator's. That is known only if it was looked up, or is private:
    operators publish no private addresses.
    """
    if agent.operator is None or comes_from_operator(agent, network):
        return False
    return network.state == "enriched" or network.reason == "private_address"


_APP_LIBRARIES = re.compile(
    r"\b(?:okhttp|dalvik|cfnetwork|alamofire|ktor|dart|cronet|volley|expo|unityplayer)\b|\bdarwin/"
    r"|^apache-httpclient/unavailable\b",
    re.IGNORECASE,
)
"""Libraries that send for apps. Not those of Java on a computer (`Java/17`, `Java-http-client/17`,
`Apache-HttpClient/4.5`): Android's own calls itself Dalvik, and its old Apache client says that its version is
unavailable.
"""
_LOOKED_AT = 256
"""Characters of a user agent that are searched."""


def _is_an_apps_own(facts: RequestFacts, agent: Agent, platform: Platform) -> bool:
    """Return whether apps send this user agent by default: that of an HTTP library, or a bare name of their own."""
    if platform == "web" or facts.user_agent is None:
        return False
    return agent.is_bare_name or _APP_LIBRARIES.search(facts.user_agent[:_LOOKED_AT]) is not None
