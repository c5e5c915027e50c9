"""Outcomes in segments, and what they add up to (decisions 14.1, 14.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.features.labels.outcomes import Facts, Outcome, OutcomeSegment, merged
from svc.features.labels.performance import KINDS, DayOutcomes, Performance, wilson
from svc.identify.model import LABELS
from svc.kernel.values.ids import made_at_ms
from tests.support.worlds import EPOCH_MS

FACTS = st.builds(
    Facts,
    environment=st.sampled_from(("production", "staging")),
    platform=st.just("web"),
    score=st.none() | st.integers(0, 200),
    level=st.sampled_from((None, "low", "high")),
    signals=st.sampled_from(((), ("tor",), ("headless", "automation"))),
    rules=st.sampled_from(((), ("rul_a",))),
    decision=st.sampled_from((None, "review")),
    label=st.sampled_from((None, *LABELS)),
    twice=st.sampled_from(((), ("tor",))),
)


def outcome(number: int, facts: Facts, lag: int = 0) -> Outcome:
    request_id = (EPOCH_MS + number).to_bytes(6) + number.to_bytes(10)
    return Outcome(request_id, EPOCH_MS + number + lag, number % 7, number % 5, facts)


outcomes = st.lists(
    st.builds(outcome, st.integers(0, 90_000), FACTS, st.integers(-100, 100)),
    min_size=1,
    max_size=40,
    unique_by=lambda each: each.request_id,
)


@given(outcomes)
@pytest.mark.slow(0.2)
def test_a_segment_reads_what_it_was_packed_from(some: list[Outcome]):
    segment = OutcomeSegment(tuple(sorted(some, key=lambda each: each.request_id)))
    assert OutcomeSegment.unpack(segment.pack()) == segment
    assert segment.newest == max(each.request_id for each in some)
    assert all(segment.find(each.request_id) == each for each in some)


@given(outcomes, st.integers(0, 40), st.integers(1, 12))
def test_however_outcomes_come_no_segment_is_too_long_and_none_is_lost(some: list[Outcome], kept: int, most: int):
    before, added = some[:kept], some[kept:]
    if not added:
        return
    before.sort(key=lambda each: each.request_id)
    segments = merged(OutcomeSegment(tuple(before)) if before else None, added, most)
    assert [each for segment in segments for each in segment.outcomes] == sorted(some, key=lambda each: each.request_id)
    assert all(0 < len(segment.outcomes) <= most for segment in segments)


ONE = OutcomeSegment((outcome(1, Facts("production", "web", 1, "low", (), (), None)),))


@pytest.mark.parametrize("raw", [b"", b"x", ONE.pack()[:-3]])
def test_other_bytes_are_no_segment(raw: bytes):
    with pytest.raises(ValueError, match=r"."):
        OutcomeSegment.unpack(raw)


@given(outcomes)
def test_what_is_added_and_taken_away_leaves_nothing(some: list[Outcome]):
    counts = DayOutcomes()
    for each in some:
        counts = counts.archiving([each.facts])
        counts = counts.labeling(each.facts) if each.facts.label else counts
    assert DayOutcomes.unpack(counts.pack()) == counts
    performance = Performance()
    performance.add_day(counts)
    assert performance.events == len(some)
    assert performance.fraud == sum(each.facts.label == "fraud" for each in some)
    (tor,) = [line for line in performance.lines("signals", ("tor",)) if line.name == "tor"]
    assert tor.labeled == sum(each.facts.label is not None and "tor" in each.facts.signals for each in some)
    for each in some:
        counts = counts.archiving([each.facts], -1)
        counts = counts.labeling(each.facts, -1) if each.facts.label else counts
    assert counts == DayOutcomes()


@given(outcomes, outcomes)
@pytest.mark.slow(0.2)
def test_sums_of_parts_are_the_sum_of_all(some: list[Outcome], more: list[Outcome]):
    whole, parts = Performance(), Performance()
    for part in (some, more):
        counts = DayOutcomes()
        for each in part:
            counts = counts.archiving([each.facts])
            counts = counts.labeling(each.facts) if each.facts.label else counts
        whole.add_day(counts)
        apart = Performance()
        apart.add_day(counts)
        parts.add(apart)
    assert (parts.events, parts.fraud, parts.legitimate) == (whole.events, whole.fraud, whole.legitimate)
    assert parts.scores() == whole.scores()
    assert [parts.lines(kind) for kind in KINDS] == [whole.lines(kind) for kind in KINDS]
    scored = [each for each in (*some, *more) if each.facts.score is not None and each.facts.label is not None]
    assert sum(bucket.fraud + bucket.legitimate for bucket in whole.scores()) == len(scored)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 10, 0.0179, 0.4042), (50, 100, 0.4038, 0.5962)],
)
def test_intervals_are_those_of_the_literature(successes: int, trials: int, low: float, high: float):
    """Wilson 1927, with the usual tables."""
    interval = wilson(successes, trials)
    assert interval is not None
    assert [round(end, 4) for end in interval] == [low, high]
    assert wilson(0, 0) is None


def test_the_time_of_a_request_id_is_kept_apart_from_its_arrival():
    given = outcome(5, Facts("production", "web", None, None, (), (), None), lag=-3)
    (read,) = OutcomeSegment.unpack(OutcomeSegment((given,)).pack()).outcomes
    assert (read.at_ms, made_at_ms(read.request_id)) == (EPOCH_MS + 2, EPOCH_MS + 5)
