"""`kill -9` under load, with receivers that fail: every webhook arrives or is listed as failed (reliability R2).

The long form is `python -m bench.kill`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.killed import RECEIVERS, Killed


@pytest.mark.slow(5)
@pytest.mark.one_case("deaths while sending")
async def test_kills_under_load_lose_no_webhook_and_repeat_only_what_was_in_flight(tmp_path: Path, crash_seed: int):
    outcome = await Killed(tmp_path, seed=crash_seed, failing_arrivals=1, tell=print).run(4)
    assert outcome.faults == []
    assert outcome.acknowledged > 10, "the load was too light to show anything"
    assert outcome.deliveries == outcome.events * RECEIVERS
    assert outcome.recovered == outcome.failed > 0
