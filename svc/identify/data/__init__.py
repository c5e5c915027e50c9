"""Tables that rules look things up in: names, patterns and numbers, one TOML file for each module that asks.

What may live here: the files, and how one is read. What a table means, and which row may stand in it, is said
at its top or in the module that reads it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TypeVar

import msgspec

Tables = TypeVar("Tables")


def read_tables(name: str, kind: type[Tables]) -> Tables:
    """Return the content of `NAME.toml` in this package as a struct or a dictionary. Raises `msgspec.ValidationError`
    if it does not have that form.
    """
    return msgspec.toml.decode((files(__name__) / f"{name}.toml").read_bytes(), type=kind)
