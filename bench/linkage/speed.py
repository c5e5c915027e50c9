"""What one match costs in time and a visitor in room, while an organization grows.

Made-up devices visit a real store (LMDB in a temporary directory, without fsync) for the first time until it holds so
many visitors. Some of them return, so that the return rate is no longer a guess.
Then known and unknown ones come, one after the other, each in a transaction of its own that is undone afterwards: every
match finds exactly that many visitors. A match is hashing what the report says, reading what might fit, the link
decision, and the writes that follow from it; in microseconds of CPU, user and system. Making sense of the report's
shape, which all sizes have in common, and the commit are not in it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import trio

from bench.linkage.devices import Reported, device
from svc.features.identification.transaction import VisitorTables
from svc.identify.matching import Recognition, Statistics, extract, match_visitor
from svc.identify.tables import BLOCKS, VISITOR_COUNTS, VISITOR_IDS, VISITORS
from svc.kernel.store.opening import open_store
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.world import twenty_characters

ORGANIZATION = 1
START_MS = 1_790_000_000_000
DAY_MS = 86_400_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)
MATCHES = 4_000
"""Measured at each size and for each kind of visit."""
ROUNDS = 10
"""In which the sizes take turns, so that a busy moment of the machine strikes all of them alike."""
VISITS_IN_A_TRANSACTION = 256
RETURNS = 4_800
"""Of known devices, unchanged and without token, before anything is measured."""


class Microseconds(NamedTuple):
    mean: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Cost:
    visitors: int
    with_token: Microseconds
    """The visitor brings its token."""
    without_token: Microseconds
    """No token: half of them known and unchanged, a quarter after a browser upgrade, a quarter new."""
    bytes_per_visitor: float
    """Pages of the tables of visitors, blocks and visitor ids, over the visitors."""


class _Undone(Exception):  # noqa: N818  the end of every measured match
    pass


class _Town:
    """A growing organization in a store of its own."""

    def __init__(self, directory: Path, statistics: Statistics | None = None, arrived: int = 0) -> None:
        self._directory = directory
        self._statistics = statistics or Statistics()
        self._store = self._open()
        self._entropy = Random(arrived)
        self.arrived = arrived
        """Devices that were here; some of them found themselves taken for another."""
        self._days = 0
        """That went by since the last of them came for the first time."""

    def _open(self) -> Store:
        return open_store(self._directory, trio.to_thread.run_sync, durable=False)

    def close(self) -> None:
        self._store.close()

    def copy(self, directory: Path) -> _Town:
        self._store.close()
        shutil.copytree(self._directory, directory)
        self._store = self._open()
        return _Town(directory, Statistics.of_rows(self._statistics.rows()), self.arrived)

    def visitors(self) -> int:
        with self._store.read() as snapshot:
            return snapshot.get(VISITOR_COUNTS, ORGANIZATION) or 0

    def grow(self, visitors: int, progress: Callable[[int], None]) -> None:
        known = self.visitors()
        while known < visitors:
            newcomers = range(self.arrived, self.arrived + min(VISITS_IN_A_TRANSACTION, visitors - known))
            self._visit([device(number, token=token_of(number), token_is_new=True) for number in newcomers])
            self.arrived += len(newcomers)
            known = self.visitors()
            progress(known)

    def settle(self) -> None:
        """Let known devices return."""
        self._days += 1
        chance = Random(self.arrived)
        for start in range(0, RETURNS, VISITS_IN_A_TRANSACTION):
            count = min(VISITS_IN_A_TRANSACTION, RETURNS - start)
            self._visit([device(chance.randrange(self.arrived)) for _ in range(count)])
        self._days += 1

    def _now_ms(self) -> int:
        return START_MS + self.arrived * 1000 + self._days * DAY_MS

    def _visit(self, visits: Sequence[Reported]) -> None:
        def job(transaction: Transaction) -> None:
            for place, reported in enumerate(visits):
                # A fresh index per visit, as in the service; what was read before may have been written since.
                index = VisitorTables(transaction, ORGANIZATION)
                now_ms = self._now_ms() + place * 1000
                recognition = match_visitor(index, self._statistics, extract(*reported), now_ms)
                _write(index, recognition, twenty_characters(self._entropy.randbytes))
                self._statistics.learn(recognition.statistics_update)

        outcome = self._store.write_now([job])[0]
        if isinstance(outcome, Exception):
            raise outcome

    def match(self, reported: Reported) -> float:
        """Microseconds of CPU."""
        taken_ns = 0
        now_ms = self._now_ms()
        visitor_id = twenty_characters(self._entropy.randbytes)

        def job(transaction: Transaction) -> None:
            nonlocal taken_ns
            started_ns = time.thread_time_ns()
            index = VisitorTables(transaction, ORGANIZATION)
            _write(index, match_visitor(index, self._statistics, extract(*reported), now_ms), visitor_id)
            taken_ns = time.thread_time_ns() - started_ns
            raise _Undone

        outcome = self._store.write_now([job])[0]
        if not isinstance(outcome, _Undone):
            raise SystemExit(f"a match failed: {outcome!r}")
        outcome.__traceback__ = None  # a reference cycle, which no request leaves: the next match would pay for it
        return taken_ns / 1000

    def bytes_on_disk(self) -> int:
        """Of the three tables that grow with visitors."""
        with self._store.read() as snapshot:
            return sum(snapshot.size(table) for table in (VISITORS, BLOCKS, VISITOR_IDS))


def measure(
    sizes: Sequence[int],
    progress: Callable[[str], None],
    matches: int = MATCHES,
    when_grown: Callable[[], object] = lambda: None,
) -> list[Cost]:
    """`when_grown` is called between growing, which takes long and is not measured, and measuring."""
    with tempfile.TemporaryDirectory(prefix="svc-speed-") as directory:
        towns = _grown(Path(directory), sizes, progress)
        for town in towns:
            town.settle()
        when_grown()
        with_token, without_token = _matched(towns, matches, progress)
        costs = [
            Cost(size, _summary(known), _summary(judged), town.bytes_on_disk() / size)
            for size, town, known, judged in zip(sizes, towns, with_token, without_token, strict=True)
        ]
        for town in towns:
            town.close()
    return costs


def _write(index: VisitorTables, recognition: Recognition, new_visitor_id: str) -> None:
    """As the transaction does, without what the visitor did lately."""
    applied = index.apply(recognition, new_visitor_id)
    index.put(applied, b"" if applied.record is None else applied.record.activity)


def _matched(
    towns: Sequence[_Town], matches: int, progress: Callable[[str], None]
) -> tuple[list[list[float]], list[list[float]]]:
    """Microseconds of each match, by town: with a token, and without."""
    with_token: list[list[float]] = [[] for _ in towns]
    without_token: list[list[float]] = [[] for _ in towns]
    chance = Random(0)
    for number in range(ROUNDS + 1):
        progress(f"matching, round {number} of {ROUNDS}")
        for place, town in enumerate(towns):
            visits = [chance.randrange(town.arrived) for _ in range(max(matches // ROUNDS, 1))]
            known = [town.match(device(visitor, token=token_of(visitor))) for visitor in visits]
            judged = [town.match(_without_token(visitor, chance, town.arrived)) for visitor in visits]
            if number:  # the first round warms caches up
                with_token[place] += known
                without_token[place] += judged
    return with_token, without_token


def _grown(directory: Path, sizes: Sequence[int], progress: Callable[[str], None]) -> list[_Town]:
    """A town of each size, each the one before as it grew on."""
    towns: list[_Town] = []
    for size in sizes:
        town = towns[-1].copy(directory / str(size)) if towns else _Town(directory / str(size))
        town.grow(size, lambda known, size=size: progress(f"growing to {size:,} visitors: {known:,}"))
        towns.append(town)
    return towns


def token_of(number: int) -> str:
    return f"{number:032x}"


def _without_token(number: int, chance: Random, arrived: int) -> Reported:
    draw = chance.random()
    if draw < 0.5:
        return device(number)
    return device(number, releases=1) if draw < 0.75 else device(arrived + number)


def _summary(taken_us: list[float]) -> Microseconds:
    ordered = sorted(taken_us)
    count = len(ordered)
    return Microseconds(sum(ordered) / count, ordered[count // 2], ordered[count * 99 // 100])
