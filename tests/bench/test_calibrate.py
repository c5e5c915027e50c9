"""The times that the simulation is given are found in cells whose times are known."""

from __future__ import annotations

import msgspec
import pytest

from bench import calibrate
from bench.nodes import Cell, Row
from bench.scaling import read_parameters

NODE, DATABASE = calibrate.Line(1.0, 0.5), calibrate.Line(0.1, 0.8)


def row(nodes: int, organizations: int, clients: int, group: float, *, delay_ms: float = 0.0) -> Row:
    """As a machine measures it where these are the costs, and a commit takes 0.7 ms."""
    node, database = (line.each_ms + line.group_ms / group for line in (NODE, DATABASE))
    latency_ms = node + database + 0.1 + 3 * 0.2 + 0.7
    return Row(
        cell=Cell(nodes, organizations, delay_ms, clients),
        rate=1000 * clients / latency_ms,
        p50_ms=latency_ms,
        p99_ms=2 * latency_ms,
        errors=0,
        node_ms=node,
        database_ms=database,
        load_ms=0.1,
        delay_ms=0.0,
        cores=1.0,
        inside=float(clients),
        round_trip_ms=0.2,
        group=group,
        trips=3.0,
        runs=1.0,
        retries=0,
        commit_ms=1.0,
        wait_ms=1.0,
    )


ROWS = [row(1, 1, 32, 20.0), row(1, 32, 32, 1.0), row(2, 1, 64, 25.0, delay_ms=2.0), row(1, 1, 1, 1.0)]


def test_calibration_recovers_the_known_times():
    found = calibrate.calibrated(ROWS, read_parameters())
    assert found.node.cpu_ms + found.node.job_ms == pytest.approx(NODE.each_ms)
    assert found.node.group_ms == pytest.approx(NODE.group_ms)
    assert (found.database.job_ms, found.database.group_ms) == pytest.approx(DATABASE)
    assert found.database.commit_ms == pytest.approx(0.7)


def test_too_few_distinct_cells_are_rejected():
    with pytest.raises(ValueError, match="one client and with several"):
        calibrate.calibrated(ROWS[:3], read_parameters())
    with pytest.raises(ValueError, match="groups of one size"):
        calibrate.calibrated([ROWS[0], ROWS[0], ROWS[3]], read_parameters())


def test_one_client_is_simulated_as_it_was_measured():
    alone = ROWS[3]
    found = calibrate.simulated(alone, calibrate.calibrated(ROWS, read_parameters()), cores=2)
    assert found.p50_ms == pytest.approx(alone.p50_ms)
    assert found.served / found.seconds == pytest.approx(alone.rate, rel=0.01)


def test_clients_wait_for_each_other_on_one_core():
    """By Little's law, and no more than a core can do."""
    times = calibrate.calibrated(ROWS, read_parameters())
    found = calibrate.simulated(ROWS[0], times, cores=1)
    rate = found.served / found.seconds
    each_ms = NODE.each_ms + DATABASE.each_ms + 0.1 + (NODE.group_ms + DATABASE.group_ms) / found.group
    assert rate == pytest.approx(1000 / each_ms, rel=0.05)
    assert rate * found.p50_ms / 1000 == pytest.approx(32, rel=0.1)


def test_the_tables_have_every_cell():
    documented = calibrate.documented([*ROWS, msgspec.structs.replace(ROWS[0], cell=Cell(0, 1, 0.0, 32, 1))])
    assert len(documented) == 2 + 5
    times = calibrate.calibrated(ROWS, read_parameters())
    assert len(calibrate.compared(ROWS[:2], times, 2)) == 2 + 2
    assert calibrate.ceiling(times, 2.0) < calibrate.ceiling(times, 0.5)
