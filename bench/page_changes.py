"""Which pages of LMDB's file a commit wrote, by table: those of the new tree that the tree before it does not have.

LMDB never writes over a page of the last commit, so a page whose number is in both trees is unchanged, with all that
hangs on it. Only what differs is read.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import lmdb

_TREE = struct.Struct("=IHHQQQQQ")
"""`MDB_db` in LMDB's mdb.c: unused, flags, depth, pages by kind (three), rows, root."""
_EMPTY = (1 << 64) - 1
_HEADER = struct.Struct("=QHHHH")
_NODE = struct.Struct("=HHHH")
_NUMBER = struct.Struct("=Q")
_ELSEWHERE = 1


class Tree(NamedTuple):
    """Where a table begins, in one state of the store."""

    root: int
    depth: int
    """0 = it has no row."""


class Written(NamedTuple):
    """Pages that a commit wrote for one table."""

    branches: int
    leaves: int
    overflow: int
    """Of values that have pages of their own."""

    @property
    def pages(self) -> int:
        """All of them."""
        return sum(self)


def trees(handle: lmdb.Transaction) -> dict[str, Tree]:
    """Table -> where it begins in the state that this transaction reads."""
    found: dict[str, Tree] = {}
    for name, raw in handle.cursor().iternext():
        *_, root = fields = _TREE.unpack(raw)
        found[bytes(name).decode()] = Tree(root, 0 if root == _EMPTY else fields[2])
    return found


class PageChanges:
    """Reads pages of an environment's file. Both states that are compared must be held by open transactions."""

    def __init__(self, environment: lmdb.Environment) -> None:
        self._file = os.open(Path(environment.path()) / "data.mdb", os.O_RDONLY)
        self._page_bytes = environment.stat()["psize"]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def written(self, before: Tree, after: Tree) -> Written:
        """What the commits between the two states wrote for the table."""
        old = {before.root} if before.depth else set[int]()
        new = {after.root} if after.depth else set[int]()
        branches = 0
        old_depth, depth = before.depth, after.depth
        while depth > 1:
            while old_depth > depth:  # the tree has become lower
                old, old_depth = self._children(old), old_depth - 1
            fresh = new - old
            branches += len(fresh)
            if old_depth == depth:
                old, old_depth = self._children(old - new), old_depth - 1
            new, depth = self._children(fresh), depth - 1
        while old_depth > 1:
            old, old_depth = self._children(old), old_depth - 1
        fresh = new - old
        kept = self._values(old - new)
        values = {first: count for first, count in self._values(fresh).items() if first not in kept}
        return Written(branches, len(fresh), sum(values.values()))

    def _page(self, number: int) -> bytes:
        return os.pread(self._file, self._page_bytes, number * self._page_bytes)

    def _children(self, numbers: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for number in numbers:
            page = self._page(number)
            for place in _places(page):
                low, high, rest, _ = _NODE.unpack_from(page, place)
                found.add(low | high << 16 | rest << 32)
        return found

    def _values(self, numbers: Iterable[int]) -> Counter[int]:
        """First page of each value that has pages of its own -> how many."""
        found: Counter[int] = Counter()
        for number in numbers:
            page = self._page(number)
            for place in _places(page):
                low, high, flags, key_length = _NODE.unpack_from(page, place)
                if flags & _ELSEWHERE:
                    (first,) = _NUMBER.unpack_from(page, place + _NODE.size + key_length)
                    found[first] = -(-((low | high << 16) + _HEADER.size) // self._page_bytes)
        return found


def _places(page: bytes) -> tuple[int, ...]:
    _, _, _, lower, _ = _HEADER.unpack_from(page)
    return struct.unpack_from(f"={(lower - _HEADER.size) // 2}H", page, _HEADER.size)
