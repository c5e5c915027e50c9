"""A consumer of the feed, or of changes, that is killed beside writers misses nothing and gets nothing twice (ADR 130,
221). The long form is `python -m bench.feed --kills 200`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.change_kills import ChangeKills
from tests.support.feed_kills import FeedKills, Outcome
from tests.support.postgresql import MISSING, Cluster, programs
from tests.support.process import Served, run_json

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
def test_on_two_workers(tmp_path: Path, crash_seed: int, kind: type[FeedKills]):
    data = tmp_path / "data"
    run_json("org", "create", "first", "--data", str(data))
    server = Served(data, SVC_WORKERS="2")
    workers = server.workers()
    try:
        server.wait_until_said("serving", 2)
        assert_each_once(kind(data, [server.port], crash_seed, PAUSE_S).run(KILLS))
    finally:
        server.kill_all(workers)


@pytest.mark.skipif(programs() is None, reason=MISSING)
@KINDS
@pytest.mark.slow(15)
@pytest.mark.one_case("deaths while sending")
def test_on_two_nodes(tmp_path: Path, crash_seed: int, kind: type[FeedKills]):
    cluster = Cluster()
    try:
        with cluster.database() as database:
            data, url = tmp_path / "data", str(cluster.url(database))
            run_json("org", "create", "first", "--data", str(data), SVC_STORE=url)
            nodes = [Served(data, SVC_STORE=url) for _ in range(2)]
            try:
                ports = [node.port for node in nodes]
                assert_each_once(kind(data, ports, crash_seed, PAUSE_S, SVC_STORE=url).run(KILLS))
            finally:
                for node in nodes:
                    node.kill()
    finally:
        cluster.close()
