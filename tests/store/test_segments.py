"""Segments of the index of events: put together and cut they are what a plain list says, and their bytes are pinned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.events.segments import GONE, Digests, Run, Segment, Slots, cut, joined, of_one, packed, position, slot

Model = dict[tuple[int, bytes], frozenset[int]]
"""Position -> digests."""

positions = st.tuples(st.integers(1, 12), st.integers(0, 3).map(lambda number: number.to_bytes(16)))
values = st.frozensets(st.sampled_from((0, 1, 2, 7, 2**63, 2**64 - 1)), min_size=1)
models = st.dictionaries(positions, values, max_size=24)


def run_of(model: Model) -> Run:
    return joined([of_one(here, Digests(tuple(sorted(own)))) for here, own in model.items()])


def model_of(run: Run) -> Model:
    found: dict[int, set[int]] = {place: set() for place, _ in Slots(run.slots).living()}
    for digest, places in run.postings.items():
        assert list(places) == sorted(set(places))
        for place in places:
            found[place].add(digest)
    return {tuple(position(Slots(run.slots)[place])): frozenset(own) for place, own in found.items()}


def through_bytes(run: Run) -> Run:
    segment = Segment.unpack(packed(run.slots, run.postings).pack())
    return Run(segment.slots, dict(segment.postings()))


@given(st.lists(models, max_size=4), st.integers(1, 9))
@pytest.mark.slow(0.1)
def test_merging_and_splitting_segments_keeps_their_events(parts: list[Model], most: int):
    whole: Model = {}
    runs: list[Run] = []
    for part in parts:
        own = {here: digests for here, digests in part.items() if here not in whole}
        whole.update(own)
        runs.append(through_bytes(run_of(own)))
    run = through_bytes(joined(runs))
    assert [tuple(position(raw)) for _, raw in Slots(run.slots).living()] == sorted(whole)
    assert model_of(run) == whole
    pieces = cut(run, most)
    assert all(0 < len(piece) <= most for piece in pieces)
    assert len(pieces) == -(-len(whole) // most)
    again: Model = {}
    for piece in pieces:
        assert not again or max(again) < min(model_of(piece))
        again.update(model_of(piece))
    assert again == whole


@given(models.filter(bool), st.data())
def test_erasure_removes_an_event_and_leaves_the_others_in_place(model: Model, data: st.DataObject):
    run = run_of(model)
    segment = packed(run.slots, run.postings)
    left = dict(model)
    for here in data.draw(st.permutations(sorted(model))):
        place = Slots(segment.slots).find(slot(here))
        assert place is not None
        assert not Slots(segment.slots).is_empty
        segment = Segment.unpack(segment.without({place: left.pop(here)}).pack())
        assert Slots(segment.slots).find(slot(here)) is None
        assert model_of(Run(segment.slots, dict(segment.postings()))) == left
        assert {*segment.digests} == {digest for own in left.values() for digest in own}
        every = [Slots(segment.slots)[place] for place in range(len(model))]
        assert every == sorted(every), "in order, so that it can be bisected"
        assert joined([Run(segment.slots, dict(segment.postings()))]).slots == b"".join(map(slot, sorted(left)))
    assert Slots(segment.slots).is_empty
    assert not segment.digests


@given(models, positions, st.sampled_from((0, 1, 7, 2**64 - 1)))
def test_a_lookup_bisects_the_segment(model: Model, bound: tuple[int, bytes], digest: int):
    run = run_of(model)
    segment = packed(run.slots, run.postings)
    slots = Slots(segment.slots)
    assert slots.below(slot(bound)) == sum(here < bound for here in model)
    found = [tuple(position(slots[place])) for place in segment.having(digest)]
    assert found == sorted(here for here, own in model.items() if digest in own)


@given(models, st.lists(st.integers(0, 30), max_size=6), st.integers(0, 24), st.integers(0, 24))
def test_living_events_are_found_whether_or_not_some_were_erased(model: Model, gone: list[int], low: int, high: int):
    slots = Slots(run_of(model).slots)
    for index in gone:
        if index < len(slots):
            slots = slots.without(index)
    low, high = min(low, len(slots)), min(high, len(slots))
    assert list(slots.living_between(low, high)) == [index for index, _ in slots.living() if low <= index < high]


def test_the_bytes_are_pinned():
    run = joined([of_one((1, b"a" * 16), Digests((1, 258))), of_one((2, b"b" * 16), Digests((258,)))])
    assert packed(run.slots, run.postings).pack().hex() == (
        "02000000" + "0000000000000001" + "61" * 16 + "0000000000000002" + "62" * 16
        + "02000000" + "0100000000000000" + "0201000000000000" + "01000000" + "03000000" + "0000" + "0000" + "0100"
    )  # fmt: skip
    assert Digests((1, 258)).pack().hex() == "0100000000000000" + "0201000000000000"
    assert Slots(GONE).is_empty
