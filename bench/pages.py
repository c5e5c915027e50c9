"""What an identification writes to the disk, and how fast it is, in stores of different size.

A store is filled with visitors and their events of the last 30 days, row by row and in bulk: rows have the sizes and
the spread of real ones, and archived reports are left out, since they lie in the order of time. Among the visitors are
devices that the real transaction has met. Then groups are committed as the pipeline commits them: some of the visits
are returns of those devices after days, the others first visits; after each group the index is made as far as the
indexer would make it, which is counted too. What was written is what this process handed to the
kernel (`/proc/self/io`), and by table the pages that differ between two commits (`page_changes`).

    python -m bench.pages [--visitors 0 100000 1000000] [--groups 60] [--group 20] [--returning 0.7] \
        [--scratch DIR] [--json FILE] [--plot docs/images/pages.svg]
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lmdb
import msgspec

from bench.page_changes import PageChanges, Written, trees
from bench.page_fill import EPOCH_MS, Countries, Filler, Plan, Rows
from bench.page_plot import Bar, Panel, draw
from bench.reports import device_report
from svc.domain.identification import Assessment, Submission, assess
from svc.domain.ids import DAY_MS, ordered_digest
from svc.domain.matching import Statistics
from svc.domain.model import RequestFacts
from svc.store.directory import Opened, open_directory
from svc.store.event_index import Scope
from svc.store.lmdb.engine import LmdbEngine
from svc.store.snapshot import Transaction
from svc.store.tables import VISITOR_COUNTS
from svc.store.transactions.accounts import add_credit, create_organization
from svc.store.transactions.identification import Recorded, identify
from svc.store.transactions.indexing import step
from svc.world import World, twenty_characters

GIB = 1 << 30
DEVICES = 2000
"""That the real transaction has met before, spread among the visitors; each returns at most once."""
TAGGED = 0.5
TARGET_KB = 50
PANELS = ("kb", "per_s")
WARM_UP = 5
"""Groups before the first one that counts."""


class Report(msgspec.Struct, kw_only=True):
    """What was measured on one store. Per identification where nothing else is said."""

    visitors: int = 0
    events: int = 0
    group: int
    """Identifications of one commit."""
    file_gb: float
    kb: float
    """Written, in units of 1,000 bytes."""
    pages: dict[str, float]
    """By table; `lists` are LMDB's list of free pages, its list of tables and its meta page."""
    per_s: float
    """Identifications, one group after the other with their fsync."""
    cpu_us: float
    """Of this process, the commit included and the assessment not."""
    first_visit_us: float
    """CPU of the job inside the transaction."""
    return_us: float
    rows: dict[str, float]
    """Written by a first visit and by a return, and read by them."""


class Counted(Transaction):
    """A transaction that counts rows."""

    def __init__(self, of: Transaction, counts: Counter[str], kind: str) -> None:
        super().__init__(of.writer)
        self._counts = counts
        self._kind = kind

    def get(self, table: Any, *key: Any) -> Any:
        self._counts[f"{self._kind} reads"] += 1
        return super().get(table, *key)

    def put(self, table: Any, key: tuple[Any, ...], value: Any) -> int:
        self._counts[f"{self._kind} writes"] += 1
        return super().put(table, key, value)


