"""A client that leaves, and a machine that loses its power, at every point at which a request can be interrupted.

Moments are counted in turns of the loop from several times on: nothing that the service awaits lies between two turns.
A run tries every fourth of them, and of the deaths of two workers a quarter of these; which ones follows from
`--crash-seed` or the commit. `make test-long` tries all.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from svc.identify.tables import EVENTS
from tests.sim.machine import Sabotage
from tests.sim.plan import Change, Client, Crash, Identify, Kill, Plan, Register, Rotate, Shop, Step
from tests.sim.simulation import simulate
from tests.support.effort import effort

TURNS = 32
"""More than any request takes between two moments of time."""
AFTER_S = (0.0, 0.005, 0.015, 0.03)
"""Before, within and after a commit."""
ONE_IN = effort(4, 1)
HOOK = Register(at=0, hook=0, org=0)


def some_turns(seed: int, most: int = TURNS) -> range:
    return range(seed % ONE_IN, most, ONE_IN)


def moments(seed: int) -> list[tuple[float, int]]:
    return [(after_s, turns) for after_s in AFTER_S for turns in some_turns(seed)]


def plan(*steps: Step, workers: int = 1) -> Plan:
    return Plan(5, (Shop(),), tuple(sorted((HOOK, *steps), key=lambda step: step.at)), workers)


@pytest.mark.slow(2)
def test_an_identification_is_completed_whenever_its_client_disconnects(tmp_path: Path, crash_seed: int):
    recorded = count()

    def notes(verb: str, table: object, key: object) -> bool:
        if table is EVENTS and verb == "put":
            next(recorded)
        return False

    tried = moments(crash_seed)
    visits: list[Step] = []
    for number, (after_s, turns) in enumerate(tried):
        client = Client("leaves", after_s, turns)
        visits.append(Identify(at=1 + number, org=0, device=number % 5, client=client))
    outcome = simulate(plan(*visits), tmp_path, sabotage=Sabotage(loses=notes))
    assert outcome.violations == []
    assert next(recorded) == len(tried), "its departure is noticed when the response is written"


@pytest.mark.slow(3)
def test_a_client_that_disconnects_at_any_moment_leaves_an_endpoint_changed_or_unchanged(
    tmp_path: Path, crash_seed: int
):
    tried = moments(crash_seed)
    orders: list[Step] = []
    for number, (after_s, turns) in enumerate(tried):
        at, client = 1 + 200 * number, Client("leaves", after_s, turns)
        orders += [
            Rotate(at=at, hook=0, overlap_hours=number % 3, client=client),
            Change(at=at + 1, hook=0, what=("pause", "resume")[number % 2], client=client),
            Identify(at=at + 0.01, org=0, device=number % 5),
        ]
    assert simulate(plan(*orders), tmp_path).violations == []


@pytest.mark.slow(2)
def test_a_power_cut_at_any_moment_neither_loses_nor_duplicates_acknowledged_data(tmp_path: Path, crash_seed: int):
    steps: list[Step] = []
    for number, (after_s, turns) in enumerate(moments(crash_seed)):
        at = 1 + 10 * number
        steps += [
            Identify(at=at, org=0, device=number % 5, key=number),
            Crash(at=at + after_s, turns=turns, down_s=0.1),
            Identify(at=at + 5, org=0, device=number % 5, key=number),
        ]
    assert simulate(plan(*steps), tmp_path).violations == []


@pytest.mark.slow(2)
def test_a_power_cut_at_any_moment_of_a_delivery_loses_none(tmp_path: Path, crash_seed: int):
    steps: list[Step] = []
    for number in some_turns(crash_seed, 2 * TURNS):
        at = 1 + 10 * number
        steps += [
            Identify(at=at, org=0, device=number % 5, key=number),
            Crash(at=round(at + 0.02 + 0.005 * number, 3), turns=number, down_s=0.1),
        ]
    assert simulate(plan(*steps), tmp_path).violations == []


@pytest.mark.slow
@pytest.mark.parametrize("after_s", AFTER_S)
@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(name, marks=pytest.mark.one_case(f"the death of a {name}"))
        for name in ("worker", "leader", "parent")
    ],
)
def test_either_of_two_workers_their_leader_or_parent_may_die_at_any_moment(
    victim: Literal["worker", "leader", "parent"], after_s: float, tmp_path: Path, crash_seed: int
):
    """Two clients ask at the same time, so that either worker has something to do when one of them dies.

    A run checks the whole store after each death: four small stores take less than a large one.
    """
    steps: list[Step] = []
    for number in some_turns(crash_seed):
        at = 1 + 5 * number
        for device in (number % 5, 5 + number % 7):
            visit = Identify(at=at, org=0, device=device, key=100 * number + device)
            steps += [visit, msgspec.structs.replace(visit, at=at + 3)]
        steps.append(Kill(at=at + after_s, victim=victim, turns=number))
    assert simulate(plan(*steps, workers=2), tmp_path).violations == []
