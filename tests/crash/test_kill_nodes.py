"""`kill -9` of nodes and of their database under load: nothing acknowledged is lost, nothing billed twice.

The long form is `python -m bench.kill --nodes`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.killed_nodes import KilledNodes
from tests.support.postgresql import MISSING, Cluster, programs


@pytest.mark.slow(40)
async def test_the_death_of_a_node_of_the_keeper_and_of_the_database_loses_nothing(tmp_path: Path, crash_seed: int):
    """Each once, with a database that syncs."""
    if programs() is None:
        pytest.skip(MISSING)
    cluster = Cluster(durable=True)
    try:
        with cluster.database() as database:
            killed = KilledNodes(tmp_path, cluster, database, crash_seed, print)
            try:
                outcome = await killed.run(3)
            finally:
                killed.end()
    finally:
        cluster.close()
    assert outcome.faults == []
    assert outcome.acknowledged > 50, "the load was too light to show anything"
    assert outcome.acknowledged == outcome.events
    assert outcome.sent_again > 0, "nothing was under way at any kill"
