"""Captures made small enough for the repository.

What may live here: what is left out. Nothing of a report that the service reads may be.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
LEFT_OUT = ("at", "surroundings")


def pack(files: Sequence[Path], out: Path) -> None:
    """Write the captures of all files to one, by their names, with `held_out` for those of a file of that name."""
    rows: list[dict[str, Any]] = []
    for file in files:
        for line in file.read_text().splitlines():
            row = json.loads(line)
            row["held_out"] = file.stem == "held-out"
            rows.append(_packed(row))
    rows.sort(key=lambda row: (row["tag"], row["visit"]))
    text = "".join(json.dumps(row, separators=(",", ":"), sort_keys=True) + "\n" for row in rows)
    # No name and no time in the file: the same captures make the same bytes.
    out.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def _packed(row: dict[str, Any]) -> dict[str, Any]:
    report = {name: value for name, value in row["report"].items() if name not in LEFT_OUT}
    report["components"] = {
        name: {key: value for key, value in component.items() if key != "duration"} or {"duration": 0}
        for name, component in report["components"].items()
    }
    trace = report["botd"].get("errorTrace", {})
    if isinstance(trace.get("value"), str):
        trace["value"] = _ADDRESS.sub("https://page.example", trace["value"])
    headers = {name: value for name, value in row["headers"].items() if name not in ("host", "origin", "referer")}
    return {
        **{name: value for name, value in row.items() if name not in LEFT_OUT},
        "report": report,
        "headers": headers,
    }
