"""Progress of long jobs: a bar for each stage, on standard error and only for a person who watches."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import click

from svc.store.steps import QUIET, Steps


class _Bars(Steps):
    def __init__(self) -> None:
        self._bar: Any = None
        self._left = 0

    def stage(self, label: str, length: int) -> None:
        self.end()
        self._left = max(length, 1)
        self._bar = click.progressbar(length=self._left, label=f"{label:<24}", file=sys.stderr)
        self._bar.__enter__()

    def step(self, count: int) -> None:
        self._left -= count
        self._bar.update(count)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.update(self._left)
            self._bar.__exit__(None, None, None)
            self._bar = None


@contextmanager
def progress() -> Generator[Steps]:
    """Progress bars on standard error, which end with the block; `QUIET` where that is no terminal."""
    if not sys.stderr.isatty():
        yield QUIET
        return
    bars = _Bars()
    yield bars
    bars.end()
