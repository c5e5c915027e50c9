"""Equal devices with a token each, beside devices that clear their storage and browsers that two sites see.

A month of visits: 1,200 devices that differ, every fourth of which clears its storage once; 100 browsers that two
sites of one customer see in turn; 100 households of two equal devices behind one address; 12 offices of fifteen; and
4 models of which sixty phones have neighboring addresses of one carrier. All are in one organization. And twenty equal
devices of one office, after which one more comes.

And offices that start in one morning: fifteen equal laptops behind one address, a token each, once on each of ten
mornings, each office with a report that no other has. In the first hour nothing tells them from one browser that clears
its storage; as soon as somebody comes back, they are several.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.linkage.identity.world import (
    DAY_MS,
    HOUR_MS,
    START_MS,
    Aim,
    Counts,
    OurService,
    Part,
    Reading,
    Recognizers,
    Sent,
    Visit,
    World,
    address,
    at_least,
    at_most,
    begun,
    different,
    random_of,
    stream_reports,
    token,
    warmed,
)
from bench.linkage.judge import Answer

STREAMS = ("small", "dev")
FIRST_SEED = 7
DAYS = 30
SINGLES, TWO_SITES, HOUSEHOLDS, OFFICES, CARRIERS = 1200, 100, 100, 12, 4
IN_OFFICE, OF_CARRIER = 15, 60
SITES = ("https://shop.example", "https://pay.shop.example")
FURTHER = 24
"""Groups of twenty, each of another report, that a further twin comes to."""

AIMS: dict[str, Aim] = {
    "household of two: joined pairs": at_most(0.02),
    "household of two: visits with the other's id": at_most(0.07),
    "office of fifteen: joined pairs": at_most(0.02),
    "office of fifteen: visits with another's id": at_most(0.06),
    "sixty phones of a carrier: joined pairs": at_most(0.02),
    "sixty phones of a carrier: visits with another's id": at_most(0.02),
    "storage cleared at home: recognized": at_least(0.95),
    "two sites: one visitor": at_least(0.95),
    "after twenty equal devices, one more at their address is new": at_least(0.95),
    "after twenty equal devices, one more in their wide network is new": at_least(0.95),
    "after twenty equal devices, one more elsewhere is new": at_least(0.95),
}
_TWINS = {
    "household": ("household of two: joined pairs", "household of two: visits with the other's id"),
    "office": ("office of fifteen: joined pairs", "office of fifteen: visits with another's id"),
    "carrier": ("sixty phones of a carrier: joined pairs", "sixty phones of a carrier: visits with another's id"),
}


class Planned(NamedTuple):
    day: float
    device: str
    kind: str
    group: str
    cleared: bool
    """Its storage was cleared since its last visit."""
    token: str
    token_is_new: bool
    ip: str
    origin: str
    sent: Sent

    def visit(self) -> Visit:
        at_ms = int(START_MS + self.day * DAY_MS)
        return Visit(self.device, self.sent, self.ip, at_ms, self.token, self.token_is_new, self.origin)


class _Month:
    """Devices with their visits, in the order in which the random numbers are drawn."""

    def __init__(self, sents: Sequence[Sent], seed: int) -> None:
        self.random = Random(seed)
        self.planned: list[Planned] = []
        shuffled = list(sents)
        self.random.shuffle(shuffled)
        distinct: dict[str, Sent] = {}
        for sent in shuffled:
            distinct.setdefault(repr(sorted(sent.signals.items())), sent)
        self._left = iter(distinct.values())

    def take(self) -> tuple[Sent, str]:
        """A report that no other device has, and an address."""
        return next(self._left), address(self.random)

    def add(
        self,
        device: tuple[str, str, str],
        sent: Sent,
        ip: str,
        visits: int,
        *,
        clears: bool = False,
        sites: Sequence[str] = SITES[:1],
    ) -> None:
        """`device`: its kind, its group and its place there."""
        kind, group, place = device
        tokens = {site: token(self.random) for site in sites}
        fresh = set(sites)
        days = sorted(self.random.uniform(0, DAYS) for _ in range(visits))
        cleared_at = self.random.randrange(2, visits) if clears else None
        for visit, day in enumerate(days):
            site = sites[visit % len(sites)]
            cleared = visit == cleared_at
            if cleared:
                tokens[site] = token(self.random)
                fresh.add(site)
            name = f"{kind} {group}.{place}"
            self.planned.append(Planned(day, name, kind, group, cleared, tokens[site], site in fresh, ip, site, sent))
            fresh.discard(site)


def plan(sents: Sequence[Sent], seed: int) -> list[Planned]:
    """The month, in time order. `sents` are taken one for each device that differs, in an order of the seed's."""
    month = _Month(sents, seed)
    for group in range(SINGLES):
        sent, ip = month.take()
        visits = month.random.randrange(3, 9)
        month.add(("single", f"{group}", ""), sent, ip, visits, clears=group % 4 == 0)
    for group in range(TWO_SITES):
        sent, ip = month.take()
        month.add(("two sites", f"{group}", ""), sent, ip, 8, sites=SITES)
    for group in range(HOUSEHOLDS):
        sent, ip = month.take()
        for place in range(2):
            month.add(("household", f"{group}", f"{place}"), sent, ip, 8)
    for group in range(OFFICES):
        sent, ip = month.take()
        for place in range(IN_OFFICE):
            month.add(("office", f"{group}", f"{place}"), sent, ip, 6)
    for group in range(CARRIERS):
        sent, ip = month.take()
        network = ip.rpartition(".")[0]
        for place in range(OF_CARRIER):
            month.add(("carrier", f"{group}", f"{place}"), sent, f"{network}.{place + 1}", 5)
    month.planned.sort(key=lambda visit: visit.day)
    return month.planned


