"""Tables in TOML: how one is read, and that of refusals."""

from __future__ import annotations

from importlib.resources import files
from typing import TypeVar

import msgspec

Tables = TypeVar("Tables")


def read_tables(name: str, kind: type[Tables], package: str = __name__) -> Tables:
    """Return the content of `NAME.toml` in a package. Raises `msgspec.ValidationError` if it is not of this type."""
    return msgspec.toml.decode((files(package) / f"{name}.toml").read_bytes(), type=kind)
