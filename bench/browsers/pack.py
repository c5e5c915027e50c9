"""Captures made small enough for the repository.

What may live here: what is left out. Nothing of a report that the service reads may be.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def without_address(report: dict[str, Any]) -> dict[str, Any]:
    """A report with another address in BotD's error trace, where the page's own differs from capture to capture."""
    trace = report["botd"].get("errorTrace", {})
    if not isinstance(trace.get("value"), str):
        return report
    shown = {**trace, "value": _ADDRESS.sub("https://page.example", trace["value"])}
    return {**report, "botd": {**report["botd"], "errorTrace": shown}}


def without_durations(components: dict[str, Any]) -> dict[str, Any]:
    """Components of FingerprintJS without the milliseconds that each took."""
    return {
        name: {key: value for key, value in component.items() if key != "duration"} or {"duration": 0}
        for name, component in components.items()
    }


HEADERS = ("user-agent", "accept-language")
OF_ONE_VISIT = ("client_token", "client_token_is_new", "nonce", "collected_at")


def without_visit(signals: dict[str, Any]) -> dict[str, Any]:
    """A report of the web SDK without what belongs to the one visit: its token, nonce, time and durations."""
    kept = without_address({name: value for name, value in signals.items() if name not in OF_ONE_VISIT})
    return {**kept, "components": without_durations(kept["components"])}


def of_the_browser(headers: dict[str, str]) -> dict[str, str]:
    """Those of a request's headers that say which browser sent it: user agent, languages and client hints."""
    return {name: value for name, value in headers.items() if name in HEADERS or name.startswith("sec-ch-")}


def compressed(rows: Iterable[dict[str, Any]]) -> bytes:
    """JSON lines, gzipped. No name and no time in the file: the same rows make the same bytes."""
    text = "".join(json.dumps(row, separators=(",", ":"), sort_keys=True) + "\n" for row in rows)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of `compressed` ones."""
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
