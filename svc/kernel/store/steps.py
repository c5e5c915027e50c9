"""Steps of a long job: how much one transaction of it may touch, and how its progress is reported.

A commit holds the writer, and everybody's identifications wait for it (docs/adr/0188, 0196). So what erases, sweeps or
imports does so in steps, and there is one budget for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

STEP_ROWS: Final = 500
"""Rows that one step writes or deletes, index rows included."""
STEP_LOOKS: Final = 512
"""Rows that one step looks at to find these."""
EVENT_ROWS: Final = 15
"""Rows of an event and of what counts it, as a step that erases it changes them."""
ROWS_REPORTED = 1000
"""Rows that are read between two reports of progress."""


def items_of_step(rows: int) -> int:
    """Return how many items one step may have, each of which changes `rows` rows at most."""
    return STEP_ROWS // rows


class Steps:
    """The progress of a long job. This class ignores it; the command line has one that shows it."""

    def stage(self, label: str, length: int) -> None:
        """A stage begins that takes `length` steps: rows or bytes, as `label` says."""

    def step(self, count: int) -> None:
        """`count` more steps of the present stage are done."""


QUIET = Steps()


def counted(rows: Iterable[T], steps: Steps) -> Iterator[T]:
    """Yield the same rows; report to `steps` how many were read, `ROWS_REPORTED` at a time and the rest at the end."""
    count = 0
    for count, row in enumerate(rows, start=1):
        if not count % ROWS_REPORTED:
            steps.step(ROWS_REPORTED)
        yield row
    steps.step(count % ROWS_REPORTED)
