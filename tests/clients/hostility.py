"""What a service that misbehaves (`clients/vectors/hostile.py`) is to a library, and what must come of it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.clients.vectors import cases

CASES = {case["given"]["behavior"]: case for case in cases("hostile")}
_GIVEN = next(iter(CASES.values()))["given"]
TIMEOUT_MS, DEADLINE_MS = _GIVEN["timeout_ms"], _GIVEN["deadline_ms"]
Told = dict[str, tuple[str, float]]
"""Behavior -> the result, and milliseconds."""


def places(service: str, run: str) -> dict[str, str]:
    """Behavior -> the address of a service that has it."""
    return {name: f"{service}/{run}/{name.replace(' ', '_')}" for name in CASES}


def agrees(service: str, run: str, told: Told, *, is_recipe: bool = False) -> None:
    """Fails by what differs from the table."""
    with urllib.request.urlopen(f"{service}/{run}") as response:
        counts: dict[str, int] = json.load(response)
    wrong: dict[str, Any] = {}
    for name, case in CASES.items():
        expect, (result, took_ms) = case["expect"], told[name]
        least, most = expect["ms"]
        attempts = 1 if is_recipe else expect["attempts"]
        is_right = result in expect["once" if is_recipe else "results"] and (is_recipe or took_ms >= least)
        if not is_right or took_ms > most or attempts not in (None, counts.get(name)):
            wrong[name] = (result, round(took_ms), counts.get(name))
    assert wrong == {}, wrong


def in_lines(printed: str) -> Told:
    """What a program says in lines of `hostile`, behavior, result and milliseconds, by tabs."""
    lines = [line.split("\t") for line in printed.splitlines() if line.startswith("hostile\t")]
    return {name: (result, float(ms)) for _, name, result, ms in lines}
