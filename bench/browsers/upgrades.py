"""The web SDK in real versions of Chromium on simulated devices: data for recognition across updates.

    python -m bench.browsers.upgrades capture FILE.jsonl.gz
    python -m bench.browsers.upgrades measure FILE.jsonl.gz

`capture` takes each version that the npm package @sparticuz/chromium has, one after the other: it is installed into a
scratch folder, opened on every device with a new profile, and deleted. The page loads the SDK from a development
service and identifies; what is kept is what the service archived of the report. What the file holds already is not
captured again, so it may be stopped and run again. It needs node, npm, `make web`, and the libraries of Debian's
chromium. `measure` prints how recognition does on these upgrades, as in docs/internals/browsers.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from bench.browsers.launch import environment_of, start, stop
from bench.browsers.pack import compressed, of_the_browser, read_rows, without_visit
from bench.browsers.sdk import development_service, read_event, write_site
from bench.browsers.server import Collector
from bench.linkage.judge import Answer
from bench.linkage.service import replay
from bench.linkage.streams import replay_line
from svc.identify.model import Attribute, RequestFacts
from svc.identify.report import read_report

PACKAGE = "@sparticuz/chromium"
SCRIPT = Path(__file__).with_suffix(".mjs")
SECONDS = 40.0
"""How long a browser may take to report."""
ATTEMPTS = 3
COLLECT_MS = 10_000
"""For each source of the report: on a busy machine the SDK's own limit would leave out those that are slow to start."""


class Device(msgspec.Struct, frozen=True):
    """A simulated device. Sizes are in CSS pixels."""

    name: str
    width: int
    height: int
    scale: float
    cores: int
    timezone: str
    languages: tuple[str, ...]
    touch: int = 0
    """Points that a touch screen knows; a phone's, with a phone's user agent."""


DEVICES = (
    Device("office", 1920, 1080, 1, 8, "America/New_York", ("en-US", "en")),
    Device("office-twin", 1920, 1080, 1, 4, "America/New_York", ("en-US", "en")),
    Device("small-laptop", 1366, 768, 1, 4, "Europe/Berlin", ("de-DE", "de", "en")),
    Device("scaled-laptop", 1536, 864, 1.25, 8, "America/Chicago", ("en-US", "en")),
    Device("large-screen", 2560, 1440, 1, 16, "Europe/Paris", ("fr-FR", "fr")),
    Device("phone", 412, 915, 2.625, 8, "Asia/Tokyo", ("ja-JP", "ja"), touch=5),
)
"""The twin is another machine of the same office, which differs in its processor alone."""


def versions() -> dict[int, str]:
    """Major version -> the newest release of it in the registry."""
    text = subprocess.run(("npm", "view", PACKAGE, "versions", "--json"), check=True, capture_output=True).stdout
    released = [version for version in json.loads(text) if re.fullmatch(r"\d+\.\d+\.\d+", version)]
    newest = sorted(released, key=lambda version: [int(part) for part in version.split(".")])
    return {major: version for version in newest if (major := int(version.split(".")[0])) >= 109}


@contextmanager
def installed(version: str) -> Iterator[Path]:
    """The program of this version, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="svc-upgrades-") as folder:
        options = ("--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--cache", f"{folder}/cache")
        install = ("npm", "install", "--prefix", folder, *options, f"{PACKAGE}@{version}")
        subprocess.run(install, check=True, capture_output=True)
        unpack = ("node", str(SCRIPT), "unpack", f"{folder}/node_modules/{PACKAGE}", folder)
        subprocess.run(unpack, check=True)
        yield Path(folder) / "chromium"


def visit(chromium: Path, device: Device, collector: Collector, name: str, log: Path) -> dict[str, Any] | None:
    """What the page posted, or `None` where nothing came in time, or only an error."""
    for _ in range(ATTEMPTS):
        found = _visit(chromium, device, collector, name, log)
        if found is not None and "response" in found["report"]:
            return found
    return None


def _visit(chromium: Path, device: Device, collector: Collector, name: str, log: Path) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory(prefix="svc-upgrades-home-", ignore_cleanup_errors=True) as home:
        locale = device.languages[0].replace("-", "_") + ".UTF-8"
        environment = environment_of(Path(home), {"TZ": device.timezone, "LANG": locale, "LANGUAGE": locale})
        given = msgspec.json.encode(device).decode()
        process = start(("node", str(SCRIPT), "open", str(chromium), given, collector.address(name)), environment, log)
        try:
            return collector.wait(name, SECONDS)
        finally:
            stop(process)


def row_of(device: Device, found: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    """One line of the file."""
    signals = without_visit(event["document"]["signals"])
    agent = found["headers"]["user-agent"]
    headers = of_the_browser(found["headers"])
    major = int(re.findall(r"Chrome/(\d+)", agent)[0])
    return {"device": device.name, "major": major, "headers": headers, "signals": signals}


def capture(file: Path) -> None:
    """Add what the file lacks, version by version."""
    rows = read(file) if file.exists() else []
    taken = {(row["device"], row["major"]) for row in rows}
    with development_service() as (service, keys), tempfile.TemporaryDirectory() as scratch:
        site, log = Path(scratch) / "site", Path(scratch) / "log"
        site.mkdir()
        write_site(site, service, keys["public"], collectMs=COLLECT_MS, timeoutMs=2 * COLLECT_MS)
        collector = Collector(site)
        try:
            for major, version in versions().items():
                missing = [device for device in DEVICES if (device.name, major) not in taken]
                if not missing:
                    continue
                with installed(version) as chromium:
                    for device in missing:
                        found = visit(chromium, device, collector, f"{device.name}.{major}", log)
                        if found is None:
                            print(f"{version} {device.name}: no report\n{log.read_text()[-2_000:]}", file=sys.stderr)
                            continue
                        report = found["report"]
                        event = read_event(service, keys["secret"], report["response"]["request_id"])
                        rows.append(row_of(device, found, event))
                        fired = ", ".join(one["signal"] for one in event["signals"])
                        print(f"{version} {device.name}: {fired}", *report["violations"], flush=True)
                write(file, rows)
        finally:
            collector.close()


def read(file: Path) -> list[dict[str, Any]]:
    """The rows, each device's versions in order."""
    return read_rows(file)


