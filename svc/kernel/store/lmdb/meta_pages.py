"""The two pages of LMDB's file that say which commit is in force, looked at before LMDB believes them.

LMDB writes them in turn and takes the one with the larger number, without a checksum of its own: a flipped bit
in either number would bring back the commit before the last, whole and in silence. The numbers of two commits in turn
differ by one.

The layout is that of LMDB 0.9 on 64-bit machines (`MDB_page`, `MDB_meta` in its mdb.c), in the machine's byte order.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from svc.kernel.store.schema.codec import CorruptionError
from svc.world import pause

_MAGIC = 0xBEEFC0DE
_META = struct.Struct("=16xIIQQI92xQQ")
"""Magic number, version, address, size of the map, size of a page, last page, number of the commit."""
PAUSES_S = (0.0, 0.001, 0.01, 0.1, 0.5)
"""Between readings of a page in whose writing, a system call, another process may have lost the processor."""


class _Meta(NamedTuple):
    page_bytes: int
    last_page: int
    commit: int


def check_meta_pages(file: Path, pause: Callable[[float], None] = pause) -> None:
    """Raise `CorruptionError` if the file is not in a state in which LMDB can have left it; the store may be in use.
    `pause` waits the given seconds: a commit that is being written looks like corruption for a moment.
    """
    for wait_s in PAUSES_S:
        if _problem(file) is None:
            return
        pause(wait_s)
    problem = _problem(file)
    if problem is not None:
        raise CorruptionError(f"{file}: {problem}")


def refuse_cut(file: Path) -> None:
    """Raise `CorruptionError` for a file that is shorter than its last commit requires: reading its missing pages would
    end the process without a message. LMDB reports all other faults.
    """
    problem = _problem(file)
    if problem is not None and problem.startswith(CUT):
        raise CorruptionError(f"{file}: {problem}")


CUT = "it is cut short"


def last_commit(descriptor: int, page_bytes: int) -> int | None:
    """Return the number of the last commit in an open file that LMDB may be writing; `None` if its first pages are not
    in a state in which LMDB can have left them, as where another file is copied over it. Raises `OSError`.
    """
    for wait_s in PAUSES_S:
        first = _meta(os.pread(descriptor, _META.size, 0))
        second = _meta(os.pread(descriptor, _META.size, page_bytes))
        if first is not None and second is not None and _follow(first, second):
            return max(first.commit, second.commit)
        pause(wait_s)
    return None


def last_commit_of(file: Path) -> int | None:
    """Return what `last_commit` does, of a file that is not open. Raises `OSError`."""
    with file.open("rb") as opened:
        first = _meta(opened.read(_META.size))
        return None if first is None else last_commit(opened.fileno(), first.page_bytes)


def _follow(first: _Meta, second: _Meta) -> bool:
    return abs(first.commit - second.commit) == 1 or first.commit == second.commit == 0


def _problem(file: Path) -> str | None:
    with file.open("rb") as opened:
        raw = opened.read(_META.size)
        if not raw:
            return None  # LMDB makes a new store in an empty file
        first = _meta(raw)
        second = None
        if first is not None and _META.size <= first.page_bytes:
            opened.seek(first.page_bytes)
            second = _meta(opened.read(_META.size))
        size = os.fstat(opened.fileno()).st_size  # last: a commit extends the file before it says so
    if first is None or second is None or first.page_bytes != second.page_bytes:
        return "its first pages are corrupt, or were never written to their end"
    if not _follow(first, second):
        return f"its first pages tell of the commits {first.commit} and {second.commit}, which do not follow each other"
    named = (max(first, second, key=lambda meta: meta.commit).last_page + 1) * first.page_bytes
    if size < named and first.commit + second.commit:
        return f"{CUT}: it has {size} bytes and names {named}"
    return None


def _meta(raw: bytes) -> _Meta | None:
    if len(raw) < _META.size:
        return None
    magic, _, _, _, page_bytes, last_page, commit = _META.unpack(raw)
    return _Meta(page_bytes, last_page, commit) if magic == _MAGIC else None
