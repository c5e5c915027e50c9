"""Calibration: beliefs about link decisions, and how the samples of an organization correct them."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.matching import Statistics, StatisticsUpdate, match_visitor
from svc.domain.matching.learned.calibration import (
    BANDS,
    CROWDED,
    FAR,
    KINDS,
    NEAR,
    WIDE,
    Calibration,
    CalibrationSample,
    kind_of,
)
from svc.domain.matching.parameters import SAMPLE_SHARES, SAMPLES_REMEMBERED
from tests.domain.matching_world import DAY_MS, START_MS, Organization, features_of

kinds = st.integers(0, KINDS - 1)
probabilities = st.floats(0, 1)
samples = st.lists(
    st.builds(CalibrationSample, kinds, probabilities, probabilities, st.booleans(), probabilities), max_size=4
)


@given(kinds, probabilities, probabilities, st.lists(samples, max_size=20))
def test_a_calibrated_probability_is_between_zero_and_one(
    kind: int, raw: float, prior: float, updates: list[list[CalibrationSample]]
) -> None:
    calibration = Calibration()
    for update in updates:
        calibration.learn(update)
    assert 0.0 <= calibration.probability(kind, raw, prior) <= 1.0


@given(kinds, probabilities, probabilities, probabilities)
def test_calibration_is_monotonic(kind: int, one: float, other: float, prior: float) -> None:
    calibration = Calibration()
    low, high = sorted((one, other))
    assert calibration.probability(kind, low, prior) <= calibration.probability(kind, high, prior)


def test_the_same_evidence_counts_less_the_farther_the_report_comes_from() -> None:
    calibration = Calibration()
    for exact, token in itertools.product((False, True), repeat=2):
        near, crowded, wide, far = (
            calibration.probability(kind_of(network_context, exact=exact, token=token), 0.95, 0.5)
            for network_context in (NEAR, CROWDED, WIDE, FAR)
        )
        assert near > crowded > far
        assert near > wide > far


def test_wrong_calibration_samples_lower_probabilities_and_right_ones_do_not_raise_them() -> None:
    kind = kind_of(NEAR, exact=False, token=True)
    calm, warned, flattered = Calibration(), Calibration(), Calibration()
    for _ in range(50):
        warned.learn([CalibrationSample(kind, 0.9, 0.5, right=False, weight=1.0)])
        flattered.learn([CalibrationSample(kind, 0.9, 0.5, right=True, weight=1.0)])
    usual = calm.probability(kind, 0.9, 0.5)
    assert warned.probability(kind, 0.9, 0.5) < 0.98 < usual
    assert flattered.probability(kind, 0.9, 0.5) == usual


def test_calibration_samples_reduce_the_caution_of_a_young_organization() -> None:
    kind = kind_of(FAR, exact=True, token=False)
    young, grown = Calibration(), Calibration()
    for _ in range(500):
        grown.learn([CalibrationSample(kind_of(NEAR, exact=True, token=True), 0.99, 0.5, right=True, weight=1.0)])
    assert young.probability(kind, 0.95, 0.5) < grown.probability(kind, 0.95, 0.5)


def test_counts_are_bounded() -> None:
    calibration = Calibration()
    for _ in range(10_000):
        calibration.learn([CalibrationSample(0, 0.9, 0.5, right=False, weight=1.0)])
    assert max(calibration.samples) <= SAMPLES_REMEMBERED + 1
    assert len(calibration.samples) == len(calibration.wrong) == KINDS * BANDS


def test_calibration_survives_serialization() -> None:
    statistics = Statistics()
    sample = CalibrationSample(kind_of(NEAR, exact=False, token=True), 0.9, 0.5, right=False, weight=1.0)
    for _ in range(20):
        statistics.learn(StatisticsUpdate(features=features_of(), samples=(sample,)))
    copy = Statistics.of_rows(statistics.rows())
    kind = kind_of(NEAR, exact=False, token=True)
    assert copy.calibrated(kind, 0.9, 0.5) == statistics.calibrated(kind, 0.9, 0.5)
    assert copy.calibrated(kind, 0.9, 0.5) < Statistics().calibrated(kind, 0.9, 0.5)


def test_the_stored_names_of_the_counts_stay() -> None:
    stored = msgspec.msgpack.decode(Statistics().rows().shared)
    assert list(stored["calibration"]) == ["taken", "trials", "wrong", "expected_wrong"]


@pytest.mark.parametrize("second", range(SAMPLE_SHARES[0]))
def test_a_calibration_sample_changes_no_result(second: int) -> None:
    organization = Organization()
    first = organization.visit(features_of(token="token-of-the-browser", token_is_new=True))
    now_ms = START_MS + DAY_MS + second * 1000
    features = features_of(token="token-of-the-browser")
    recognition = match_visitor(organization, organization.statistics, features, now_ms)
    assert (recognition.number, recognition.confidence) == (first.number, 100)
    assert bool(recognition.statistics_update.samples) == organization.statistics.wants_sample(features, now_ms)
    assert all(sample.right for sample in recognition.statistics_update.samples)


def test_one_in_eight_proven_visits_is_a_calibration_sample_at_first() -> None:
    statistics, features = Statistics(), features_of(token="token-of-the-browser")
    tried = sum(statistics.wants_sample(features, START_MS + second * 1000) for second in range(800))
    assert tried == 800 // SAMPLE_SHARES[0]
