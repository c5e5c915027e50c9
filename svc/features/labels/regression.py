"""Logistic regression with coefficients that are not negative (docs/adr/0211).

What may live here: rows and their counts in, coefficients out. The loss of all events and half of the sum of squared
coefficients are minimized by Newton's method; each step is the least of the quadratic model within the bounds, found by
an active set (Nocedal and Wright, Numerical Optimization, 16.5 and 18.1), and is shortened by Armijo's rule. Rows are
sparse, and are passed over in blocks: others may have their turn after each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import exp, log1p, sqrt
from operator import mul
from typing import Final, NamedTuple

from svc.kernel.values.steps import Steps

ROWS: Final = 512
"""Of a block: about half a millisecond."""
TOLERANCE: Final = 1e-7
"""Of the gradient. Coefficients are about as close to the optimum, since the penalty bends the loss by 1 in each."""
_PENALTY: Final = 1.0
"""Of the sum of squared coefficients, halved; the loss is summed over events."""
_FARTHEST: Final = 4.0
"""That a coefficient moves in one step: far from the optimum, the second derivatives say little."""
_DECREASE: Final = 1e-4
"""The share of the decrease that the slope promises with which a step is long enough (Armijo's rule)."""
_ROUNDING: Final = 1e-12
"""Of the loss: more than what rounding adds to it."""
_TINY: Final = 1e-12
"""What stands for 0 where something is divided by it."""
_MOST_STEPS: Final = 100
_MOST_HALVES: Final = 40


class Block(NamedTuple):
    """Some rows of a regression."""

    ones: list[tuple[int, ...]]
    """Of each row, the columns that are not 0, in ascending order: 0, the intercept, and those of what fired. A column
    that is 2 is named twice.
    """
    other: list[float]
    """Of each row, the value of the last column."""
    pairs: dict[tuple[int, int], list[int]]
    """Two columns in ascending order, or one twice -> the rows of the block in which neither is 0, each as often as the
    product of both is.
    """


class Counts(NamedTuple):
    """How many events the rows of a block stand for."""

    positive: list[int]
    events: list[int]
    """Positive and negative ones."""


class _Point(NamedTuple):
    """Some coefficients, and what the loss is around them."""

    values: list[float]
    loss: float
    gradient: list[float]
    bends: list[list[float]]
    """Of each block, the second derivatives of the loss by the linear terms of its rows."""


def block_of(ones: list[tuple[int, ...]], other: list[float]) -> Block:
    """Return the block of these rows."""
    pairs: dict[tuple[int, int], list[int]] = {}
    for row, columns in enumerate(ones):
        for first, second in product(columns, columns):
            if first <= second:
                pairs.setdefault((first, second), []).append(row)
    return Block(ones, other, pairs)


def fitted(blocks: Sequence[Block], counts: Sequence[Counts], start: Sequence[float]) -> Steps[list[float]]:
    """Return the coefficients of the columns, of which only the intercept may be negative. `counts` are those of each
    block; some events are positive and some are not. `start` is where the search begins: zeros, or the coefficients of
    similar counts.
    """
    point = yield from _at(list(start), blocks, counts)
    for _ in range(_MOST_STEPS):
        if _violation(point) <= TOLERANCE:
            break
        direction = yield from _direction(point, (yield from _second_derivatives(point, blocks)))
        nearer = yield from _searched(point, direction, blocks, counts)
        if nearer is None or (nearer.loss >= point.loss and _violation(nearer) >= _violation(point)):
            break  # as near as rounding allows
        point = nearer
    return point.values


def _violation(point: _Point) -> float:
    """Return how far the gradient is from that of the optimum: 0, or positive where a coefficient is 0."""
    intercept, *others = zip(point.values, point.gradient, strict=True)
    return max(abs(intercept[1]), *(-slope if slope < 0 else min(value, slope) for value, slope in others))


def _direction(point: _Point, bends: Sequence[Sequence[float]]) -> Steps[list[float]]:
    """Return the way to the least loss of the quadratic model that no coefficient below zero has, by an active set."""
    free = {at for at, value in enumerate(point.values) if not at or value > 0}
    way = [0.0] * len(point.values)
    slopes = point.gradient
    for _ in range(4 * len(way)):
        chosen = sorted(free)
        steps = _solved([[bends[row][column] for column in chosen] for row in chosen], [-slopes[at] for at in chosen])
        shares = [
            (-(point.values[at] + way[at]) / step, at)
            for at, step in zip(chosen, steps, strict=True)
            if at and step < 0
        ]
        share, first = min([*shares, (1.0, 0)])
        for at, step in zip(chosen, steps, strict=True):
            way[at] += share * step
        if first:
            way[first] = -point.values[first]
            free.remove(first)
        slopes = [slope + sum(map(mul, row, way)) for slope, row in zip(point.gradient, bends, strict=True)]
        if not first:
            slope, steepest = min(((slopes[at], at) for at in range(len(way)) if at not in free), default=(0.0, 0))
            if slope >= -TOLERANCE / 2:
                break
            free.add(steepest)
        yield
    return way


def _searched(
    point: _Point, direction: Sequence[float], blocks: Sequence[Block], counts: Sequence[Counts]
) -> Steps[_Point | None]:
    """Return the first point on the way whose loss is less by what the slope promises; `None` = none is."""
    promised = sum(map(mul, point.gradient, direction))
    length = min(1.0, _FARTHEST / max(_TINY, *map(abs, direction)))
    for _ in range(_MOST_HALVES):
        moved = [value + length * step for value, step in zip(point.values, direction, strict=True)]
        values = [moved[0], *(max(value, 0.0) for value in moved[1:])]  # rounding could make one negative
        found = yield from _at(values, blocks, counts)
        if found.loss <= point.loss + _DECREASE * length * promised + _ROUNDING * point.loss:
            return found
        length /= 2
    return None


def _at(values: list[float], blocks: Sequence[Block], counts: Sequence[Counts]) -> Steps[_Point]:
    """Return loss and gradient."""
    last = values[-1]
    gradient = [0.0, *(_PENALTY * value for value in values[1:])]
    loss = _PENALTY / 2 * sum(value * value for value in values[1:])
    bends: list[list[float]] = []
    for block, count in zip(blocks, counts, strict=True):
        slopes: list[float] = []
        bent: list[float] = []
        for ones, other, positive, events in zip(block.ones, block.other, count.positive, count.events, strict=True):
            linear = sum(map(values.__getitem__, ones)) + last * other
            odds = exp(-abs(linear))  # of the less likely outcome
            loss += events * (log1p(odds) + max(linear, 0.0)) - positive * linear
            slopes.append(events * (1 if linear > 0 else odds) / (1 + odds) - positive)
            bent.append(events * odds / (1 + odds) ** 2)
        bends.append(bent)
        for (first, second), rows in block.pairs.items():
            if not first:  # the intercept is 1 in every row
                gradient[second] += sum(map(slopes.__getitem__, rows))
        gradient[-1] += sum(map(mul, slopes, block.other))
        yield
    return _Point(values, loss, gradient, bends)


def _second_derivatives(point: _Point, blocks: Sequence[Block]) -> Steps[list[list[float]]]:
    size = len(point.values)
    last = size - 1
    matrix = [[0.0] * size for _ in range(size)]
    for block, bends in zip(blocks, point.bends, strict=True):
        others = list(map(mul, bends, block.other))
        for (first, second), rows in block.pairs.items():
            matrix[second][first] += sum(map(bends.__getitem__, rows))
            if not first:
                matrix[last][second] += sum(map(others.__getitem__, rows))
        matrix[last][last] += sum(map(mul, others, block.other))
        yield
    for row in range(1, size):
        matrix[row][row] += _PENALTY
        for column in range(row):
            matrix[column][row] = matrix[row][column]
    return matrix


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return x of `matrix @ x = right`, by Cholesky's factors; the matrix is symmetric and positive definite."""
    lower: list[list[float]] = []
    middle: list[float] = []
    for row, given in enumerate(matrix):
        factors: list[float] = []
        for column in range(row):
            factors.append((given[column] - sum(map(mul, factors, lower[column]))) / lower[column][column])
        factors.append(sqrt(max(given[row] - sum(map(mul, factors, factors)), _TINY)))
        middle.append((right[row] - sum(map(mul, factors, middle))) / factors[row])
        lower.append(factors)
    solution = [0.0] * len(middle)
    for row in range(len(middle) - 1, -1, -1):
        below = sum(lower[at][row] * solution[at] for at in range(row + 1, len(middle)))
        solution[row] = (middle[row] - below) / lower[row][row]
    return solution
