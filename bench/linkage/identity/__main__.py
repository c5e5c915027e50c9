"""The command line of the measurement: runs the rows, prints the table."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from bench.linkage.accuracy import Progress
from bench.linkage.identity.rows import ROWS, SEEDS, identity_facts, identity_tables, run


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), metavar="ROW,ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with linkage/")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--details", action="store_true", help="cases without an aim, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure as JSON, too")
    options = parser.parse_args(arguments)
    rows = options.rows.split(",")
    for row in rows:
        if row not in ROWS:
            raise SystemExit(f"no row {row!r}: {', '.join(ROWS)}")
    progress, started = Progress(), time.monotonic()
    measured = run(rows, options.seeds, options.data, progress.say, options.processes)
    progress.end()
    print("\n\n".join(table.text() for table in identity_tables(measured, details=options.details)))
    print(f"\n{options.seeds} seeds, {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(identity_facts(measured), indent=1) + "\n")


if __name__ == "__main__":
    main()
