"""What a terminal shows beside text: colors, and a progress bar for each stage of a long job. Only for a person who
watches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from svc.kernel.store.steps import QUIET, Steps


def has_colors(stream: TextIO) -> bool:
    """Return whether a terminal reads the stream, one that knows colors, and NO_COLOR (no-color.org) is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


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
            self.leave()

    def leave(self) -> None:
        """End the line of a bar as it is, and show the cursor again, which bars hide."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


@contextmanager
def progress() -> Generator[Steps]:
    """Show progress bars on standard error in a `with` block, however it ends; give `QUIET` if that is not a terminal,
    or one that cannot move its cursor.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield QUIET
        return
    bars = _Bars()
    try:
        yield bars
        bars.end()
    finally:
        bars.leave()
