"""What a run needs to be the same every time: the order in which trio runs its tasks, from a seed."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def seeded_scheduling(seed: int) -> Generator[None]:
    """Trio shuffles the tasks that may run, on purpose. For a simulation the shuffle comes from the seed.

    Both names are private to trio; this is the only place that knows them.
    """
    from trio._core import _run

    before = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True
    _run._r = random.Random(seed)
    try:
        yield
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r = before
