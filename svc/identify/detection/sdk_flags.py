"""What an SDK found by itself: private modes, masked values and developer tools in a browser; rooted devices, emulators
and instrumentation around an app.

What may live here: the step from an SDK's flags and times to signals. The SDK looked, not we: its word is one proof, so
the confidence is medium. Each thing that people do against being identified is innocent by itself. Two flags leave no
room for another explanation and are definitive: an instrumentation toolkit inside the app, and the simulator, which a
build for it knows itself to be. An intercepted connection is not one of them, since companies look into the connections
of their own phones.
"""

from __future__ import annotations

from svc.identify.detection.findings import Findings
from svc.identify.model import Report
from svc.identify.report.native import FLAGS

SIGNALS = {**{flag: flag for flag in FLAGS}, "mitm": "mitm_attack", "vpn_active": "vpn_auxiliary_mobile"}
"""Flag of a report -> its signal."""
_DEFINITIVE = frozenset({"frida", "simulator"})

CLOCK_WRONG_MS = 10 * 60 * 1000
"""How far the device's clock may be from ours. An SDK sends a report within seconds, its retries included."""
RECENT_MS = 7 * 24 * 3600 * 1000
"""How long a factory reset is recent (docs/signals.md)."""


def detect_device(report: Report, at_ms: int | None, findings: Findings) -> None:
    """Add the findings of native SDKs: one for each known flag, `factory_reset` for a reset shortly before `at_ms`, and
    `clock_tampered` where the device's clock showed another time. The catalog knows which exist on a platform.
    """
    for name in report.device_flags:
        if name in SIGNALS:
            findings.add(SIGNALS[name], f"sdk_{name}", "definitive" if name in _DEFINITIVE else "proof")
    if _was_reset_lately(report, at_ms):
        findings.add("factory_reset", "sdk_factory_reset_at")
    collected_ms = report.collected_at_ms
    if collected_ms is not None and at_ms is not None and abs(at_ms - collected_ms) > CLOCK_WRONG_MS:
        findings.add("clock_tampered", "collected_at_vs_arrival")


def _was_reset_lately(report: Report, at_ms: int | None) -> bool:
    """Return whether the device was reset lately: by its own clock, or by ours if the report has no time."""
    now_ms = at_ms if report.collected_at_ms is None else report.collected_at_ms
    if report.factory_reset_at_ms is None or now_ms is None:
        return False
    return 0 <= now_ms - report.factory_reset_at_ms < RECENT_MS


def detect_privacy(report: Report, findings: Findings) -> None:
    """Add `incognito`, `privacy_settings` (one proof for all masked values) and `developer_tools` (signals.md 2)."""
    # Firefox refuses private files to a page that may keep nothing, too, and the probe takes that for a private window.
    refused = "probes" in report.collectors and report.claims.cookies is False
    if report.incognito and not refused:
        # The web SDK times how quickly the browser writes to its files: a rule of thumb.
        findings.add("incognito", "private_mode", "hint" if "probes" in report.collectors else "proof")
    for attribute in sorted(report.masked):
        findings.add("privacy_settings", f"masked_{attribute.name.lower()}", "proof", "masked")
    if report.developer_tools:
        findings.add("developer_tools", "developer_tools_open")
