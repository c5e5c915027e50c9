"""From one report and what is known around it to the signals observed, before any weight is applied.

What may live here: the order in which the subjects look at a report. The subjects are modules of this package; signals
that need history (velocity, replay, rarity, conflicting tokens) are decided in the identification's transaction.
"""

from __future__ import annotations

from svc.identify.detection import automation, botd, forged, graphics, network_signals, sdk_flags, tampering
from svc.identify.detection.claimed import read_claimed
from svc.identify.detection.findings import Findings
from svc.identify.detection.network_signals import visitor_kind
from svc.identify.model import Agent, Network, Observation, Report, RequestFacts
from svc.kernel.values.fields import Platform

__all__ = ["detect", "visitor_kind"]


def detect(
    report: Report,
    facts: RequestFacts,
    agent: Agent,
    network: Network,
    platform: Platform,
    at_ms: int | None = None,
    sdk_version: str | None = None,
) -> tuple[Observation, ...]:
    """Return the signals observed, at most one observation each, in catalog order; only those that `platform` knows.

    `at_ms` is when the request arrived, for what happened lately; without it only the report's own clock counts.
    `sdk_version` is that of the SDK which made the report, as it says.
    Total: a hostile report is at worst silent. Observations carry no weight, so signals of both VPN modes may be among
    them, as may signals that weigh 0.
    """
    findings = Findings()
    network_signals.detect_programs(facts, agent, network, platform, findings)
    claimed = read_claimed(facts.user_agent or report.claims.user_agent)
    network_signals.detect_network_signals(report, facts, agent, network, claimed, findings)
    sdk_flags.detect_privacy(report, findings)
    if report.botd:
        botd.detect_botd(report.botd, findings)
    if platform == "web":
        graphics.detect_graphics(report.claims, claimed, findings)
        tampering.detect_tampering(report, facts, claimed, findings)
        automation.detect_automation(report, facts, claimed, findings)
        forged.detect_forged(report, facts, agent, claimed, findings, at_ms, sdk_version)
        tampering.conclude(findings)
    else:
        automation.find_flag(report, findings)
        tampering.compare_sdk(report, platform, claimed, findings)
        sdk_flags.detect_device(report, at_ms, findings)
    return findings.observations(platform)
