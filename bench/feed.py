"""A consumer of the feed that is killed beside writers, on two workers and on two nodes (ADR 130).

    python -m bench.feed [--kills 200] [--seed 1] [--nodes] [--changes]

`tests/crash/test_feed_kill.py` is the short form. `--nodes`: two nodes on PostgreSQL. `--changes`: a consumer of
changes, beside writers who also update and erase (ADR 221).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.usage import read_options
from tests.support.change_kills import ChangeKills
from tests.support.feed_kills import FeedKills, Outcome
from tests.support.postgresql import Cluster
from tests.support.process import Served, run_json

PAUSE_S = 0.05


def main() -> None:
    options = read_options(__doc__)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
        killed = _on_nodes if options.nodes else _on_workers
        kind = ChangeKills if options.changes else FeedKills
        outcome = killed(Path(name) / "data", options.kills, options.seed, kind)
    print(outcome._replace(faults=outcome.faults[:10]))
    raise SystemExit(bool(outcome.faults))


def _on_workers(data: Path, kills: int, seed: int, kind: type[FeedKills]) -> Outcome:
    run_json("org", "create", "first", "--data", str(data))
    server = Served(data, SVC_WORKERS="2")
    workers = server.workers()
    try:
        server.wait_until_said("serving", 2)
        return kind(data, [server.port], seed, PAUSE_S).run(kills)
    finally:
        server.kill_all(workers)


def _on_nodes(data: Path, kills: int, seed: int, kind: type[FeedKills]) -> Outcome:
    cluster = Cluster()
    try:
        with cluster.database() as database:
            url = str(cluster.url(database))
            run_json("org", "create", "first", "--data", str(data), SVC_STORE=url)
            nodes = [Served(data, SVC_STORE=url) for _ in range(2)]
            try:
                return kind(data, [node.port for node in nodes], seed, PAUSE_S, SVC_STORE=url).run(kills)
            finally:
                for node in nodes:
                    node.kill()
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
