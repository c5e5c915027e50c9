"""Tables that rules look things up in: names, patterns and numbers, one TOML file for each module that asks.

What may live here: the files, and how one is read. What a table means, and which row may stand in it, is said
at its top or in the module that reads it.
"""

from __future__ import annotations

from svc.kernel import data
from svc.kernel.data import Tables


def read_tables(name: str, kind: type[Tables]) -> Tables:
    """Return the content of `NAME.toml` in this package, as `svc.kernel.data.read_tables` does."""
    return data.read_tables(name, kind, __name__)
