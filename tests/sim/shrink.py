"""A failing plan made small: steps are left out as long as it still fails in the same way (delta debugging)."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tests.sim.machine import Sabotage
from tests.sim.plan import Plan, Step
from tests.sim.simulation import SOUND, simulate

RUNS = 300
"""Tries, at most."""


def kind(violation: str) -> str:
    """What it says, without whom: two runs never agree on ids and times."""
    return re.sub(r"[0-9a-f]{8}-[-0-9a-f]+|\w*\d\w*|'[^']*'", "", violation)


def shrink(plan: Plan, violation: str, sabotage: Sabotage = SOUND) -> Plan:
    """The plan with as few of its steps as `RUNS` tries find, such that this kind of violation is still among them."""
    tries = 0

    def fails(steps: Sequence[Step]) -> bool:
        nonlocal tries
        if tries >= RUNS:
            return False
        tries += 1
        with tempfile.TemporaryDirectory() as directory:
            fewer = msgspec.structs.replace(plan, steps=tuple(steps))
            outcome = simulate(fewer, Path(directory), sabotage=sabotage)
        return any(kind(other) == kind(violation) for other in outcome.violations)

    return msgspec.structs.replace(plan, steps=tuple(_fewest(list(plan.steps), fails)))


def _fewest(steps: list[Step], fails: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """ddmin: leave out ever smaller parts, and begin again with what is left whenever that still fails."""
    size = max(len(steps) // 2, 1)
    while steps:
        for start in range(0, len(steps), size):
            rest = steps[:start] + steps[start + size :]
            if rest and fails(rest):
                steps = rest
                break
        else:
            if size == 1:
                return steps
            size = max(size // 2, 1)
    return steps


def as_test(plan: Plan, violation: str) -> str:
    """Something to paste into `test_regressions.py`."""
    steps = "\n".join(f"            {step!r}," for step in plan.steps)
    return (
        f"def test_TELL_WHAT_WAS_WRONG(tmp_path: Path):\n"
        f"    # {violation}\n"
        f"    plan = Plan(\n"
        f"        seed={plan.seed},\n"
        f"        shops={plan.shops!r},\n"
        f"        steps=(\n{steps}\n        ),\n"
        f"        workers={plan.workers},\n"
        f"    )\n"
        f"    assert simulate(plan, tmp_path).violations == []\n"
    )
