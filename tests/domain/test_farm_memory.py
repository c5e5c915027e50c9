"""What is remembered for the signals of decisions 18.6 is bounded, whatever a program sends."""

from __future__ import annotations

import msgspec
import pytest

from svc.identify.history.newcomers import Arrival, arrived, renewals, without
from svc.identify.keys.browser_keys import MAX_TOKENS, NO_OUTCOMES, Shared, Use, used, usually_verify, with_outcome
from svc.identify.matching.lessons import (
    MAX_RELEASES,
    MAX_VALUES,
    Renderings,
    learn_rendering,
    unseen_renderings,
)
from svc.identify.model import Attribute
from svc.identify.velocity.counts import EMPTY, MOST
from tests.domain.matching_world import features_of


def rendering(canvas: int, release: int = 1):
    features = features_of()
    values = list(features.values)
    values[Attribute.CANVAS], values[Attribute.AUDIO] = canvas, 7
    return msgspec.structs.replace(features, values=tuple(values), release=release)


@pytest.mark.slow(0.3)
def test_a_release_keeps_the_values_of_devices_that_came_back():
    renderings: Renderings = {}
    for device in range(10):
        learn_rendering(renderings, rendering(5), "new")
        learn_rendering(renderings, rendering(100 + device), "new")
    learn_rendering(renderings, rendering(100), "back")
    for invented in range(1_000, 11_000):
        learn_rendering(renderings, rendering(invented), "new")
    canvas = renderings[1].values[0]
    assert len(canvas.seen) == MAX_VALUES
    assert {5, 100} <= canvas.seen.keys()
    assert unseen_renderings(renderings, rendering(99)) == (Attribute.CANVAS,)
    assert unseen_renderings(renderings, rendering(5)) == ()


def test_releases_are_bounded_and_large_ones_stay():
    renderings: Renderings = {}
    for _ in range(50):
        learn_rendering(renderings, rendering(5, release=1), "new")
    for release in range(2, 1_000):
        learn_rendering(renderings, rendering(5, release), "new")
    assert len(renderings) == MAX_RELEASES
    assert 1 in renderings


def test_an_address_remembers_the_newest_and_forgets_after_a_day():
    row = EMPTY
    for number in range(1, 500):
        row = arrived(row, Arrival(1, 8, number << 20, number, is_new_visitor=True, has_new_token=True), number)
    assert len(row.others[2].ids) == MOST
    last = Arrival(1, 8, 499 << 20, 499, is_new_visitor=True, has_new_token=True)
    assert renewals(row, last) == MOST
    assert len(without(row, 499).others[2].ids) == MOST - 1
    assert without(row, None) is row
    known = last._replace(is_new_visitor=False, has_new_token=False)
    assert arrived(row, known, 499 + 2 * 24 * 3600).others[2].ids == ()


def test_a_key_keeps_three_tokens_and_one_that_did_nothing_new_is_not_written():
    record, shared = used(None, Use(2, "GB", 1_000))
    assert used(record, Use(2, "GB", 2_000)) == (record, Shared())
    assert used(record, Use(2, "GB", 2_000))[0] is record
    for token in range(4, 40, 2):
        record, shared = used(record, Use(token, None, 3_000))
    assert len(record.tokens) == MAX_TOKENS
    assert shared == Shared(behind_tokens=True)
    assert record.is_shared


def test_outcomes_are_those_of_the_last_twenty_reports():
    outcomes = NO_OUTCOMES
    for _ in range(40):
        outcomes = with_outcome(outcomes, verified=True)
    assert outcomes == (1 << 21) - 1
    for left in (True, True, False):
        outcomes = with_outcome(outcomes, verified=False)
        assert usually_verify(outcomes) == left
    assert outcomes < 1 << 21
