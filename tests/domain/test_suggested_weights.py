"""Decisions 14.3: the weights that labels suggest do not depend on chance, and are the best of their kind."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.features.labels.outcomes import outcome_of
from svc.features.labels.regression import Counts
from svc.features.labels.suggested_weights import (
    FOLDS,
    Fired,
    Labeled,
    QualityBody,
    Suggestion,
    folds_of,
    scaled,
    suggest,
    table_of,
)
from svc.identify.model import LABELS, Observation
from svc.identify.scoring.score import default_profile, score
from svc.world import numbers_from
from tests.store.test_events import event
from tests.support.steps import result_of
from tests.support.worlds import EPOCH_MS

PROFILE = default_profile("web")
SIGNALS = (
    "automation",
    "headless",
    "incognito",
    "new_visitor_burst",
    "os_mismatch",
    "tor",
    "vpn_public",
    "rare_device",
)
DOUBLED = "new_visitor_burst"
"""It weighs twice where there is much of it."""


def kinds_of(chance: random.Random, count: int, *, often: float) -> list[Fired]:
    return [_kind_of(chance, often) for _ in range(count)]


def _kind_of(chance: random.Random, often: float) -> Fired:
    names = [name for at, name in enumerate(SIGNALS, 2) if chance.random() < often / at]
    return tuple(sorted(names + [DOUBLED] * (DOUBLED in names and chance.random() < 0.5)))


def labeled_of(fraud: list[Fired], legitimate: list[Fired]) -> Labeled:
    labeled = Labeled("web")
    labeled.fraud_of.update(fraud)
    labeled.legitimate_of.update(legitimate)
    return labeled


def suggested(labeled: Labeled) -> Suggestion:
    return result_of(suggest(labeled, PROFILE, "web"))


@pytest.mark.slow
def test_the_order_of_events_makes_no_difference():
    chance = random.Random(1)
    fraud, legitimate = kinds_of(chance, 300, often=0.8), kinds_of(chance, 900, often=0.3)
    found = suggested(labeled_of(fraud, legitimate))
    chance.shuffle(fraud)
    assert suggested(labeled_of(fraud, legitimate[::-1])) == found
    assert any(one.after != one.before for one in found.weights)


def reaching(labeled: Labeled, weights: Mapping[str, int]) -> tuple[int, int]:
    """Fraud, and events, whose score reaches the threshold."""
    counts = [0, 0]
    for at, some in enumerate((labeled.fraud_of, labeled.legitimate_of)):
        for fired, events in some.items():
            counts[at] += events * (sum(weights[name] for name in fired) >= PROFILE.threshold)
    return counts[0], sum(counts)


@pytest.mark.slow(0.3)
@given(st.integers(0, 1 << 30))
def test_of_all_scales_that_find_as_much_of_the_fraud_the_most_precise_is_taken(seed: int):
    chance = random.Random(seed)
    names, rare = SIGNALS[:-1], SIGNALS[-1]
    labeled = labeled_of(kinds_of(chance, 30, often=chance.random()), kinds_of(chance, 50, often=chance.random()))
    slopes = {name: chance.choice((0.0, chance.random(), 3 * chance.random())) for name in names}
    before = {name: PROFILE.weights[name] for name in names}
    table = result_of(table_of(labeled, names, PROFILE))
    scaling = scaled(table, table.counts, [-1.0, *slopes.values(), 0.5], (0, *before.values()))
    found = dict(zip(names, result_of(scaling)[1:], strict=True))
    kept = {rare: PROFILE.weights[rare]}
    wanted, _ = reaching(labeled, before | kept)
    best = 0.0, 0
    for cut in {sum(slopes.get(name, 0) for name in fired) for fired in labeled.fraud_of} - {0.0}:
        weights = {name: min(ceil(slope * PROFILE.threshold / cut - 1e-6), 100) for name, slope in slopes.items()}
        fraud, events = reaching(labeled, weights | kept)
        if fraud and fraud >= wanted:
            best = max(best, (fraud / events, fraud))
    fraud, events = reaching(labeled, found | kept)
    if best[1]:
        assert (fraud / events, fraud) == best
    else:
        assert found == before


def test_signals_that_fire_in_no_event_leave_the_weights_as_they_are():
    found = suggested(labeled_of([()] * 60, [()] * 70))
    assert found.weights == []
    assert found.suggested == found.today == QualityBody(None, 0)


@pytest.mark.slow
def test_the_figures_of_today_are_those_of_the_scores_that_events_have():
    """Also where a signal weighed twice."""
    chance = random.Random(4)
    labeled, reached = Labeled("web"), Counter[str]()
    for number in range(400):
        label = chance.choice(LABELS)
        observed = [
            Observation(name, chance.choice(("medium", "high")))
            for name in SIGNALS
            if chance.random() < (0.3 if label == "fraud" else 0.1)
        ]
        found = score(observed, PROFILE, "web")
        given = {"signals": found.triggers, "suspect_score": found.score, "suspect_level": found.level, "label": label}
        labeled.add([outcome_of(event(chance, EPOCH_MS, **given), number.to_bytes(16), 1, 1)])
        reached[label] += found.level != "low"
    today = suggested(labeled).today
    precision, recall = today.precision, today.recall
    assert precision == reached["fraud"] / reached.total()
    assert recall == reached["fraud"] / labeled.fraud


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=30), st.integers(0, 99))
def test_every_event_is_left_out_once_and_folds_are_alike(rows: list[tuple[int, int]], seed: int):
    middle = len(rows) // 2
    counts = [
        Counts([fraud for fraud, _ in some], [fraud + other for fraud, other in some])
        for some in (rows[:middle], rows[middle:])
    ]
    folds = result_of(folds_of(counts, numbers_from(seed)))
    assert len(folds) == FOLDS
    frauds, sizes = list[int](), list[int]()
    left_out_of = Counter[tuple[int, int]]()
    for learned, left_out in folds:
        frauds.append(sum(chain(*(count.positive for count in left_out))))
        sizes.append(sum(chain(*(count.events for count in left_out))))
        for block, (all_of, some, out) in enumerate(zip(counts, learned, left_out, strict=True)):
            for row in range(len(all_of.events)):
                assert all_of.positive[row] == some.positive[row] + out.positive[row]
                assert all_of.events[row] == some.events[row] + out.events[row]
                assert 0 <= out.positive[row] <= out.events[row]
                left_out_of[block, row] += out.events[row]
    assert max(frauds) - min(frauds) <= 1
    assert max(sizes) - min(sizes) <= 2
    assert all(
        left_out_of[block, row] == n for block, all_of in enumerate(counts) for row, n in enumerate(all_of.events)
    )
