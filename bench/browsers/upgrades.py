"""Recognition of real versions of Chromium on simulated devices across updates, as in docs/internals/browsers.md.

python -m bench.browsers.upgrades [--captures tests/captures/sdk-upgrades.jsonl.gz]
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

from bench.browsers.pack import read_rows
from bench.linkage.judge import Answer
from bench.linkage.service import replay
from bench.linkage.streams import replay_line
from bench.usage import read_options
from svc.identify.model import Attribute, RequestFacts
from svc.identify.report import read_report

DEVICES = ("office", "office-twin", "small-laptop", "scaled-laptop", "large-screen", "phone")
"""The twin is another machine of the same office, which differs in its processor alone."""
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
    names = list(DEVICES)
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
    names = list(DEVICES)
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
            pairs = [(values[name, before].get(attribute), values[name, after].get(attribute)) for name in DEVICES]
            changed = sum(one != other for one, other in pairs)
            if changed:
                found.setdefault(attribute.name.lower(), []).append((before, after, changed))
    return found


def main() -> None:
    print(measure(read_rows(read_options(__doc__).captures)))


if __name__ == "__main__":
    main()
