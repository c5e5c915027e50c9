"""A year of updates. Pairs of equal devices live in two homes, in an organization that had 200 visits of strangers.
Every four weeks there is a release, which one device has days before the other; it may change the canvas, the sound or
what the browser can do, equally on both. One update of the system brings fonts. Once without tokens; once with tokens,
of which each is lost within twenty to forty days.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from bench.linkage.identity.world import (
    DAY_MS,
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
    different,
    plain,
    stream_reports,
    token,
    warmed,
)

STREAMS = ("small", "dev")
PAIRS = 24
RELEASES, RELEASE_DAYS, LATE_DAYS = 13, 28, 6.0
"""Releases in a year, days between two, and how late a device has one at most."""
SYSTEM_UPDATE = 7
"""Release with which it comes."""
VISIT_DAYS = 4.0

OTHERS = "equal devices updated in turn, no tokens: visits with the other's id"
SAME = "equal devices updated in turn, storage cleared: same id as before"
AIMS: dict[str, Aim] = {OTHERS: at_most(0.02), SAME: at_least(0.98)}

_VERSION = re.compile(r"((?:Chrome|Edg|Firefox|Version)/|rv:)(\d+)")


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    reading, make, counts, random = begun(f"drift {stream}", seed, make)
    sents = different(reading, stream_reports(data / "linkage" / stream))
    random.shuffle(sents)
    strangers = warmed(make, sents[PAIRS:], random)
    years = [_year(sent, random) for sent in sents[:PAIRS]]
    for cleared in (False, True):
        world = strangers.copy()
        visits = [
            visit
            for place, reports in enumerate(years)
            for device in "ab"
            for visit in _visits(f"{place}{device}", reports, random, cleared=cleared)
        ]
        _judge(world, sorted(visits, key=lambda visit: visit.at_ms), counts, cleared=cleared)
        counts.add_confidences(world)
    return counts


def _year(sent: Sent, random: Random) -> list[Sent]:
    """What an equal device sends before and after each release."""
    signals: dict[str, Any] = {**sent.signals, "uaData": None}
    reports = [plain(sent.name, signals, held_out=sent.held_out)]
    for release in range(1, RELEASES + 1):
        agent = _VERSION.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", signals["userAgent"] or "")
        signals = {**signals, "userAgent": agent}
        if random.random() < 0.25 or release == SYSTEM_UPDATE:
            signals["canvas"] = token(random)
        if random.random() < 0.04:
            signals["audio"] = f"124.{random.randrange(10**9)}"
        if random.random() < 0.2:
            signals["extra"] = {**signals.get("extra", {}), f"feature {release}": True}
        if release == SYSTEM_UPDATE:
            signals["fonts"] = [*signals.get("fonts", ()), "Font of the system's update", "Another one"]
        reports.append(plain(f"{sent.name}/{release}", signals, held_out=sent.held_out))
    return reports


def _visits(browser: str, reports: list[Sent], random: Random, *, cleared: bool) -> Iterator[Visit]:
    visit = Visit(browser, reports[0], address(random), 0, token(random) if cleared else None, token_is_new=cleared)
    updates = [release * RELEASE_DAYS + random.uniform(0, LATE_DAYS) for release in range(1, RELEASES + 1)]
    day, lost = random.uniform(0, VISIT_DAYS), random.uniform(20, 40)
    while day < RELEASES * RELEASE_DAYS:
        if cleared and day > lost:
            lost += random.uniform(20, 40)
            visit = visit._replace(token=token(random), token_is_new=True)
        sent = reports[sum(update < day for update in updates)]
        yield visit._replace(sent=sent, at_ms=START_MS + round(day * DAY_MS))
        visit = visit._replace(token_is_new=False)
        day += VISIT_DAYS * random.uniform(0.5, 1.5)


def _judge(world: World, visits: list[Visit], counts: Counts, *, cleared: bool) -> None:
    owners: dict[object, str] = {}
    last: dict[str, object] = {}
    for visit in visits:
        answer = world.visit(visit)
        others = owners.setdefault(answer.visitor, visit.browser) != visit.browser
        if not cleared:
            counts.add(OTHERS, others, part=visit.sent.part)
        elif visit.browser in last:
            counts.add(SAME, last[visit.browser] == answer.visitor, part=visit.sent.part)
        last[visit.browser] = answer.visitor
