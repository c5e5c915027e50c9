"""The whole service under faults, by seed: some short runs here, any number of long ones with `make sim SEEDS=n`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from svc.identify.tables import IDEMPOTENCY
from tests.sim.plan import SCALES, SHORT, Crash, Identify, Jump, Plan, Register, Restart, Shop, make_plan
from tests.sim.shrink import as_test, shrink
from tests.sim.simulation import Outcome, run_seed, simulate
from tests.sim.test_mutations import losing
from tests.support.effort import LONG, effort

SEEDS = range(12)
SEEDS_OF_TWO_WORKERS = range(6)
ROOT = Path(__file__).parents[2]


@cache
def ran(seed: int) -> Outcome:
    """Of the short plan with one worker, which several tests look at."""
    return run_seed(seed, SHORT, tell=traces[seed].append)[1]


traces: defaultdict[int, list[str]] = defaultdict(list)
"""Of seeds that `ran`: all that happened."""


@cache
def told(seed: int, scale: str, workers: int = 1) -> list[str]:
    """All that happens in a run."""
    if (scale, workers) == ("short", 1):
        ran(seed)
        return traces[seed]
    lines: list[str] = []
    run_seed(seed, SCALES[scale], workers, lines.append)
    return lines


@pytest.mark.slow(2)
@pytest.mark.one_case
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_duplicated_or_leaked_whatever_goes_wrong(seed: int):
    outcome = ran(seed)
    assert outcome.violations == [], f"python -m tests.sim --scale short --first {seed} --seeds 1 makes it small"
    assert something_happened(outcome)


@pytest.mark.slow(3)
@pytest.mark.one_case
@pytest.mark.parametrize("seed", SEEDS_OF_TWO_WORKERS)
def test_nothing_is_lost_with_two_workers_and_killed_processes(seed: int, tmp_path: Path):
    plan = make_plan(seed, SHORT, workers=2)
    outcome = simulate(plan, tmp_path)
    assert outcome.violations == [], f"python -m tests.sim --workers 2 --scale short --first {seed} --seeds 1"
    assert something_happened(outcome)
    assert outcome.counts["lives"] > 2 * sum(isinstance(step, Crash | Restart) for step in plan.steps)


def something_happened(outcome: Outcome) -> bool:
    """A run in which nothing happens shows nothing."""
    return outcome.counts["answered 200"] > 10 and outcome.counts["posts"] > 20 and outcome.counts["lives"] > 1


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("scale", "workers"), [("short" if LONG else "tiny", 1), pytest.param("tiny", 2, marks=pytest.mark.long)]
)
def test_the_same_seed_gives_the_same_trace_also_in_another_process(scale: str, workers: int):
    """Names are hashed by another seed in each process: that of this one is drawn at its start."""
    program = (
        "import sys; from tests.sim import plan, simulation as run; "
        "run.run_seed(0, plan.SCALES[sys.argv[1]], int(sys.argv[2]), lambda line: print(repr(line)))"
    )
    lines = list(map(repr, told(0, scale, workers)))
    assert lines
    for seed in ("1", "2")[: effort(1, 2)]:
        elsewhere = subprocess.run(
            [sys.executable, "-c", program, scale, str(workers)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        differing = [pair for pair in zip_longest(lines, elsewhere) if pair[0] != pair[1]]
        assert not differing, f"{len(differing)} lines differ, the first here and there: {differing[:5]}"


@pytest.mark.slow
def test_another_seed_gives_another_trace():
    one, other = (tuple(told(seed, "tiny")) for seed in (0, 1))
    assert one != other


@pytest.mark.slow
def test_a_failing_plan_is_minimized_and_printed_as_a_test(tmp_path: Path):
    steps = (
        Register(at=0, hook=0, org=0),
        Identify(at=1, org=0, device=1),
        Jump(at=2, seconds=60),
        Identify(at=3, org=0, device=2, key=1),
        Crash(at=4),
        Identify(at=9, org=0, device=2, key=1),
    )
    forgetful = losing(IDEMPOTENCY)
    plan = Plan(7, (Shop(),), steps)
    (violation,) = simulate(plan, tmp_path, sabotage=forgetful).violations
    small = shrink(plan, violation, sabotage=forgetful)
    assert small.steps == (steps[3], steps[5])
    namespace: dict[str, Any] = {}
    imports = "from tests.sim.plan import *\nfrom tests.sim.simulation import simulate\n"
    exec(imports + as_test(small, violation), namespace)
    namespace["simulate"] = partial(simulate, sabotage=forgetful)
    with pytest.raises(AssertionError):
        namespace["test_TELL_WHAT_WAS_WRONG"](tmp_path / "again")
