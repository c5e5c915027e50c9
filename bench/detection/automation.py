"""Automation on real captures: what fires on each automated browser, what on each plain one, and what looking costs.

Everything runs as in production: the adapters, the user agent's reader, detection. Costs are CPU time of this process.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.linkage.tables import Table
from bench.reports import submitted
from svc.identify.detection import detect
from svc.identify.identification import assess
from svc.identify.model import Agent, Network, Observation, Report, RequestFacts
from svc.identify.report import read_report
from svc.identify.scoring.score import default_profile, score
from svc.identify.useragent import read_agent
from svc.identify.useragent.hints import read_hints
from svc.world import World

Kind = Literal["automated", "plain"]

ADDRESS = "203.0.113.7"
ORDINARY = Network(state="enriched")
PLAIN = ("human-like", "headful")
"""Labels of captures that a person could have sent; all others run under a driver or without a window."""
PEOPLES_STREAM = "dev"
ROUNDS = 20
"""How often each capture is looked at for the costs."""
SUSPECT = 30
"""The default threshold."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A browser that was captured, as the page would have sent it."""

    tag: str
    kind: Kind
    signals: dict[str, Any]
    facts: RequestFacts

    def observe(self) -> tuple[Observation, ...]:
        return detect(*look(self.signals, self.facts), ORDINARY, "web")


def look(signals: dict[str, Any], facts: RequestFacts) -> tuple[Report, RequestFacts, Agent]:
    report = read_report(signals, facts)
    return report, facts, read_agent(facts, report)


def read_captures(data: Path) -> list[Capture]:
    """All captures of browsers, automated or plain."""
    files = (data / "bots" / "captures.jsonl.gz", data / "browsers" / "ladder.jsonl.gz")
    return [_capture(line) for file in files for line in read_lines(file)]


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _capture(line: dict[str, Any]) -> Capture:
    headers = {name.lower(): value for name, value in line["headers"].items()}
    return Capture(
        tag=line["tag"],
        kind="plain" if line.get("label", line.get("kind")) in PLAIN else "automated",
        signals={"components": line["components"], "botd": line["botComponents"]},
        facts=RequestFacts(
            ip=ADDRESS,
            user_agent=headers["user-agent"],
            accept_language=headers.get("accept-language"),
            hints=read_hints(headers),
        ),
    )


# ---- tables


def captures_table(captures: Iterable[Capture], kind: Kind) -> Table:
    """One row per capture and signal, with the evidence that gave it away."""
    header = ("capture", "found", "signal", "confidence", "evidence", "score")
    table = Table(f"Captures of {kind} browsers", header, left=5)
    captured = [capture for capture in captures if capture.kind == kind]
    found = 0
    for capture in captured:
        seen = capture.observe()
        bot = is_found(seen)
        found += bot
        first = (capture.tag, "yes" if bot else "no")
        total = str(_score(seen))
        for observation in seen:
            evidence = ", ".join(observation.evidence)
            table.rows.append((*first, observation.signal, observation.confidence, evidence, total))
            first, total = ("", ""), ""
        if not seen:
            table.rows.append((*first, "-", "", "", total))
    table.rows.append((f"{len(captured)} in all", f"{found}", "", "", "", ""))
    return table


def is_found(seen: Sequence[Observation]) -> bool:
    return any(observation.signal in ("automation", "headless") for observation in seen)


def _score(seen: Sequence[Observation]) -> int:
    return score(seen, default_profile("web"), "web").score


def people_table(data: Path) -> Table:
    """What fires on the fingerprints of the linkage stream, which stand for people and hold some bots nevertheless."""
    fired: Counter[str] = Counter()
    suspects: Counter[str] = Counter()
    people = 0
    for line in read_lines(data / "linkage" / PEOPLES_STREAM / "fps.jsonl.gz"):
        signals = line["signals"]
        facts = RequestFacts(ip=ADDRESS, user_agent=signals.get("userAgent"))
        seen = detect(*look(signals, facts), ORDINARY, "web")
        people += 1
        fired.update(observation.signal for observation in seen)
        if _score(seen) >= SUSPECT:
            suspects["any"] += 1
            suspects.update(observation.signal for observation in seen)
    table = Table(
        f"What fires on {people:,} fingerprints of the stream {PEOPLES_STREAM}",
        ("signal", "fingerprints", "share", f"with a score of {SUSPECT} or more"),
        note="Values come from real traffic, and some are those of bots: brands such as HeadlessChrome.",
    )
    for name, count in fired.most_common():
        table.rows.append((name, f"{count:,}", f"{count / people:.3%}", f"{suspects[name]:,}"))
    table.rows.append(("any", "", f"{suspects['any'] / people:.3%}", f"{suspects['any']:,}"))
    return table


def cost_table(captures: Sequence[Capture]) -> Table:
    """Microseconds of CPU per identification, over all captures."""
    looked = [look(capture.signals, capture.facts) for capture in captures]
    world = World.real()
    submissions = [submitted(world, one.signals, one.facts, at_ms=1_767_607_200_000) for one in captures]
    steps: dict[str, Callable[[int], object]] = {
        "read the report": lambda place: read_report(captures[place].signals, captures[place].facts),
        "detect": lambda place: detect(*looked[place], ORDINARY, "web"),
        "assess, the whole": lambda place: assess(submissions[place], None),
    }
    costs = {name: _microseconds(step, len(captures)) for name, step in steps.items()}
    whole = costs["assess, the whole"]
    table = Table("Cost of detection", ("step", "µs of CPU", "share of assess"))
    table.rows.extend((name, f"{cost:.1f}", f"{cost / whole:.1%}") for name, cost in costs.items())
    return table


def _microseconds(step: Callable[[int], object], places: int) -> float:
    for place in range(places):
        step(place)
    started = time.process_time()
    for _ in range(ROUNDS):
        for place in range(places):
            step(place)
    return 1e6 * (time.process_time() - started) / (ROUNDS * places)