class Visits:
    """Visits of one organization to a store of a given size."""

    def __init__(self, directory: Path, visitors: int, events: int, *, seed: int, in_time: bool) -> None:
        self._chance = random.Random(seed)
        self._in_time = in_time
        self._world = World(lambda: EPOCH_MS, self._chance.randbytes, World.real().run_sync)
        self._directory = directory
        self._statistics = Statistics()
        self._devices = list(range(min(DEVICES, visitors // 2)))
        self._next_device = DEVICES
        self._at_ms = EPOCH_MS
        self.found = self._open(durable=False)
        self._do(_prepare)
        self._fill(visitors, events)
        self.found.store.close()
        self.found = self._open(durable=True)
        self._chance.shuffle(self._devices)

    def _open(self, *, durable: bool) -> Opened:
        world = self._world
        return open_directory(self._directory, world.run_sync, world.entropy, durable=durable, map_bytes=32 * GIB)

    def _fill(self, visitors: int, events: int) -> None:
        if not visitors:
            return
        stride = max(1, visitors // len(self._devices))
        for place, device in enumerate(self._devices):  # each at a number of its own, so that they are apart on disk
            self._do(partial(Transaction.put, table=VISITOR_COUNTS, key=(1,), value=place * stride))
            self._do(partial(identify, assessment=self._visit(device, EPOCH_MS - 5 * DAY_MS), statistics=Statistics()))
        self._do(partial(Transaction.put, table=VISITOR_COUNTS, key=(1,), value=visitors))
        filler = Filler(self._chance, Plan(visitors, events, stride, TAGGED, self._in_time))
        for rows in filler.chunks():
            self.put(rows)
        self.index()

    @property
    def environment(self) -> lmdb.Environment:
        """LMDB's, which this is about."""
        engine = self.found.store.engine
        assert isinstance(engine, LmdbEngine)
        return engine.environment

    def put(self, rows: Rows) -> None:
        """Table by table, in the order of keys."""
        self._do(partial(_put_sorted, rows=rows))

    def group(self, size: int, returning: float) -> list[tuple[str, Assessment]]:
        """(kind, assessment) of the next visits, some milliseconds after the last ones."""
        made: list[tuple[str, Assessment]] = []
        for _ in range(size):
            self._at_ms += 1
            if self._devices and self._chance.random() < returning:
                made.append(("return", self._visit(self._devices.pop(), self._at_ms)))
            else:
                made.append(("first visit", self._visit(self._next_device, self._at_ms)))
                self._next_device += 1
                if self._next_device % 4 == 0 and len(self._devices) < size:  # an empty store has to have returns
                    self._devices.append(self._next_device - 1)
        return made

    def commit(self, jobs: list[Callable[[Transaction], Recorded]]) -> None:
        """As the pipeline does: one group, and then what was learned from it."""
        for recorded in self.found.store.write_now(jobs):
            assert isinstance(recorded, Recorded), recorded
            if recorded.lesson is not None:
                self._statistics.learn(recorded.lesson)

    def index(self) -> int:
        """As the indexer does, without its waiting for late events; how many steps there were."""
        steps = 0
        while self._do(partial(step, scope=Scope(1, 0), before_ms=self._at_ms + DAY_MS)):
            steps += 1
        return steps

    def job(
        self, kind: str, assessment: Assessment, counts: Counter[str], spent_ns: Counter[str]
    ) -> Callable[[Transaction], Recorded]:
        """The real one; notes its CPU time, and every tenth time its rows."""

        def run(transaction: Transaction) -> Recorded:
            counts[kind] += 1
            if counts[kind] % 10 == 0:
                counts[f"{kind} counted"] += 1
                return identify(Counted(transaction, counts, kind), assessment, self._statistics)
            began = time.thread_time_ns()
            recorded = identify(transaction, assessment, self._statistics)
            spent_ns[kind] += time.thread_time_ns() - began
            spent_ns[f"{kind} timed"] += 1
            return recorded

        return run

    def _visit(self, device: int, at_ms: int) -> Assessment:
        chance = random.Random(device)
        signals = {
            **device_report(device),
            "client_token": f"{device:032x}",
            "nonce": self._id_text(at_ms),
            "collected_at": at_ms,
        }
        key = self._id_text(at_ms)
        submission = Submission(
            request_id=self._world.request_id(at_ms),
            new_visitor_id=twenty_characters(self._world.entropy),
            at_ms=at_ms,
            organization=1,
            key_id="key_0123456789abcdefGHIJ",
            touched_key=None,
            environment="production",
            sdk_platform="web",
            sdk_version="0.2.0",
            origin="https://shop.example",
            tag=f"account {device}" if chance.random() < TAGGED else None,
            idempotency=ordered_digest(key, blake2b(key.encode(), digest_size=16).digest()),
            facts=RequestFacts(ip=f"81.{chance.randrange(64)}.{chance.randrange(256)}.{chance.randrange(256)}"),
            signals=signals,
            signals_json=msgspec.json.encode(signals),
        )
        return assess(submission, Countries())

    def _id_text(self, at_ms: int) -> str:
        return str(self._world.request_id(at_ms)) if self._in_time else self._chance.randbytes(16).hex()

    def _do(self, job: Callable[[Transaction], Any]) -> Any:
        (outcome,) = self.found.store.write_now([job])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _prepare(transaction: Transaction) -> None:
    create_organization(transaction, organization_id="org_x", name="x", now_ms=EPOCH_MS, rate_limit_per_s=0)
    add_credit(transaction, 1, entry_id=World.real().request_id(0), micros=10**12, now_ms=EPOCH_MS, note="")


def _put_sorted(transaction: Transaction, rows: Rows) -> None:
    for name, pairs in rows.items():
        pairs.sort()
        for key, value in pairs:
            transaction.writer.put(name, key, value)


def measure(directory: Path, visitors: int, events: int, options: argparse.Namespace) -> list[Report]:
    """Fill a store, and say what groups of each size take there, one after another."""
    began = time.perf_counter()
    visits = Visits(directory, visitors, events, seed=options.seed, in_time=not options.random_ids)
    print(f"{visitors:,} visitors and {events:,} events made in {time.perf_counter() - began:.0f} s", flush=True)
    changes = PageChanges(visits.environment)
    try:
        reports = [
            _of_groups(visits, changes, size, max(1, options.groups * options.group[0] // size), options.returning)
            for size in options.group
        ]
    finally:
        changes.close()
        visits.found.store.close()
    return [msgspec.structs.replace(report, visitors=visitors, events=events) for report in reports]


def _of_groups(visits: Visits, changes: PageChanges, size: int, groups: int, returning: float) -> Report:
    environment = visits.environment
    counts, spent_ns = Counter[str](), Counter[str]()
    pages: defaultdict[str, Counter[str]] = defaultdict(Counter)
    written_bytes = wall_s = cpu_s = 0.0
    steps = 0
    for number in range(-WARM_UP, groups):
        made = visits.group(size, returning)
        if number == 0:
            steps = 0
            counts.clear()
            spent_ns.clear()
        jobs = [visits.job(kind, assessment, counts, spent_ns) for kind, assessment in made]
        with environment.begin() as before:
            marks = _written_bytes(), time.perf_counter(), time.process_time()
            visits.commit(jobs)
            steps += visits.index()
            taken = _written_bytes() - marks[0], time.perf_counter() - marks[1], time.process_time() - marks[2]
            if number < 0:
                continue
            written_bytes, wall_s, cpu_s = written_bytes + taken[0], wall_s + taken[1], cpu_s + taken[2]
            for name, written in _written_between(before, environment, changes).items():
                pages[name].update(written._asdict())
    total = groups * size
    named = {name: Written(**found) for name, found in pages.items()}
    each = {name: found.pages / total for name, found in named.items() if found.pages}
    each["lists"] = written_bytes / environment.stat()["psize"] / total - sum(each.values())
    report = Report(
        group=size,
        file_gb=visits.found.store.statistics().used_bytes / 1e9,
        kb=written_bytes / total / 1000,
        pages=dict(sorted(each.items(), key=lambda pair: -pair[1])),
        per_s=total / wall_s,
        cpu_us=1e6 * cpu_s / total,
        first_visit_us=spent_ns["first visit"] / 1000 / max(1, spent_ns["first visit timed"]),
        return_us=spent_ns["return"] / 1000 / max(1, spent_ns["return timed"]),
        rows={
            f"{kind} {what}": counts[f"{kind} {what}"] / max(1, counts[f"{kind} counted"])
            for kind in ("first visit", "return")
            for what in ("reads", "writes")
        },
    )
    _show(report, named, total)
    print(f"  {steps} steps of the index\n", flush=True)
    return report


def _written_between(
    before: lmdb.Transaction, environment: lmdb.Environment, changes: PageChanges
) -> dict[str, Written]:
    with environment.begin() as after:
        old = trees(before)
        return {name: changes.written(old[name], tree) for name, tree in trees(after).items()}


def _written_bytes() -> int:
    """That this process handed to the kernel to write. `write_bytes` would count a whole folio of the page cache for
    each page of it.
    """
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["wchar"])


def _show(report: Report, named: dict[str, Written], total: int) -> None:
    print(
        f"  groups of {report.group}, file {report.file_gb:.2f} GB; {report.kb:.1f} kB per identification, "
        f"{report.per_s:.0f}/s, CPU {report.cpu_us:.0f} us; first visit {report.first_visit_us:.0f} us, "
        f"return {report.return_us:.0f} us"
    )
    print("  rows: " + ", ".join(f"{name} {count:.1f}" for name, count in report.rows.items()))
    for name, pages in report.pages.items():
        if pages >= 0.01:
            kinds = (
                ", ".join(f"{kind} {count / total:.2f}" for kind, count in named[name]._asdict().items() if count)
                if name in named
                else ""
            )
            print(f"    {name:24}{pages:7.2f} pages   {kinds}")
    print(flush=True)


def _plot(reports: list[Report], panels: list[str]) -> str:
    def bars(value: Callable[[Report], float]) -> list[Bar]:
        return [
            Bar(f"{report.visitors:,}" if report.visitors else "empty", value(report))
            for report in reports
            if report.group == reports[0].group
        ]

    drawn = {
        "kb": Panel(
            "kB written per identification", bars(lambda report: report.kb), TARGET_KB, f"target {TARGET_KB} kB"
        ),
        "per_s": Panel("identifications per second", bars(lambda report: report.per_s)),
    }
    titles = " and ".join(drawn[name].title for name in panels)
    return draw([drawn[name] for name in panels], f"{titles}, by the visitors of a store")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--visitors", type=int, nargs="+", default=[0, 100_000, 1_000_000])
    parser.add_argument("--events", type=int, default=10, help="for each visitor")
    parser.add_argument("--groups", type=int, default=60)
    parser.add_argument("--group", type=int, nargs="+", default=[20], help="sizes of a group, one after another")
    parser.add_argument("--returning", type=float, default=0.7)
    parser.add_argument("--random-ids", action="store_true", help="nonces and idempotency keys are no UUIDv7")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", type=Path, default=None, help="a folder on the disk that is meant")
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    parser.add_argument("--plot", type=Path, default=None, help="where the picture of them goes")
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=PANELS, help="of the picture")
    parser.add_argument("--plot-of", type=Path, nargs="*", default=[], help="draw these figures, and measure nothing")
    options = parser.parse_args()
    reports = [
        report for file in options.plot_of for report in msgspec.json.decode(file.read_bytes(), type=list[Report])
    ]
    for visitors in () if reports else options.visitors:
        with TemporaryDirectory(prefix="svc-bench-pages-", dir=options.scratch) as name:
            reports += measure(Path(name), visitors, visitors * options.events, options)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(reports)) + b"\n")
    if options.plot:
        options.plot.write_text(_plot(reports, options.panels))


if __name__ == "__main__":
    main()
