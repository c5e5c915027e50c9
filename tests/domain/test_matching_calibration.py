"""Calibration: beliefs about link decisions, by their kind."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.matching import Statistics, StatisticsUpdate
from svc.identify.matching.likelihood import KINDS, calibrated
from svc.identify.matching.parameters import CAUTION
from tests.domain.matching_world import features_of

kinds = st.integers(0, KINDS - 1)
probabilities = st.floats(0, 1)


@given(kinds, probabilities, probabilities, probabilities)
def test_calibration_is_monotonic(kind: int, one: float, other: float, prior: float) -> None:
    low, high = sorted((one, other))
    assert calibrated(kind, low, prior, CAUTION[1]) <= calibrated(kind, high, prior, CAUTION[1])


def test_caution_fades_with_the_visits_of_an_organization() -> None:
    statistics = Statistics()
    grown, young = CAUTION
    assert statistics.caution() == young
    told = [statistics.caution()]
    for _ in range(400):
        statistics.learn(StatisticsUpdate(features=features_of()))
        told.append(statistics.caution())
    assert all(later < earlier for earlier, later in itertools.pairwise(told))
    assert (young + grown) / 2 < told[-1] < young


def test_statistics_with_the_counts_of_earlier_versions_are_read_and_lose_them() -> None:
    statistics = Statistics()
    statistics.learn(StatisticsUpdate(features=features_of(), returned=0.5))
    row = msgspec.msgpack.decode(statistics.shared_bytes(), strict=False)
    counts = {"taken": 3, "trials": [1.0] * 96, "wrong": [0.0] * 96, "expected_wrong": [0.5] * 96}
    former = Statistics(msgspec.msgpack.encode(row | {"calibration": counts}))
    assert former.shared_bytes() == statistics.shared_bytes()
