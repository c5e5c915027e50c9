"""`make sim SEEDS=n`: so many seeds, each a run of its own; a failing one is printed, made small, as a test to keep.

python -m tests.sim --seeds 300 --first 0 --scale full --jobs 2 --workers 2
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from functools import partial

from tests.sim.plan import SCALES, make_plan
from tests.sim.shrink import as_test, shrink
from tests.sim.simulation import run_seed


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument(
        "--scale", choices=SCALES, default="full", help="full: 24 hours, 10 organizations, 40 endpoints"
    )
    parser.add_argument("--workers", type=int, default=1, help="of the service, which are then killed as well")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--trace", action="store_true", help="print everything that happens")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.trace:
        for seed in seeds:
            run_seed(seed, SCALES[asked.scale], asked.workers, tell=tell)
        return 0
    failed = run_all(seeds, asked.scale, asked.workers, asked.jobs)
    for seed, violation in failed.items():
        tell(f"\nseed {seed} failed: {violation}\nmaking it small ...")
        tell(as_test(shrink(make_plan(seed, SCALES[asked.scale], asked.workers), violation), violation))
    tell(f"{len(seeds)} seeds, {len(failed)} failed{f': {sorted(failed)}' if failed else ''}")
    return 1 if failed else 0


def run_all(seeds: range, scale: str, workers: int, jobs: int) -> dict[int, str]:
    """The first violation of each seed that failed."""
    began = time.monotonic()
    failed: dict[int, str] = {}
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=50) as pool:
        outcomes = pool.imap(partial(run_seed, scale=SCALES[scale], workers=workers), seeds)
        for done, (seed, outcome) in enumerate(outcomes, start=1):
            tell(f"seed {seed}: {outcome.trace}, {done / (time.monotonic() - began):.2f} seeds/s, {outcome.counts}")
            for violation in outcome.violations:
                tell(f"    {violation}")
                failed.setdefault(seed, violation)
    return failed


if __name__ == "__main__":
    sys.exit(main())
