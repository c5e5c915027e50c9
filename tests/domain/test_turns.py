"""The order in which organizations are served (decisions 4)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.limits.turns import Turns

OWNERS = st.sampled_from("abcd")


@given(st.lists(st.one_of(OWNERS, st.none()), max_size=200))
def test_an_item_waits_for_at_most_one_item_of_each_other_owner_per_own_item(steps: list[str | None]):
    """An owner adds an item, or (`None`) one is taken."""
    turns: Turns[str, tuple[str, int]] = Turns()
    waiting: dict[tuple[str, int], Counter[str]] = {}
    ahead: dict[tuple[str, int], int] = {}
    for number, owner in enumerate(steps):
        if owner is not None:
            item = (owner, number)
            ahead[item], waiting[item] = turns.waiting(owner), Counter()
            turns.add(owner, item)
        elif len(turns):
            taken = turns.take()
            del waiting[taken]
            for overtaken in waiting.values():
                overtaken[taken[0]] += 1
            for (name, one), passed in waiting.items():
                most = 1 + ahead[name, one]
                assert all(count <= most for count in passed.values()), "a long queue has delayed another owner"
    left = [turns.take() for _ in range(len(turns))]
    assert sorted(left) == sorted(waiting)
    for name in "abcd":
        assert [item for item in left if item[0] == name] == sorted(item for item in waiting if item[0] == name)


def test_a_new_owner_does_not_wait_for_the_one_that_was_served_last():
    turns: Turns[str, int] = Turns()
    for number in range(3):
        turns.add("busy", number)
    assert turns.take() == 0
    turns.add("quiet", 9)
    assert [turns.take() for _ in range(3)] == [9, 1, 2]


def test_nothing_is_kept_of_an_owner_without_items():
    turns: Turns[str, int] = Turns()
    turns.add("a", 1)
    assert (len(turns), turns.waiting("a")) == (1, 1)
    assert turns.take() == 1
    assert (len(turns), turns.waiting("a")) == (0, 0)
    with pytest.raises(LookupError):
        turns.take()
