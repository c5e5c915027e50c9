"""The progress of a long job: stages with a number of steps, and rows that are counted as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

ROWS_A_STEP = 1000
"""Rows that are read between two reports of progress."""


class Steps:
    """The progress of a long job. This class ignores it; the command line has one that shows it."""

    def stage(self, label: str, length: int) -> None:
        """Begin a stage that takes `length` steps: rows or bytes, as `label` says."""

    def step(self, count: int) -> None:
        """Count `count` more steps of the present stage as done."""


QUIET = Steps()


def counted(rows: Iterable[T], steps: Steps) -> Iterator[T]:
    """Yield the same rows; report to `steps` how many were read, `ROWS_A_STEP` at a time and the rest at the end."""
    count = 0
    for count, row in enumerate(rows, start=1):
        if not count % ROWS_A_STEP:
            steps.step(ROWS_A_STEP)
        yield row
    steps.step(count % ROWS_A_STEP)
