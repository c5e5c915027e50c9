"""False alarms: the checks of a healthy store while other processes commit to it as fast as they can.

    python -m bench.store_checks [--checks 100000] [--writers 1]

Every check runs `check_meta_pages` and `check_pages` at one of its depths, in turns, as commands do beside a service.
The store is whole all the time, so each `CorruptionError` is a false alarm.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from svc.store.codec import CorruptionError
from svc.store.engine import CheckDepth
from svc.store.lmdb.engine import LmdbEngine
from svc.store.lmdb.meta_pages import check_meta_pages
from svc.store.store import Store
from svc.store.tables import BALANCES, VISITOR_COUNTS
from tests.support.worlds import inline

MAP_BYTES = 256 << 20
ROWS = 60


def opened(directory: Path) -> Store:
    return Store.open(directory, inline, map_bytes=MAP_BYTES, durable=False)


def write(directory: Path, seed: int, stop, commits) -> None:
    """Small commits until told to stop: rows are put, changed and deleted, so that pages are freed and used again."""
    store, chance = opened(directory), random.Random(seed)

    def change(transaction) -> None:
        number = chance.randrange(ROWS)
        transaction.put(BALANCES, (number,), number)
        transaction.put(VISITOR_COUNTS, (number,), chance.getrandbits(40))
        transaction.delete(BALANCES, chance.randrange(ROWS))

    made = 0
    while not stop.is_set():
        store.write_now([change])
        made += 1
    store.close()
    with commits.get_lock():
        commits.value += made


def check(directory: Path, count: int) -> Counter[tuple[str, str]]:
    """(check, what it says) of each alarm."""
    alarms: Counter[tuple[str, str]] = Counter()
    with closing(LmdbEngine.open_read_only(directory, live=True)) as engine:
        for number in range(count):
            if number % 1000 == 0:
                print(f"\r{number} checks, {alarms.total()} false alarms", end="", file=sys.stderr, flush=True)
            reach = CheckDepth(number % len(CheckDepth))
            try:
                check_meta_pages(directory / "data.mdb")
            except CorruptionError as error:
                alarms["meta pages", _kind(error)] += 1
            try:
                engine.check(reach)
            except CorruptionError as error:
                alarms[reach.name.lower(), _kind(error)] += 1
    return alarms


def _kind(error: CorruptionError) -> str:
    """The sentence without its numbers and paths."""
    return " ".join(word for word in str(error).split() if not any(letter in "0123456789/" for letter in word))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checks", type=int, default=100_000)
    parser.add_argument("--writers", type=int, default=1)
    options = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    with TemporaryDirectory(prefix="svc-bench-") as name:
        directory = Path(name)
        store = opened(directory)
        store.write_now([lambda transaction: [transaction.put(BALANCES, (row,), row) for row in range(ROWS)]])
        store.close()
        stop, commits = processes.Event(), processes.Value("Q", 0)
        writers = [
            processes.Process(target=write, args=(directory, seed, stop, commits)) for seed in range(options.writers)
        ]
        for writer in writers:
            writer.start()
        began = time.perf_counter()
        alarms = check(directory, options.checks)
        took_s = time.perf_counter() - began
        stop.set()
        for writer in writers:
            writer.join()
    rate = commits.value / took_s
    print(f"{options.checks} checks in {took_s:.0f} s beside {options.writers} writers, {rate:.0f} commits/s")
    for (where, what), count in alarms.most_common():
        print(f"{count:7}  {where}: {what}")
    print(f"{alarms.total()} false alarms")
    if alarms:
        sys.exit(1)


if __name__ == "__main__":
    main()