def judge(planned: Sequence[Planned], given: Sequence[Answer], counts: Counts) -> None:
    """Counts what became of the month."""
    owners: dict[object, str] = {}
    last: dict[str, object] = {}
    ids: dict[str, Counter[object]] = defaultdict(Counter)
    groups: dict[tuple[str, str], dict[str, Part]] = defaultdict(dict)
    for visit, answer in zip(planned, given, strict=True):
        device, part = visit.device, visit.sent.part
        wrong = owners.setdefault(answer.visitor, device) != device
        if visit.kind in _TWINS:
            case = _TWINS[visit.kind][1]
            counts.add(case, wrong, part=part)
            if wrong:
                counts.add(f"{case}, of these at 85 or more", answer.confidence >= 85, part=part)
            groups[visit.kind, visit.group][device] = part
        else:
            counts.add(f"{visit.kind}: visits with another's id", wrong, part=part)
        same = last.get(device) == answer.visitor
        if visit.cleared:
            counts.add("storage cleared at home: recognized", same, part=part)
        if visit.kind == "two sites" and device in last:
            counts.add("two sites: one visitor", same, part=part)
        last[device] = answer.visitor
        ids[device][answer.visitor] += 1
    usual = {device: found.most_common(1)[0][0] for device, found in ids.items()}
    for (kind, _), members in groups.items():
        for one, other in combinations(members, 2):
            counts.add(_TWINS[kind][0], usual[one] == usual[other], part=members[one])


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    """`seed` counts from 0."""
    counts = Counts()
    sents = stream_reports(data / "linkage" / stream)
    planned = plan(sents, FIRST_SEED + seed)
    world = World(make() if make else OurService(Reading()))
    given = [world.visit(visit.visit()) for visit in planned]
    judge(planned, given, counts)
    counts.add_confidences(world)
    _further(world, sents, seed, counts)
    return counts


def _further(world: World, sents: Sequence[Sent], seed: int, counts: Counts) -> None:
    """Twenty twins come on three days of a week; then one more, which nobody has seen."""
    random = random_of("further twins", seed)
    start_ms = START_MS + (DAYS + 1) * DAY_MS
    for place, sent in enumerate(random.sample(list(sents), FURTHER)):
        home = address(random)
        visits = [
            Visit(f"further {place}.{member}", sent, home, start_ms + round((2 * day + random.random()) * DAY_MS),
                  made, token_is_new=day == 0)
            for member, made in enumerate(token(random) for _ in range(20))
            for day in range(3)
        ]  # fmt: skip
        for visit in sorted(visits, key=lambda visit: visit.at_ms):
            world.visit(visit)
        late = Visit(f"late {place}", sent, home, start_ms + 7 * DAY_MS, token(random), token_is_new=True)
        nearby = ".".join([*home.split(".")[:2], str(250 + place % 4), "1"])
        places = {"at their address": home, "in their wide network": nearby, "elsewhere": address(random)}
        for case, ip in places.items():
            is_new = world.ask(late._replace(ip=ip)).visitor is None
            counts.add(f"after twenty equal devices, one more {case} is new", is_new, part=sent.part)


# ---- an office that starts in one morning

STARTING = 24
"""Offices in each run, in each store."""
LAPTOPS = 15
MORNINGS = 10

SECOND = "an office that starts in one morning: another's id on the second"
LATER = "an office that starts in one morning: another's id afterwards"
CERTAIN = "an office that starts in one morning: another's id at 90 or more"
JOINED = "an office that starts in one morning: laptops that share their last id"
MORNING_AIMS: dict[str, Aim] = {
    SECOND: at_most(0.15),
    LATER: at_most(0.005),
    CERTAIN: at_most(0),
    JOINED: at_most(0.02),
}


def measure_mornings(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    reading, make, counts, random = begun(f"mornings {stream}", seed, make)
    sents = different(reading, stream_reports(data / "linkage" / stream))
    random.shuffle(sents)
    offices, others = sents[:STARTING], sents[STARTING:]
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
