"""The figures in one picture, for a reader who gives it ten seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.linkage.speed import Cost
from bench.linkage.tables import CONFIDENCE_BINS, Judged, bin_of, uncertainty

COLOURS = ("#9e9e9e", "#5c6bc0", "#ef6c00", "#26a69a", "#00695c")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LEAST_FALSE_MERGE = 1e-4
"""Where the logarithmic axis ends; fewer are drawn there."""
FEWEST_ANSWERS = 50
"""A bin of the calibration curve with fewer says nothing that a reader should see."""


def draw(path: Path, judged: Sequence[Judged], costs: Sequence[Cost]) -> None:
    """Write the picture as PNG."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 5.4), layout="constrained")
    _draw_accuracy(left, judged)
    _draw_calibration(middle, [one for one in judged if one.is_ours])
    _draw_cost(right, costs)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _draw_accuracy(axes: Axes, judged: Sequence[Judged]) -> None:
    methods = list(dict.fromkeys(one.method for one in judged))
    streams = list(dict.fromkeys(one.stream for one in judged))
    for one in judged:
        axes.scatter(
            max(one.verdict.false_merge or 0.0, LEAST_FALSE_MERGE),
            one.verdict.relinked_changed or 0.0,
            s=90,
            color=COLOURS[methods.index(one.method) % len(COLOURS)],
            marker=MARKERS[streams.index(one.stream) % len(MARKERS)],
            edgecolors="white",
            linewidths=0.6,
            zorder=3,
        )
    axes.set_xscale("log")
    axes.set_xlim(LEAST_FALSE_MERGE * 0.8, 1.0)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("false merges, share of all visits (log; left is better)")
    axes.set_ylabel("relinked after a change (up is better)")
    axes.set_title("Who is recognized, and who is taken for another\n(best: top left)")
    axes.grid(alpha=0.25)
    by_method = [
        Line2D([], [], marker="o", linestyle="", color=COLOURS[place % len(COLOURS)], label=method)
        for place, method in enumerate(methods)
    ]
    by_stream = [
        Line2D([], [], marker=MARKERS[place % len(MARKERS)], linestyle="", color="#444444", label=stream)
        for place, stream in enumerate(streams)
    ]
    axes.legend(handles=[*by_method, *by_stream], fontsize=8, loc="center left")


def _draw_calibration(axes: Axes, ours: Sequence[Judged]) -> None:
    """All streams together; the bars are what chance alone may have moved a point by."""
    axes.plot((84, 100), (84, 100), color="#444444", linestyle="--", linewidth=1, label="what is promised, at least")
    lowest = 84.0
    for place, method in enumerate(dict.fromkeys(one.method for one in ours)):
        points: list[tuple[float, float, float]] = []
        for low, high in CONFIDENCE_BINS:
            bins = [bin_of(one.verdict, low, high) for one in ours if one.method == method]
            visits, right, answered = map(sum, zip(*bins, strict=True))
            if visits >= FEWEST_ANSWERS:
                points.append((answered / visits, 100 * right / visits, 100 * uncertainty(right, visits)))
        if not points:
            continue
        said, right_share, give_or_take = zip(*points, strict=True)
        lowest = min(lowest, *(share - moved for share, moved in zip(right_share, give_or_take, strict=True)))
        axes.errorbar(
            said, right_share, give_or_take, marker="o", capsize=3, color=COLOURS[3 + place % 2], label=method
        )  # fmt: skip
    axes.set_xlim(84, 100.7)
    axes.set_ylim(lowest - 1, 101)
    axes.set_xlabel("confidence that was answered")
    axes.set_ylabel("of these answers, right (%)")
    axes.set_title("Confidence calibration\n(calibrated on or above the dashed line; all streams)")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, loc="lower right")


def _draw_cost(axes: Axes, costs: Sequence[Cost]) -> None:
    known = [cost.visitors for cost in costs]
    for name, values, style in (
        ("no token, p99", [cost.without_token.p99 for cost in costs], "--"),
        ("no token, p50", [cost.without_token.p50 for cost in costs], "-"),
        ("token, p99", [cost.with_token.p99 for cost in costs], "--"),
        ("token, p50", [cost.with_token.p50 for cost in costs], "-"),
    ):
        axes.plot(known, values, style, marker="o", color=COLOURS[3 + name.startswith("token")], label=name)
    axes.set_xscale("log")
    axes.set_ylim(0)
    axes.set_xlabel("known visitors (log)")
    axes.set_ylabel("CPU of one match (µs)")
    axes.set_title("What a match costs as an organization grows\n(flat is better)")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8)
