"""How like the rows that `page_fill` makes in bulk are to those that the service writes.

The same number of visitors and events are put into two stores: by the real transaction and the real indexer, one visit
after the other, and in bulk. Of each table it says how many rows there are, how long they are and how many bytes of
pages they take; and of both stores what `svc check` finds.

    python -m bench.page_likeness [--visitors 2000] [--events 20000]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.page_fill import DAYS, EPOCH_MS, Countries
from bench.page_visits import Visits
from svc.features.checks.invariants import violations
from svc.features.identification.transaction import identify
from svc.features.tables import TABLES
from svc.identify.identification import assess
from svc.identify.matching import Statistics
from svc.identify.tables.events import DOCUMENTS
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.ids import DAY_MS

GROUP = 64


class Held(NamedTuple):
    """What a table has."""

    rows: int
    row_bytes: int
    """Keys and values."""
    page_bytes: int


def lived(directory: Path, visitors: int, events: int) -> Visits:
    """A store into which each visit was written by the service: each visitor comes once, and then any of them."""
    visits = Visits(directory, 0, 0, 0, seed=1, in_time=True)
    chance = visits.chance
    for first in range(0, events, GROUP):
        group = range(first, min(first + GROUP, events))
        at_ms = [EPOCH_MS - DAYS * DAY_MS * (events - place) // events for place in group]
        devices = [place if place < visitors else chance.randrange(visitors) for place in group]
        made = [visits.submission(device, at) for device, at in zip(devices, at_ms, strict=True)]
        visits.commit(
            [
                partial(identify, assessment=assess(submission, Countries()), statistics=Statistics())
                for submission in made
            ]
        )
        visits.index()
    return visits


def rows_of(snapshot: Snapshot) -> dict[str, Held]:
    """By table; empty ones are left out."""
    found: dict[str, Held] = {}
    for table in TABLES:
        lengths = [len(key) + len(value) for key, value in snapshot.unchecked(table, b"")]
        if lengths:
            found[table.name] = Held(len(lengths), sum(lengths), snapshot.size(table))
    return found


def differences(real: dict[str, Held], bulk: dict[str, Held]) -> Iterator[str]:
    """A line for each table: of the bulk, and as parts of the real one."""
    yield f"{'':20}{'rows':>9}{'bulk':>9}{'ratio':>7}{'bytes a row':>13}{'bulk':>7}{'pages a row':>13}{'bulk':>7}"
    for name in sorted(real.keys() | bulk.keys()):
        one, other = (rows.get(name, Held(0, 0, 0)) for rows in (real, bulk))
        of_one, of_other = max(1, one.rows), max(1, other.rows)
        yield (
            f"{name:20}{one.rows:9}{other.rows:9}{other.rows / of_one:7.2f}{one.row_bytes / of_one:13.1f}"
            f"{other.row_bytes / of_other:7.1f}{one.page_bytes / of_one:13.1f}{other.page_bytes / of_other:7.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--visitors", type=int, default=2000)
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    tables: list[dict[str, Held]] = []
    for kind in ("real", "bulk"):
        with TemporaryDirectory(prefix="svc-bench-pages-") as name:
            if kind == "real":
                visits = lived(Path(name), options.visitors, options.events)
            else:
                visits = Visits(Path(name), options.visitors, options.events, 0, seed=1, in_time=True)
            with closing(visits.found.store), visits.found.store.read() as snapshot:
                found = list(violations(snapshot))
                print(f"{kind}: {len(found)} violations", *found[:5], sep="\n  ", flush=True)
                tables.append(rows_of(snapshot))
    print(f"\n{DOCUMENTS.name} are left out of the bulk\n")
    print("\n".join(differences(*tables)))


if __name__ == "__main__":
    main()
