"""An office that starts in one morning: fifteen equal laptops behind one address, each with a token of its own.

In the first hour nothing tells them from one browser that clears its storage; as soon as somebody comes back, they are
several. Each laptop comes once on each of ten mornings. Every office has a report that no other has, and starts in a
store that knows nobody, or has had 200 visits of strangers.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random

from bench.linkage.identity.world import (
    DAY_MS,
    HOUR_MS,
    START_MS,
    Aim,
    Counts,
    OurService,
    Reading,
    Recognizers,
    Sent,
    Visit,
    World,
    address,
    at_most,
    different,
    random_of,
    stream_reports,
    token,
    warmed,
)

STREAMS = ("small", "dev")
OFFICES = 24
"""In each run, in each store."""
LAPTOPS = 15
MORNINGS = 10

SECOND = "an office that starts in one morning: another's id on the second"
LATER = "an office that starts in one morning: another's id afterwards"
CERTAIN = "an office that starts in one morning: another's id at 90 or more"
JOINED = "an office that starts in one morning: laptops that share their last id"
AIMS: dict[str, Aim] = {SECOND: at_most(0.15), LATER: at_most(0.005), CERTAIN: at_most(0), JOINED: at_most(0.02)}


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    reading = Reading()
    make = make or partial(OurService, reading)
    counts, random = Counts(), random_of(f"mornings {stream}", seed)
    sents = different(reading, stream_reports(data / "linkage" / stream))
    random.shuffle(sents)
    offices, others = sents[:OFFICES], sents[OFFICES:]
    for visits in (0, 200):
        strangers = warmed(make, others, random, visits)
        for sent in offices:
            _office(strangers.copy(), sent, random, counts)
    return counts


def _office(world: World, sent: Sent, random: Random, counts: Counts) -> None:
    home = address(random)
    laptops = [Visit(f"laptop {place}", sent, home, 0, token(random)) for place in range(LAPTOPS)]
    owners: dict[object, str] = {}
    last: dict[str, object] = {}
    for morning in range(MORNINGS):
        arrivals = sorted((random.randrange(HOUR_MS), place) for place in range(LAPTOPS))
        for after_ms, place in arrivals:
            at_ms = START_MS + morning * DAY_MS + 9 * HOUR_MS + after_ms
            visit = laptops[place]._replace(at_ms=at_ms, token_is_new=morning == 0)
            answer = world.visit(visit)
            wrong = owners.setdefault(answer.visitor, visit.browser) != visit.browser
            last[visit.browser] = answer.visitor
            case = {0: "an office that starts in one morning: another's id on the first", 1: SECOND}.get(morning, LATER)
            counts.add(case, wrong, part=sent.part)
            counts.add(CERTAIN, wrong and answer.confidence >= 90, part=sent.part)
    for one, other in combinations(last.values(), 2):
        counts.add(JOINED, one == other, part=sent.part)
    counts.add_confidences(world)
