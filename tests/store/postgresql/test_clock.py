"""A node's clock beside the database's: it is said how far it is off, and no slow answer is taken for that."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from svc.cli.serve import health_checks
from svc.cli.serve.health_checks import Examined
from svc.kernel.config import Config
from svc.kernel.store.postgresql.cluster.leases import FAR_S, ClockOffset, offset_now_s, offset_s
from svc.kernel.store.postgresql.cluster.nodes import Node
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.world import World
from tests.store.postgresql.nodes import connecting, with_schema
from tests.support.postgresql import Cluster


@pytest.mark.parametrize(
    ("sent", "database", "answered", "seconds"),
    [
        (1_000, 1_001, 1_002, 0),
        (1_000, 1_000, 1_000, 0),
        (1_000, 60_000, 90_000, 0),  # an answer that took 89 seconds
        (301_000, 1_000, 301_002, 300),
        (1_000, 301_002, 1_002, -300),
    ],
)
def test_a_clock_offset_is_what_the_round_trip_does_not_explain(
    sent: int, database: int, answered: int, seconds: float
):
    assert offset_s(sent, database, answered) == seconds


async def test_a_node_logs_when_its_clock_differs_from_the_databases_and_when_it_no_longer_does(
    cluster: Cluster, database: str
):
    url, off_ms = with_schema(cluster.url(database)), 0
    node = node_with_clock(url, clock := ClockOffset(lambda: time.time_ns() // 1_000_000 + off_ms))
    for off_ms, far in ((0, False), (-300_000, True), (-300_000, True), (300_000, True), (3_000, False)):
        with capture_logs() as logs:
            was_far = clock.is_far
            await node.beat()
        assert node.statistics().clock_offset_s == pytest.approx(off_ms / 1000, abs=FAR_S / 2)
        assert clock.is_far == far
        assert [line["event"] for line in logs if "clock" in line["event"]] == {
            (False, True): ["the clock is far from the database's"],
            (True, False): ["the clock is the database's again"],
        }.get((was_far, far), [])
    node.close()


def node_with_clock(url: StoreUrl, clock: ClockOffset) -> Node:
    return Node(connecting(url), "a", [], jitter=lambda: 0.5, clock=clock)


def test_commands_may_query_too(cluster: Cluster, database: str):
    url = cluster.url(database)
    now = lambda: time.time_ns() // 1_000_000  # noqa: E731
    assert abs(offset_now_s(url, now)) < FAR_S
    assert offset_now_s(url, lambda: now() + 300_000) == pytest.approx(300, abs=FAR_S)


@pytest.mark.parametrize(
    ("off_s", "status", "says"),
    [(0, "ok", "UTC"), (300, "problem", "300 s ahead of the database"), (-300, "problem", "300 s behind the database")],
)
def test_the_doctor_names_a_clock_that_is_far_off(
    cluster: Cluster, database: str, tmp_path: Path, off_s: int, status: str, says: str
):
    world = World.real()
    world.now_ms = lambda: time.time_ns() // 1_000_000 + 1000 * off_s
    examined = Examined(tmp_path, None, Config(store=str(cluster.url(database))), None, world)
    found = health_checks.clock(examined, lambda: True)
    assert found.status == status
    assert says in found.says
