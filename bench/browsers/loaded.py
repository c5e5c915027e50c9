"""How long a page waits for the web SDK where the processor is busy, in browsers that nobody drives.

    python -m bench.browsers.loaded [--visits N] [--busy N] [--late MS] [--only TEXT] [--json FILE]

Each browser opens a page N times, with a new profile each, that calls `load()` and at once `identify()`, while as many
endless loops run as `--busy` says, for the time of that visit alone. With `--late` the worker begins so much later, as
on a machine that is busier than one wants to make it. Printed are medians in milliseconds, the largest value, and how
often the worker was heard in time. It needs Chromium and Firefox ESR of Debian 12, Xvfb and `make web`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.browsers.sdk import development_service, write_site
from bench.browsers.server import Collector
from bench.browsers.settings import settings
from bench.browsers.undriven import opened

TAGS = ("chromium/plain", "firefox/plain")
LOOP = "import sys, time\nuntil = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < until: pass"
BEGINS_LATE = "const until = Date.now() + {}; while (Date.now() < until);\n"
LONGEST_LOOP_S = 60
"""A loop ends by itself, whatever becomes of this program."""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processors have something else to do."""
    running = [subprocess.Popen((sys.executable, "-c", LOOP, str(LONGEST_LOOP_S))) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(visits: int, loops: int, late_ms: int, only: str) -> list[dict[str, Any]]:
    """A row for each visit: the browser, and the SDK's own timing or what went wrong."""
    rows: list[dict[str, Any]] = []
    chosen = [row for row in settings() if row.tag in TAGS and only in row.tag]
    with development_service() as (service, keys), tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch) / "site"
        site.mkdir()
        write_site(site, service, keys["public"])
        if late_ms:
            worker = site / "svc.worker.js"
            worker.write_text(BEGINS_LATE.format(late_ms) + worker.read_text())
        collector = Collector(site)
        try:
            for number in range(visits):
                for setting in chosen:
                    home = Path(scratch) / f"{setting.browser}-{number}"
                    home.mkdir()
                    with busy(loops):
                        said = opened(setting, home, collector, Path(scratch) / "log")
                    found = said["report"] if said else {"error": "no report"}
                    answer = found.get("response", {})
                    rows.append(
                        {
                            "browser": setting.browser,
                            "timing": found.get("timing"),
                            "duplicate": answer.get("duplicate", False),
                            "whole": "visitor_id" in answer,
                            "error": found.get("error"),
                        }
                    )
                    print(rows[-1]["browser"], _line(rows[-1]), flush=True)
        finally:
            collector.close()
    return rows


def _line(row: dict[str, Any]) -> str:
    timing = row["timing"]
    if not timing:
        return str(row["error"])
    worker = timing["took"].get("worker", "-")
    return (
        f"waited {timing['waitedMs']:.0f} collect {timing['collectMs']:.0f} network {timing['networkMs']:.0f} "
        f"total {timing['totalMs']:.0f} worker {worker} missed {timing['missed']}"
    )


def table(rows: Sequence[dict[str, Any]]) -> str:
    """One line for each browser, as in docs/internals/browsers.md."""
    lines = [
        "| browser | visits | waited for the report, ms | identify, ms | worker heard | attempts | whole responses |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for browser in dict.fromkeys(row["browser"] for row in rows):
        mine = [row for row in rows if row["browser"] == browser]
        timed = [row["timing"] for row in mine if row["timing"]]
        waited, total = (
            f"{statistics.median(values):.0f}, at most {max(values):.0f}" if values else "-"
            for values in ([one[name] for one in timed] for name in ("waitedMs", "totalMs"))
        )
        heard = sum("worker" not in one["missed"] for one in timed)
        attempts = sum(one["attempts"] for one in timed)
        whole = sum(row["whole"] for row in mine)
        lines.append(f"| {browser} | {len(mine)} | {waited} | {total} | {heard} | {attempts} | {whole} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visits", type=int, default=10)
    parser.add_argument("--busy", type=int, default=2, help="endless loops beside the browser")
    parser.add_argument("--late", type=int, default=0, metavar="MS", help="by which the worker begins later")
    parser.add_argument("--only", default="", help="browsers whose tag contains this text")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row there")
    arguments = parser.parse_args()
    rows = measure(arguments.visits, arguments.busy, arguments.late, arguments.only)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"\n{table(rows)}")


if __name__ == "__main__":
    main()
