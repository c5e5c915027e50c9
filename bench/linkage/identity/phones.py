"""The fleet of phones (`bench.linkage.phones`) as a row, where that module is there."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.linkage.identity.world import Aim, Counts, at_least, at_most
from tests.domain.matching_world import Organization

FLEET = "bench.linkage.phones"


def is_there() -> bool:
    return find_spec(FLEET) is not None


def aims() -> dict[str, Aim]:
    """The fleet has the least and the largest share that is good enough."""
    bounds: dict[str, tuple[float, float]] = import_module(FLEET).AIMS
    return {case: at_most(largest) if largest < 1 else at_least(least) for case, (least, largest) in bounds.items()}


def measure(seed: int, data: Path, stream: str) -> Counts:
    del data, stream
    counts = Counts()
    figures: Any = import_module(FLEET).Fleet(seed, Organization().visit).run()
    for case, of in figures.of.items():
        counts.add(case, figures.counted[case], of)
    return counts
