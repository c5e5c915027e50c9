"""How well user agents are read: systems, browsers and programs against labeled ones, and what a reading costs.

Two names mean the same where docs/internals/useragents.md says so: its tables are read, not repeated. The texts are
split in halves by a hash. Rules are written by looking at one half; the other half tells what they are worth.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.linkage.tables import Table
from svc.identify.model import Agent, Report, RequestFacts
from svc.identify.useragent import agent as parser_of_agents
from svc.identify.useragent import read_agent, read_hints

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "useragents.md"
NOT_PEOPLES = ("library", "feed reader")
"""Types of clients that fetch for people, who look at browsers and apps."""
KINDS = {
    "camera": "mobile", "car browser": "desktop", "console": "desktop", "desktop": "desktop",
    "feature phone": "mobile", "peripheral": "desktop", "phablet": "mobile", "portable media player": "mobile",
    "smart display": "desktop", "smart speaker": "desktop", "smartphone": "mobile", "tablet": "tablet", "tv": "desktop",
    "wearable": "mobile",
}  # fmt: skip
"""Kind of device in labels -> the nearest that the service knows."""
AI_CATEGORIES = frozenset({"AI Agent", "AI Assistant", "AI Data Scraper", "AI Search Crawler"})
VISITS = 100_000
"""Of the mix that the cost with the cache is measured on."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One labeled user agent, and what it was read as."""

    label: dict[str, Any]
    facts: RequestFacts
    agent: Agent

    def tuned_on(self) -> bool:
        return zlib.crc32(self.label["ua"].encode()) & 1 == 0

    def is_bot(self) -> bool:
        return self.label["kind"] == "bot"

    def is_persons(self) -> bool:
        return self.label["kind"] == "human" and self.label.get("client_type") not in NOT_PEOPLES

    def is_ai(self) -> bool:
        return self.label.get("category") in AI_CATEGORIES

    def is_search(self) -> bool:
        return self.label.get("category") == "Search bot"

    def has_os(self) -> bool:
        return bool(self.label.get("os"))

    def has_browser(self) -> bool:
        return self.label.get("client_type") == "browser"

    def has_app(self) -> bool:
        return self.is_persons() and bool(self.label.get("client")) and not self.has_browser()

    def has_device(self) -> bool:
        return self.label.get("device") in KINDS

    def os_is_right(self) -> bool:
        return same("Operating systems", self.agent.os, self.label["os"])

    def client_is_right(self) -> bool:
        return same("Browsers and apps", self.agent.agent, self.label["client"])

    def device_is_right(self) -> bool:
        return KINDS[self.label["device"]] == self.agent.device_kind

    def found_bot(self) -> bool:
        return self.agent.program is not None

    def found_ai(self) -> bool:
        return self.agent.crawler == "ai_bot"

    def found_search(self) -> bool:
        return self.agent.crawler == "search_crawler"


Question = Callable[[Reading], bool]


@dataclass(frozen=True, slots=True)
class Measure:
    name: str
    aim: str
    counted: Question
    met: Question


def _bot_and(question: Question) -> Question:
    return lambda reading: reading.is_bot() and question(reading)


OF_LABELS = (
    Measure("operating system right", ">= .97", Reading.has_os, Reading.os_is_right),
    Measure("browser right", ">= .93", Reading.has_browser, Reading.client_is_right),
    Measure("app right", "-", Reading.has_app, Reading.client_is_right),
    Measure("kind of device right", "-", Reading.has_device, Reading.device_is_right),
    Measure("bots found", ">= .98", Reading.is_bot, Reading.found_bot),
    Measure("people taken for bots", "<= .005", Reading.is_persons, Reading.found_bot),
    Measure("AI agents: recall", "-", Reading.is_ai, Reading.found_ai),
    Measure("AI agents: precision", "-", _bot_and(Reading.found_ai), Reading.is_ai),
    Measure("search crawlers: recall", "-", Reading.is_search, Reading.found_search),
    Measure("search crawlers: precision", "-", _bot_and(Reading.found_search), Reading.is_search),
)
OF_LISTS = (
    Measure("other lists: bots found", "-", Reading.is_bot, Reading.found_bot),
    Measure("other lists: people taken for bots", "-", Reading.is_persons, Reading.found_bot),
)


# ---- what is the same


def plain(name: str | None) -> str:
    """Lower-case letters and digits, without the words Mobile and Browser unless nothing else is left."""
    letters = re.sub(r"[^a-z0-9]", "", (name or "").lower())
    return re.sub(r"mobile|browser", "", letters) or letters


