"""All rows, several seeds of each, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from bench.linkage import phones
from bench.linkage.identity import drift, private, programs, takeover, twins, versions
from bench.linkage.identity.world import Aim, Count, Counts, Hashes, Part, at_least, at_most
from bench.linkage.tables import Table

CONFIDENCE_BINS = ((85, 89), (90, 94), (95, 97), (98, 98), (99, 99), (100, 100))
"""First and last confidence of each published bin."""


class Row(NamedTuple):
    measure: Callable[..., Counts]
    """(seed, data, stream) -> what it found. Seeds count from 0."""
    aims: Mapping[str, Aim]
    streams: Sequence[str] = ("",)
    """Those whose reports are used, one after the other; empty = captures."""
    has_peers: bool = True
    """Whether `measure` takes a fourth argument: who answers instead of the service (`world.Recognizers`)."""


def _fleet(seed: int, data: Path, stream: str) -> Counts:
    """The fleet of phones, in an organization of its own."""
    del data, stream
    counts, figures = Counts(), phones.figures(seed)
    for case, of in figures.of.items():
        counts.add(case, figures.counted[case], of)
    return counts


FLEET_AIMS = {case: at_most(most) if most < 1 else at_least(least) for case, (least, most) in phones.AIMS.items()}
"""The fleet has the least and the largest share that is good enough."""

ROWS: dict[str, Row] = {
    "cleared": Row(private.measure_cleared, private.CLEARED_AIMS),
    "mornings": Row(twins.measure_mornings, twins.MORNING_AIMS, twins.STREAMS),
    "twins": Row(twins.measure, twins.AIMS, twins.STREAMS),
    "private": Row(private.measure, private.AIMS),
    "programs": Row(programs.measure, programs.AIMS),
    "drift": Row(drift.measure, drift.AIMS, drift.STREAMS),
    "versions": Row(versions.measure, versions.AIMS, versions.STREAMS),
    "takeover": Row(takeover.measure, takeover.AIMS),
    "phones": Row(_fleet, FLEET_AIMS, ("fleet",), has_peers=False),
}


@dataclass(slots=True)
class Measured:
    """A row on one kind of reports."""

    row: str
    stream: str
    runs: list[Counts] = field(default_factory=list[Counts])
    """In the order of the seeds."""
    peers: Counts | None = None
    """What became of the same visits of the first seed at a library that hashes its reports."""

    def cases(self) -> dict[tuple[str, Part], list[Count]]:
        keys = dict.fromkeys(key for run in self.runs for key in run.shares)
        return {key: [run.shares.get(key, Count()) for run in self.runs] for key in keys}

    def whole(self, case: str) -> list[Count]:
        """The case on all reports, fitted on or held out."""
        return [found.whole(case) for found in self.runs]


PEERS = "hash"
"""Seed of the job that puts a row's visits to `Hashes`."""


def identity_jobs(rows: Sequence[str], seeds: int, data: Path) -> dict[str, Callable[[], Counts]]:
    """Name -> a run of one row: the service with each seed, and `Hashes` with the first."""
    jobs: dict[str, Callable[[], Counts]] = {}
    for row in rows:
        measure = ROWS[row].measure
        for stream in ROWS[row].streams:
            for seed in range(seeds):
                jobs[_job(row, stream, seed)] = partial(measure, seed, data, stream)
            if ROWS[row].has_peers:
                jobs[_job(row, stream, PEERS)] = partial(measure, 0, data, stream, Hashes)
    return jobs


def gathered(rows: Sequence[str], seeds: int, found: Mapping[str, Counts]) -> list[Measured]:
    """The runs of `identity_jobs` by row. `found` may hold results of other jobs, too."""
    return [
        Measured(
            row, stream, [found[_job(row, stream, seed)] for seed in range(seeds)], found.get(_job(row, stream, PEERS))
        )
        for row in rows
        for stream in ROWS[row].streams
    ]


def _job(row: str, stream: str, seed: int | str) -> str:
    return f"{row} of {stream or 'captures'}, {seed}"


