"""What people do against being identified, and what they open to look behind the page: each innocent by itself.

What may live here: checks on what the report says of private modes, masked values and developer tools.
"""

from __future__ import annotations

from svc.domain.detection.findings import Findings
from svc.domain.model import Report


def detect_privacy(report: Report, findings: Findings) -> None:
    """Add `incognito`, `privacy_settings` (one proof, however many values are masked) and `developer_tools` (signals.md
    2).
    """
    # Firefox refuses private files to a page that may keep nothing, too, and the probe takes that for a private window.
    refused = "probes" in report.collectors and report.claims.cookies is False
    if report.incognito and not refused:
        # The web SDK times how quickly the browser writes to its files: a rule of thumb.
        findings.add("incognito", "private_mode", "hint" if "probes" in report.collectors else "proof")
    for attribute in sorted(report.masked):
        findings.add("privacy_settings", f"masked_{attribute.name.lower()}", "proof", "masked")
    if report.developer_tools:
        findings.add("developer_tools", "developer_tools_open")
