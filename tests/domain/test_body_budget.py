"""Bytes of bodies in memory."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.http.body import CLIENT_SHARE, MAX_WIRE_BYTES, BodyBudget
from svc.kernel.config import ConfigError
from svc.kernel.config_loading import load

MOST = 1000


def test_one_client_has_a_share_and_all_have_the_whole():
    budget = BodyBudget(MOST)
    assert budget.take("a", 250)
    assert not budget.take("a", 1)
    assert all(budget.take(client, 250) for client in "bcd")
    assert not budget.take("e", 1)
    budget.release("b", 250)
    assert budget.take("e", 250)
    assert budget.held_bytes == MOST


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 300)), max_size=60))
def test_what_is_released_can_be_taken_again(asked: list[tuple[str, int]]):
    budget, held = BodyBudget(MOST), Counter[str]()
    taken = [one for one in asked if budget.take(*one)]
    for client, size in taken:
        held[client] += size
    assert budget.held_bytes == held.total() <= MOST
    assert all(size <= CLIENT_SHARE * MOST for size in held.values())
    for one in taken:
        budget.release(*one)
    assert budget.held_bytes == 0
    assert budget.take("a", int(CLIENT_SHARE * MOST))


def test_the_smallest_budget_has_room_for_the_largest_body():
    """With less, a legal body would get `503` however often it is sent."""
    least = load(None, {"SVC_BODY_BUDGET_MIB": "5"}).body_budget_mib
    assert BodyBudget(least << 20).take("a", MAX_WIRE_BYTES)
    assert not BodyBudget(least - 1 << 20).take("a", MAX_WIRE_BYTES)
    with pytest.raises(ConfigError, match="SVC_BODY_BUDGET_MIB: Expected a whole number >= 5"):
        load(None, {"SVC_BODY_BUDGET_MIB": "4"})
