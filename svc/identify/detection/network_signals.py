"""What the address tells: Tor, VPN, relays, proxies, data centers, reputation, and clocks of another country.

What may live here: checks on network facts. Both modes of weighing a VPN or a residential proxy are observed side by
side; which of them counts is the weights profile's choice (`scoring`).
"""

from __future__ import annotations

from svc.identify.detection.claimed import Claimed, system_of_connection
from svc.identify.detection.findings import Findings
from svc.identify.detection.programs import comes_from_operator
from svc.identify.model import Agent, Attribute, Network, Report, RequestFacts
from svc.identify.network.timezones import zone_fits_country


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
