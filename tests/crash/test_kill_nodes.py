"""`kill -9` of nodes and of their database under load: nothing acknowledged is lost, nothing billed twice, and webhooks
arrive at least once. The long forms are `python -m bench.kill --nodes` and `--failover`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.killed_nodes import KilledNodes, Outcome, Victim
from tests.support.postgresql import MISSING, Cluster, programs
from tests.support.standby import Pair

PAUSE_S = 0.15
"""Of each client after an answer: what is sent between two deaths shows nothing, and takes a core."""
needs_postgresql = pytest.mark.skipif(programs() is None, reason=MISSING)


async def killed(directory: Path, seed: int, server: Cluster | Pair, *victims: Victim, **how: Any) -> Outcome:
    try:
        with server.database() as database:
            run = KilledNodes(directory, server, database, seed, print, victims=victims, pause_s=PAUSE_S, **how)
            try:
                outcome = await run.run(len(victims))
            finally:
                run.end()
    finally:
        server.close()
    assert outcome.faults == []
    assert outcome.acknowledged > 20, "the load was too light to show anything"
    assert outcome.acknowledged == outcome.events
    assert outcome.arrivals >= 2 * outcome.with_webhooks > 0
    return outcome


@needs_postgresql
@pytest.mark.slow(17)
@pytest.mark.one_case("deaths of nodes")
async def test_the_death_of_a_node_the_leader_or_the_database_loses_nothing(tmp_path: Path, crash_seed: int):
    """Each once, with a database that syncs."""
    server = Cluster(durable=True)
    outcome = await killed(tmp_path, crash_seed, server, "node", "leader", "database")
    assert outcome.sent_again > 0, "nothing was under way at any kill"


@needs_postgresql
@pytest.mark.slow(6)
@pytest.mark.one_case("deaths of nodes")
async def test_a_failover_to_a_synchronous_standby_loses_nothing(tmp_path: Path, crash_seed: int):
    """Nodes find the new primary by themselves, by the URL that names both."""
    await killed(tmp_path, crash_seed, Pair(), "database")


@needs_postgresql
@pytest.mark.slow(17)
@pytest.mark.one_case("deaths of nodes")
async def test_a_leader_that_was_stopped_and_is_five_minutes_behind_loses_nothing(tmp_path: Path, crash_seed: int):
    """It is stopped for longer than its lease, and goes on."""
    await killed(tmp_path, crash_seed, Cluster(durable=True), "stopped", stop_s=12, clock_off_s=-300)