def write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of one device stand together, where they compress best. The same rows make the same bytes."""
    names = [device.name for device in DEVICES]
    ordered = sorted(rows, key=lambda row: (names.index(row["device"]), row["major"]))
    file.write_bytes(compressed(ordered))


START = datetime(2026, 1, 5, 10, tzinfo=UTC)
RELEASE = timedelta(weeks=4)
"""Between two major versions of Chromium."""
SHARED_ADDRESS = "81.2.69.142"
Where = Literal["home", "office", "moving"]
PLACES: dict[Where, str] = {
    "home": "a network each",
    "office": "one address for all",
    "moving": "elsewhere at each step",
}


def follow_upgrades(rows: Sequence[dict[str, Any]], where: Where) -> dict[tuple[str, int], Answer]:
    """(device, major version) -> the answer of `svc replay` without a token, the versions as far apart as they came
    out, and the devices ten minutes.
    """
    names = [device.name for device in DEVICES]
    ordered = sorted(rows, key=lambda row: (row["major"], names.index(row["device"])))
    lines: list[bytes] = []
    for row in ordered:
        place, major = names.index(row["device"]), row["major"]
        at = START + RELEASE * (major - ordered[0]["major"]) + timedelta(minutes=10) * place
        ip = address(where, place, major)
        lines.append(replay_line(at.isoformat(), ip, row["headers"]["user-agent"], row["signals"], row["device"]))
    answers = replay(lines).answers
    return {(row["device"], row["major"]): answer for row, answer in zip(ordered, answers, strict=True)}


def address(where: Where, place: int, major: int) -> str:
    """Where the device at this place of `DEVICES` is when it has this version."""
    if where == "home":
        return f"81.{2 + 7 * place}.69.142"
    return f"{81 + place}.{major}.69.142" if where == "moving" else SHARED_ADDRESS


def measure(rows: Sequence[dict[str, Any]]) -> str:
    """As in docs/internals/browsers.md: a line for each step with the confidences of the devices, what became of all,
    and what changed.
    """
    steps = list(pairwise(sorted({row["major"] for row in rows})))
    names = [device.name for device in DEVICES]
    found = {where: follow_upgrades(rows, where) for where in PLACES}
    shown: tuple[Where, ...] = ("home", "office")
    lines = [f"| step | {' | '.join(PLACES[where] for where in shown)} |", f"|---|{'---|' * len(shown)}"]
    for before, after in steps:
        cells = [" ".join(_kept(found[where], name, before, after) for name in names) for where in shown]
        lines.append(f"| {before} → {after} | {' | '.join(cells)} |")
    lines += ["", f"| | steps kept of {len(steps) * len(names)} | visitor ids of {len(names)} devices | in common |"]
    lines.append("|---|---:|---:|---|")
    for where, followed in found.items():
        kept = sum(_kept(followed, name, *step) not in ("new", "other") for name in names for step in steps)
        owners = _owners(followed)
        shared = sorted(", ".join(sorted(group)) for group in owners.values() if len(group) > 1)
        lines.append(f"| {PLACES[where]} | {kept} | {len(owners)} | {'; '.join(shared) or 'none'} |")
    lines += ["", "| attribute | changed at, on so many of the devices |", "|---|---|"]
    for attribute, changed in changes(rows).items():
        when = ", ".join(f"{before} → {after}: {count}" for before, after, count in changed)
        lines.append(f"| {attribute} | {when} |")
    return "\n".join(lines)


def _owners(followed: dict[tuple[str, int], Answer]) -> dict[Any, set[str]]:
    """Visitor id -> the devices that had it."""
    owners: dict[Any, set[str]] = {}
    for (name, _), answer in followed.items():
        owners.setdefault(answer.visitor, set()).add(name)
    return owners


def _kept(followed: dict[tuple[str, int], Answer], name: str, before: int, after: int) -> str:
    """The confidence in the id that the device had before; `new`, or `other` where it got one that existed."""
    answer = followed[name, after]
    if answer.visitor == followed[name, before].visitor:
        return str(answer.confidence)
    return "other" if answer.confidence else "new"


def changes(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, int, int]]]:
    """Attribute -> the steps at which it changed: (from, to, on how many devices)."""
    values: dict[tuple[str, int], dict[Attribute, str]] = {}
    for row in rows:
        facts = RequestFacts(ip=SHARED_ADDRESS, user_agent=row["headers"]["user-agent"])
        values[row["device"], row["major"]] = read_report(row["signals"], facts).attributes
    found: dict[str, list[tuple[int, int, int]]] = {}
    for before, after in pairwise(sorted({row["major"] for row in rows})):
        for attribute in Attribute:
            pairs = [(values[d.name, before].get(attribute), values[d.name, after].get(attribute)) for d in DEVICES]
            changed = sum(one != other for one, other in pairs)
            if changed:
                found.setdefault(attribute.name.lower(), []).append((before, after, changed))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("capture", "measure"))
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "capture":
        capture(arguments.file)
    else:
        print(measure(read(arguments.file)))


if __name__ == "__main__":
    main()
