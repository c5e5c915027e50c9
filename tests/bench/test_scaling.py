"""The simulation of many nodes: deterministic, and right where the answer is known without it."""

from __future__ import annotations

import msgspec
import pytest

from bench.scaling import DatabaseTimes, NodeTimes, Parameters, Simulation, read_parameters

SMALL = Parameters(
    seed=1,
    seconds=2.0,
    organizations=20,
    zipf=1.0,
    node=NodeTimes(cpu_ms=0.5, job_ms=0.2, group_ms=0.3, batch=10, connections=4, admission=100, owner_part=1.0),
    database=DatabaseTimes(rtt_ms=1.0, group_ms=0.0, job_ms=0.1, commit_ms=1.0, cores=4),
    nodes=2,
    rate=500.0,
)


def with_(**instead: float) -> Parameters:
    return msgspec.structs.replace(SMALL, **instead)


def test_the_same_seed_gives_the_same_outcome_and_another_seed_another():
    one, again, other = (Simulation(with_(seed=seed)).run() for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_every_arriving_request_is_served_or_refused():
    for rate in (100.0, 20_000.0):
        found = Simulation(with_(rate=rate, seconds=0.5)).run()
        assert found.offered == found.served + found.refused == sum(share.offered for share in found.shares)


def test_without_load_the_latency_is_that_of_one_identification():
    found = Simulation(with_(rate=5.0, seconds=20.0)).run()
    assert found.p50_ms == pytest.approx(0.5 + 0.2 + 0.3 + 3 * 1.0 + 0.1 + 1.0)


def test_the_rate_of_one_organization_is_limited_by_its_fence_whatever_the_node_count():
    """A full group holds it for two round trips, ten jobs on either side, two thirds of its time on the node, and the
    commit: 10 in 6.2 ms.
    """
    for nodes in (4, 8):
        found = Simulation(with_(nodes=nodes, organizations=1, rate=6_000.0, seconds=1.0)).run()
        assert found.refused > 0
        assert found.served / found.seconds == pytest.approx(
            10 / 0.0062, rel=0.2
        )  # what waits at the end is served, too


def test_a_large_organization_delays_the_others_less_where_it_goes_to_few_nodes():
    everywhere, few = (
        Simulation(with_(nodes=20, organizations=200, rate=6_000.0, seconds=0.6, spread=spread)).run()
        for spread in (0, 2)
    )
    assert few.shares[-1].p99_ms < everywhere.shares[-1].p99_ms


def test_the_parameters_in_the_folder_can_be_read_and_overridden():
    assert read_parameters(nodes=3).nodes == 3
    assert read_parameters().organizations == 10_000
