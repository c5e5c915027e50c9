"""The examples under the help of a command: commands to copy.

What may live here: their form. Each command has its examples in its own `epilog`; `tests/spec/test_help.py` parses them
all.
"""

from __future__ import annotations

HEAD = "Examples:"


def examples(*lines: str, after: str = "") -> str:
    """The `epilog` of a command: the lines as they are under a heading, and a paragraph behind them."""
    shown = "\n".join(["\b", HEAD, *(f"  {line}" for line in lines)])
    return f"{shown}\n\n{after}" if after else shown
