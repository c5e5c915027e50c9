"""What an hour's identifications add up to: one event more, one less, and sums (ADR 37)."""

from __future__ import annotations

import random

import msgspec
import pytest

from svc.identify.events.hour_counts import NOTHING, SCORE_BUCKETS, HourCounts, score_bucket, sum_of
from svc.identify.records import Event
from tests.store.test_events import event, fired
from tests.support.worlds import EPOCH_MS


def of(**fields: object) -> Event:
    given = {
        "signals": (), "country_code": None, "suspect_level": None, "visitor_kind": "human", "identifiable": True,
        "visitor_is_new": True, **fields,
    }  # fmt: skip
    return event(random.Random(1), EPOCH_MS, **given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (of(), HourCounts(identifications=1, new=1, levels={"not_scored": 1}, kinds={"human": 1})),
        (
            of(visitor_is_new=False, suspect_level="low", suspect_score=0, price_micros=3000),
            HourCounts(
                identifications=1, returning=1, amount_micros=3000, levels={"low": 1}, scores={0: 1}, kinds={"human": 1}
            ),
        ),
        (
            of(identifiable=False, suspect_level="high", suspect_score=75, price_micros=500, country_code="GB",
               visitor_kind="automation", signals=fired("headless", "os_mismatch")),
            HourCounts(
                identifications=1, unidentifiable=1, amount_micros=500, levels={"high": 1}, scores={70: 1},
                signals={"headless": 1, "os_mismatch": 1}, countries={"GB": 1}, kinds={"automation": 1},
            ),
        ),
        (of(signals=None), HourCounts(identifications=1, new=1, levels={"not_scored": 1}, kinds={"human": 1})),
    ],
)  # fmt: skip
def test_an_event_counts_once_in_each_of_its_properties(given: Event, expected: HourCounts):
    assert NOTHING.plus(given) == expected


def test_subtracting_restores_the_counters_and_a_sum_equals_that_of_all_events():
    chance = random.Random(2)
    events = [
        event(chance, EPOCH_MS, suspect_score=chance.choice((None, 0, 5, 640)), identifiable=chance.random() < 0.8,
              visitor_is_new=chance.random() < 0.5, price_micros=chance.choice((0, 500, 3000)))
        for _ in range(200)
    ]  # fmt: skip
    halves: list[HourCounts] = []
    for half in (events[:120], events[120:]):
        counts = NOTHING
        for given in half:
            counts = counts.plus(given)
        halves.append(counts)
    first, second = halves
    both = sum_of((first, second))
    assert both.identifications == both.new + both.returning + both.unidentifiable == sum(both.levels.values()) == 200
    assert sum(both.kinds.values()) == 200
    assert both.amount_micros == sum(given.price_micros for given in events)
    assert sum(both.scores.values()) == sum(given.verdict.suspect_score is not None for given in events)
    assert both.signals == {
        name: sum(name in {each.signal for each in given.verdict.signals or ()} for given in events)
        for name in ("automation", "headless", "os_mismatch")
    }
    left = both
    for given in events[120:]:
        left = left.minus(given)
    assert left == first
    for given in events[:120]:
        left = left.minus(given)
    assert left == NOTHING == HourCounts(), "and nothing was changed in place"
    assert HourCounts.unpack(both.pack()) == both
    assert sum_of((both,)) == both
    assert sum_of(()) == NOTHING


def test_a_bucket_begins_at_the_largest_bound_that_the_score_reaches():
    assert [score_bucket(score) for score in (0, 1, 9, 10, 19, 99, 100, 149, 150, 499, 500, 10**6)] == [
        0, 1, 1, 10, 10, 90, 100, 100, 150, 300, 500, 500,
    ]  # fmt: skip
    assert [score_bucket(bound) for bound in SCORE_BUCKETS] == list(SCORE_BUCKETS)


def test_unreadable_counters_raise_a_value_error():
    for raw in (b"", b"\xc1", msgspec.msgpack.encode(["a"]), msgspec.msgpack.encode({})):
        with pytest.raises(ValueError):
            HourCounts.unpack(raw)
