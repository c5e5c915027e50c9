"""Work that yields between its steps, carried out at once."""

from __future__ import annotations

from typing import TypeVar

from svc.kernel.values.steps import Steps

R = TypeVar("R")


def result_of(steps: Steps[R]) -> R:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
