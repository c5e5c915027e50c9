"""Decisions 11.4: velocity against counts of all events, over whole streams of visits with made-up accounts.

Each count of each event is what a list of everything says, to the second, and 64 where that is more: no window is short
by anything, where a twelfth of it would be allowed.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from bench.linkage.streams import read_stream
from bench.reports import device_report, submitted
from bench.retention import Everywhere
from svc.features.organizations.jobs import create_organization
from svc.identify.history.activity import VisitorActivity
from svc.identify.history.evidence import address_id
from svc.identify.identification import Assessment, assess
from svc.identify.model import RequestFacts
from svc.identify.queries.velocity import read_address
from svc.identify.recording.velocity import activity_after, count_event, put_address
from svc.identify.velocity.counts import MOST, OTHERS, SUBJECTS, WINDOWS, Counts, Subject
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.organization import AccountThresholds
from svc.world import World
from tests.support.effort import effort

STREAMS = Path(__file__).parents[2] / ".." / "shared" / "data" / "linkage"
DAY_S = 86_400
VISITS = effort(5_000, 1_000_000)
AT_ONCE = 2000
"""Events of one transaction."""


class Seen(NamedTuple):
    at_s: int
    visitor: int
    account: str | None
    ip: str
    country: str | None


def of_stream(name: str) -> Iterator[Seen]:
    """The visits of a stream. Most are for one of two accounts of the browser, some for one of a few of all, one
    in ten for none.
    """
    chance, stream = random.Random(name), read_stream(STREAMS / name)
    numbers: dict[str, int] = {}
    for request, visit in zip(stream.requests, stream.visits, strict=True):
        visitor = numbers.setdefault(visit.browser, len(numbers) + 1)
        drawn = chance.random()
        whose = chance.randrange(40) if drawn < 0.03 else visitor
        account = None if drawn > 0.9 else f"{whose} {chance.choice('aab')}"
        yield Seen(int(visit.at_s), visitor, account, request.ip, request.ip.partition(".")[0][:2].rjust(2, "A"))


def generated() -> Iterator[Seen]:
    """Bursts of up to 200 accounts, visitors and addresses within seconds and days, with silence in between that leaves
    periods out, and events of one second.
    """
    chance, at_s = random.Random(11), 1_767_225_600
    for _ in range(40):
        at_s += chance.choice((1, 600, DAY_S, 20 * DAY_S, 31 * DAY_S, 70 * DAY_S))
        most, pause_s = chance.choice((2, 63, 65, 200)), chance.choice((0, 1, 60, 3600))
        for _ in range(chance.choice((5, 70, 150))):
            at_s += pause_s * chance.randrange(3)
            country = chance.choice(("GB", "DE", None))
            ip = f"2001:db8:{chance.randrange(most):x}::{chance.randrange(9)}"
            yield Seen(at_s, chance.randrange(1, most), chance.choice((None, f"{chance.randrange(most)}")), ip, country)


class Exact:
    """Everything of the last 30 days, by subject."""

    def __init__(self) -> None:
        self._kept: defaultdict[tuple[Subject, object], deque[tuple[int, tuple[object, ...]]]] = defaultdict(deque)

    def count(self, seen: Seen) -> dict[Subject, Counts]:
        """What an event counts to, itself included."""
        ids = {"visitor": seen.visitor, "account": seen.account, "address": address_id(seen.ip)}
        named = {"visitors": ids["visitor"], "accounts": ids["account"], "addresses": ids["address"]}
        named["countries"] = seen.country
        found: dict[Subject, Counts] = {}
        for subject in SUBJECTS:
            if ids[subject] is None:
                continue
            kept = self._kept[subject, ids[subject]]
            kept.append((seen.at_s, tuple(named[kind] for kind in OTHERS[subject])))
            while kept[0][0] <= seen.at_s - max(WINDOWS.values()):
                kept.popleft()
            found[subject] = _counts(kept, seen.at_s, len(OTHERS[subject]))
        return found


def _counts(kept: Iterable[tuple[int, tuple[object, ...]]], now_s: int, kinds: int) -> Counts:
    last: list[dict[object, int]] = [{} for _ in range(kinds)]
    times: list[int] = []
    for at_s, others in kept:
        times.append(at_s)
        for of_kind, other in zip(last, others, strict=True):
            if other is not None:
                of_kind[other] = at_s
    return Counts(_windows(times, now_s), tuple(_windows(of_kind.values(), now_s) for of_kind in last))


def _windows(times: Iterable[int], now_s: int) -> tuple[int, int, int]:
    ages = [now_s - at_s for at_s in times]
    hour, day, month = (min(MOST, sum(age < length for age in ages)) for length in WINDOWS.values())
    return hour, day, month


def differing(directory: Path, stream: Iterable[Seen]) -> tuple[int, list[str]]:
    """How many counts were compared, and those that differ."""
    world, exact = World.real(), Exact()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False, map_bytes=256 << 20)

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)

    found.store.write_now([prepare])
    facts = RequestFacts(ip="81.2.69.160", user_agent=device_report(1)["userAgent"])
    template = assess(submitted(world, device_report(1), facts), Everywhere())
    compared, wrong, visitors = 0, list[str](), defaultdict[int, bytes](bytes)

    def job(transaction: Transaction, some: Sequence[Seen]) -> None:
        nonlocal compared
        for seen in some:
            assessment = _assessment(template, seen)
            lately = VisitorActivity.unpack(visitors[seen.visitor])
            before = read_address(transaction, 1, assessment.history.address, seen.at_s)
            counted = count_event(transaction, assessment, AccountThresholds(), seen.visitor, lately, before)
            put_address(transaction, assessment, before, None, counted)
            visitors[seen.visitor] = activity_after(assessment, lately, None, counted)
            velocity = counted.velocity
            for subject, expected in exact.count(seen).items():
                compared += 1
                if getattr(velocity, subject) != expected:
                    wrong.append(f"{seen}: {subject} {getattr(velocity, subject)}, not {expected}")

    rows = iter(stream)
    while some := [row for row, _ in zip(rows, range(AT_ONCE), strict=False)]:
        (outcome,) = found.store.write_now([partial(job, some=some)])
        assert outcome is None, outcome
    found.store.close()
    return compared, wrong


def _assessment(template: Assessment, seen: Seen) -> Assessment:
    facts = msgspec.structs.replace(template.submission.facts, ip=seen.ip)
    submission = msgspec.structs.replace(
        template.submission, at_ms=seen.at_s * 1000, account_id=seen.account, facts=facts
    )
    network = msgspec.structs.replace(template.network, country_code=seen.country)
    history = msgspec.structs.replace(template.history, address=address_id(seen.ip), at_s=seen.at_s)
    return msgspec.structs.replace(template, submission=submission, network=network, history=history)


@pytest.mark.slow
def test_velocity_is_exact_on_a_stream_of_bursts_and_silence(tmp_path: Path):
    compared, wrong = differing(tmp_path, generated())
    assert wrong == []
    assert compared > 5000


@pytest.mark.slow(2)
@pytest.mark.skipif(not STREAMS.exists(), reason="the shared data is not there")
@pytest.mark.parametrize("name", ["small", "every-7-days"][: effort(1, 2)])
def test_velocity_is_exact_on_a_stream(name: str, tmp_path: Path):
    """`make test` takes its beginning, which is longer than the longest window."""
    seen = list(islice(of_stream(name), VISITS))
    assert seen[-1].at_s - seen[0].at_s > max(WINDOWS.values())
    compared, wrong = differing(tmp_path, seen)
    assert wrong == []
    assert compared > 2.5 * len(seen)
