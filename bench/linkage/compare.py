"""Whether the matching of this tree got worse on the published streams than that of another tree.

    python -m bench.linkage.compare --save before.json          figures of this tree
    python -m bench.linkage.compare --against before.json       the same, beside those of the other one

Runs the service's matching in process, with and without tokens, and the thefts; no baselines, no store, no picture.
A figure is flagged where it is worse by more than .002. Ends with 1 where one is.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.linkage.accuracy import STREAMS, Progress, judge_service
from bench.linkage.judge import Verdict, share
from bench.linkage.tables import CONFIDENCE_BINS, Table, bin_of
from bench.linkage.theft import STREAMS as ROBBED_STREAMS
from bench.linkage.theft import Count, Results
from bench.linkage.theft import measure as measure_thefts

TOLERANCE = 0.002
LESS_IS_BETTER = frozenset({"false new", "false merge", "thief"})
WHOLE = "all"


class Figure(NamedTuple):
    subject: str
    """Stream, and whether with tokens."""
    part: str
    """`all`, `fitted on` or `held out`: the devices that it is of."""
    name: str
    value: float
    of: int
    """How many visits, pairs or attempts it is a share of; 0 = not counted."""
    less_is_better: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return self.subject, self.part, self.name


def stream_figures(folder: Path, *, with_tokens: bool) -> list[Figure]:
    judged = judge_service(folder, with_tokens=with_tokens)[0]
    subject = f"{folder.name}, {'token' if with_tokens else 'no token'}"
    parts = {WHOLE: judged.verdict}
    if judged.parts:
        parts.update(zip(("fitted on", "held out"), judged.parts, strict=True))
    return [
        Figure(subject, part, name, value, of, name in LESS_IS_BETTER)
        for part, verdict in parts.items()
        for name, value, of in _of_verdict(verdict)
        if value is not None
    ]


def _of_verdict(verdict: Verdict) -> Iterator[tuple[str, float | None, int]]:
    returns = verdict.all_returns.returns
    yield "relinked", verdict.relinked, returns
    yield "relinked after a change", verdict.relinked_changed, verdict.changed.returns
    yield "false new", verdict.false_new, returns
    yield "false merge", verdict.false_merge, verdict.visits
    yield "first visit right", verdict.first_visit_right, verdict.first_visits
    yield "pair precision", verdict.pair_precision, verdict.pairs_answered
    yield "pair recall", verdict.pair_recall, verdict.pairs_true
    yield "ownership", verdict.ownership, verdict.ids
    possible = verdict.possible_days
    if possible and verdict.average_days is not None and verdict.maximum_days is not None:
        yield "average / possible days", verdict.average_days / possible, 0
        yield "maximum / possible days", verdict.maximum_days / possible, 0
    for low, high in CONFIDENCE_BINS:
        visits, right, _ = bin_of(verdict, low, high)
        yield f"right at {low}" if low == high else f"right at {low}-{high}", share(right, visits), visits


def theft_figures(folder: Path) -> list[Figure]:
    figures: list[Figure] = []
    for who, results in measure_thefts(folder).items():
        for part, counts in _parts(results).items():
            for (scenario, organization), count in counts.items():
                if count.share is not None:
                    name = f"{who}, {organization}: {scenario}"
                    figures.append(
                        Figure(f"{folder.name}, theft", part, name, count.share, count.attempts, who in LESS_IS_BETTER)
                    )
    return figures


def _parts(results: Results) -> dict[str, dict[tuple[str, str], Count]]:
    parts: dict[str, dict[tuple[str, str], Count]] = {WHOLE: {}, "fitted on": {}, "held out": {}}
    for (scenario, organization, held_out), count in results.items():
        for part in (WHOLE, "held out" if held_out else "fitted on"):
            total = parts[part].setdefault((scenario, organization), Count())
            total.attempts += count.attempts
            total.hits += count.hits
    return parts


def figures_of(
    streams: Sequence[str], data: Path, processes: int, say: Callable[[str], None], *, thefts: bool = True
) -> tuple[list[Figure], dict[str, float]]:
    """All figures, and how many seconds each part of the work took."""
    folders = [data / "linkage" / stream for stream in streams]
    jobs: dict[str, Callable[[], list[Figure]]] = {}
    for folder in folders:
        for with_tokens in (True, False):
            name = f"{folder.name}, {'token' if with_tokens else 'no token'}"
            jobs[name] = partial(stream_figures, folder, with_tokens=with_tokens)
        if thefts and folder.name in ROBBED_STREAMS:
            jobs[f"{folder.name}, theft"] = partial(theft_figures, folder)
    with ProcessPoolExecutor(processes) as pool:
        # The longest first, so that no process is left alone with one at the end.
        order = sorted(jobs, key=lambda name: not name.startswith(("dev", "hard")))
        running: dict[Future[tuple[list[Figure], float]], str] = {
            pool.submit(_timed, jobs[name]): name for name in order
        }
        waiting = set(running)
        while waiting:
            done, waiting = wait(waiting, timeout=1, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            now = [name for future, name in running.items() if future.running()][:processes]
            say(f"{len(running) - len(waiting)} of {len(running)} done, now {'; '.join(now)}")
        found = {name: future.result() for future, name in running.items()}
    return (
        [figure for name in jobs for figure in found[name][0]],
        {name: found[name][1] for name in jobs},
    )


def _timed(job: Callable[[], list[Figure]]) -> tuple[list[Figure], float]:
    started = time.monotonic()
    return job(), time.monotonic() - started


def comparison(before: Sequence[Figure], now: Sequence[Figure], tolerance: float = TOLERANCE) -> tuple[Table, int]:
    """A row for each figure of whole streams, and for each of a part that is worse; and how many are worse."""
    earlier = {figure.key: figure for figure in before}
    rows: list[tuple[str, ...]] = []
    worse = 0
    for figure in now:
        old = earlier.get(figure.key)
        if old is None:
            continue
        change = figure.value - old.value
        is_worse = (change if figure.less_is_better else -change) > tolerance
        worse += is_worse
        if is_worse or figure.part == WHOLE:
            values = (f"{old.value:.4f}", f"{figure.value:.4f}", f"{change:+.4f}")
            counts = (f"{old.of:,}", f"{figure.of:,}") if figure.of else ("", "")
            rows.append((*figure.key, *values, *counts, "WORSE" if is_worse else ""))
    header = ("stream", "devices", "figure", "before", "now", "change", "of, before", "of, now", "")
    return Table("Published streams, before and now", header, rows, left=3), worse


def plain_table(figures: Sequence[Figure]) -> Table:
    rows = [
        (figure.subject, figure.name, f"{figure.value:.4f}", f"{figure.of:,}" if figure.of else "")
        for figure in figures
        if figure.part == WHOLE
    ]
    return Table("Published streams", ("stream", "figure", "value", "of"), rows, left=2)


def save(path: Path, figures: Sequence[Figure]) -> None:
    path.write_text(json.dumps([figure._asdict() for figure in figures], indent=0) + "\n")


def load(path: Path) -> list[Figure]:
    return [Figure(**row) for row in msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", default=STREAMS, metavar="STREAM")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with linkage/")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the figures of this tree")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with kept figures")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="a figure that is worse by more is flagged")
    parser.add_argument("--no-thefts", action="store_true", help="without the copied tokens")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    before = load(options.against) if options.against else None
    progress = Progress()
    figures, seconds = figures_of(
        options.streams, options.data, options.processes, progress.say, thefts=not options.no_thefts
    )
    progress.end()
    if options.save:
        save(options.save, figures)
    worse = 0
    if before is None:
        print(plain_table(figures).text())
    else:
        table, worse = comparison(before, figures, options.tolerance)
        print(table.text())
        print(f"\n{worse} of {len(figures)} figures, parts included, are worse by more than {options.tolerance}")
    print("\nSeconds: " + ", ".join(f"{name} {took:.0f}" for name, took in seconds.items()))
    if worse:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
