"""How many small faults the tests of a part of the service find, and which they do not.

    python -m bench.mutation outbox [--sample 100] [--seed 1] [--jobs 2] [--at queues.py:120] [--list]

A sample is the same for the same seed and the same code. Survivors are printed with the line, what stands there and
what stood there instead; the status is 1 where more than one in ten survives.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from pathlib import Path

from bench.mutation.run import all_mutants, run
from bench.mutation.targets import TARGETS

ROOT = Path(__file__).parents[2]
ENOUGH = 0.9


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m bench.mutation", description="Mutation testing.")
    asked.add_argument("target", choices=sorted(TARGETS))
    asked.add_argument("--sample", type=int, default=0, help="so many mutants (default: all)")
    asked.add_argument("--seed", type=int, default=1, help="which of them")
    asked.add_argument("--jobs", type=int, default=2, help="processes")
    asked.add_argument("--at", default="", help="only mutants whose place matches, such as queues.py:120:")
    asked.add_argument("--tests", default="", help="only files of tests whose path matches, such as tests/domain")
    asked.add_argument("--slow", action="store_true", help="with the tests that are marked slow")
    asked.add_argument("--list", action="store_true", help="show the mutants and try none")
    asked.add_argument("--found", action="store_true", help="show also which test found each")
    given = asked.parse_args()

    target = TARGETS[given.target]
    target = target._replace(tests=tuple(path for path in target.tests if re.search(given.tests, path)))
    if given.slow:
        target = target._replace(marks="")
    chosen = [mutant for mutant in all_mutants(ROOT, target) if re.search(given.at, f"{mutant.module}:{mutant.line}:")]
    every = len(chosen)
    if given.sample and given.sample < every:
        chosen = random.Random(given.seed).sample(chosen, given.sample)
    if given.list:
        print(*sorted(chosen), sep="\n")
        return 0

    began = time.perf_counter()
    tried = []
    for one in run(ROOT, target, chosen, given.jobs):
        tried.append(one)
        if given.found or not one.found:
            print(f"{one.fate:9} {one.mutant}  {one.by} {one.took_s:.1f} s", flush=True)
        print(f"\r{len(tried)}/{len(chosen)}", end="", file=sys.stderr, flush=True)
    found, hung = sum(one.found for one in tried), sum(one.fate == "hung" for one in tried)
    took_s = time.perf_counter() - began
    print(f"\n{given.target}: {found} of {len(tried)} found ({hung} of them hung), {100 * found / len(tried):.1f} %,")
    print(f"of {every} there are; {took_s:.0f} s, {took_s / len(tried):.2f} s each")
    if len(tried) < len(chosen):
        print(f"{len(chosen) - len(tried)} could not be tried")
        return 2
    return 0 if found >= ENOUGH * len(tried) else 1


if __name__ == "__main__":
    sys.exit(main())
