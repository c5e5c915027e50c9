"""Bytes of bodies in memory."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from svc.http.body import CLIENT_SHARE, BodyBudget

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
