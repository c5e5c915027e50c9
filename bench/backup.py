"""What backups cost, and what is lost without them.

`sizes`: a store of valid rows is made in bulk, as for `bench.pages`, whose file is about so large; then `svc backup`,
`svc check` and `svc restore` run as processes of their own, and how long they take and their memory is printed. `loss`:
how much of what was answered goes with a node, of which nothing is left but a followed backup.

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
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio

from bench.measures import memory_mib
from bench.page_visits import Visits
from bench.usage import read_options
from tests.support.drill import Drill, Loss, TimedJournal, lose_the_node
from tests.support.process import PROGRAM

AN_EVENT = 600
"""Bytes of the file, with those of a tenth of a visitor."""


def main() -> None:
    given = read_options(__doc__)
    with tempfile.TemporaryDirectory(prefix="svc-bench-", dir=given.directory) as directory:
        if given.what == "sizes":
            sizes(Path(directory), given.gib)
        else:
            trio.run(loss, Path(directory), given.kills, given.seed)


def sizes(directory: Path, gib: float) -> None:
    """Make a store, and do to it what an operator does."""
    needed, free = int(4 * gib * 2**30), shutil.disk_usage(directory).free
    if free < needed:
        raise SystemExit(f"{directory} has {free >> 20} MiB left and {needed >> 20} may be needed")
    data, destination = directory / "data", directory / "backup"
    began, events = time.perf_counter(), int(gib * 2**30) // AN_EVENT
    Visits(data, events // 10, events, 0, seed=5, in_time=True).found.store.close()
    file = data / "store" / "data.mdb"
    print(f"{events:,} events in {file.stat().st_size / 2**30:.2f} GiB, made in {time.perf_counter() - began:.0f} s\n")
    print(f"{'':28}{'seconds':>9}{'CPU s':>9}{'MiB of its own':>16}")
    taken = _timed("backup", "backup", str(destination), "--data", str(data))
    _timed("check of the snapshot", "check", taken["snapshot"])
    _timed("check of the directory", "check", "--data", str(data))
    _timed("restore", "restore", str(destination), "--data", str(directory / "restored"))
    shutil.rmtree(directory / "restored")
    shutil.rmtree(destination)
    _timed("backup --verify full", "backup", str(destination), "--verify", "full", "--data", str(data))


def _timed(name: str, *arguments: str) -> dict[str, Any]:
    """What the command says. Pages of files that it maps are the system's, to take back at will, and do not count."""
    began, most = time.perf_counter(), 0.0
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([*PROGRAM, *arguments, "--json"], stdout=out)
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            with suppress(IndexError):  # it has just ended
                most = max(most, memory_mib(process.pid, mapped=False))
            time.sleep(0.05)
        _, status, usage = ended
        if status:
            raise SystemExit(f"svc {' '.join(arguments)} ended with status {status}")
        seconds, cpu_s = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
        print(f"{name:28}{seconds:9.1f}{cpu_s:9.1f}{most:16.0f}")
        out.seek(0)
        return json.load(out)


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


if __name__ == "__main__":
    main()
