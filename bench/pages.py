"""What an identification writes to the disk, and how fast it is, in stores of different size.

Each store is filled with visitors and their events of the last 30 days, row by row and in bulk (`page_fill`). Among the
visitors are devices that the real transaction has met; an "empty" store has those alone. Then groups are committed as
the pipeline commits them: some of the visits are returns of those devices after days, the others first visits, the same
in each store; after each group the index is made as far as the indexer would make it, which is counted too. The stores
take turns, group by group, so that what else the machine does meets all of them. What was written is what this process
handed to the kernel (`/proc/self/io`), and by table the pages that differ between two commits (`page_changes`).

    python -m bench.pages [--visitors 0 100000 1000000] [--events 10] [--groups 60] [--group 20] [--returning 0.7]
        [--random-ids] [--web-sdk] [--accounts] [--seed 1] [--scratch DIR] [--json FILE]

A visitor has `--events`. `--random-ids`: nonces and idempotency keys are no UUIDv7. `--web-sdk`: reports of 20 kB.
`--accounts`: each visitor has one.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from bench.measures import written_bytes
from bench.page_changes import PageChanges, trees
from bench.page_visits import Visits
from bench.usage import read_options

WARM_UP = 5
"""Groups before the first one that counts."""


class Report(msgspec.Struct, kw_only=True):
    """What was measured on one store. Per identification where nothing else is said."""

    visitors: int = 0
    events: int = 0
    file_gb: float
    kb: float
    """Written, in units of 1,000 bytes."""
    pages: dict[str, float]
    """By table; `lists` are LMDB's list of free pages, its list of tables and its meta page."""
    per_s: float
    """Identifications, one group after the other: assessment, commit with its fsync, index."""
    time_ratio: float
    """Of the time of the first store for the same group: the median."""


class Series:
    """Groups that are committed to one store."""

    def __init__(self, visits: Visits, size: int, returning: float) -> None:
        self._visits, self._size, self._returning = visits, size, returning
        self._changes = PageChanges(visits.environment)
        self._pages: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._written_bytes = 0
        self.spent_s: list[float] = []
        """By each group."""

    def close(self) -> None:
        """Close what reads pages."""
        self._changes.close()

    def commit(self, *, counts: bool) -> None:
        """The next group. Without `counts` it warms the caches."""
        visits, environment = self._visits, self._visits.environment
        made = visits.group(self._size, self._returning)
        with environment.begin() as before:
            written, began = written_bytes(), time.perf_counter()
            visits.commit(made)
            visits.index()
            spent_s, written = time.perf_counter() - began, written_bytes() - written
            if not counts:
                return
            self.spent_s.append(spent_s)
            self._written_bytes += written
            with environment.begin() as after:
                old = trees(before)
                for name, tree in trees(after).items():
                    self._pages[name].update(self._changes.written(old[name], tree)._asdict())

    def report(self, first: Series) -> Report:
        """What the groups took, and how that is to those of the `first` store."""
        total, environment = len(self.spent_s) * self._size, self._visits.environment
        each = {name: found.total() / total for name, found in self._pages.items() if found.total()}
        each["lists"] = self._written_bytes / environment.stat()["psize"] / total - sum(each.values())
        report = Report(
            file_gb=self._visits.found.store.statistics().used_bytes / 1e9,
            kb=self._written_bytes / total / 1000,
            pages=dict(sorted(each.items(), key=lambda pair: -pair[1])),
            per_s=total / sum(self.spent_s),
            time_ratio=median(own / other for own, other in zip(self.spent_s, first.spent_s, strict=True)),
        )
        print(
            f"  file {report.file_gb:.2f} GB; {report.kb:.1f} kB per identification, {report.per_s:.0f}/s, x "
            f"{report.time_ratio:.3f} of the first store's time"
        )
        for name, pages in report.pages.items():
            if pages >= 0.01:
                kinds = ", ".join(f"{kind} {count / total:.2f}" for kind, count in self._pages[name].items() if count)
                print(f"    {name:24}{pages:7.2f} pages   {kinds}")
        print(flush=True)
        return report


def fill(directory: Path, visitors: int, events: int, options: argparse.Namespace) -> Visits:
    """A store of this size."""
    began = time.perf_counter()
    devices = round(1.1 * options.returning * options.group * (options.groups + WARM_UP))
    given = {"seed": options.seed, "in_time": not options.random_ids, "web_sdk": options.web_sdk}
    visits = Visits(directory, visitors, events, devices, **given, accounts=options.accounts)
    print(f"{visitors:,} visitors and {events:,} events made in {time.perf_counter() - began:.0f} s", flush=True)
    return visits


def measure(stores: Sequence[Visits], options: argparse.Namespace) -> list[Report]:
    """What groups take in these stores, which take turns."""
    series = [Series(visits, options.group, options.returning) for visits in stores]
    for number in range(-WARM_UP, options.groups):
        for one in series if number % 2 else reversed(series):
            one.commit(counts=number >= 0)
    found = [one.report(series[0]) for one in series]
    for one in series:
        one.close()
    return found


def main() -> None:
    options = read_options(__doc__)
    sizes = [(visitors, visitors * options.events) for visitors in options.visitors]
    with ExitStack() as stack:
        stores: list[Visits] = []
        for visitors, events in sizes:
            name = stack.enter_context(TemporaryDirectory(prefix="svc-bench-pages-", dir=options.scratch))
            stores.append(fill(Path(name), visitors, events, options))
            stack.enter_context(closing(stores[-1].found.store))
        reports = [
            msgspec.structs.replace(report, visitors=visitors, events=events)
            for report, (visitors, events) in zip(measure(stores, options), sizes, strict=True)
        ]
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(reports)) + b"\n")


if __name__ == "__main__":
    main()
