"""Calibration samples: how a visit whose visitor is proven would have been judged without that proof (`calibration`).

What may live here: what is left out of the visit, and what was right then. Reads the index as `match_visitor` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from svc.domain.matching import blocks, parameters
from svc.domain.matching.blocks import (
    EMPTY_BLOCK,
    Block,
    Index,
    device_counts,
    likely_numbers,
    read_blocks,
    read_records,
)
from svc.domain.matching.decision import decide
from svc.domain.matching.learned.calibration import CalibrationSample

if TYPE_CHECKING:
    from svc.domain.matching.features import Features
    from svc.domain.matching.learned.statistics import Statistics


def token_samples(
    index: Index, statistics: Statistics, features: Features, now_ms: int, owner: int
) -> tuple[tuple[CalibrationSample, ...], tuple[int, ...]]:
    """How this visit would have been judged had its browser lost its token, and who sent the same report before."""
    features = msgspec.structs.replace(features, token_is_new=True)
    read = read_blocks(index, features)
    rate = statistics.return_rate(features)
    samples = _samples(index, statistics, features, now_ms, owner, read, (rate, 1.0 - rate))
    return samples, read.get(blocks.EXACT, EMPTY_BLOCK).numbers


def network_samples(
    index: Index, statistics: Statistics, features: Features, now_ms: int, owner: int, read: dict[int, Block]
) -> tuple[CalibrationSample, ...]:
    """How this visit would have been judged had it come from a network where nobody was seen, or from an unknown one.

    Most new devices do, and few returns.
    """
    near = features.exact & 0xFFFFFFFF if features.exact >> 32 & 1 else 0
    elsewhere = msgspec.structs.replace(features, near_network=near, wide_network=near)
    read = {kind: block for kind, block in read.items() if kind != blocks.NETWORK}
    rate = statistics.return_rate(features)
    returns, arrivals = rate * parameters.RETURNS_FROM_ELSEWHERE, 1.0 - rate
    share = returns / (returns + arrivals)
    return _samples(index, statistics, elsewhere, now_ms, owner, read, (share, 1.0 - share))


def _samples(
    index: Index,
    statistics: Statistics,
    features: Features,
    now_ms: int,
    owner: int,
    read: dict[int, Block],
    weights: tuple[float, float],
) -> tuple[CalibrationSample, ...]:
    """Judged as a return, and as a new device: without the owner and the records that were split from it in doubt."""
    candidates = read_records(index, likely_numbers(read, parameters.RECORDS_READ - 1))
    exact_numbers = read.get(blocks.EXACT, EMPTY_BLOCK).numbers
    as_return = decide(features, now_ms, device_counts(read), candidates, exact_numbers, statistics)
    parents = {number: visitor.parent for number, visitor in candidates}
    own = {number for number, parent in parents.items() if parent == owner} | {owner, parents.get(owner, 0)}
    others = [pair for pair in candidates if pair[0] not in own]
    counts = {kind: block.count - (owner in block.numbers) for kind, block in read.items()}
    as_new = decide(features, now_ms, counts, others, [n for n in exact_numbers if n not in own], statistics)
    rate = statistics.return_rate(features)
    tried = ((as_return, as_return.number in own, weights[0]), (as_new, False, weights[1]))
    return tuple(
        CalibrationSample(decision.kind, decision.raw, rate, right, weight)
        for decision, right, weight in tried
        if decision.raw >= parameters.SAMPLE_PROBABILITY
    )
