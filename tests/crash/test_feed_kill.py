"""A consumer of the feed, or of changes, that is killed beside writers misses nothing and gets nothing twice (ADR 130,
221). The long form is `python -m bench.feed --kills 200`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.change_kills import ChangeKills
from tests.support.feed_kills import FeedKills, Outcome, killed_on_nodes, killed_on_workers
from tests.support.postgresql import MISSING, programs

KILLS = 8
PAUSE_S = 0.05


def assert_each_once(outcome: Outcome) -> None:
    assert outcome.faults == []
    assert outcome.acknowledged > 20, "the load was too light to show anything"
    assert outcome.read >= outcome.acknowledged
    assert outcome.while_reading > 0, "nobody was killed while it read"


KINDS = pytest.mark.parametrize("kind", [FeedKills, ChangeKills])


@KINDS
@pytest.mark.slow(12)
@pytest.mark.one_case("deaths while sending")
def test_a_consumer_killed_beside_two_workers_reads_each_event_once(
    tmp_path: Path, crash_seed: int, kind: type[FeedKills]
):
    assert_each_once(killed_on_workers(kind, tmp_path / "data", KILLS, crash_seed, PAUSE_S))


@pytest.mark.skipif(programs() is None, reason=MISSING)
@KINDS
@pytest.mark.slow(15)
@pytest.mark.one_case("deaths while sending")
def test_a_consumer_killed_beside_two_nodes_reads_each_event_once(
    tmp_path: Path, crash_seed: int, kind: type[FeedKills]
):
    assert_each_once(killed_on_nodes(kind, tmp_path / "data", KILLS, crash_seed, PAUSE_S))
