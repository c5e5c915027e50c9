"""What a long job tells of itself while it runs: stages of so many steps. Here it tells nobody."""

from __future__ import annotations


class Steps:
    """Progress of a long job. This one ignores it; the command line has one that shows it."""

    def stage(self, label: str, length: int) -> None:
        """A stage begins that takes `length` steps: rows or bytes, as `label` says."""

    def step(self, count: int) -> None:
        """`count` more steps of the present stage are done."""


QUIET = Steps()
