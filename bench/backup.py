"""What backups cost, and what is lost without them.

`sizes`: a store of valid rows is made until its file is so large; then `svc backup`, `svc check` and `svc restore` run
as processes of their own, and how long they take and their memory is printed. `loss`: how much of what was answered
goes with a node, of which nothing is left but a followed backup.

    python -m bench.backup sizes [--gib 1.0] [--directory DIR]
    python -m bench.backup loss [--kills 30] [--seed 1] [--directory DIR]

`sizes` takes about four times --gib of the disk of DIR (the temporary directory), and gives it back.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import trio

from bench.events import A_COMMIT, DAY_MS, DAYS, REPORTS, WEIGHTS, event, record
from bench.reports import device_report
from bench.usage import read_options
from svc.features.organizations.command import create_organization
from svc.identify.events.archive import deflate
from svc.identify.matching import Visitor
from svc.identify.matching.parameters import ATTRIBUTE_COUNT
from svc.identify.records import WeightsSnapshot
from svc.identify.scoring.score import default_weights
from svc.identify.tables.visitors import VISITOR_COUNTS, VISITOR_IDS, VISITORS
from svc.identify.tables.weights import WEIGHTS_SNAPSHOTS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.ledger_jobs import enter
from svc.world import World, twenty_characters
from tests.support.drill import Drill, Loss, TimedJournal, lose_the_node
from tests.support.process import PROGRAM

EVENTS_A_VISITOR = 10


class Used(NamedTuple):
    """What a command took."""

    seconds: float
    cpu_s: float
    anonymous_mb: float
    """Most memory of its own; pages of files that it maps are the system's, to take back at will."""
    out: dict[str, Any]


def main() -> None:
    options = read_options(__doc__)
    with tempfile.TemporaryDirectory(prefix="svc-bench-", dir=options.directory) as directory:
        if options.what == "sizes":
            sizes(Path(directory), options.gib)
        else:
            trio.run(loss, Path(directory), options.kills, options.seed)


def sizes(directory: Path, gib: float) -> None:
    """Make a store, and do to it what an operator does."""
    needed, free = int(4 * gib * 2**30), shutil.disk_usage(directory).free
    if free < needed:
        raise SystemExit(f"{directory} has {free >> 20} MiB left and {needed >> 20} may be needed")
    data, destination = directory / "data", directory / "backup"
    began = time.perf_counter()
    events = fill(data, int(gib * 2**30))
    file = data / "store" / "data.mdb"
    print(f"{events:,} events in {file.stat().st_size / 2**30:.2f} GiB, made in {time.perf_counter() - began:.0f} s\n")
    print(f"{'':28}{'seconds':>9}{'CPU s':>9}{'MB of its own':>15}")
    taken = _timed("backup", "backup", str(destination), "--data", str(data))
    _timed("check of the snapshot", "check", taken.out["snapshot"])
    _timed("check of the directory", "check", "--data", str(data))
    _timed("restore", "restore", str(destination), "--data", str(directory / "restored"))
    shutil.rmtree(directory / "restored")
    shutil.rmtree(destination)
    _timed("backup --verify full", "backup", str(destination), "--verify", "full", "--data", str(data))


async def loss(directory: Path, kills: int, seed: int) -> None:
    """`kill -9` of service and follower in one moment, a restore from what the follower had copied, and again."""
    chance = random.Random(seed)
    drill, journal = Drill(directory), TimedJournal()
    losses: list[Loss] = []
    for number in range(kills):
        lost = await lose_the_node(drill, journal, str(number), chance.uniform(0, 2))
        shutil.rmtree(directory / str(number))
        losses.append(lost)
        print(
            f"kill {number + 1}: {lost.answered:6,} answered, {lost.missing:4} lost, of {lost.seconds:.3f} s",
            flush=True,
        )
    seconds = sorted(lost.seconds for lost in losses)
    print(f"\nlost: median {statistics.median(seconds):.3f} s, most {seconds[-1]:.3f} s")


def fill(directory: Path, size: int) -> int:
    """A store that keeps every invariant, with a file of so many bytes; how many events are in it."""
    world, chance = World.real(), random.Random(5)
    found = open_directory(directory, world.run_sync, world.entropy, durable=False)
    number = create_organization(found, world, "bench", credit=10**12, rate_limit=0).number
    archives = [deflate(json.dumps(device_report(device)).encode()) for device in range(REPORTS)]
    weights = WeightsSnapshot(default_weights("web"))
    found.store.write_now([partial(Transaction.put, table=WEIGHTS_SNAPSHOTS, key=(WEIGHTS,), value=weights)])
    begin_ms = world.now_ms() - DAYS * DAY_MS
    made = 0
    for start in count(0, A_COMMIT):
        batch = range(start, start + A_COMMIT)
        job = partial(_record, world=world, chance=chance, number=number, archives=archives, places=batch, at=begin_ms)
        found.store.write_one_now(job)
        made += A_COMMIT
        if found.store.statistics().used_bytes >= size:
            break
    found.store.close()
    return made


def _record(
    transaction: Transaction, world: World, chance: random.Random, number: int, archives: list[bytes],
    places: range, at: int,
) -> None:  # fmt: skip
    """Events as identifications would leave them; every tenth is of a new visitor."""
    visitor_id = ""
    for place in places:
        at_ms = at + place * 500
        if place % EVENTS_A_VISITOR == 0:
            visitor_id, visitor = twenty_characters(chance.randbytes), place // EVENTS_A_VISITOR + 1
            transaction.put(VISITORS, (number, visitor), _visitor(visitor_id, at_ms))
            transaction.put(VISITOR_IDS, (number, visitor_id.encode()), visitor)
            transaction.put(VISITOR_COUNTS, (number,), visitor)
        given = event(chance, at_ms, visitor_id)
        request_id = world.request_id(at_ms)
        record(transaction, number, [(request_id, given)], archives)
        if given.environment == "production":
            enter(transaction, number, request_id, LedgerEntry("identification", -given.price_micros, at_ms))


def _visitor(visitor_id: str, at_ms: int) -> Visitor:
    return Visitor(
        visitor_id=visitor_id,
        family=1,
        collector=1,
        values=(1,) * ATTRIBUTE_COUNT,
        browser_version=137,
        os_release=10,
        font_sketch=1,
        rest_sketch=1,
        first_seen_s=at_ms // 1000,
        last_seen_s=at_ms // 1000,
    )


def _timed(name: str, *arguments: str) -> Used:
    began = time.perf_counter()
    process = subprocess.Popen([*PROGRAM, *arguments, "--json"], stdout=subprocess.PIPE)
    watch = _Anonymous(process.pid)
    watch.start()
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    watch.ended.set()
    watch.join()
    if status:
        raise SystemExit(f"svc {' '.join(arguments)} ended with status {status}")
    used = Used(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, watch.most_mb, json.loads(out))
    print(f"{name:28}{used.seconds:9.1f}{used.cpu_s:9.1f}{used.anonymous_mb:15.0f}")
    return used


class _Anonymous(threading.Thread):
    """Watches the anonymous memory of a process."""

    def __init__(self, process_id: int) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.most_mb = 0.0
        self._status = Path(f"/proc/{process_id}/status")

    def run(self) -> None:
        while not self.ended.wait(0.05):
            try:
                lines = self._status.read_text().splitlines()
            except OSError:
                return
            held = next((line for line in lines if line.startswith("RssAnon:")), "RssAnon: 0 kB")
            self.most_mb = max(self.most_mb, int(held.split()[1]) / 1e3)


if __name__ == "__main__":
    main()
