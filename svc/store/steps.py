"""What a long job tells of itself while it runs: stages of so many steps. Here it tells nobody."""

from __future__ import annotations


class Steps:
    """Hears nothing; the command line shows what its own one hears."""

    def stage(self, label: str, length: int) -> None:
        """A stage begins that takes so many steps: rows or bytes."""

    def step(self, count: int) -> None:
        """So many of them are done."""


QUIET = Steps()
