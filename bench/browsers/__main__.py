"""Open real browsers without automation, keep what they report, and measure what the service finds in it.

    python -m bench.browsers capture --out DIR [--only TEXT] [--limit N]
    python -m bench.browsers measure FILE... [--mistakes]
    python -m bench.browsers pack FILE... --out FILE.jsonl.gz

`capture` writes DIR/tuning.jsonl and DIR/held-out.jsonl, and keeps there what npm installed. Browsers that are captured
already are not opened again, so it may be stopped and run again. It needs the browsers of Debian 12 (README.md), Xvfb
and npm. `pack` leaves out what no report holds, for the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.browsers.build import build
from bench.browsers.launch import display, environment_of, start, stop
from bench.browsers.measure import SHAPES, detection_table, list_mistakes, read_captures, visitors_table
from bench.browsers.pack import pack
from bench.browsers.server import Collector
from bench.browsers.settings import Setting, settings

SECONDS = 25.0
"""How long a browser may take to report."""
DRIVE = Path(__file__).parent / "drive.mjs"


def capture(setting: Setting, collector: Collector, modules: Path, logs: Path) -> list[dict[str, Any]]:
    """One visit or more with one profile. A visit that did not report is left out."""
    home = Path(tempfile.mkdtemp(prefix="browser-"))
    profile = home / "profile"
    profile.mkdir()
    for path, text in setting.files.items():
        (profile / path).parent.mkdir(parents=True, exist_ok=True)
        (profile / path).write_text(text)
    found: list[dict[str, Any]] = []
    log = logs / (setting.tag.replace("/", "_") + ".log")
    try:
        for number in range(setting.visits):
            visit = f"{setting.browser}.{setting.name}.{number}"
            more = {**setting.environment, "MODULES": str(modules), "GSETTINGS_BACKEND": "memory"}
            if setting.windowed:
                with display(setting.screen, setting.dpi, setting.manager) as shown:
                    report = _visit(setting, collector, visit, environment_of(home, {**more, **shown}), log)
            else:
                report = _visit(setting, collector, visit, environment_of(home, more), log)
            if report is not None:
                row = {"tag": setting.tag, "browser": setting.browser, "kind": setting.kind, "visit": number}
                found.append({**row, "true": sorted(setting.true), "at": time.time(), **report})
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return found


def _visit(
    setting: Setting, collector: Collector, visit: str, environment: dict[str, str], log: Path
) -> dict[str, Any] | None:
    filling = {
        "profile": str(Path(environment["HOME"]) / "profile"),
        "url": collector.address(visit),
        "drive": str(DRIVE),
    }
    command = [_filled(part, filling) for part in setting.command]
    process = start(command, environment, log)
    try:
        return collector.wait(visit, SECONDS)
    finally:
        stop(process)


def _filled(part: str, filling: dict[str, str]) -> str:
    for name, value in filling.items():
        part = part.replace("{" + name + "}", value)
    return part


def capture_all(out: Path, only: str, limit: int) -> None:
    """Open what is not captured yet, one browser after the other."""
    site = build(out / "build")
    logs = out / "logs"
    logs.mkdir(exist_ok=True)
    done = out / "done.txt"
    seen = set(done.read_text().split("\n")) if done.exists() else set[str]()
    todo = [row for row in settings() if only in row.tag and row.tag not in seen][:limit]
    collector = Collector(site)
    try:
        for setting in todo:
            began = time.monotonic()
            found = capture(setting, collector, out / "build", logs)
            file = out / ("held-out.jsonl" if setting.held_out else "tuning.jsonl")
            with file.open("a") as lines:
                lines.writelines(json.dumps(row) + "\n" for row in found)
            with done.open("a") as lines:
                lines.write(setting.tag + "\n")
            print(f"{setting.tag}: {len(found)} of {setting.visits}, {time.monotonic() - began:.1f} s", flush=True)
    finally:
        collector.close()


def measure(files: Sequence[Path], *, mistakes: bool) -> None:
    for file in files:
        captures = read_captures(file)
        print(f"{detection_table(captures, file.stem).text()}\n")
        print(f"{visitors_table(captures, file.stem).text()}\n", flush=True)
        if mistakes:
            for shape in SHAPES:
                print("\n".join(list_mistakes(captures, shape)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.browsers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    opening = commands.add_parser("capture", help="open browsers")
    opening.add_argument("--out", type=Path, required=True, metavar="DIR")
    opening.add_argument("--only", default="", metavar="TEXT", help="settings whose tag holds this")
    opening.add_argument("--limit", type=int, default=10_000, help="at most so many settings")
    measuring = commands.add_parser("measure", help="print tables")
    measuring.add_argument("files", type=Path, nargs="+", metavar="FILE")
    measuring.add_argument("--mistakes", action="store_true", help="list every visit that is judged wrongly")
    packing = commands.add_parser("pack", help="write captures for the tests")
    packing.add_argument("files", type=Path, nargs="+", metavar="FILE")
    packing.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.command == "capture":
        capture_all(options.out, options.only, options.limit)
    elif options.command == "measure":
        measure(options.files, mistakes=options.mistakes)
    else:
        pack(options.files, options.out)


if __name__ == "__main__":
    os.umask(0o077)
    main()
