"""What backups cost, and what is lost without them: following, per identification; snapshot, check and restore of a
large store; and how much of what was answered goes with a node, of which nothing is left but a followed backup.

Following: one service answers 32 keep-alive clients, in turn without and with a follower; CPU of the service and of
the follower per request. Sizes: a store of valid rows is made until its file is so large; then `svc backup`, `svc
check` and `svc restore` run as processes of their own, and how long they take and their memory is printed. Last,
how much the file of a busy service grows while a snapshot of it is copied.

    python -m bench.backup follow [--seconds 6] [--rounds 3]
    python -m bench.backup sizes [--gib 1] [--directory DIR]
    python -m bench.backup loss [--kills 30] [--seed 1]

`sizes` takes about four times --gib of the disk of DIR (the temporary directory), and gives it back.
"""

from __future__ import annotations

import argparse
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
from bench.identify import Server, prepare, report_body
from bench.load import CLIENTS, Measured, requests, run
from bench.reports import device_report
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
LOAD_S = 12.0
"""Of load around one snapshot, to see the file grow."""


class Used(NamedTuple):
    """What a command took."""

    seconds: float
    cpu_s: float
    anonymous_mb: float
    """Most memory of its own; pages of files that it maps are the system's, to take back at will."""
    out: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("follow", "sizes", "loss"))
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement of `follow`")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of measurements")
    parser.add_argument("--gib", type=float, default=1, help="size of the store of `sizes`")
    parser.add_argument("--kills", type=int, default=30, help="of service and follower, of `loss`")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of `loss`")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-", dir=options.directory) as directory:
        if options.what == "follow":
            follow(Path(directory), options.seconds, options.rounds)
        elif options.what == "sizes":
            sizes(Path(directory), options.gib)
        else:
            trio.run(loss, Path(directory), options.kills, options.seed)


def follow(directory: Path, seconds: float, rounds: int) -> None:
    """The same load on the same service, without and with a follower in turn."""
    data, destination = directory / "data", directory / "backup"
    api_key = prepare(str(data))
    bodies = [report_body(number, token=True) for number in range(2000)]
    service = Server.serving(data, "--metrics-bind", "")
    rows: list[tuple[float, float, float]] = []
    print(f"{CLIENTS} clients, {rounds} rounds of {seconds:g} s each\n")
    print(f"{'':14}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'follower us':>13}")
    for number in range(rounds + 1):
        alone, alone_us, _ = _measured(service, None, api_key, bodies, seconds if number else 2, number)
        follower = Server(*PROGRAM, "backup", str(destination), "--follow", "--data", str(data))
        _wait_for_snapshot(destination, number)
        followed, followed_us, follower_us = _measured(
            service, follower, api_key, bodies, seconds if number else 2, number
        )
        follower.stop()
        _svc("backup", "--unfollow", "--data", str(data))
        if number:  # the first round warms caches up
            _line("alone", alone, alone_us, 0)
            _line("followed", followed, followed_us, follower_us)
            rows.append((followed_us / alone_us, followed_us - alone_us, follower_us))
    service.stop()
    ratio, more, beside = (statistics.median(column) for column in zip(*rows, strict=True))
    written = sum(path.stat().st_size for path in destination.glob("*.log"))
    print(
        f"\nfollowed, the service uses {ratio:.3f} x the CPU per request: {more:+.0f} us; the follower {beside:.0f} us"
    )
    print(f"{written / 1e6:.0f} MB of segments")


def _measured(
    service: Server, follower: Server | None, api_key: str, bodies: list[bytes], seconds: float, seed: int
) -> tuple[Measured, float, float]:
    """(load, CPU of the service per request in us, that of the follower)"""
    before, before_follower = sum(service.cpu()), 0.0 if follower is None else sum(follower.cpu())
    measured = run(service.port, requests(api_key, bodies, random.randrange(2**32) + seed), seconds)
    used = 1e6 * (sum(service.cpu()) - before) / measured.requests
    beside = 0.0 if follower is None else 1e6 * (sum(follower.cpu()) - before_follower) / measured.requests
    return measured, used, beside


def _line(name: str, measured: Measured, cpu_us: float, follower_us: float) -> None:
    rate = measured.requests / measured.seconds
    print(f"{name:14}{rate:8.0f}{measured.p50_ms:9.2f}{measured.p99_ms:9.2f}{cpu_us:9.0f}{follower_us:13.0f}")


def _wait_for_snapshot(destination: Path, known: int) -> None:
    """A follower begins when it has made the next snapshot."""
    deadline = time.monotonic() + 60
    while len(list(destination.glob("snapshot-*"))) <= known:
        if time.monotonic() > deadline:
            raise SystemExit("the follower made no snapshot within a minute")
        time.sleep(0.05)


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
    shutil.rmtree(destination)
    _growth(data, destination)


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


def _growth(data: Path, destination: Path) -> None:
    """Load a service on the large store for a while, twice: alone, then with a snapshot begun in the middle."""
    api_key = prepare(str(data))
    bodies = [report_body(number, token=True) for number in range(2000)]
    service = Server.serving(data, "--metrics-bind", "")
    file = data / "store" / "data.mdb"
    print(f"\n{'file of a service under load':30}{'grew MB':>9}{'req/s':>9}{'p99 ms':>9}")
    run(service.port, requests(api_key, bodies, 1), 2)
    for name in ("alone", "during a snapshot"):
        before = file.stat().st_blocks
        copying: subprocess.Popen[bytes] | None = None
        if name != "alone":
            command = [*PROGRAM, "backup", str(destination), "--data", str(data), "--json"]
            copying = subprocess.Popen(command, stdout=subprocess.PIPE)
        measured = run(service.port, requests(api_key, bodies, 2), LOAD_S)
        grown = (file.stat().st_blocks - before) * 512 / 1e6
        print(f"{name:30}{grown:9.0f}{measured.requests / measured.seconds:9.0f}{measured.p99_ms:9.1f}")
        if copying is not None:
            copying.communicate(timeout=3600)
    service.stop()


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


def _svc(*arguments: str) -> None:
    subprocess.run([*PROGRAM, *arguments, "--json"], check=True, capture_output=True)


if __name__ == "__main__":
    main()
