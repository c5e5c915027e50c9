"""Logistic regression with coefficients that are not negative (docs/adr/0211): what is found is the one optimum."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.features.labels.regression import ROWS, Block, Counts, block_of, fitted
from tests.support.steps import result_of

Row = tuple[tuple[int, ...], float, int, int]
"""Columns from 1, one that is 2 twice; the value of the last one, positive events and others."""


def split(rows: Sequence[Row], size: int = ROWS) -> tuple[list[Block], list[Counts]]:
    blocks, counts = list[Block](), list[Counts]()
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        blocks.append(block_of([(0, *ones) for ones, *_ in some], [other for _, other, *_ in some]))
        counts.append(Counts([positive for *_, positive, _ in some], [sum(row[2:]) for row in some]))
    return blocks, counts


def fit(rows: Sequence[Row], width: int, start: Sequence[float] | None = None, size: int = ROWS) -> list[float]:
    blocks, counts = split(rows, size)
    return result_of(fitted(blocks, counts, start or [0.0] * (width + 2)))


def slopes(rows: Sequence[Row], values: Sequence[float]) -> list[float]:
    """The gradient of the loss and the penalty, by their definition."""
    terms: list[list[float]] = [[] for _ in values]
    for ones, other, positive, negative in rows:
        linear = values[0] + fsum(values[at] for at in ones) + values[-1] * other
        chance = 1 / (1 + exp(-linear)) if linear > 0 else exp(linear) / (1 + exp(linear))
        slope = (positive + negative) * chance - positive
        for at in (0, *ones):
            terms[at].append(slope)
        terms[-1].append(slope * other)
    return [fsum(some) + (value if at else 0) for at, (some, value) in enumerate(zip(terms, values, strict=True))]


def assert_optimal(rows: Sequence[Row], values: Sequence[float], within: float = 1e-6) -> None:
    """The conditions of Karush, Kuhn and Tucker, which only the optimum meets: the loss is strictly convex."""
    intercept, *gradient = slopes(rows, values)
    assert abs(intercept) <= within
    for value, slope in zip(values[1:], gradient, strict=True):
        assert value >= 0
        assert slope >= -within, "a larger coefficient would be better"
        assert min(value, slope) <= within, "a smaller coefficient would be better"


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Row], int]:
    """Rows with some positive events and some others, and their width."""
    width = draw(st.integers(1, 40))
    some = st.sets(st.integers(1, width), max_size=8)
    ones = st.tuples(some, some).map(lambda both: tuple(sorted((*both[0], *(both[0] & both[1])))))
    most = draw(st.sampled_from((1, 20, 10_000)))
    row = st.tuples(ones, st.sampled_from((0.0, 0.0, 0.5, 2.0)), st.integers(0, most), st.integers(0, most))
    return [*draw(st.lists(row, max_size=40)), ((), 0.0, 1, 1)], width


@pytest.mark.slow(0.4)
@given(problems())
def test_the_coefficients_are_the_optimum(problem: tuple[list[Row], int]):
    rows, width = problem
    assert_optimal(rows, fit(rows, width))


@pytest.mark.slow(0.4)
@given(problems(), st.lists(st.floats(0, 5), min_size=42, max_size=42), st.integers(1, 7))
def test_where_the_search_begins_and_how_rows_are_divided_makes_no_difference(
    problem: tuple[list[Row], int], start: list[float], size: int
):
    rows, width = problem
    assert fit(rows, width, start[: width + 2], size) == pytest.approx(fit(rows, width), abs=1e-5)


def test_signals_that_part_all_fraud_from_the_rest_have_finite_coefficients():
    rows: list[Row] = [((1,), 0.0, 1_000_000, 0), ((), 0.0, 0, 1_000_000), ((2,), 0.0, 0, 7)]
    values = fit(rows, 2)
    assert_optimal(rows, values)
    assert 5 < values[1] < 30
    assert values[2] == 0


def test_a_signal_of_legitimate_events_alone_has_no_coefficient():
    rows: list[Row] = [((1,), 0.0, 0, 60), ((2,), 0.0, 60, 10), ((), 0.0, 30, 200)]
    values = fit(rows, 2)
    assert_optimal(rows, values)
    assert values[1] == 0 < values[2]


def test_where_no_signal_fires_the_intercept_is_the_share():
    values = fit([((), 0.0, 60, 180)], 3)
    assert values == pytest.approx([-1.0986122886681098, 0, 0, 0, 0])


def test_signals_that_always_fire_together_share_their_effect():
    rows: list[Row] = [((1, 2, 3), 0.0, 90, 10), ((3,), 0.0, 50, 50), ((), 0.0, 50, 500)]
    values = fit(rows, 3)
    assert_optimal(rows, values)
    assert values[1] == pytest.approx(values[2], rel=1e-12)
    assert values[1] > 0


def test_a_signal_that_fires_in_every_event_has_no_coefficient():
    rows: list[Row] = [((1, 2), 0.0, 90, 10), ((1,), 0.0, 50, 500)]
    values = fit(rows, 2)
    assert_optimal(rows, values)
    assert values[1] == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("events", [1, 10**8])
def test_forty_signals_of_few_and_of_very_many_events(events: int):
    rows: list[Row] = [
        (tuple(at for at in range(1, 41) if number * at % 97 < 9), number % 3 / 2, events * (number % 7), events)
        for number in range(1_500)
    ]
    assert_optimal(rows, fit(rows, 40), 1e-6 * max(1, events / 1e4))
