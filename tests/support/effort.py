"""How much of what is made up or drawn a run tries: a share in `make test`, all of it in `make test-long`."""

from __future__ import annotations

import os

LONG = os.environ.get("EFFORT") == "long"
"""Whether this run tries everything."""


def effort(share: int, everything: int) -> int:
    """The number of examples, seeds or cases that this run tries."""
    return everything if LONG else share
