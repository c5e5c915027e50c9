"""Power loss (decisions 3.3): the long form is `python -m bench.power`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.disk import NoCompiler
from bench.power import Recording, Run, judge
from tests.support.effort import effort

STATES = effort(30, 100)
REQUESTS = effort(40, 60)


def recorded(directory: Path, requests: int, control: str | None = None) -> Recording:
    try:
        return Run(directory, control).make(requests)
    except NoCompiler as missing:
        pytest.skip(str(missing))


@pytest.mark.slow(7)
def test_a_power_loss_neither_loses_acknowledged_data_nor_leaves_partial_writes(tmp_path: Path):
    recording = recorded(tmp_path, requests=REQUESTS)
    assert recording.nameless == []
    outcome = judge(recording, STATES, seed=1, scratch=tmp_path)
    assert outcome.wrong == []
    assert outcome.whole > STATES * 9 // 10
    assert outcome.promises > STATES * 100, "too little was promised to show anything"


@pytest.mark.slow(4)
@pytest.mark.one_case
@pytest.mark.parametrize("control", ["metasync", "sync"])
def test_without_a_safeguard_of_the_store_power_losses_are_detected(tmp_path: Path, control: str):
    """That this proof can fail: the same run with one of LMDB's flags off loses what was acknowledged."""
    lost = "acknowledged, and lost"
    outcome = judge(recorded(tmp_path, requests=30, control=control), 50, seed=1, scratch=tmp_path, until=lost)
    assert any(lost in said for said in outcome.wrong)
