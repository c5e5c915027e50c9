"""A copied report, sent once from the victim's address with a fresh token; a copied token and report; and the owner.

The people are real browsers (`tests/captures`) in a world of strangers with such browsers. A victim visits one, three
or eight times from home. A thief sends a copy of the victim's report with a token of its own, once, from the victim's
address or from its neighborhood (/24), and later, with that token, from anywhere. The victim stays away in between, or
comes back once or three times. And an owner whose browser signs, whose report is sent from the owner's own address.
Accepted = the victim's id at 90 or more. Visits are a day apart, or minutes.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from bench.linkage.identity.world import (
    ACCEPTED,
    DAY_MS,
    MINUTE_MS,
    START_MS,
    Aim,
    Counts,
    Recognizers,
    Sent,
    Visit,
    World,
    address,
    at_least,
    at_most,
    begun,
    captured,
    different,
    of_capture,
    token,
    warmed,
)

VICTIMS = 20
"""In each run."""
VISITS, RETURNS = (1, 3, 8), (0, 1, 3)
PACES = {"days": DAY_MS, "minutes": 5 * MINUTE_MS}
ATTEMPTS = 2
"""Of the thief, from somewhere else each time."""
KEY, OF_THIEF = b"public key of the victim's browser", b"public key of the thief's"

AT_ADDRESS = "a copied report, once from the victim's address: accepted from anywhere later"
NEARBY = "a copied report, once from the victim's /24: accepted from anywhere later"
AT_HOME, ON_THE_ROAD = "the owner afterwards at home: same id", "the owner afterwards on the road: same id"
WITHOUT_KEY = "token and report copied, browser without a key: accepted from anywhere"
WITH_KEY = "token and report copied, browser with a key: accepted from anywhere"
KEEPS_WITH_KEY = "the owner with a key afterwards: same id"
THIEFS_KEY = "a thief signs first, from the /24, with a token that has no key: accepted from anywhere"
KEEPS_ID = "the owner who signs after that thief: same id"
SIGNS_NO_TOKEN = "the owner signs; a copy at the owner's address without a token: accepted"
SIGNS_ANY_TOKEN = "the owner signs; a copy at the owner's address with any token: accepted"

AIMS: dict[str, Aim] = {
    AT_ADDRESS: at_most(0),
    NEARBY: at_most(0),
    THIEFS_KEY: at_most(0),
    KEEPS_ID: at_least(0.98),
    SIGNS_NO_TOKEN: at_most(0),
    SIGNS_ANY_TOKEN: at_most(0),
    AT_HOME: at_least(0.98),
    ON_THE_ROAD: at_least(0.98),
    WITH_KEY: at_most(0),
    KEEPS_WITH_KEY: at_least(0.98),
}


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    del data, stream
    reading, make, counts, random = begun("takeover", seed, make)
    sents = different(reading, map(of_capture, captured()))
    for sent in random.sample(sents, min(VICTIMS, len(sents))):
        strangers = warmed(make, [other for other in sents if other is not sent], random)
        for pace in PACES:
            for visits in VISITS:
                for returns in RETURNS:
                    for nearby in (False, True):
                        _take_over(strangers.copy(), sent, random, counts, pace, visits, returns, nearby=nearby)
        for with_key in (False, True):
            _copy_token(strangers.copy(), sent, random, counts, with_key=with_key)
        _sign_first(strangers.copy(), sent, random, counts)
        for days in (2, 15):
            _copy_at_home(strangers.copy(), sent, random, counts, days)
    return counts


def _take_over(
    world: World, sent: Sent, random: Random, counts: Counts, pace: str, visits: int, returns: int, *, nearby: bool
) -> None:
    pace_ms, at_ms = PACES[pace], START_MS
    home = Visit("victim", sent, address(random), 0, token(random))
    number: object = None
    for place in range(visits):
        number = world.visit(home._replace(at_ms=at_ms, token_is_new=place == 0)).visitor
        at_ms += pace_ms
    near = f"{home.ip.rpartition('.')[0]}.250"
    thief = Visit("thief", sent, near if nearby else home.ip, at_ms, token(random), token_is_new=True)
    world.visit(thief)
    for _ in range(returns):
        at_ms += pace_ms
        world.visit(home._replace(at_ms=at_ms))
    where = f"{visits} visits, {returns} returns, {pace}"
    for _ in range(ATTEMPTS):
        at_ms += pace_ms
        answer = world.visit(thief._replace(ip=address(random), at_ms=at_ms, token_is_new=False))
        accepted = answer.visitor == number and answer.confidence >= ACCEPTED
        counts.add(NEARBY if nearby else AT_ADDRESS, accepted)
        counts.add(f"{'/24' if nearby else 'address'}, {where}: accepted", accepted)
    at_ms += pace_ms
    answer = world.visit(home._replace(at_ms=at_ms))
    counts.add(AT_HOME, answer.visitor == number)
    at_ms += pace_ms
    traveling = world.visit(home._replace(ip=address(random), at_ms=at_ms))
    counts.add(ON_THE_ROAD, traveling.visitor == number)
    counts.add(f"{'/24' if nearby else 'address'}, {where}: the owner on the road", traveling.visitor == number)
    counts.add_confidences(world)


def _copy_token(world: World, sent: Sent, random: Random, counts: Counts, *, with_key: bool) -> None:
    """Two weeks of the owner, who signs his reports or does not; the thief signs nothing."""
    home = Visit("victim", sent, address(random), 0, token(random), key=KEY if with_key else None)
    number = world.daily(home, 15)
    thief = home._replace(browser="thief", key=None)
    for attempt in range(ATTEMPTS):
        at_ms = START_MS + (15 + attempt) * DAY_MS
        answer = world.visit(thief._replace(ip=address(random), at_ms=at_ms))
        accepted = answer.visitor == number and answer.confidence >= ACCEPTED
        counts.add(WITH_KEY if with_key else WITHOUT_KEY, accepted)
    if with_key:
        for place, ip in enumerate((home.ip, address(random))):
            at_ms = START_MS + (15 + ATTEMPTS + place) * DAY_MS
            counts.add(KEEPS_WITH_KEY, world.visit(home._replace(ip=ip, at_ms=at_ms)).visitor == number)
    counts.add_confidences(world)


def _copy_at_home(world: World, sent: Sent, random: Random, counts: Counts, days: int) -> None:
    """The owner signs from the first visit on. Each kind of copy comes twice, in a world of its own."""
    home = Visit("victim", sent, address(random), 0, token(random), key=KEY)
    number = world.daily(home, days)
    fresh = home._replace(browser="thief", token=token(random), token_is_new=True)
    copies = {
        SIGNS_NO_TOKEN: [home._replace(browser="thief", token=None, key=None)],
        SIGNS_ANY_TOKEN: [
            home._replace(browser="thief", key=None),
            home._replace(browser="thief", key=OF_THIEF),
            fresh._replace(key=None),
            fresh._replace(key=OF_THIEF),
        ],
    }
    for case, kinds in copies.items():
        for kind in kinds:
            here = world.copy()
            for attempt in range(ATTEMPTS):
                at_ms = START_MS + (days + attempt) * DAY_MS
                answer = here.visit(kind._replace(at_ms=at_ms, token_is_new=kind.token_is_new and not attempt))
                accepted = answer.visitor == number and answer.confidence >= ACCEPTED
                counts.add(case, accepted)
            counts.add_confidences(here)


def _sign_first(world: World, sent: Sent, random: Random, counts: Counts) -> None:
    """A token from before there were keys. A thief with token and report signs with its own key on four days, from the
    owner's /24 and from elsewhere; the owner's browser, which has a key now, comes in between.
    """
    home = Visit("victim", sent, address(random), 0, token(random))
    number = world.daily(home, 6)
    thief = home._replace(browser="thief", key=OF_THIEF)
    near = f"{home.ip.rpartition('.')[0]}.250"
    for day in range(6, 10):
        at_ms = START_MS + day * DAY_MS
        for place, ip in enumerate((near, address(random))):
            answer = world.visit(thief._replace(ip=ip, at_ms=at_ms + place * MINUTE_MS))
            accepted = answer.visitor == number and answer.confidence >= ACCEPTED
            if place:
                counts.add(THIEFS_KEY, accepted)
        owner = world.visit(home._replace(at_ms=at_ms + DAY_MS // 2, key=KEY))
        counts.add(KEEPS_ID, owner.visitor == number)
    counts.add_confidences(world)
