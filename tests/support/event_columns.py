"""An event of the API by the columns of the exports and of `svc.sql_events`, as the documentation says that it stands
there.
"""

from __future__ import annotations

from typing import Any

from svc.features.exports.lines import COLUMNS


def as_columns(row: dict[str, Any]) -> dict[str, Any]:
    """A row of GET /events; `None` where it has no value."""
    decision: dict[str, Any] = row.get("decision") or {}
    shaped: dict[str, Any] = {
        "signals": [fired["signal"] for fired in row["signals"]],
        "triggers": [group["signal"] for group in row["triggers"]],
        "decision": decision.get("action"),
        "rule": decision.get("rule"),
    }
    return {name: shaped[name] if name in shaped else row.get(name) for name in COLUMNS}
