"""What the cells of `bench.nodes` come to: a table for docs/internals/nodes.md, the times for `bench/scaling.toml`, and
what the simulation makes of the same cells.

    python -m bench.nodes --json nodes.json && python -m bench.calibrate nodes.json

Times are found from the cells themselves: CPU for an identification is a part of its own and its share of a group's, so
a line is fitted through CPU and 1/group, once for nodes and once for the database. What one client's identification
takes beyond CPU and round trips is the commit. Nothing is fitted to rates or latencies. With the times of the file the
simulation runs the cells on a machine of so many cores; with those of `bench/scaling.toml` it computes what larger
machines would do.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.nodes import DELAYS_MS, Report, Row
from bench.scaling import Outcome, Parameters, Simulation, read_parameters
from svc.store.postgresql.turns import GROUP_LIMIT

UNDER_FENCE = 0.36
"""Part of a node's CPU for an identification that passes while the fence is held: `transaction` and `first phase` of
`python -m bench.stages --report large`, 0.61 of 1.46 ms for visitors who return with their token, 0.25 ms for HTTP."""
TRIPS = 3
SIMULATED_S = 10.0


class Line(NamedTuple):
    """A cost: of an identification, and of a group."""

    each_ms: float
    group_ms: float


def fitted(rows: Sequence[Row], cost: Callable[[Row], float]) -> Line:
    """By least squares over 1/group. Raises `ValueError` where all groups are of one size."""
    shares = [1 / row.group for row in rows]
    costs = [cost(row) for row in rows]
    middle, level = sum(shares) / len(rows), sum(costs) / len(rows)
    spread = sum((share - middle) ** 2 for share in shares)
    if not spread:
        raise ValueError("groups of one size say nothing about what a group costs")
    slope = sum((share - middle) * (value - level) for share, value in zip(shares, costs, strict=True)) / spread
    return Line(level - slope * middle, slope)


def calibrated(rows: Sequence[Row], given: Parameters) -> Parameters:
    """`given` with the times of these cells. Raises `ValueError` where a kind of cell is missing."""
    loaded = [row for row in rows if row.cell.nodes and row.cell.clients > 1 and row.group]
    alone = [row for row in rows if row.cell.nodes and row.cell.clients == 1]
    if not loaded or not alone:
        raise ValueError("needs cells with one client and with several")
    node = fitted(loaded, lambda row: row.node_ms)
    database = fitted(loaded, lambda row: row.database_ms)
    beyond_cpu = min(
        row.p50_ms - row.node_ms - row.database_ms - row.load_ms - row.delay_ms - TRIPS * row.round_trip_ms
        for row in alone
    )
    return msgspec.structs.replace(
        given,
        node=msgspec.structs.replace(
            given.node,
            cpu_ms=node.each_ms * (1 - UNDER_FENCE),
            job_ms=node.each_ms * UNDER_FENCE,
            group_ms=node.group_ms,
            batch=GROUP_LIMIT,
        ),
        database=msgspec.structs.replace(
            given.database, group_ms=database.group_ms, job_ms=database.each_ms, commit_ms=max(0.0, beyond_cpu)
        ),
    )


def simulated(row: Row, times: Parameters, cores: int) -> Outcome:
    """The cell, with all of it on one machine."""
    cell = row.cell
    return Simulation(
        msgspec.structs.replace(
            times,
            seconds=SIMULATED_S,
            organizations=cell.organizations,
            zipf=0.0,
            nodes=cell.nodes,
            clients=cell.clients,
            client_ms=row.load_ms,
            machine_cores=cores,
            database=msgspec.structs.replace(times.database, rtt_ms=row.round_trip_ms),
        )
    ).run()


def ceiling(times: Parameters, round_trip_ms: float) -> float:
    """Identifications a second of one organization: a full group in the time for which it holds the fence, on a node
    that has nothing else to do.
    """
    node, database = times.node, times.database
    held_ms = 2 * (round_trip_ms + node.group_ms / 3) + database.group_ms + database.commit_ms
    return 1000 * node.batch / (held_ms + node.batch * (node.job_ms + database.job_ms))


def documented(rows: Sequence[Row]) -> list[str]:
    """The lines of the table of docs/internals/nodes.md: a row for each place, a column for each delay."""
    places: dict[tuple[str, int, int], dict[float, Row]] = {}
    for row in rows:
        cell = row.cell
        name = str(cell.nodes) if cell.nodes else "LMDB" if cell.workers == 1 else f"LMDB, {cell.workers} workers"
        places.setdefault((name, cell.organizations, cell.clients), {})[cell.delay_ms] = row
    delays = [f"{delay:g} ms" for delay in DELAYS_MS[1:]]
    names = ("nodes", "organizations", "clients", "0 ms: rate/s; p50, p99 ms", *delays, "CPU: node, database", "group")
    lines = ["| " + " | ".join(names) + " |", "|---" + "|---:" * (len(names) - 1) + "|"]
    for (name, organizations, clients), found in places.items():
        shown = [_shown(found[delay]) if delay in found else "" for delay in DELAYS_MS]
        first = next(iter(found.values()))
        costs = f"{first.node_ms:.2f}, {first.database_ms:.2f}" if first.cell.nodes else f"{first.node_ms:.2f}"
        values = (name, organizations, clients, *shown, costs, f"{first.group:.0f}")
        lines.append("| " + " | ".join(map(str, values)) + " |")
    return lines


def _shown(row: Row) -> str:
    digits = 1 if row.cell.clients == 1 else 0
    return f"{row.rate:,.0f}; {row.p50_ms:.{digits}f}, {row.p99_ms:.{digits}f}"


def compared(rows: Sequence[Row], times: Parameters, cores: int) -> list[str]:
    """Each cell as it was measured, and as it is simulated."""
    names = ("nodes", "organizations", "clients", "delay ms", "rate/s", "p50 ms", "p99 ms", "group")
    lines = ["| " + " | ".join(names) + " |", "|---:" * len(names) + "|"]
    for row in rows:
        if not row.cell.nodes:
            continue
        found, cell = simulated(row, times, cores), row.cell
        pairs = (
            (row.rate, found.served / found.seconds, 0),
            (row.p50_ms, found.p50_ms, 1),
            (row.p99_ms, found.p99_ms, 1),
            (row.group, found.group, 1),
        )
        shown = [f"{measured:,.{digits}f} / {other:,.{digits}f}" for measured, other, digits in pairs]
        first = (cell.nodes, cell.organizations, cell.clients, f"{cell.delay_ms:g}")
        lines.append("| " + " | ".join(map(str, (*first, *shown))) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="what `bench.nodes --json` wrote")
    report = msgspec.json.decode(parser.parse_args().file.read_bytes(), type=Report)
    try:
        times = calibrated(report.rows, read_parameters())
    except ValueError as error:
        raise SystemExit(f"too few cells: {error}") from None
    node, database = times.node, times.database
    print(report.about, *documented(report.rows), sep="\n")
    print(f"\n[node]\ncpu_ms = {node.cpu_ms:.2f}\njob_ms = {node.job_ms:.2f}\ngroup_ms = {node.group_ms:.2f}")
    print(f"\n[database]\ngroup_ms = {database.group_ms:.2f}\njob_ms = {database.job_ms:.2f}")
    print(f"\nmeasured / simulated, with a commit of {database.commit_ms:.2f} ms, on {report.cores} cores:")
    print(*compared(report.rows, times, report.cores), sep="\n")
    print("\none organization, computed from these times:")
    for delay in DELAYS_MS:
        trips = [row.round_trip_ms for row in report.rows if row.cell.nodes and row.cell.delay_ms == delay]
        if trips:
            print(f"{delay:g} ms: {ceiling(times, sum(trips) / len(trips)):,.0f}/s")


if __name__ == "__main__":
    main()
