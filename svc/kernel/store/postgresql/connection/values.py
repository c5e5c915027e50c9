"""Values in PostgreSQL's binary format: what statements take and results hold.

Types that a statement takes are said in its SQL (`$1::bytea[]`): an encoding here must be that of the cast.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

_BYTEA, _INT8, _INT4, _TEXT, _XID = 17, 20, 23, 25, 28
_ARRAY = struct.Struct(">iiiii")
"""Dimensions, whether there may be nulls, type of the elements; length and first subscript of the one dimension."""
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)
TRUE = b"\1"
"""A `boolean`."""


def int4(value: int) -> bytes:
    """Return an `int4` of 4 bytes. Raises `OverflowError` for a number beyond them."""
    return value.to_bytes(4, signed=True)


def int8(value: int) -> bytes:
    """Return an `int8` of 8 bytes. Raises `OverflowError` for a number beyond them."""
    return value.to_bytes(8, signed=True)


def float8(value: float) -> bytes:
    """Return a `float8` of 8 bytes (IEEE 754)."""
    return struct.pack(">d", value)


def integer(raw: bytes) -> int:
    """Return the value of an `int2`, `int4` or `int8`, given its 2, 4 or 8 bytes."""
    return int.from_bytes(raw, signed=True)


def int4s(values: Sequence[int]) -> bytes:
    """Return an `int4[]`, in the order of `values`. Raises as `int4`."""
    encoded = {value: b"\0\0\0\4" + int4(value) for value in set(values)}  # mostly one, the organization of many rows
    return _header(_INT4, len(values)) + b"".join([encoded[value] for value in values])


def int8s(values: Sequence[int]) -> bytes:
    """Return an `int8[]`, in the order of `values`. Raises as `int8`."""
    return _header(_INT8, len(values)) + b"".join(b"\0\0\0\x08" + value.to_bytes(8, signed=True) for value in values)


def texts(values: Sequence[str]) -> bytes:
    """Return a `text[]` in UTF-8. The database rejects a text with a zero character."""
    return _array(_TEXT, [value.encode() for value in values])


def byteas(values: Sequence[bytes]) -> bytes:
    """Return a `bytea[]`, of values of any length."""
    return _array(_BYTEA, values)


def xids(values: Sequence[bytes | None]) -> bytes:
    """Return an `xid[]` of transaction ids in the form of results, 4 bytes each, or null."""
    return _header(_XID, len(values)) + b"".join([_NULL if value is None else b"\0\0\0\4" + value for value in values])


def _array(element: int, values: Sequence[bytes]) -> bytes:
    parts = [_header(element, len(values))]
    for value in values:
        parts += (_LENGTH.pack(len(value)), value)
    return b"".join(parts)


def _header(element: int, length: int) -> bytes:
    return _ARRAY.pack(1, 1, element, length, 1) if length else struct.pack(">iii", 0, 0, element)
