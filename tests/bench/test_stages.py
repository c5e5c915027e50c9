"""The bench of stages measures what it says: whole identifications, of visitors that come back in each of its ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import reports
from bench.profile import FEATURES
from bench.stages import KINDS, Stages, caller, visits
from svc.identify.tables import EVENTS, VISITORS
from svc.kernel.store.directory import open_directory
from svc.world import World
from tests.support.worlds import inline

DEVICES = 3


@pytest.mark.slow(1)
@pytest.mark.parametrize("features", [(), FEATURES], ids=["bare", "full"])
@pytest.mark.parametrize("report", reports.KINDS)
async def test_devices_return_in_each_way_and_are_recognized(
    tmp_path: Path, report: reports.Kind, features: tuple[str, ...]
):
    real = World.real()
    world = World(real.now_ms, real.entropy, inline)
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False)
    try:
        sender, stages = caller(found, world, features), Stages(found, world)
        for round_number, kind in enumerate(("new", *KINDS)):
            todo = visits(sender, DEVICES, round_number, report=report, features=features, at_ms=world.now_ms())
            await stages.identify(todo)
            with found.store.read() as snapshot:
                assert snapshot.count(EVENTS) == DEVICES * (1 + round_number)
                # Seconds later, from another place and without its token, a device may well be another one.
                assert snapshot.count(VISITORS) == DEVICES or kind == "elsewhere"
    finally:
        found.store.close()
    assert {"body", "report", "detection", "transaction", "first phase", "commit", "response"} <= set(stages.cpu_s)
