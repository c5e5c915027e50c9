"""Numbers of new visitors that are in a worker's hand: none is ever given twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from svc.identify.recording.visitors import NextNumber, VisitorNumbers


def test_a_single_worker_takes_one_number_at_a_time_and_holds_none():
    numbers = VisitorNumbers()
    for used in (1, 2, 3):
        (handed,) = numbers.hand_out([7])
        assert handed == NextNumber(None, 1)
        numbers.give_back(7, handed, used)


def test_numbers_reserved_with_a_first_visit_go_to_the_next_visitors():
    numbers = VisitorNumbers(at_once=3)
    handed = numbers.hand_out([7, 8])
    assert handed == [NextNumber(None, 3)] * 2
    numbers.give_back(7, handed[0], 11)
    numbers.give_back(8, handed[1], None)
    assert numbers.hand_out([7, 7, 7, 8]) == [NextNumber(12, 3), NextNumber(13, 3), *[NextNumber(None, 3)] * 2]


def test_an_unused_number_is_handed_out_again_and_one_of_a_failed_commit_never():
    numbers = VisitorNumbers(at_once=3)
    numbers.give_back(7, NextNumber(None, 3), 1)
    known, lost = numbers.hand_out([7, 7])
    numbers.give_back(7, known, None)
    assert lost.number == 3
    assert numbers.hand_out([7, 7]) == [NextNumber(2, 3), NextNumber(None, 3)]


def test_held_numbers_are_bounded_and_those_of_the_least_active_organization_are_released():
    numbers = VisitorNumbers(at_once=3, most=5)
    for organization in (7, 8, 9):
        numbers.give_back(organization, NextNumber(None, 3), 1)
    assert [handed.number for handed in numbers.hand_out([7, 8, 9])] == [None, 2, 2]


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 1), st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2))), st.booleans())),
)
def test_two_workers_never_hand_out_the_same_number(
    at_once: int, groups: list[tuple[int, list[tuple[int, int]], bool]]
):
    """Groups of visits, each of an organization and either known, new or refused at random; some commits are lost."""
    workers = [VisitorNumbers(at_once, most=20), VisitorNumbers(at_once, most=20)]
    counts: dict[int, int] = {}
    given: set[tuple[int, int]] = set()
    for place, visits, durable in groups:
        handed = workers[place].hand_out([organization for organization, _ in visits])
        for (organization, kind), one in zip(visits, handed, strict=True):
            number = None
            if kind:
                number = one.number
                if number is None:
                    number = counts.get(organization, 0) + 1
                    counts[organization] = number + one.at_once - 1
                assert number <= counts[organization]
                assert (organization, number) not in given
                given.add((organization, number))
            if durable:
                workers[place].give_back(organization, one, number)
