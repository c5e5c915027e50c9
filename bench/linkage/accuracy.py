"""How well a returning device is recognized, beside what others do, on the same visits; and what that costs.

    python -m bench.linkage.accuracy [--streams STREAM...] [--seeds 5] [--visitors 1000000] [--json FILE] [--no-docs]
        [--data ../shared/data]

Puts every stream to the service's matching, with and without client tokens, and the first one through `svc replay` as
well, which must answer the same; judges the answers and those of the baselines, on the devices that the numbers were
fitted on and on those that were held out; asks whether one browser is one visitor (`bench.linkage.identity`); climbs
the ladder of real browser upgrades; presents copied client tokens on other devices; measures time and room in a growing
store. Prints tables, and writes them to docs/internals/accuracy.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.linkage.baselines import BASELINES, answers, look
from bench.linkage.identity.rows import ROWS, Measured, gathered, identity_facts, identity_jobs, identity_tables
from bench.linkage.inprocess import answers as matched
from bench.linkage.judge import Answer, judge
from bench.linkage.ladder import Climbed, climb, ladder_lines, read_ladder
from bench.linkage.service import replay
from bench.linkage.speed import SIZES, Cost, measure
from bench.linkage.streams import Stream, read_stream, replay_lines
from bench.linkage.tables import (
    Judged,
    Table,
    accuracy_table,
    calibration_table,
    cause_tables,
    cost_table,
    held_out_table,
    ladder_table,
    tracking_table,
)
from bench.linkage.theft import STREAMS as ROBBED_STREAMS
from bench.linkage.theft import Results as Thefts
from bench.linkage.theft import measure as measure_thefts
from bench.linkage.theft import theft_tables
from bench.usage import read_options

STREAMS = ("small", "small-hard", "every-7-days", "dev", "hard")
WITHOUT_TOKEN, WITH_TOKEN = "this service, no token", "this service, token"
METHODS = (*BASELINES, WITHOUT_TOKEN, WITH_TOKEN)
NETWORKS = {"own": False, "one for all": True}
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@dataclass(frozen=True, slots=True)
class Results:
    judged: list[Judged]
    climbed: dict[str, Climbed]
    thefts: dict[str, dict[str, Thefts]]
    """Stream -> what copied tokens were worth to thieves, and what that cost their owners."""
    costs: list[Cost]
    repeated: str
    """Which replay was run through `svc replay`, too."""
    identical: bool
    identity: Sequence[Measured] = ()
    """Equal devices, private windows, programs of one machine, and thieves."""

    def tables(self) -> list[Table]:
        return [
            *identity_tables(self.identity),
            held_out_table(self.judged),
            accuracy_table(self.judged),
            tracking_table(self.judged),
            *cause_tables(self.judged),
            calibration_table(self.judged),
            ladder_table(self.climbed),
            *theft_tables(self.thefts.items()),
            cost_table(self.costs),
        ]

    def repetition(self) -> str:
        same = "the same" if self.identical else "DIFFERENT"
        return f"`svc replay` of {self.repeated}: ids and confidences are {same}."

    def facts(self) -> dict[str, Any]:
        return {
            "streams": [
                {
                    "stream": one.stream,
                    "method": one.method,
                    **one.verdict.facts(),
                    "answers_sha256": one.digest,
                    **({"fitted": one.parts[0].facts(), "held_out": one.parts[1].facts()} if one.parts else {}),
                }
                for one in self.judged
            ],
            "identity": identity_facts(self.identity),
            "ladder": {where: asdict(result) for where, result in self.climbed.items()},
            "thefts": {
                stream: {
                    who: [
                        {"visit": visit, "organization": organization, "held_out": held_out, **asdict(count)}
                        for (visit, organization, held_out), count in results.items()
                    ]
                    for who, results in measured.items()
                }
                for stream, measured in self.thefts.items()
            },
            "costs": [
                {
                    "visitors": cost.visitors,
                    "with_token_us": cost.with_token._asdict(),
                    "without_token_us": cost.without_token._asdict(),
                    "bytes_per_visitor": cost.bytes_per_visitor,
                }
                for cost in self.costs
            ],
            "repeated": self.repeated,
            "repeated_identical": self.identical,
        }


class Progress:
    """One line on a terminal; elsewhere one every `EVERY_S` seconds."""

    EVERY_S = 20.0

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._started = self._said = time.monotonic()

    def say(self, text: str) -> None:
        now = time.monotonic()
        if self._on_terminal:
            sys.stderr.write(f"\r\033[K{now - self._started:4.0f} s  {text}")
        elif now - self._said >= self.EVERY_S:
            self._said = now
            sys.stderr.write(f"{now - self._started:4.0f} s  {text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._on_terminal:
            sys.stderr.write("\r\033[K")


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(__doc__, arguments)
    options.streams = options.streams or STREAMS
    for stream in options.streams:
        if not (options.data / "linkage" / stream / "events.csv.gz").is_file():
            raise SystemExit(f"no stream {stream!r} in {options.data / 'linkage'}; name the folder with --data")
    progress = Progress()
    sizes = [size for size in SIZES if size <= options.visitors]
    results = _run(options.streams, options.data, sizes, options.seeds, progress)
    progress.end()
    print("\n\n".join(table.text() for table in results.tables()))
    print(f"\n{results.repetition()}")
    if options.json:
        options.json.write_text(json.dumps(results.facts(), indent=1) + "\n")
    if not options.no_docs:
        _write_docs(Path("docs/internals"), results)
    if not results.identical:
        raise SystemExit(1)


def _run(streams: Sequence[str], data: Path, sizes: Sequence[int], seeds: int, progress: Progress) -> Results:
    folders = [data / "linkage" / stream for stream in streams]
    jobs: dict[str, Callable[[], Any]] = {}
    for folder in folders:
        jobs[f"{folder.name}, token"] = partial(judge_service, folder, with_tokens=True)
        jobs[f"{folder.name}, no token"] = partial(judge_service, folder, with_tokens=False)
        jobs[f"{folder.name}, baselines"] = partial(judge_baselines, folder)
        if folder.name in ROBBED_STREAMS:
            jobs[f"{folder.name}, thefts"] = partial(measure_thefts, folder)
    repeated = f"{streams[0]}, token"
    jobs[f"{repeated}, again"] = partial(judge_service, folders[0], with_tokens=True, through_replay=True)
    for where, one_network in NETWORKS.items():
        jobs[f"ladder, network: {where}"] = partial(_climb, data, one_network=one_network)
    rows = [*ROWS] if seeds else []
    jobs |= identity_jobs(rows, seeds, data)
    # The store grows in this process meanwhile; what a match costs is measured when the others are done.
    with ProcessPoolExecutor(max((os.cpu_count() or 2) - 1, 1)) as pool:
        running = {name: pool.submit(job) for name, job in jobs.items()}
        costs = measure(sizes, partial(_say, progress, running), when_grown=partial(_await, progress, running))
        done: dict[str, Any] = {name: future.result() for name, future in running.items()}
    judged: list[Judged] = [
        one for name, found in done.items() if isinstance(found, list) and "again" not in name for one in found
    ]
    order = [(stream, method) for stream in streams for method in METHODS]
    judged.sort(key=lambda one: order.index((one.stream, one.method)))
    identical = done[repeated][0].digest == done[f"{repeated}, again"][0].digest
    climbed = {where: done[f"ladder, network: {where}"] for where in NETWORKS}
    thefts = {stream: done[f"{stream}, thefts"] for stream in streams if stream in ROBBED_STREAMS}
    return Results(judged, climbed, thefts, costs, repeated, identical, gathered(rows, seeds, done))


def _say(progress: Progress, running: Mapping[str, Future[Any]], text: str = "") -> None:
    """Raises what a job has raised."""
    finished = [future.result() for future in running.values() if future.done()]
    now = [name for name, future in running.items() if future.running()]
    progress.say(f"{len(finished)} of {len(running)} done, now {text or ', '.join(now)}")


def _await(progress: Progress, running: Mapping[str, Future[Any]]) -> None:
    while wait(running.values(), timeout=1).not_done:
        _say(progress, running)


def judge_service(folder: Path, *, with_tokens: bool, through_replay: bool = False) -> list[Judged]:
    """`through_replay`: by `svc replay`, with a store and all that belongs to it; the answers are the same."""
    stream = read_stream(folder)
    if through_replay:
        given = replay(replay_lines(stream.requests, with_tokens=with_tokens)).answers
    else:
        given = list(matched(stream, with_tokens=with_tokens))
    fitted, held_out = (
        judge(stream.visits, given, stream.every_days, counted=lambda visit, part=part: visit.held_out == part)
        for part in (False, True)
    )
    verdict = judge(stream.visits, given, stream.every_days)
    method = WITH_TOKEN if with_tokens else WITHOUT_TOKEN
    return [Judged(stream.name, method, True, verdict, digest_of(given), (fitted, held_out))]


def digest_of(given: Sequence[Answer]) -> str:
    """SHA-256 of the answers, ids as the numbers of the visits that first got them."""
    first: dict[object, int] = {}
    told = [(first.setdefault(answer.visitor, place), answer.confidence) for place, answer in enumerate(given)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def judge_baselines(folder: Path) -> list[Judged]:
    stream: Stream = read_stream(folder)
    seen = [look(request, visit.at_s) for request, visit in zip(stream.requests, stream.visits, strict=True)]
    return [
        Judged(
            stream.name, name, is_ours=False, verdict=judge(stream.visits, answers(method(), seen), stream.every_days)
        )
        for name, method in BASELINES.items()
    ]


def _climb(data: Path, *, one_network: bool) -> Climbed:
    steps = read_ladder(data / "browsers" / "ladder.jsonl.gz")
    return climb(steps, replay(ladder_lines(steps, one_network=one_network)).answers)


def _write_docs(folder: Path, results: Results) -> None:
    page = folder / "accuracy.md"
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no {BEGIN} and {END} to write the tables between")
    tables = "\n\n".join(table.markdown() for table in results.tables())
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{results.repetition()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
