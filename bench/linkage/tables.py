"""Figures as tables: for people on a terminal, and the same ones as Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bench.linkage.judge import Ends, Verdict, share
from bench.linkage.ladder import Climbed
from bench.linkage.speed import Cost

CONFIDENCE_BINS = ((85, 89), (90, 92), (93, 95), (96, 97), (98, 98), (99, 99), (100, 100))
"""First and last confidence of each row of the calibration table."""


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    left: int = 1
    """Columns that are words, from the left; the others are numbers."""
    note: str = ""

    def text(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            return "  ".join(
                cell.ljust(width) if place < self.left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ).rstrip()

        lines = [self.title, line(self.header), "  ".join("-" * width for width in widths), *map(line, self.rows)]
        return "\n".join([*lines, *textwrap.wrap(self.note, 120)])

    def markdown(self) -> str:
        marks = ["---" if place < self.left else "---:" for place in range(len(self.header))]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.header, marks, *self.rows)]
        return "\n".join([f"### {self.title}", "", *lines, *(["", self.note] if self.note else [])])


@dataclass(frozen=True, slots=True)
class Judged:
    """One method on one stream."""

    stream: str
    method: str
    is_ours: bool
    verdict: Verdict
    digest: str | None = None
    """Of the service's answers."""
    parts: tuple[Verdict, Verdict] | None = None
    """On the browsers of the devices that the numbers were fitted on, and on those of the held-out quarter."""


def accuracy_table(judged: Iterable[Judged]) -> Table:
    header = (
        "stream", "method", "relinked after a change", "relinked overall", "false new", "false merge",
        "first visit right", "pair precision", "pair recall",
    )  # fmt: skip
    rows = [
        (
            one.stream,
            one.method,
            *map(
                _share,
                (
                    one.verdict.relinked_changed,
                    one.verdict.relinked,
                    one.verdict.false_new,
                    one.verdict.false_merge,
                    one.verdict.first_visit_right,
                    one.verdict.pair_precision,
                    one.verdict.pair_recall,
                ),
            ),
        )
        for one in judged
    ]
    note = "Relinked and false new are shares of return visits, false merge of all visits."
    return Table("Who is recognized", header, rows, left=2, note=note)


def held_out_table(judged: Iterable[Judged]) -> Table:
    """Each figure twice: on the devices that the numbers were fitted on, and on those that were held out."""
    figures: dict[str, Callable[[Verdict], float | None]] = {
        "relinked after a change": lambda verdict: verdict.relinked_changed,
        "relinked": lambda verdict: verdict.relinked,
        "false merge": lambda verdict: verdict.false_merge,
        "pair precision": lambda verdict: verdict.pair_precision,
        "average / possible days": lambda verdict: _ratio(verdict.average_days, verdict.possible_days),
        "ownership": lambda verdict: verdict.ownership,
    }
    rows = [
        (
            one.stream,
            one.method.removeprefix("this service, "),
            *(_share(figure(part)) for figure in figures.values() for part in one.parts),
        )
        for one in judged
        if one.parts
    ]
    header = ("stream", "", *(f"{name}, {part}" for name in figures for part in ("fitted on", "held out")))
    note = (
        "One replay of all devices, whose visits are counted in the column of their device. Held out: a quarter of the "
        "devices, by a hash of their ids. Pairs and ids that devices of both parts share count in both columns."
    )
    return Table("Fitted on and held out", header, rows, left=2, note=note)


def tracking_table(judged: Iterable[Judged]) -> Table:
    header = (
        "stream", "method", "average days", "maximum days", "possible days", "average / possible",
        "maximum / possible", "ownership",
    )  # fmt: skip
    rows = [
        (
            one.stream,
            one.method,
            _days(one.verdict.average_days),
            _days(one.verdict.maximum_days),
            _days(one.verdict.possible_days),
            _share(_ratio(one.verdict.average_days, one.verdict.possible_days)),
            _share(_ratio(one.verdict.maximum_days, one.verdict.possible_days)),
            _share(one.verdict.ownership),
        )
        for one in judged
    ]
    note = "After Vastel et al.: means over browsers that came twice at least; ownership is a mean over ids."
    return Table("For how long", header, rows, left=2, note=note)


def cause_tables(judged: Sequence[Judged]) -> list[Table]:
    """Per stream: by what had happened since the last visit, the share of returns relinked by each method."""
    tables: list[Table] = []
    for stream, group in groupby(judged, key=lambda one: one.stream):
        methods = list(group)
        ours = next((one for one in reversed(methods) if one.is_ours), methods[-1])
        causes = sorted(ours.verdict.causes, key=lambda cause: -ours.verdict.causes[cause].returns)
        rows = [
            (
                cause.replace("_", " "),
                f"{ours.verdict.causes[cause].returns:,}",
                *(_share(_relinked(one.verdict.causes.get(cause))) for one in methods),
            )
            for cause in causes
        ]
        title = f"Relinked, by what had happened since the last visit: {stream}"
        tables.append(Table(title, ("cause", "returns", *(one.method for one in methods)), rows))
    return tables


