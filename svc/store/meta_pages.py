"""The two pages of LMDB's file that say which commit is in force, looked at before LMDB believes them.

LMDB writes them in turn and takes the one with the larger number, without a check value of its own: a bit turned over
in either number would bring back the commit before the last, whole and in silence. The numbers of two commits in turn
differ by one.

The layout is that of LMDB 0.9 on 64-bit machines (`MDB_page`, `MDB_meta` in its mdb.c), in the machine's byte order.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from svc.store.codec import Corrupted

_MAGIC = 0xBEEFC0DE
_META = struct.Struct("=16xIIQQI92xQQ")
"""Magic number, version, address, size of the map, size of a page, last page, number of the commit."""
_READINGS = 5
"""Two commits between two reads look like damage; five times in a row they do not."""


class _Meta(NamedTuple):
    page_bytes: int
    last_page: int
    commit: int


def check_meta_pages(file: Path) -> None:
    """Raises `Corrupted` where the file is not one that LMDB can have left behind; the store may be in use."""
    problem = _problem(file)
    for _ in range(_READINGS - 1):
        if problem is not None:
            problem = _problem(file)
    if problem is not None:
        raise Corrupted(f"{file}: {problem}")


def _problem(file: Path) -> str | None:
    size = file.stat().st_size
    if not size:
        return None  # LMDB makes a new store of it
    with file.open("rb") as opened:
        raw = opened.read(_META.size)
        first = _meta(raw)
        second = None
        if first is not None and _META.size <= first.page_bytes <= size:
            opened.seek(first.page_bytes)
            second = _meta(opened.read(_META.size))
    if first is None or second is None or first.page_bytes != second.page_bytes:
        return "its first pages are damaged, or were never written to their end"
    if abs(first.commit - second.commit) != 1 and (first.commit, second.commit) != (0, 0):
        return f"its first pages tell of the commits {first.commit} and {second.commit}, which do not follow each other"
    named = (max(first, second, key=lambda meta: meta.commit).last_page + 1) * first.page_bytes
    if size < named and first.commit + second.commit:
        return f"it is cut short: it has {size} bytes and names {named}"
    return None


def _meta(raw: bytes) -> _Meta | None:
    if len(raw) < _META.size:
        return None
    magic, _, _, _, page_bytes, last_page, commit = _META.unpack(raw)
    return _Meta(page_bytes, last_page, commit) if magic == _MAGIC else None
