"""One browser whose storage is cleared again and again: cookies deleted at exit, or by hand before each sign-up.

The people are real Chromium and Firefox browsers (`tests/captures`). Each comes eight times, with a new token each
time, to a store that knows nobody or has had 200 or 2,000 visits of strangers; from the start, or after ten days with
one token. Then the last token comes once more from another network, within the hour.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

from bench.linkage.identity.world import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
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
    at_least,
    at_most,
    captured,
    different,
    of_capture,
    random_of,
    token,
    warmed,
)

BROWSERS = ("chromium", "firefox")
PEOPLE = 12
"""In each run."""
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
AIMS: dict[str, Aim] = {TWO_IDS: at_least(0.98), SAME: at_least(0.98), CERTAIN: at_most(0)}
LIVING_MS = 30 * DAY_MS


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    del data, stream
    reading = Reading()
    make = make or partial(OurService, reading)
    counts, random = Counts(), random_of("cleared", seed)
    sents = different(reading, (of_capture(capture) for capture in captured() if capture.browser in BROWSERS))
    people = random.sample(sents, min(PEOPLE, len(sents)))
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
