"""Private windows, profiles of one computer, old reports that are sent again, and storage that is cleared.

The people are real Chromium and Firefox browsers (`tests/captures`). For the first three each is in a world of its own
in which 200 visits of strangers with such browsers were, and comes on ten days from home with the token of an ordinary
window. Storage is cleared eight times, as by cookies that are deleted at exit or before each sign-up, in a store that
knows nobody or has had 200 or 2,000 visits of strangers; from the start, or after ten days with one token. Then the
last token comes once more from another network, within the hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.linkage.identity.world import (
    DAY_MS,
    HOUR_MS,
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

BROWSERS = ("chromium", "firefox")
PEOPLE = 24
"""In each run, of some sixty different reports."""
DAYS = 10
VISITS_A_DAY = 4

PRIVATE = "private windows, then the old cookie elsewhere: same id"
AIMS: dict[str, Aim] = {
    PRIVATE: at_least(0.97),
    "two profiles: pairs apart after the first day": at_least(0.95),
    "four profiles: pairs apart after the first day": at_least(0.95),
    "two profiles: a profile keeps its id when traveling": at_least(0.97),
    "four profiles: a profile keeps its id when traveling": at_least(0.97),
    "an old report sent again elsewhere changes the victim's later ids": at_most(0.0),
}


class Person(NamedTuple):
    world: World
    random: Random
    home: Visit
    """A visit from home with the token; its time is to be set."""
    number: object
    """The id after ten days."""
    first: Visit
    """The first visit, as it was sent."""
    now_ms: int


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    del data, stream
    reading, make, counts, random = begun("private", seed, make)
    sents = different(reading, (of_capture(capture) for capture in captured() if capture.browser in BROWSERS))
    for sent in random.sample(sents, min(PEOPLE, len(sents))):
        strangers = warmed(make, [other for other in sents if other is not sent], random)
        _private_windows(strangers, sent, random, counts)
        _replayed(strangers, sent, random, counts)
        for many, name in ((2, "two"), (4, "four")):
            _profiles(strangers.copy(), sent, random, counts, many, name)
    return counts


def _person(strangers: World, sent: Sent, random: Random) -> Person:
    world = strangers.copy()
    home = Visit("person", sent, address(random), 0, token(random))
    first = home._replace(at_ms=START_MS + 8 * HOUR_MS, token_is_new=True, nonce=token(random))
    number = world.visit(first).visitor
    for day in range(1, DAYS):
        at_ms = START_MS + day * DAY_MS + random.randrange(8 * HOUR_MS, 20 * HOUR_MS)
        number = world.visit(home._replace(at_ms=at_ms)).visitor
    return Person(world, random, home, number, first, START_MS + DAYS * DAY_MS)


def _windows(person: Person, many: int, pace_ms: int, *, seen: bool, between: bool = False) -> int:
    """So many private windows, each with a token that never comes again. Returns the time after them. `seen`: the
    collector knows that they are private. `between`: the person visits as usual after each.
    """
    at_ms = person.now_ms + 9 * HOUR_MS
    for _ in range(many):
        window = person.home._replace(token=token(person.random), token_is_new=True, private=seen)
        person.world.visit(window._replace(at_ms=at_ms))
        if between:
            person.world.visit(person.home._replace(at_ms=at_ms + pace_ms // 2))
        at_ms += pace_ms
    return at_ms


def _private_windows(strangers: World, sent: Sent, random: Random, counts: Counts) -> None:
    for many, (pace, pace_ms, between), seen in _ways_of_windows():
        person = _person(strangers, sent, random)
        at_ms = _windows(person, many, pace_ms, seen=seen, between=between)
        answer = person.world.visit(person.home._replace(ip=address(random), at_ms=at_ms + DAY_MS))
        same = answer.visitor == person.number
        counts.add(PRIVATE, same)
        shown = "seen as such" if seen else "not seen as such"
        counts.add(f"{many} private windows {pace}, {shown}, then the old cookie elsewhere: same id", same)
        counts.add_confidences(person.world)


def _ways_of_windows() -> Iterator[tuple[int, tuple[str, int, bool], bool]]:
    paces = (
        ("in a row", 10 * MINUTE_MS, False),
        ("on days in a row", DAY_MS, False),
        ("between ordinary visits", DAY_MS, True),
    )
    for many in (3, 6):
        for pace in paces:
            for seen in (False, True):
                yield many, pace, seen


def _replayed(strangers: World, sent: Sent, random: Random, counts: Counts) -> None:
    """The first report again, nonce and token included, from where the person never was."""
    for windows in (0, 2, 3):
        person = _person(strangers, sent, random)
        at_ms = _windows(person, windows, 10 * MINUTE_MS, seen=False)
        person.world.visit(person.first._replace(browser="thief", ip=address(random), at_ms=at_ms + HOUR_MS))
        later = [
            person.world.visit(person.home._replace(at_ms=at_ms + 2 * HOUR_MS + day * DAY_MS)).visitor
            for day in range(3)
        ]
        changed = any(number != person.number for number in later)
        counts.add("an old report sent again elsewhere changes the victim's later ids", changed)
        counts.add(f"an old report sent again elsewhere, after {windows} private windows", changed)
        counts.add_confidences(person.world)


def _profiles(world: World, sent: Sent, random: Random, counts: Counts, many: int, name: str) -> None:
    """Each with a token of its own; they take turns, from one address."""
    home = address(random)
    profiles = [Visit(f"profile {place}", sent, home, 0, token(random)) for place in range(many)]
    first_day: list[Counter[object]] = [Counter() for _ in profiles]
    later: list[Counter[object]] = [Counter() for _ in profiles]
    last: list[object] = [None] * many
    for day in range(DAYS):
        for turn in range(VISITS_A_DAY):
            order = random.sample(range(many), many)
            for position, place in enumerate(order):
                at_ms = START_MS + day * DAY_MS + (8 + 3 * turn) * HOUR_MS + position * 20 * MINUTE_MS
                new = day == 0 and turn == 0
                last[place] = world.visit(profiles[place]._replace(at_ms=at_ms, token_is_new=new)).visitor
                (later if day else first_day)[place][last[place]] += 1
    usual = [found.most_common(1)[0][0] for found in later]
    for one, other in combinations(range(many), 2):
        counts.add(f"{name} profiles: pairs apart after the first day", usual[one] != usual[other])
        apart = last[one] != last[other]
        counts.add(f"{name} profiles: pairs apart at the end", apart)
    for place, profile in enumerate(profiles):
        at_ms = START_MS + DAYS * DAY_MS + place * HOUR_MS
        answer = world.visit(profile._replace(ip=address(random), at_ms=at_ms))
        counts.add(f"{name} profiles: a profile keeps its id when traveling", answer.visitor == usual[place])
    counts.add_confidences(world)


# ---- storage that is cleared

CLEARING = 12
"""People in each run."""
CLEARINGS = 8
PACES = {
    "every ten minutes": 10 * MINUTE_MS,
    "every 3 hours": 3 * HOUR_MS,
    "every 26 hours": 26 * HOUR_MS,
    "every week": 7 * DAY_MS,
    "every 31 days": 31 * DAY_MS,
}
STORES = {"young": 0, "200 foreign visits": 200, "2,000 foreign visits": 2000}
DAYS_BEFORE = 10

TWO_IDS = "cleared eight times: at most two ids"
SAME = "storage cleared again: same id as before"
CERTAIN = "storage cleared: answered at 90 or more while an earlier token lives"
CLEARED_AIMS: dict[str, Aim] = {TWO_IDS: at_least(0.98), SAME: at_least(0.98), CERTAIN: at_most(0)}
LIVING_MS = 30 * DAY_MS


def measure_cleared(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    del data, stream
    reading, make, counts, random = begun("cleared", seed, make)
    sents = different(reading, (of_capture(capture) for capture in captured() if capture.browser in BROWSERS))
    people = random.sample(sents, min(CLEARING, len(sents)))
    others = [sent for sent in sents if sent not in people]
    for store, visits in STORES.items():
        strangers = warmed(make, others, random, visits)
        for sent in people:
            for pace, pace_ms in PACES.items():
                for known in (False, True):
                    _clears(strangers.copy(), sent, random, counts, pace_ms, f"{pace}, {store}", known=known)
    return counts


def _clears(world: World, sent: Sent, random: Random, counts: Counts, pace_ms: int, shown: str, *, known: bool) -> None:
    """`known`: the browser came on ten days with one token before."""
    person = Visit("person", sent, address(random), START_MS, token(random))
    ids: list[object] = []
    if known:
        for day in range(DAYS_BEFORE):
            at_ms = START_MS + day * DAY_MS + random.randrange(8 * HOUR_MS)
            answer = world.visit(person._replace(at_ms=at_ms, token_is_new=day == 0))
        ids = [answer.visitor]
    at_ms = START_MS + DAYS_BEFORE * DAY_MS
    for _ in range(CLEARINGS):
        person = person._replace(at_ms=at_ms, token=token(random), token_is_new=True)
        answer = world.visit(person)
        if ids and pace_ms < LIVING_MS:
            counts.add(CERTAIN, answer.confidence >= 90)
        ids.append(answer.visitor)
        at_ms += pace_ms
    counts.add(TWO_IDS, len(set(ids)) <= 2)
    start = "after ten days of one token" if known else "from the start"
    counts.add(f"{TWO_IDS}: {shown}, {start}", len(set(ids)) <= 2)
    for before, after in pairwise(ids):
        counts.add(SAME, before == after)
    road = world.visit(person._replace(ip=address(random), at_ms=at_ms - pace_ms + HOUR_MS, token_is_new=False))
    counts.add(
        f"the last of eight tokens from another network within the hour: same id, {start}", road.visitor == ids[-1]
    )
    counts.add_confidences(world)
