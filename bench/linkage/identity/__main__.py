"""One browser, one visitor: whether equal devices stay apart, and who takes the id of whom.

    python -m bench.linkage.identity [--rows ROW,ROW] [--seeds 5] [--details] [--processes 2] [--json FILE]
        [--data ../shared/data]

The published streams show devices that differ. Here are the cases in which they do not, or in which somebody wants it
so: families, offices and carriers of equal devices with a token each (`twins`), private windows, profiles of one
computer and replayed reports (`private`), different programs of one machine and versions that go back (`programs`),
equal devices that are updated in turn (`drift`), and copied reports, tokens and both (`takeover`). Each row puts visits
to the service's matching in process (`inprocess.Service`), several times with other random numbers, and judges the ids
that come back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from bench.linkage.accuracy import Progress
from bench.linkage.identity.rows import ROWS, identity_facts, identity_tables, run
from bench.usage import read_options


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(__doc__, arguments)
    rows = options.rows.split(",") if options.rows else [*ROWS]
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
