"""The dictionaries of archived reports: makes them, and judges them on reports that they were not made of.

    python -m bench.archive_dictionary make     writes them into svc/identify/data; their names go into its module
    python -m bench.archive_dictionary judge    bytes and CPU of an archive, with and without

The long one is one report of the web SDK for each of three engines, from `tests/captures`; of the second and third what
the others do not say. The short one is one made-up report of each kind that is no web SDK's. Values that are a device's
own (hashes, ids) are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
from isal import isal_zlib

from bench.reports import device_report
from svc.identify.events import archive
from tests.domain.test_report_native import android, iphone

CAPTURES = Path(__file__).parents[1] / "tests/captures"
DATA = Path(archive.__file__).parent / "data"
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


def judged() -> dict[str, list[bytes]]:
    """What -> documents that no dictionary was made of, each with what belongs to the visit."""
    chance = random.Random(1)

    def visit(report: dict[str, Any]) -> dict[str, Any]:
        own = {"client_token": chance.randbytes(16).hex(), "nonce": chance.randbytes(16).hex()}
        return report | own | {"collected_at": 1_790_000_000_000 + chance.randrange(10**9)}

    def timed(report: dict[str, Any]) -> dict[str, Any]:
        parts = {name: part | {"duration": round(chance.random(), 4)} for name, part in report["components"].items()}
        return report | {"components": parts}

    web = {key: report for key, report in captured().items() if key not in MADE_OF}
    kinds: dict[str, Callable[[str, str], bool]] = {
        "web, the same engine": lambda name, major: bool(major) and name not in ("office", "office-twin"),
        "web, driven": lambda name, major: not major and "firefox" not in name,
    }
    found = {kind: [visit(one) for key, one in web.items() if wanted(*key)] for kind, wanted in kinds.items()}
    found["web, with durations"] = [timed(one) for one in found["web, the same engine"]]
    found["made-up"] = [visit(device_report(number)) for number in range(200)]
    return {kind: [_json(report) for report in reports] for kind, reports in found.items()}


def judge() -> None:
    """Also each engine's reports with a dictionary of the two others."""
    print("| reports | bytes | archived before | now | compress, µs | now | decompress, µs | now |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind, documents in judged().items():
        _row(kind, documents, archive.deflate, archive.inflate)
    reports = captured()
    for place, left_out in enumerate(MADE_OF):
        others = [_general(_json(reports[key])) for key in MADE_OF[:place] + MADE_OF[place + 1 :]]
        dictionary = _together(others)

        def inflate(raw: bytes, dictionary: bytes = dictionary) -> bytes:
            return zlib.decompressobj(zdict=dictionary).decompress(raw)

        deflate = partial(archive.compressed, dictionary=dictionary)
        _row(f"web, {left_out[0]}, without its engine", [_json(reports[left_out])], deflate, inflate)


def _row(
    kind: str, documents: list[bytes], deflate: Callable[[bytes], bytes], inflate: Callable[[bytes], bytes]
) -> None:
    old, old_us, old_back_us = _tried(documents, _without, zlib.decompress)
    new, new_us, new_back_us = _tried(documents, deflate, inflate)
    print(
        f"| {kind} | {fmean(map(len, documents)):,.0f} | {old:,.0f} | {new:,.0f} | {old_us:.1f} | {new_us:.1f} | "
        f"{old_back_us:.1f} | {new_back_us:.1f} |"
    )


def _without(document: bytes) -> bytes:
    return isal_zlib.compress(document, 1)  # pyright: ignore[reportUnknownMemberType]  its stub leaves the bytes untyped


def _tried(
    documents: list[bytes], deflate: Callable[[bytes], bytes], inflate: Callable[[bytes], bytes]
) -> tuple[float, float, float]:
    """(bytes, µs to compress, µs to decompress), the best of ten rounds."""
    rounds = max(1, 200 // len(documents))
    spent_s = [float("inf")] * 2
    archives: list[bytes] = []
    for _ in range(10):
        began_s = time.process_time()
        archives = [deflate(document) for _ in range(rounds) for document in documents]
        middle_s = time.process_time()
        back = [inflate(raw) for raw in archives]
        end_s = time.process_time()
        assert back == documents * rounds
        spent_s = [min(spent_s[0], middle_s - began_s), min(spent_s[1], end_s - middle_s)]
    deflate_us, inflate_us = (1e6 * spent / len(archives) for spent in spent_s)
    return fmean(map(len, archives)), deflate_us, inflate_us


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("make", "judge"))
    {"make": make, "judge": judge}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
