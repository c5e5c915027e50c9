"""Replays a stream of simulated visits through matching, and measures it against the truth.

    python bench/linkage/replay.py small [--without-tokens] [--data ../shared/data/linkage]

The truth (`instance`, `device`, `causes`) stays on this side: matching sees what a request shows, nothing else.

- relink: a return visit got the id of this browser's previous visit; "changed" = visits whose report differs from it
- false merge: share of all visits that got an existing id which this browser never had
- first right: share of first visits that got a new id
- pairs: of all pairs of visits, how many that share an id share a browser (precision), and the reverse (recall)
- tracking: average longest run of days for which a browser keeps one id, of the days it was seen; ownership: average
  share of an id's visits that are its most frequent browser's (both as in the FP-Stalker study)
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from svc.domain.matching import Block, Features, Recognition, Statistics, Visitor, extract, recognise
from svc.domain.matching.blocks import EMPTY_BLOCK, BlockKey
from svc.domain.model import RequestFacts
from svc.domain.report import read_report
from svc.domain.useragent import read_agent

DAY_MS = 86_400_000


class MemoryIndex:
    """Blocks and records as bytes in dictionaries, as a store would hold them."""

    def __init__(self) -> None:
        self.blocks: dict[BlockKey, bytes] = {}
        self.visitors: dict[int, bytes] = {}
        self.block_reads = self.visitor_reads = self.last_number = 0

    def block(self, key: BlockKey) -> Block:
        self.block_reads += 1
        raw = self.blocks.get(key)
        return EMPTY_BLOCK if raw is None else Block.unpack(raw)

    def visitor(self, number: int) -> Visitor | None:
        self.visitor_reads += 1
        raw = self.visitors.get(number)
        return None if raw is None else Visitor.unpack(raw)

    def apply(self, recognition: Recognition) -> int:
        number = recognition.number
        if number is None:
            self.last_number += 1
            number = self.last_number
        if recognition.visitor is not None:
            self.visitors[number] = recognition.visitor.pack()
        for key in recognition.dropped:
            self.blocks[key] = self._stored(key).without(number).pack()
        for key, weight in recognition.postings:
            self.blocks[key] = self._stored(key).with_posting(number, weight).pack()
        return number

    def _stored(self, key: BlockKey) -> Block:
        raw = self.blocks.get(key)
        return EMPTY_BLOCK if raw is None else Block.unpack(raw)


class Tally:
    """Compares ids with the truth, visit by visit."""

    def __init__(self) -> None:
        self.visits = self.false_merges = 0
        self.returns, self.relinked = 0, 0
        self.changed_returns, self.changed_relinked = 0, 0
        self.first_visits, self.first_right = 0, 0
        self.last_id: dict[str, int] = {}
        self.last_report: dict[str, str] = {}
        self.held: Counter[tuple[str, int]] = Counter()
        self.runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.confidences: dict[int, list[int]] = {}

    def add(self, browser: str, report: str, now_ms: int, number: int, recognition: Recognition) -> None:
        self.visits += 1
        previous = self.last_id.get(browser)
        is_new = recognition.number is None
        if previous is None:
            self.first_visits += 1
            self.first_right += is_new
        else:
            self.returns += 1
            self.relinked += previous == number
            if self.last_report[browser] != report:
                self.changed_returns += 1
                self.changed_relinked += previous == number
        own = is_new or (browser, number) in self.held
        self.false_merges += not own
        if not is_new:
            linked = self.confidences.setdefault(recognition.confidence, [0, 0])
            linked[0] += 1
            linked[1] += own
        self.held[browser, number] += 1
        self.last_id[browser], self.last_report[browser] = number, report
        self.runs[browser].append((now_ms, number))

    def print(self) -> None:
        by_browser: Counter[str] = Counter()
        by_id: Counter[int] = Counter()
        owner: Counter[int] = Counter()
        for (browser, number), count in self.held.items():
            by_browser[browser] += count
            by_id[number] += count
            owner[number] = max(owner[number], count)
        together = pairs(self.held.values())
        print(f"visits {self.visits}, browsers {len(by_browser)}, ids {len(by_id)}")
        print(f"relink changed   {share(self.changed_relinked, self.changed_returns)}  of {self.changed_returns}")
        print(f"relink overall   {share(self.relinked, self.returns)}  of {self.returns}")
        print(f"false merge      {share(self.false_merges, self.visits)}")
        print(f"first right      {share(self.first_right, self.first_visits)}")
        print(f"pair precision   {share(together, pairs(by_id.values()))}")
        print(f"pair recall      {share(together, pairs(by_browser.values()))}")
        tracked, bound = zip(*(longest_run(visits) for visits in self.runs.values()), strict=True)
        ownership = sum(owner[number] / by_id[number] for number in by_id) / len(by_id)
        print(f"tracking         {sum(tracked) / len(tracked):.1f} of {sum(bound) / len(bound):.1f} days")
        print(f"ownership        {ownership:.4f}")
        print("confidence   visits   right")
        for confidence, (visits, right) in sorted(self.confidences.items()):
            print(f"{confidence:10d} {visits:8d}   {right / visits:.4f}")


def longest_run(visits: list[tuple[int, int]]) -> tuple[float, float]:
    """(days of the longest unbroken run of one id, days between first and last visit)."""
    longest = start = 0
    for place, (_, number) in enumerate(visits):
        if number != visits[start][1]:
            start = place
        longest = max(longest, visits[place][0] - visits[start][0])
    return longest / DAY_MS, (visits[-1][0] - visits[0][0]) / DAY_MS


def pairs(counts: Iterable[int]) -> int:
    return sum(count * (count - 1) // 2 for count in counts)


def share(part: int, whole: int) -> str:
    return f"{part / whole:.4f}" if whole else "-"


def replay(folder: Path, *, with_tokens: bool) -> None:
    with gzip.open(folder / "fps.jsonl.gz", "rt", encoding="utf-8") as lines:
        signals = {str(line["fp"]): line["signals"] for line in map(json.loads, lines)}
    with gzip.open(folder / "events.csv.gz", "rt", encoding="utf-8", newline="") as rows:
        events = list(csv.DictReader(rows))
    index, statistics, tally = MemoryIndex(), Statistics(), Tally()
    tokens_seen: set[str] = set()
    reading_s = extracting_s = recognising_s = 0.0
    for event in events:
        body = signals[event["fp"]]
        token = event["storage_id"] if with_tokens else ""
        if token:
            body = body | {"client_token": token, "client_token_is_new": token not in tokens_seen}
            tokens_seen.add(token)
        now_ms = int(datetime.fromisoformat(event["t"]).timestamp() * 1000)
        facts = RequestFacts(ip=event["ip"], user_agent=body["userAgent"])
        started = time.perf_counter()
        report = read_report(body, facts)
        agent = read_agent(facts, report)
        read = time.perf_counter()
        features: Features = extract(report, agent, facts)
        extracted = time.perf_counter()
        recognition = recognise(index, statistics, features, now_ms)
        number = index.apply(recognition)
        statistics.learn(recognition.lesson)
        recognised = time.perf_counter()
        reading_s += read - started
        extracting_s += extracted - read
        recognising_s += recognised - extracted
        tally.add(event["instance"], event["fp"], now_ms, number, recognition)
    tally.print()
    per_event = 1e6 / len(events)
    print(f"reading          {reading_s * per_event:.0f} µs a visit (report and agent, not matching)")
    print(f"extract          {extracting_s * per_event:.0f} µs a visit")
    print(f"recognise, learn {recognising_s * per_event:.0f} µs a visit, writes to memory included")
    blocks, records = index.block_reads / len(events), index.visitor_reads / len(events)
    print(f"reads            {blocks:.2f} blocks, {records:.2f} records a visit")
    held = sum(map(len, index.visitors.values())) + sum(map(len, index.blocks.values())) + 9 * len(index.blocks)
    print(f"stored           {held / max(len(index.visitors), 1):.0f} bytes a visitor, keys included")
    print(f"statistics       {len(statistics.to_bytes())} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stream", help="small, small-hard, dev, hard or every-7-days")
    parser.add_argument("--without-tokens", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/linkage"))
    arguments = parser.parse_args()
    replay(arguments.data / arguments.stream, with_tokens=not arguments.without_tokens)


if __name__ == "__main__":
    main()
