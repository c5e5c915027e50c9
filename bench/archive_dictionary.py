"""Makes the dictionaries of archived reports.

    python -m bench.archive_dictionary     writes them into svc/identify/data; their names go into its module

The long one is one report of the web SDK for each of three engines, from `tests/captures`; of the second and third what
the others do not say. The short one is one made-up report of each kind that is no web SDK's. Values that are a device's
own (hashes, ids) are left out.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

import msgspec

from bench.reports import device_report
from svc.identify.events import archive
from tests.domain.test_report_native import android, iphone

CAPTURES = Path(__file__).parents[1] / "tests/captures"
DATA = Path(archive.__file__).parents[1] / "data"
MADE_OF = ("office", "138"), ("puppeteer-firefox/window", ""), ("selenium-minibrowser/window", "")
"""(device or tag, major version) of the captures."""
TEMPLATE = 10**9
"""The number of the made-up device."""
SHORTEST = 16
"""Bytes that must be in the dictionary already for them to be left out."""
_OWN = re.compile(rb"[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}-[0-9A-Fa-f-]{27}")


def captured() -> dict[tuple[str, str], dict[str, Any]]:
    """(device or tag, major version) -> signals, of the web SDK's captures."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name in ("sdk-upgrades", "automation"):
        for line in gzip.decompress((CAPTURES / f"{name}.jsonl.gz").read_bytes()).splitlines():
            visit = json.loads(line)
            signals = visit["signals"]
            key = visit.get("device") or visit["tag"], str(visit.get("major", ""))
            found[key] = json.loads(signals) if isinstance(signals, str) else signals
    return found


def made() -> tuple[bytes, bytes]:
    """(short, long)."""
    reports = captured()
    long = [_general(_json(reports[key])) for key in MADE_OF]
    short = [_general(_json(report)) for report in (device_report(TEMPLATE), android(), iphone())]
    return _together(short), _together(long)


def _json(report: dict[str, Any]) -> bytes:
    return msgspec.json.encode(report)


def _general(document: bytes) -> bytes:
    return _OWN.sub(b"", document)


def _together(documents: list[bytes]) -> bytes:
    """The first one last, where it costs least to point at, and before it what only the others have."""
    together = documents[0]
    for document in documents[1:]:
        together = _not_in(document, together) + together
    return together


def _not_in(document: bytes, known: bytes) -> bytes:
    left, at = bytearray(), 0
    while at < len(document):
        length = 0
        while at + length < len(document) and document[at : at + max(length + 1, SHORTEST)] in known:
            length = max(length + 1, SHORTEST)
        if length:
            at += length
        else:
            left.append(document[at])
            at += 1
    return bytes(left)


def make() -> None:
    """Write both."""
    for name, dictionary in zip(("SHORT", "LONG"), made(), strict=True):
        adler = zlib.adler32(dictionary)
        (DATA / f"{adler:08x}.dictionary").write_bytes(dictionary)
        print(f"{name} = 0x{adler:08X}  # {len(dictionary)} bytes")


if __name__ == "__main__":
    make()
