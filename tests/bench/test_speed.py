"""The cost of a match: towns grow by matching alone, each from the one before."""

from __future__ import annotations

from bench.linkage.speed import measure


def test_towns_grow_and_know_their_visitors():
    small, larger = measure((40, 80), lambda _: None, matches=5)
    assert (small.visitors, larger.visitors) == (40, 80)
    assert small.bytes_per_visitor > 100
