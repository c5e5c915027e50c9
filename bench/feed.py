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
from tests.support.feed_kills import FeedKills, killed_on_nodes, killed_on_workers

PAUSE_S = 0.05


def main() -> None:
    options = read_options(__doc__)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
        run = killed_on_nodes if options.nodes else killed_on_workers
        kind = ChangeKills if options.changes else FeedKills
        outcome = run(kind, Path(name) / "data", options.kills, options.seed, PAUSE_S)
    print(outcome._replace(faults=outcome.faults[:10]))
    raise SystemExit(bool(outcome.faults))


if __name__ == "__main__":
    main()
