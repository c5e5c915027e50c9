"""A strict reader of small CBOR items (RFC 8949), for the objects of App Attest.

What may live here: the part of CBOR that these objects use. Lengths are definite and written in the shortest form, a
map has no key twice, and there are no tags. Depth and number of items are bounded, so that no bytes cost more than some
microseconds (docs/adr/0027).
"""

from __future__ import annotations

import struct
from typing import Any, cast

MAX_DEPTH = 6
MAX_ITEMS = 128
"""In one item, itself and the keys of maps included. The objects of current devices have 13 at most."""

_SIMPLE = 7
_SIMPLE_VALUES = {20: False, 21: True, 22: None}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}


class CborError(ValueError):
    """The bytes are not the part of CBOR that is read here."""


def read_item(raw: bytes, start: int = 0) -> tuple[Any, int]:
    """The item that begins at `start`, and where it ends. Raises `CborError`; no bytes make it raise anything else.

    Integers, byte strings, text, lists, dictionaries, `bool`, `None` and floats; keys of dictionaries are integers,
    byte strings or text.
    """
    reader = _Reader(raw, start)
    return reader.item(MAX_DEPTH), reader.at


def read_map(raw: bytes, start: int = 0) -> dict[Any, Any]:
    """The map that begins at `start` and ends with the bytes. Raises `CborError` for anything else."""
    found, end = read_item(raw, start)
    if type(found) is not dict or end != len(raw):
        raise CborError("not one map")
    return cast("dict[Any, Any]", found)


class _Reader:
    def __init__(self, raw: bytes, at: int) -> None:
        self._raw = raw
        self._items = 0
        self.at = at

    def item(self, depth: int) -> Any:
        self._items += 1
        if not depth or self._items > MAX_ITEMS:
            raise CborError("too deep or too many items")
        (first,) = self._take(1)
        kind, info = first >> 5, first & 0x1F
        if kind == _SIMPLE:
            return self._simple(info)
        number = self._number(info)
        match kind:
            case 0 | 1:
                return -1 - number if kind else number
            case 2:
                return self._take(number)
            case 3:
                return self._text(number)
            case 4:
                return [self.item(depth - 1) for _ in range(number)]
            case 5:
                return self._map(number, depth - 1)
            case _:
                raise CborError("a tag")

    def _take(self, count: int) -> bytes:
        start, self.at = self.at, self.at + count
        if self.at > len(self._raw):
            raise CborError("the bytes end early")
        return self._raw[start : self.at]

    def _number(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise CborError("a length that is not definite")
        size = 1 << (info - 24)
        number = int.from_bytes(self._take(size))
        if number < (24 if size == 1 else 1 << (4 * size)):
            raise CborError("a number that is not in its shortest form")
        return number

    def _text(self, count: int) -> str:
        try:
            return self._take(count).decode()
        except UnicodeDecodeError as error:
            raise CborError("text that is not UTF-8") from error

    def _map(self, count: int, depth: int) -> dict[Any, Any]:
        read: dict[Any, Any] = {}
        for _ in range(count):
            key = self.item(depth)
            if type(key) not in (int, bytes, str) or key in read:
                raise CborError("a key of a map that is repeated, or of another kind")
            read[key] = self.item(depth)
        return read

    def _simple(self, info: int) -> Any:
        if info in _FLOATS:
            layout = _FLOATS[info]
            (number,) = struct.unpack(layout, self._take(struct.calcsize(layout)))
            return number
        if info not in _SIMPLE_VALUES:
            raise CborError("a simple value that is not known")
        return _SIMPLE_VALUES[info]
