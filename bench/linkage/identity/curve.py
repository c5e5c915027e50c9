"""The curve between succession and twins: what recognizing cleared storage costs among equal devices.

    python -m bench.linkage.identity.curve [--streams small dev] [--seeds 2] [--data ../shared/data]

A token that joins beside an older one is linked as one without a token while fewer devices than a bar are expected to
hide behind its visitor (`parameters.HIDDEN_DEVICE`). For each bar the month of `twins` is played; then 48 other
devices of the same organization, a third of whose new tokens were another device's, clear their storage on eight days.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from statistics import fmean

from bench.linkage.identity import twins
from bench.linkage.identity.private import CLEARINGS
from bench.linkage.identity.world import (
    DAY_MS,
    HOUR_MS,
    START_MS,
    Counts,
    OurService,
    Reading,
    Sent,
    Visit,
    World,
    address,
    random_of,
    stream_reports,
    token,
)
from bench.linkage.tables import Table
from bench.usage import read_options
from svc.identify.matching import parameters

BARS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.7)
DEVICES = 48
TWINS = (
    "office of fifteen: visits with another's id",
    "sixty phones of a carrier: visits with another's id",
    "household of two: visits with the other's id",
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(__doc__, arguments)
    rows: list[tuple[str, ...]] = []
    shipped = parameters.HIDDEN_DEVICE
    for stream in options.streams:
        sents = stream_reports(options.data / "linkage" / stream)
        for bar in BARS:
            vars(parameters)["HIDDEN_DEVICE"] = bar
            found = [_found(sents, seed) for seed in range(options.seeds)]
            shown = f"{bar}, shipped" if bar == shipped else f"{bar}"
            rows.append((stream, shown, *(f"{fmean(column):.3f}" for column in zip(*found, strict=True))))
    vars(parameters)["HIDDEN_DEVICE"] = shipped
    header = ("reports", "bar", *TWINS, "eight clearings: ids", "cleared: same id as before")
    print(Table("The curve between succession and twins", header, rows, left=2).text())


def _found(sents: Sequence[Sent], seed: int) -> tuple[float, ...]:
    """The shares of `TWINS`, then the mean number of ids and the share of clearings that kept the id."""
    counts = Counts()
    planned = twins.plan(sents, twins.FIRST_SEED + seed)
    world = World(OurService(Reading()))
    given = [world.visit(visit.visit()) for visit in planned]
    twins.judge(planned, given, counts)
    taken = {id(visit.sent) for visit in planned}
    left = [sent for sent in sents if id(sent) not in taken]
    random = random_of("curve", seed)
    ids = [_cleared(world, sent, random) for sent in random.sample(left, DEVICES)]
    same = [before == after for each in ids for before, after in pairwise(each)]
    shares = [counts.whole(case).share or 0.0 for case in TWINS]
    return (*shares, fmean(len(set(each)) for each in ids), fmean(same))


def _cleared(world: World, sent: Sent, random: Random) -> list[object]:
    home = address(random)
    start_ms = START_MS + (twins.DAYS + 1) * DAY_MS
    return [
        world.visit(
            Visit(sent.name, sent, home, start_ms + day * DAY_MS + random.randrange(HOUR_MS), token(random), True)
        ).visitor
        for day in range(CLEARINGS)
    ]


if __name__ == "__main__":
    main()