def calibration_table(judged: Sequence[Judged]) -> Table:
    """Of the answers with so much confidence, how many were right."""
    ours = [one for one in judged if one.is_ours]
    rows: list[tuple[str, ...]] = []
    for one in ours:
        for low, high in CONFIDENCE_BINS:
            visits, right, answered = bin_of(one.verdict, low, high)
            if not visits:
                continue
            difference = 100 * right / visits - answered / visits
            said = str(low) if low == high else f"{low}-{high}"
            method = one.method.removeprefix("this service, ")
            shown = (f"{answered / visits:.1f}", f"{difference:+.1f}", f"{100 * uncertainty(right, visits):.1f}")
            rows.append((one.stream, method, said, f"{visits:,}", _share(right / visits), *shown))
    header = (
        "stream",
        "",
        "confidence",
        "visits",
        "right",
        "answered, mean",
        "earned above it, points",
        "give or take",
    )
    note = (
        "Right: the browser had this id before. Earned above it: share right less the mean confidence, in points; "
        "negative is confidence that was not earned. Give or take: what chance alone may have moved it by, in points "
        "(95 %)."
    )
    return Table("Confidence calibration", header, rows, left=3, note=note)


def bin_of(verdict: Verdict, low: int, high: int) -> tuple[int, int, int]:
    """(visits, right ones, sum of the confidences) answered with a confidence from `low` to `high`."""
    within = [(said, *counts) for said, counts in verdict.confidences.items() if low <= said <= high]
    return (
        sum(visits for _, visits, _ in within),
        sum(right for _, _, right in within),
        sum(said * visits for said, visits, _ in within),
    )


def uncertainty(right: int, visits: int) -> float:
    """Half the width of the 95 % interval of a share (Wilson, JASA 1927), which holds for few and for extreme ones."""
    part = right / visits
    return 2 * math.sqrt(part * (1 - part) / visits + 1 / visits**2) / (1 + 4 / visits)


def ladder_table(climbed: dict[str, Climbed]) -> Table:
    """`climbed` by where the devices stood: each on its own network, all on one."""
    rows = [
        (
            where,
            profile,
            _of(result.upgrades[profile]),
            _of(result.other_builds.get(profile, (0, 0))),
            ", ".join(missed.partition("/")[2] for missed in result.missed if missed.startswith(f"{profile}/")) or "-",
            ", ".join(" = ".join(group) for group in result.merged if profile in group) or "-",
        )
        for where, result in climbed.items()
        for profile in sorted(result.upgrades)
    ]
    header = ("network", "device", "upgrades recognized", "other builds recognized", "missed", "merged with")
    note = (
        "Real Chromium builds, a week between steps, no token. Other builds (new headless mode on another screen, then "
        "a window) are no upgrades. p0 and p5 report the same but for canvas and font preferences."
    )
    return Table("The ladder of real browser upgrades", header, rows, left=2, note=note)


def cost_table(costs: Sequence[Cost]) -> Table:
    rows = [
        (
            f"{cost.visitors:,}",
            f"{cost.with_token.p50:.0f}",
            f"{cost.with_token.p99:.0f}",
            f"{cost.without_token.p50:.0f}",
            f"{cost.without_token.p99:.0f}",
            f"{cost.without_token.mean:.0f}",
            *(f"{cost.without_token[place] / costs[0].without_token[place]:.2f}" for place in range(2)),
            f"{cost.bytes_per_visitor:.0f}",
        )
        for cost in costs
    ]
    header = (
        "known visitors", "token, p50 µs", "token, p99 µs", "no token, p50 µs", "no token, p99 µs",
        "no token, mean µs", *(f"{of}, times that of {costs[0].visitors:,}" if costs else "" for of in ("mean", "p50")),
        "bytes a visitor",
    )  # fmt: skip
    note = (
        "CPU of one match in a real store: hashing the report's values, reading candidates, link decision, writes. "
        "Made-up devices, all sizes in turn; without a token, half known and unchanged, a quarter upgraded, a quarter "
        "new. Bytes: pages of the tables of visitors, blocks and visitor ids."
    )
    return Table("Performance and storage", header, rows, left=0, note=note)


def _relinked(ends: Ends | None) -> float | None:
    return None if ends is None else share(ends.relinked, ends.returns)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _days(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _of(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}" if counts[1] else "-"
