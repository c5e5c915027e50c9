"""Who asks, and from where: programs that name themselves, and what the address tells of tunnels, data centers, its
reputation, and clocks of another country.

What may live here: checks on what the user agent was read as and on network facts, and the kind of visitor that follows
from everything observed (docs: useragents.md). Both modes of weighing a VPN or a residential proxy are observed side by
side; which of them counts is the weights profile's choice (`scoring`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from svc.identify.detection.claimed import Claimed, system_of_connection
from svc.identify.detection.findings import Findings
from svc.identify.model import Agent, Attribute, Network, Observation, Report, RequestFacts, VisitorKind
from svc.identify.network.timezones import zone_fits_country
from svc.kernel.values.fields import Platform


def detect_programs(
    facts: RequestFacts, agent: Agent, network: Network, platform: Platform, findings: Findings
) -> None:
    """Add `search_crawler`, `ai_agent`, `spoofed_crawler`, `bot_user_agent` by the program in the user agent."""
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
    """Return whether the crawler's operator publishes the address, or its cloud has it; `False` without one."""
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


def detect_network_signals(
    report: Report, facts: RequestFacts, agent: Agent, network: Network, claimed: Claimed, findings: Findings
) -> None:
    """Add the signals of the address and the connection: `tor`, VPN, proxies, `hosting` and others."""
    if network.tor:
        findings.add("tor", "exit_address", "definitive")
    if network.vpn:
        findings.add("vpn_public", "vpn_range")
    if network.relay:
        findings.add("vpn_relay", "relay_range", "definitive")
    if network.proxy:
        findings.add("public_proxy", "proxy_list")
    # Most exits, VPNs and relays, and all crawlers, stand in data centers: that they do tells nothing new, and would
    # bring ordinary privacy behavior over the threshold.
    explained = network.tor or network.vpn or network.relay
    crawls_from_home = agent.crawler is not None and comes_from_operator(agent, network)
    if network.hosting and not explained and not crawls_from_home:
        findings.add("hosting", "hosting_range")
    _find_listed(network, findings)
    hints: list[str] = []
    if _has_foreign_clock(report, network):
        findings.add("vpn_timezone_mismatch", "timezone_vs_country", "hint")
        hints.append("timezone_vs_country")
    if _is_of_another_system(facts, agent, claimed):
        findings.add("vpn_os_mismatch", "connection_vs_user_agent", "hint")
        hints.append("connection_vs_user_agent")
    _weigh_vpn(network, findings, hints)


def _find_listed(network: Network, findings: Findings) -> None:
    """Report what the operator's lists say of the address."""
    if network.residential_proxy:
        findings.add("residential_proxy_listed", "residential_proxy_list")
        findings.add("residential_proxy_medium", "residential_proxy_list")
    if network.attack_source:
        findings.add("ip_attack_source", "attack_list")
    if network.spam_source:
        findings.add("ip_email_spam", "spam_list")


def _has_foreign_clock(report: Report, network: Network) -> bool:
    zone = report.claims.timezone
    if zone is None or network.country_code is None or Attribute.TIMEZONE in report.masked:
        return False
    return zone_fits_country(zone, network.country_code) is False


def _is_of_another_system(facts: RequestFacts, agent: Agent, claimed: Claimed) -> bool:
    """Return whether the connection, as of a tunnel's far end, shows another system than the browser claims."""
    seen = system_of_connection(facts.connection_os)
    return seen is not None and agent.program is None and claimed.system is not None and claimed.system != seen


def _weigh_vpn(network: Network, findings: Findings, hints: list[str]) -> None:
    """Report a VPN with the confidence of one heuristic, one proof, or both (docs/signals.md). A relay is not a VPN."""
    if network.vpn and not network.relay:
        signal = "vpn_high" if hints else "vpn_medium"
        for evidence in ("vpn_range", *hints):
            findings.add(signal, evidence)
    elif hints:
        for evidence in hints:
            findings.add("vpn_low", evidence, "hint")
