"""`kill -9` under load: what was acknowledged is there, nothing is billed twice (decisions 3.3, 5.1; reliability R1).

The long form is `python -m bench.kill --identifications`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.acknowledged import killed_under_load


@pytest.mark.slow(2)
async def test_kills_under_load_lose_nothing_and_bill_nothing_twice(tmp_path: Path, crash_seed: int):
    """Five kills at moments that differ from commit to commit."""
    outcome = await killed_under_load(tmp_path, seed=crash_seed, kills=5, tell=print)
    assert outcome.faults == []
    assert outcome.acknowledged > 50, "the load was too light to show anything"
    assert outcome.acknowledged == outcome.events
    assert outcome.cut_off >= outcome.unheard
    assert outcome.cut_off > 0, "nothing was under way at any kill"


@pytest.mark.slow(5)
async def test_the_death_of_a_worker_the_leader_or_the_parent_loses_nothing(tmp_path: Path, crash_seed: int):
    """A worker, the leader and the parent; then keys that reach both workers at once have one first answer each."""
    outcome = await killed_under_load(tmp_path, seed=crash_seed, kills=3, tell=print, workers=2, keys=40)
    assert outcome.faults == []
    assert outcome.acknowledged > 50, "the load was too light to show anything"
    assert outcome.acknowledged == outcome.events
    assert outcome.cut_off > 0, "nothing was under way at any kill"
