"""A scan that goes on from slice to slice with what its looks at the index found."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from svc.identify.index.looks import MAX_AHEAD, Looks


class Numbers:
    """Numbers from 1 on, some of which are there. A look goes over 100 of them at most."""

    def __init__(self, there: set[int], last: int) -> None:
        self.there, self.last = there, last
        self.looks: list[int] = []

    def look(self, start: int, limit: int) -> tuple[list[int], int | None]:
        self.looks.append(limit)
        end = min(start + 100, self.last)
        found = [number for number in range(start + 1, end + 1) if number in self.there][:limit]
        if len(found) == limit:
            return found, found[-1]
        return found, None if end == self.last else end


def scanned(numbers: Numbers, counts: list[int]) -> list[int]:
    """All numbers by scans of these sizes, over and over."""
    looks, found, behind, turn = Looks[int, int](lambda number: number), list[int](), 0, 0
    while True:
        count = counts[turn % len(counts)]
        some = list(looks.scan(numbers.look, behind, count))
        found += [number for _, number in some if number is not None]
        if len(some) < count:
            return found
        assert len(some) == count
        assert some[-1][0] > behind
        behind, turn = some[-1][0], turn + 1


@given(st.sets(st.integers(1, 700)), st.lists(st.integers(1, 90), min_size=1, max_size=5))
def test_slices_of_any_size_find_everything_once(there: set[int], counts: list[int]):
    assert scanned(Numbers(there, 700), counts) == sorted(there)


def test_the_index_is_not_looked_at_again_for_each_slice():
    numbers = Numbers(set(range(1, 100_001)), 100_000)
    assert len(scanned(numbers, [64])) == 100_000
    assert max(numbers.looks) <= MAX_AHEAD
    assert len(numbers.looks) <= 100_000 // 100 + 2


def test_a_scan_from_another_position_looks_again():
    """A store may read a slice twice, and a part that was left unread is not passed over."""
    numbers = Numbers(set(range(1, 301)), 300)
    looks = Looks[int, int](lambda number: number)
    first = [number for _, number in looks.scan(numbers.look, 0, 30)]
    again = [number for _, number in looks.scan(numbers.look, 0, 30)]
    assert first == again == list(range(1, 31))
    part = looks.scan(numbers.look, 30, 30)
    assert [next(part)[1], next(part)[1]] == [31, 32]
    assert [number for _, number in looks.scan(numbers.look, 32, 3)] == [33, 34, 35]
    assert [number for _, number in looks.scan(numbers.look, 31, 3)] == [32, 33, 34]


class Fetched(Numbers):
    """Numbers as a database has them: a run over those that were not fetched yet is made again when they are."""

    def __init__(self, there: set[int], last: int, chance: random.Random) -> None:
        super().__init__(there, last)
        self.all, self.there, self.is_missing, self.runs = there, set[int](), False, 0
        self._chance = chance

    def look(self, start: int, limit: int) -> tuple[list[int], int | None]:
        missing = {number for number in self.all - self.there if start < number <= start + 100}
        found, resume = super().look(start, limit)
        self.is_missing = self.is_missing or bool(missing)
        self.there |= {number for number in missing if self._chance.random() < 0.7}
        return found, None if missing and self._chance.random() < 0.5 else resume

    def scanned(self, looks: Looks[int, int], behind: int, count: int) -> list[tuple[int, int | None]]:
        while True:
            self.runs, self.is_missing = self.runs + 1, False
            some = list(looks.scan(self.look, behind, count, lambda: self.is_missing))
            if not self.is_missing:
                return some


@given(st.sets(st.integers(1, 700)), st.integers(1, 90), st.randoms())
def test_slices_that_run_over_missing_rows_first_find_everything_once(
    there: set[int], count: int, chance: random.Random
):
    numbers, looks, found, behind = Fetched(there, 700, chance), Looks[int, int](lambda number: number), list[int](), 0
    while some := numbers.scanned(looks, behind, count):
        behind = some[-1][0]
        found += [number for _, number in some if number is not None]
        if len(some) < count:
            break
    assert found == sorted(there)


def test_a_slice_that_is_read_again_does_not_look_again():
    """An event of which a look has found the position may be missing, too."""
    numbers, looks = Numbers(set(range(1, 301)), 300), Looks[int, int](lambda number: number)
    for start in (0, 20):
        assert [number for _, number in looks.scan(numbers.look, start, 20)] == list(range(start + 1, start + 21))
    looked = len(numbers.looks)
    for _ in range(3):
        again = looks.scan(numbers.look, 40, 12, lambda: True)
        assert [number for _, number in again] == list(range(41, 53))
    assert len(numbers.looks) == looked