@cache
def equivalents(heading: str) -> dict[str, frozenset[str]]:
    """Name shown by the service -> names in labels that mean the same, from the table under a heading of the page."""
    _, found, section = PAGE.read_text().partition(f"### {heading}\n")
    if not found:
        raise SystemExit(f"{PAGE} has no heading {heading!r}")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section.partition("\n#")[0], re.MULTILINE)
    return {ours: frozenset(theirs.split(", ")) for ours, theirs in rows if not ours.startswith(("shown", "---"))}


def same(heading: str, ours: str | None, label: str) -> bool:
    return plain(ours) == plain(label) or label in equivalents(heading).get(ours or "", ())


# ---- what is measured


def read_labeled(data: Path) -> list[Reading]:
    with gzip.open(data / "useragents" / "labelled.jsonl.gz", "rt") as lines:
        return [read_one(json.loads(line)) for line in lines]


def read_listed(data: Path) -> list[Reading]:
    """The lists of another project, which say only whether somebody is a bot."""
    return [
        read_one({"ua": text, "kind": kind})
        for file, kind in (("crawlers.yml", "bot"), ("not-bots.yml", "human"))
        for text in _listed(data / "useragents" / file)
    ]


def read_one(label: dict[str, Any]) -> Reading:
    headers = {name.lower(): value for name, value in label.get("headers", {}).items()}
    facts = RequestFacts(ip="192.0.2.1", user_agent=label["ua"], hints=read_hints(headers))
    return Reading(label, facts, read_agent(facts, Report()))


def _listed(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line[2:].strip("\"'") for line in lines if line.startswith("- ")]


def share(measure: Measure, readings: Iterable[Reading]) -> tuple[int, float | None]:
    """(readings that count, the share of them that meets the measure)."""
    met = [measure.met(reading) for reading in readings if measure.counted(reading)]
    return len(met), sum(met) / len(met) if met else None


# ---- what it costs


def costs(readings: Sequence[Reading]) -> tuple[float, float]:
    """Microseconds of CPU for a text that was never seen, and for one visit of a mix as sites have it.

    In the mix the texts come by Zipf's law, the tenth most frequent a tenth as often as the first, and the cache starts
    empty: real sites repeat themselves more.
    """
    distinct = list({one.facts.user_agent: one.facts for one in readings}.values())
    chance = random.Random(7)
    chance.shuffle(distinct)
    weights = itertools.accumulate(1 / rank for rank in range(1, len(distinct) + 1))
    mix = chance.choices(distinct, cum_weights=list(weights), k=VISITS)
    return _microseconds(distinct), _microseconds(mix)


def _microseconds(visits: Sequence[RequestFacts]) -> float:
    report = Report()
    parser_of_agents._read.cache_clear()  # noqa: SLF001  nobody else has a reason to empty it
    started = time.process_time()
    for facts in visits:
        read_agent(facts, report)
    return 1e6 * (time.process_time() - started) / len(visits)


# ---- tables


def useragent_table(data: Path) -> Table:
    """Everything measured, on the folder `useragents` of `data`."""
    return _table(read_labeled(data), read_listed(data))


def _table(labeled: Sequence[Reading], listed: Sequence[Reading]) -> Table:
    table = Table(
        "User agents",
        ("measure", "aim", "of", "half tuned on", "half held back", "all"),
        left=2,
        note=(
            "Shares, but for costs: microseconds of CPU. People: browsers and apps, without libraries and feed "
            "readers. The labels count SEO tools and surveys among search bots, and some search engines among other "
            "crawlers: docs/internals/useragents.md says what counts here. The other lists count browsers without a "
            "window, feed readers and some apps among bots."
        ),
    )
    for measures, readings in ((OF_LABELS, labeled), (OF_LISTS, listed)):
        halves = [[one for one in readings if one.tuned_on() is tuned] for tuned in (True, False)]
        for measure in measures:
            count, whole = share(measure, readings)
            shares = [_shown(share(measure, half)[1]) for half in halves]
            table.rows.append((measure.name, measure.aim, f"{count:,}", *shares, _shown(whole)))
    uncached, mixed = costs(labeled)
    table.rows.append(("cost of a text never seen, µs", "-", "", "", "", f"{uncached:.1f}"))
    table.rows.append(("cost with the cache, µs", "<= 30", f"{VISITS:,}", "", "", f"{mixed:.1f}"))
    return table


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