def run(rows: Sequence[str], seeds: int, data: Path, say: Callable[[str], None], processes: int = 2) -> list[Measured]:
    with ProcessPoolExecutor(processes) as pool:
        running = {name: pool.submit(job) for name, job in identity_jobs(rows, seeds, data).items()}
        waiting: set[Future[Counts]] = set(running.values())
        while waiting:
            done, waiting = wait(waiting, timeout=1, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            now = [name for name, future in running.items() if future.running()]
            say(f"{len(running) - len(waiting)} of {len(running)} done, now {'; '.join(now[:processes])}")
        return gathered(rows, seeds, {name: future.result() for name, future in running.items()})


# ---- tables


def identity_tables(measured: Sequence[Measured], *, details: bool = False) -> list[Table]:
    tables = [_aims_table(measured), _parts_table(measured), confidence_table(measured)]
    if details:
        tables.append(_details_table(measured))
    return [table for table in tables if table.rows] if measured else []


def _aims_table(measured: Sequence[Measured]) -> Table:
    rows: list[tuple[str, ...]] = []
    for one in measured:
        for case, aim in ROWS[one.row].aims.items():
            hashed = one.peers.whole(case).share if one.peers is not None else None
            shown = "-" if hashed is None else f"{hashed:.3f}"
            rows.append((_reports(one), case, str(aim), *_shown(one.whole(case), aim), shown))
    header = ("reports", "case", "aim", "mean", "worst seed", "visits, pairs", "met", "hash of the report")
    note = (
        f"Means over {max((len(one.runs) for one in measured), default=0)} runs with other random numbers. Hash of the "
        "report: the same visits of the first run, answered by a hash of all that was collected, as FingerprintJS and "
        "ThumbmarkJS make their ids; of captures by FingerprintJS's components, as ThumbmarkJS's are not in them."
    )
    return Table("One browser, one visitor", header, rows, left=2, note=note)


def _parts_table(measured: Sequence[Measured]) -> Table:
    """Each case of the streams twice: with reports that the numbers were fitted on, and with held-out ones."""
    rows: list[tuple[str, ...]] = []
    for one in measured:
        cases = one.cases()
        for case, aim in ROWS[one.row].aims.items():
            parts: list[str] = []
            for part in ("fitted on", "held out"):
                if (case, part) in cases:
                    parts += _shown(cases[case, part], aim)[:3]
            if parts:
                rows.append((_reports(one), case, str(aim), *parts))
    names = (f"{name}, {part}" for part in ("fitted on", "held out") for name in ("mean", "worst seed", "of"))
    return Table("One browser, one visitor: fitted on and held out", ("reports", "case", "aim", *names), rows, left=2)


def _details_table(measured: Sequence[Measured]) -> Table:
    rows: list[tuple[str, ...]] = []
    for one in measured:
        cases = dict.fromkeys(case for case, _ in one.cases())
        others = [case for case in cases if case not in ROWS[one.row].aims]
        rows += [(_reports(one), case, *_shown(one.whole(case), None)[:3]) for case in others]
    return Table("In detail", ("reports", "case", "mean", "largest", "visits, pairs"), rows, left=2)


def confidence_table(measured: Sequence[Measured]) -> Table:
    """Of the answers with so much confidence, how many were right."""
    rows: list[tuple[str, ...]] = []
    names = list(dict.fromkeys(one.row for one in measured))
    for name in [*names, "all"]:
        said: Counter[tuple[int, bool]] = Counter()
        for one in measured:
            if name in (one.row, "all"):
                for found in one.runs:
                    said.update(found.confidences)
        shares: list[str] = []
        for low, high in CONFIDENCE_BINS:
            right = sum(said[confidence, True] for confidence in range(low, high + 1))
            wrong = sum(said[confidence, False] for confidence in range(low, high + 1))
            shares.append(f"{right / (right + wrong):.3f} of {right + wrong:,}" if right + wrong else "-")
        rows.append((name, *shares))
    bins = (str(low) if low == high else f"{low}-{high}" for low, high in CONFIDENCE_BINS)
    note = "Right: the browser had this id before. Thieves' visits are in it; a thief never has the victim's id."
    return Table("One browser, one visitor: answers that were right, by confidence", ("row", *bins), rows, note=note)


def _reports(one: Measured) -> str:
    return one.stream or "captures"


def _shown(counts: Sequence[Count], aim: Aim | None) -> tuple[str, str, str, str]:
    """Mean over the seeds, worst seed, of how many, whether the mean meets the aim."""
    shares = [count.share for count in counts if count.share is not None]
    if not shares:
        return "-", "-", "0", "-"
    worst = min(shares) if aim is not None and aim.sense == ">=" else max(shares)
    mean = fmean(shares)
    met = "-" if aim is None else "yes" if aim.met(mean) else "no"
    return f"{mean:.3f}", f"{worst:.3f}", f"{sum(count.of for count in counts):,.0f}", met


def identity_facts(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """For JSON."""
    return [
        {
            "row": one.row,
            "reports": _reports(one),
            "cases": [
                {
                    "case": case,
                    "part": part,
                    "aim": str(ROWS[one.row].aims[case]) if case in ROWS[one.row].aims else None,
                    "hits": [count.hits for count in counts],
                    "of": [count.of for count in counts],
                }
                for (case, part), counts in one.cases().items()
            ],
            "confidence": {
                f"{confidence} {'right' if right else 'wrong'}": sum(
                    run.confidences[confidence, right] for run in one.runs
                )
                for confidence, right in sorted({key for run in one.runs for key in run.confidences})
            },
        }
        for one in measured
    ]
