"""Writes databases of MaxMind's format (MaxMind DB File Format Specification 2.0).

The search tree and the encoding of records, for databases that tests make.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, cast

Record = Mapping[str, Any]
"""Of strings, whole numbers, lists and maps of them."""

_V4_DEPTH = 96
"""IPv4 lies at ::/96, where its numbers are those of IPv6 as they are."""
_DEPTH = 128
_STRING, _UINT16, _UINT32, _MAP, _UINT64, _ARRAY = 2, 5, 6, 7, 9, 11
"""Types of the data section; those above 7 take a second byte."""
_EMPTY = 0
"""The root is nobody's child."""


class Tree:
    """A database that is being made. Each side of a node: a node's number, 0 for nothing, or a record as a negative."""

    def __init__(self) -> None:
        self._sides = [_EMPTY, _EMPTY]
        self._data = bytearray()
        self._offsets: dict[bytes, int] = {}
        self._v4_root = 0
        for _ in range(_V4_DEPTH):
            self._v4_root = self._child(self._v4_root, 0)

    def add(self, first: int, last: int, record: Record) -> None:
        """Give all addresses from `first` to `last` a record; an IPv4 address is its number.

        Raises `ValueError` for a range that is none, and where an address has a record already.
        """
        if not 0 <= first <= last < 1 << _DEPTH:
            raise ValueError(f"{first} to {last} is no range of addresses")
        leaf = -1 - self._keep(encode(record))
        while first <= last:
            # The largest network that begins here and does not end behind the last address.
            free = min(((first & -first).bit_length() - 1) if first else _DEPTH, (last - first + 1).bit_length() - 1)
            self._put(first, _DEPTH - free, leaf)
            first += 1 << free

    def _put(self, address: int, prefix: int, leaf: int) -> None:
        node, depth = (self._v4_root, _V4_DEPTH) if address >> 32 == 0 and prefix > _V4_DEPTH else (0, 0)
        for place in range(_DEPTH - 1 - depth, _DEPTH - prefix, -1):
            node = self._child(node, address >> place & 1)
        side = 2 * node + (address >> (_DEPTH - prefix) & 1)
        if self._sides[side] != _EMPTY:
            raise ValueError("ranges overlap")
        self._sides[side] = leaf

    def _child(self, node: int, bit: int) -> int:
        side = 2 * node + bit
        child = self._sides[side]
        if child < 0:
            raise ValueError("ranges overlap")
        if child == _EMPTY:
            child = len(self._sides) // 2
            self._sides[side] = child
            self._sides += (_EMPTY, _EMPTY)
        return child

    def _keep(self, encoded: bytes) -> int:
        offset = self._offsets.get(encoded)
        if offset is None:
            offset = self._offsets[encoded] = len(self._data)
            self._data += encoded
        return offset

    def content(self, database_type: str, built_at_s: int) -> bytes:
        """The bytes of the file. `built_at_s` is Unix time in seconds."""
        nodes = len(self._sides) // 2
        # "No data" is the number of nodes; a record is that, 16 for the separator, and its place in the data section.
        tree = array(
            "I", [side if side > 0 else nodes if side == _EMPTY else nodes + 15 - side for side in self._sides]
        )
        if sys.byteorder == "little":
            tree.byteswap()
        about = {
            "binary_format_major_version": _number(2, _UINT16),
            "binary_format_minor_version": _number(0, _UINT16),
            "build_epoch": _number(built_at_s, _UINT64),
            "database_type": encode(database_type),
            "description": encode({}),
            "ip_version": _number(6, _UINT16),
            "languages": encode([]),
            "node_count": _number(nodes, _UINT32),
            "record_size": _number(32, _UINT16),
        }
        metadata = _control(_MAP, len(about)) + b"".join(encode(name) + value for name, value in about.items())
        return b"".join((tree.tobytes(), bytes(16), self._data, b"\xab\xcd\xefMaxMind.com", metadata))


def encode(value: Any) -> bytes:
    """One value as bytes of the data section (format 2.0, "Output Data Section")."""
    match value:
        case str():
            text = value.encode()
            return _control(_STRING, len(text)) + text
        case int():
            return _number(value, _UINT32 if value < 1 << 32 else _UINT64)
        case Mapping():
            fields = cast("Mapping[str, Any]", value)
            return _control(_MAP, len(fields)) + _joined(part for pair in fields.items() for part in pair)
        case list():
            parts = cast("list[Any]", value)
            return _control(_ARRAY, len(parts)) + _joined(parts)
        case _:
            raise TypeError(f"a record cannot hold {value!r}")


def _number(value: int, kind: int) -> bytes:
    """Readers insist on the type of each number of the metadata, but take as few bytes as it needs."""
    digits = value.to_bytes((value.bit_length() + 7) // 8)
    return _control(kind, len(digits)) + digits


def _joined(values: Iterable[Any]) -> bytes:
    return b"".join(map(encode, values))


def _control(kind: int, size: int) -> bytes:
    """Type and size: three bits and five, with the rest in bytes behind them."""
    short, more = (size, b"") if size < 29 else (29, bytes([size - 29])) if size < 285 else (30, _two(size - 285))
    return bytes([kind << 5 | short]) + more if kind <= 7 else bytes([short, kind - 7]) + more


def _two(number: int) -> bytes:
    return number.to_bytes(2)
