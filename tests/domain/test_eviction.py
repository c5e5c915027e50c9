"""Which connection is evicted when there is no capacity for another one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.limits.eviction import REQUEST_GRACE_S, IdleConnection, client_prefix, eviction_order

NOW_S = 100.0


def waiting(prefix: str, waited_s: float, *, is_in_request: bool = False) -> IdleConnection:
    return IdleConnection(prefix, NOW_S - waited_s, is_in_request)


def leaving(*everybody: IdleConnection, count: int = 1) -> list[int]:
    return eviction_order(everybody, count, NOW_S)


def test_the_connection_that_has_been_idle_longest_is_evicted():
    assert leaving(waiting("a", 1), waiting("a", 3), waiting("a", 2), count=2) == [1, 2]


def test_all_kinds_of_idle_connections_are_evicted_by_the_same_rule():
    assert leaving(waiting("a", 8), waiting("a", 9, is_in_request=True)) == [1]
    assert leaving(waiting("a", 9), waiting("a", 8, is_in_request=True)) == [0]


def test_a_request_that_has_just_begun_is_not_evicted():
    begun = waiting("a", REQUEST_GRACE_S / 2, is_in_request=True)
    assert leaving(begun, waiting("a", 0)) == [1]
    assert leaving(begun, begun) == []
    assert leaving(waiting("a", REQUEST_GRACE_S, is_in_request=True)) == [0]


def test_the_largest_client_prefix_is_evicted_from_first_however_long_others_have_waited():
    assert leaving(waiting("honest", 60), waiting("crowd", 1), waiting("crowd", 2)) == [2]


def test_client_prefixes_of_equal_size_are_evicted_from_in_turn():
    everybody = [waiting("a", 5), waiting("a", 1), waiting("b", 4), waiting("b", 2)]
    assert leaving(*everybody, count=4) == [0, 2, 3, 1]


def test_of_many_addresses_with_one_connection_each_the_oldest_is_evicted():
    assert leaving(*(waiting(str(number), number) for number in range(9)), count=2) == [8, 7]


def test_no_connection_is_evicted_when_none_is_idle():
    assert leaving(count=3) == []


@given(
    st.lists(
        st.builds(
            IdleConnection,
            st.sampled_from("abc"),
            st.floats(NOW_S - 20, NOW_S).map(lambda since: round(since, 1)),
            st.booleans(),
        ),
        max_size=40,
    ),
    st.integers(0, 50),
)
def test_the_rule_holds_for_any_client_prefixes(everybody: list[IdleConnection], count: int):
    may_go = {n for n, one in enumerate(everybody) if not one.is_in_request or NOW_S - one.since_s >= REQUEST_GRACE_S}
    gone = eviction_order(everybody, count, NOW_S)
    assert gone == eviction_order(everybody, count, NOW_S)
    assert len(set(gone)) == len(gone) == min(count, len(may_go))
    assert set(gone) <= may_go
    left = may_go - set(gone)
    crowds = Counter(everybody[number].prefix for number in left)
    for number in gone:
        mine = everybody[number].prefix
        # Leveled down, and within a crowd from the oldest on.
        assert crowds[mine] + 1 >= max(crowds.values(), default=0)
        assert all(
            everybody[other].since_s >= everybody[number].since_s for other in left if everybody[other].prefix == mine
        )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%2", "fe80::1%3", True),
        ("", "", True),
        ("", "192.0.2.1", False),
    ],
)
def test_the_addresses_that_one_client_can_choose_freely_are_one_client_prefix(one: str, other: str, same: bool):
    assert (client_prefix(one) == client_prefix(other)) is same
