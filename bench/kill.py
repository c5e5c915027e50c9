"""R2: `kill -9` under load, again and again; every webhook arrives, or is listed as failed and can be recovered.

Ten receivers on loopback TLS answer 200, 500, 410 or drop by seed. `tests/crash` holds the short form.

    python -m bench.kill [--kills 100] [--seed 1] [--failing-arrivals 3]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import trio

from tests.support.killed import Killed


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failing-arrivals", type=int, default=3, help="after so many a receiver is done failing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        killed = Killed(Path(directory), options.seed, options.failing_arrivals, lambda line: print(line, flush=True))
        outcome = trio.run(killed.run, options.kills)
    print()
    for name, value in outcome._asdict().items():
        if name != "faults":
            print(f"{name:<16}{value:>10,}")
    for fault in outcome.faults[:20]:
        print(fault)
    raise SystemExit(f"{len(outcome.faults)} faults" if outcome.faults else 0)


if __name__ == "__main__":
    main()
