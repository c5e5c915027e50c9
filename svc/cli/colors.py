"""Whether what is printed has colors."""

from __future__ import annotations

import os
from typing import TextIO


def has_colors(stream: TextIO) -> bool:
    """Whether a terminal reads the stream, one that knows colors, and NO_COLOR (no-color.org) is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
