"""The vectors of `clients/vectors`, and the reference that writes them."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "clients" / "vectors"
LEAST = {
    "retry": 40, "errors": 30, "canonical": 40, "report": 20, "deferred": 15, "token": 10,
    "attestation": 15, "engine": 60, "apps": 120, "proof": 6, "check": 140, "verdict": 320, "webhook": 160,
    "responses": 800, "hostile": 40,
    "testing": 40,
}  # fmt: skip
"""File -> the fewest cases that it has."""
KINDS = {
    "send", "response", "canonical", "report", "deferred", "token", "client_data_hash", "android_claim", "ios_key",
    "engine", "app_request", "app_refusal", "app_visits", "proof", "check", "message", "wait", "visitor_headers",
    "verdict", "webhook",
    "event", "refusal", "retry_after", "keys", "page", "hostile",
    "testing",
}  # fmt: skip


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a file as they are written."""
    read = json.loads((FOLDER / f"{name}.json").read_text())
    assert read["format"] == 1
    return read["cases"]


def reference(module: str = "reference") -> Any:
    """A module of the reference, which is a folder of programs and no package."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(module)
