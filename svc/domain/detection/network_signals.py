"""What the address tells: Tor, VPN, relays, proxies, data centres, reputation, and clocks of another country.

What may live here: checks on network facts. Both modes of weighing a VPN or a residential proxy are observed side by
side; which of them counts is the weights profile's choice (`scoring`).
"""

from __future__ import annotations

from svc.domain.detection.findings import Findings
from svc.domain.detection.programs import comes_from_operator
from svc.domain.detection.timezones import zone_fits_country
from svc.domain.model import Agent, Attribute, Network, Report


def find(report: Report, agent: Agent, network: Network, findings: Findings) -> None:
    """Turn network facts into findings."""
    if network.tor:
        findings.add("tor", "exit_address", "definitive")
    if network.vpn:
        findings.add("vpn_public", "vpn_range")
    if network.relay:
        findings.add("vpn_relay", "relay_range", "definitive")
    if network.proxy:
        findings.add("public_proxy", "proxy_list")
    # Most exits, VPNs and relays, and all crawlers, stand in data centres: that they do tells nothing new, and would
    # bring ordinary privacy behaviour over the threshold.
    explained = network.tor or network.vpn or network.relay
    crawls_from_home = agent.crawler is not None and comes_from_operator(agent, network)
    if network.hosting and not explained and not crawls_from_home:
        findings.add("hosting", "hosting_range")
    if network.residential_proxy:
        findings.add("residential_proxy_listed", "residential_proxy_list")
        findings.add("residential_proxy_medium", "residential_proxy_list")
    if network.attack_source:
        findings.add("ip_attack_source", "attack_list")
    if network.spam_source:
        findings.add("ip_email_spam", "spam_list")
    _weigh_vpn(network, findings, foreign_clock=_has_foreign_clock(report, network, findings))


def _has_foreign_clock(report: Report, network: Network, findings: Findings) -> bool:
    zone = report.claims.timezone
    if zone is None or network.country_code is None or Attribute.TIMEZONE in report.masked:
        return False
    if zone_fits_country(zone, network.country_code) is not False:
        return False
    findings.add("vpn_timezone_mismatch", "timezone_vs_country", "hint")
    return True


def _weigh_vpn(network: Network, findings: Findings, *, foreign_clock: bool) -> None:
    """The confidence mode: one heuristic, one proof, or two (signals.md 2). A relay is no VPN."""
    listed = network.vpn and not network.relay
    if listed and foreign_clock:
        findings.add("vpn_high", "vpn_range")
        findings.add("vpn_high", "timezone_vs_country")
    elif listed:
        findings.add("vpn_medium", "vpn_range")
    elif foreign_clock:
        findings.add("vpn_low", "timezone_vs_country", "hint")
