"""Long work in steps, for those who carry it out (`kernel/work/slices.py`).

What may live here: its type.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

R = TypeVar("R")

Steps = Generator[None, None, R]
"""Work that is no read: it yields about every half a millisecond, for others, and returns its result."""
