"""Fuzz for as long as wanted: python -m tests.fuzz [--seconds 60] [--target bodies] [--seed 1]

Each round has a seed of its own, printed with what it finds: the same seed finds it again. The slowest reading of each
target is printed, too, with the size of what was read.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from typing import NamedTuple

from hypothesis import HealthCheck, given, seed, settings

from tests.fuzz import TARGETS
from tests.fuzz.target import Target, size_of

ROUND = 100
"""Examples of one seed."""


class Slowest(NamedTuple):
    ms: float
    size: int


class Hunt:
    """One target for a while."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.examples = 0
        self.slowest = Slowest(0.0, 0)

    def round(self, number: int) -> None:
        """Raises what the target raises, for the smallest input that makes it do so."""

        @seed(number)
        @settings(max_examples=ROUND, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(self._target.inputs)
        def holds(sent: object) -> None:
            self.examples += 1
            began = time.process_time()
            found = self._target.read(sent)
            self.slowest = max(self.slowest, Slowest(1e3 * (time.process_time() - began), size_of(sent)))
            assert found == self._target.read(sent)
            self._target.check(sent, found)

        holds()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together")
    parser.add_argument("--target", choices=sorted(TARGETS), help="one of them alone")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    options = parser.parse_args()
    names = [options.target] if options.target else list(TARGETS)
    failed = 0
    print(f"{'':22}{'inputs':>9}{'slowest ms':>12}{'of size':>9}")
    for name in names:
        hunt = Hunt(TARGETS[name])
        number = options.seed
        end = time.monotonic() + options.seconds / len(names)
        while time.monotonic() < end:
            try:
                hunt.round(number)
            except Exception:  # noqa: BLE001  whatever it was, it is told and the next target is tried
                failed += 1
                print(f"{name}: seed {number}\n{traceback.format_exc()}")
                break
            number += 1
        print(f"{name:22}{hunt.examples:9}{hunt.slowest.ms:12.2f}{hunt.slowest.size:9}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
