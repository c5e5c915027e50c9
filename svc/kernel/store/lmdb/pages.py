"""The integrity check of LMDB's pages, from their roots on: each of them is used once, or is free.

A row has a checksum (`tables.Table`); what leads to it has none. LMDB keeps no checksum of its own, so a flipped bit
in the number of a page leads to another page, whole and out of date: its rows are what was written there
once. The page that it leads to is used twice then, or is on the list of free pages. A bit in that list makes LMDB write
over rows that are in use. Both are found here, before the rows are believed.

The layout is that of LMDB 0.9 on 64-bit machines (`MDB_page`, `MDB_node`, `MDB_db`, `MDB_meta` in its mdb.c), in the
machine's byte order.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import lmdb

from svc.kernel.store.engine import CheckDepth
from svc.kernel.store.lmdb.meta_pages import PAUSES_S
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.steps import QUIET, Steps
from svc.world import pause

_META_DATABASES, _META_COMMIT = 40, 144
_HEADER = struct.Struct("=QHHHH")
"""Its own number, unused, flags, end of the list of nodes, beginning of the nodes."""
_OVERFLOW_HEADER = struct.Struct("=QHHI")
"""Its own number, unused, flags, how many pages it is."""
_NODE = struct.Struct("=HHHH")
"""Low and high half of a size or a page, flags (or the rest of the page), length of the key."""
_DATABASE = struct.Struct("=IHHQQQQQ")
_NUMBER = struct.Struct("=Q")
_BRANCH, _LEAF, _OVERFLOW, _KINDS = 1, 2, 4, 0x6F
"""Kinds of page, and the flags that tell them apart."""
_FLAGS = 4
"""Where in a node its flags are."""
_ELSEWHERE, _IS_TABLE = 1, 2
"""Flags of a node: its value has pages of its own; its value is a table."""
_NUMBERED = 8
"""Flag of a table whose keys are numbers of the machine."""
_FREE_PAGES = "the list of free pages"
_NO_PAGE = (1 << 64) - 1
_READINGS = 100
"""Readings of the two pages: commits of other processes may end between them."""


class _Table(NamedTuple):
    """`MDB_db`: the root of a tree, and how large the tree is."""

    unused: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    rows: int
    root: int


class _Node(NamedTuple):
    key: bytes
    value: bytes
    is_table: bool


def check_pages(
    environment: lmdb.Environment, depth: CheckDepth, steps: Steps = QUIET, pause: Callable[[float], None] = pause
) -> None:
    """Read the pages of the last commit to the given `depth`, and report each to `steps`. Raises `CorruptionError` if
    that commit is not the last one, or a page is used twice, is used and free, or is not what the reference to it
    requires. Other processes may write to the store meanwhile: `pause` waits the given seconds for one of their commits
    to end.
    """
    with _last_commit(environment, pause) as found:
        _PageCheck(found.file, found.page_bytes, found.meta, depth, steps).run()
    for wait_s in (*PAUSES_S, None):
        # The meta page of the commit before the last is where the next commit is written to, without a lock that a
        # reader could take: what is half old and half new at this moment is whole in the next one. Corruption stays.
        try:
            with _last_commit(environment, pause) as found:
                _PageCheck(found.file, found.page_bytes, found.other_meta, CheckDepth.COMMIT, steps).run()
        except CorruptionError:
            if wait_s is None or not environment.flags()["lock"]:
                raise
            pause(wait_s)
        else:
            return


class _LastCommit(NamedTuple):
    """The pages of a snapshot: while it is open, LMDB reuses no page of it, nor of the commit before it."""

    file: int
    page_bytes: int
    meta: bytes
    other_meta: bytes
    """Meta page of the commit before, or what the next commit has written over it so far."""


@contextmanager
def _last_commit(environment: lmdb.Environment, pause: Callable[[float], None]) -> Generator[_LastCommit]:
    """Open a snapshot with its meta pages.

    LMDB copies the roots of a snapshot from its meta page and does not reveal them, so they are read again from the
    file. Commits write the two meta pages in turn: until a later commit has ended, none has begun to overwrite the page
    of this one. A commit ends when new snapshots see it. If a process is killed in the last moment of a commit, its
    meta page stays in the file, and that commit never ends; the next one takes its place.
    """
    path = Path(environment.path())
    page_bytes = environment.stat()["psize"]
    with (path / "data.mdb" if path.is_dir() else path).open("rb") as file:
        for attempt in range(_READINGS):
            with environment.begin() as handle:
                metas = [os.pread(file.fileno(), page_bytes, offset) for offset in (0, page_bytes)]
                metas.sort(key=lambda meta: _commit_of(meta) == handle.id())
                if _newest_seen(environment) == handle.id() == _commit_of(metas[1]):
                    yield _LastCommit(file.fileno(), page_bytes, metas[1], metas[0])
                    return
            pause(PAUSES_S[attempt % len(PAUSES_S)])
    raise CorruptionError(f"{path} has no page that says where its last commit is")


def _newest_seen(environment: lmdb.Environment) -> int:
    """Return the commit that a snapshot sees now."""
    with environment.begin() as handle:
        return handle.id()


def _commit_of(meta: bytes) -> int:
    return _NUMBER.unpack_from(meta, _META_COMMIT)[0]


class _PageCheck:
    """A check of the state of one commit, whose pages nobody overwrites meanwhile."""

    def __init__(self, file: int, page_bytes: int, meta: bytes, depth: CheckDepth, steps: Steps) -> None:
        self._file = file
        self._page_bytes = page_bytes
        self._meta = meta
        self._steps = steps
        self._depth = depth
        last, self._commit = struct.unpack_from("=QQ", meta, _META_COMMIT - 8)
        if os.fstat(file).st_size < (last + 1) * page_bytes:
            raise CorruptionError(f"the store is cut short: it names {last + 1} pages of {page_bytes} bytes")
        self._taken = bytearray(last + 1)
        self._taken[:2] = b"\x01\x01"

    def run(self) -> None:
        free, main = (_META_DATABASES + number * _DATABASE.size for number in range(2))
        try:
            self._free_pages(_Table(*_DATABASE.unpack_from(self._meta, free)))
            if self._depth > CheckDepth.COMMIT:
                self._tables(_Table(*_DATABASE.unpack_from(self._meta, main)))
        except struct.error as error:
            raise CorruptionError(f"a page of the store cannot be read: {error}") from error

    def _free_pages(self, table: _Table) -> None:
        """Take the free pages. Each commit but the first frees pages, at least those that it replaced, and lists them
        under its number. If the last has another number, a flipped bit has brought back an older commit.
        """
        newest = 0
        for node in self._rows(_FREE_PAGES, table):
            (commit,) = _NUMBER.unpack(node.key)
            (count,) = _NUMBER.unpack_from(node.value)
            if commit > self._commit or len(node.value) < _NUMBER.size * (count + 1):
                raise CorruptionError("the list of free pages is corrupt")
            newest = max(newest, commit)
            for page in struct.unpack_from(f"={count}Q", node.value, _NUMBER.size):
                self._take(page, 1, _FREE_PAGES)
        if table.rows and newest != self._commit:
            raise CorruptionError(f"a commit is said to be number {self._commit}, and is number {newest}")

    def _tables(self, main: _Table) -> None:
        left = len(self._taken)
        self._steps.stage("checking the pages", left)
        for node in self._rows("the list of tables", main):
            name = node.key.decode(errors="replace")
            if not node.is_table:
                raise CorruptionError(f"the list of tables has {name}, which is none")
            table = _Table(*_DATABASE.unpack(node.value))
            if not table.leaf_pages <= table.rows <= table.leaf_pages * self._page_bytes:
                raise CorruptionError(f"{name} says that it has {table.rows} rows in {table.leaf_pages} pages")
            is_read = self._depth is CheckDepth.EVERYTHING or table.depth == 1
            leaves = self._leaves(name, table, read=is_read)
            if is_read:
                counts = [self._large_values(number, name) for number in leaves]
                _compare(name, "rows", sum(rows for rows, _ in counts), table.rows)
                _compare(name, "pages of large values", sum(pages for _, pages in counts), table.overflow_pages)
            else:
                deque(leaves, maxlen=0)
            pages = table.branch_pages + table.leaf_pages + table.overflow_pages
            self._steps.step(pages)
            left -= pages
        self._steps.step(left)  # pages of the lists, and free ones

    def _leaves(self, name: str, table: _Table, *, read: bool) -> Iterator[int]:
        """Take the pages of a table, except those of large values. If `read`, yield the numbers of pages with rows."""
        if table.flags != (_NUMBERED if name == _FREE_PAGES else 0):
            raise CorruptionError(f"{name} is a kind of table that no program made")
        left = [(table.root, 1)] if table.root != _NO_PAGE else []
        branches, leaves = 0, int(table.depth == 1)
        for number, _ in left:
            self._take(number, 1, name)
        while left:
            number, depth = left.pop()
            if depth == table.depth:
                yield number
                continue
            branches += 1
            children = self._children(number, name)
            is_last = depth + 1 == table.depth
            leaves += len(children) * is_last
            if read or not is_last:
                left.extend((child, depth + 1) for child in children)
        _compare(name, "branches", branches, table.branch_pages)
        _compare(name, "pages with rows", leaves, table.leaf_pages)

    def _rows(self, name: str, table: _Table) -> Iterator[_Node]:
        rows = 0
        for number in self._leaves(name, table, read=True):
            page = self._page(number, 1)
            offsets = self._offsets(page, number, _LEAF, name)
            rows += len(offsets)
            for at in offsets:
                low, high, flags, key_bytes = _NODE.unpack_from(page, at)
                begins, size = at + _NODE.size + key_bytes, low | high << 16
                value = page[begins : begins + size]
                if flags & _ELSEWHERE:
                    value, _ = self._large_value(page, at, name)
                yield _Node(page[at + _NODE.size : begins], value, bool(flags & _IS_TABLE))
        _compare(name, "rows", rows, table.rows)

    def _large_values(self, number: int, name: str) -> tuple[int, int]:
        """Take the pages of the large values in a page. Return (rows in it, pages taken)."""
        page, pages = self._page(number, 1), 0
        offsets = self._offsets(page, number, _LEAF, name)
        for at in offsets:
            if page[at + _FLAGS] & _ELSEWHERE:
                pages += self._large_value(page, at, name)[1]
        return len(offsets), pages

    def _large_value(self, page: bytes, at: int, name: str) -> tuple[bytes, int]:
        """Take the pages of a large value. Return (value, number of its pages), which may be more than it needs: LMDB
        leaves it those of a larger value that it replaced within one transaction.
        """
        low, high, _, key_bytes = _NODE.unpack_from(page, at)
        (number,) = _NUMBER.unpack_from(page, at + _NODE.size + key_bytes)
        size = low | high << 16
        needed = (_HEADER.size + size - 1) // self._page_bytes + 1
        self._take(number, needed, name)
        content = self._page(number, needed)
        itself, _, flags, pages = _OVERFLOW_HEADER.unpack_from(content)
        if (itself, flags & _KINDS) != (number, _OVERFLOW) or pages < needed:
            raise CorruptionError(f"page {number} of {name} is not what leads to it says")
        if pages > needed:
            self._take(number + needed, pages - needed, name)
        return content[_HEADER.size : _HEADER.size + size], pages

    def _children(self, number: int, name: str) -> list[int]:
        page = self._page(number, 1)
        children: list[int] = []
        taken, unpack = self._taken, _NODE.unpack_from
        for at in self._offsets(page, number, _BRANCH, name):
            low, high, highest, _ = unpack(page, at)
            child = low | high << 16 | highest << 32
            if 1 < child < len(taken) and not taken[child]:
                taken[child] = 1
            else:
                self._take(child, 1, name)  # raises with the fault
            children.append(child)
        return children

    def _take(self, number: int, count: int, name: str) -> None:
        if number < 2 or number + count > len(self._taken):
            raise CorruptionError(f"{name} leads to page {number}, and there are {len(self._taken)}")
        if any(self._taken[number : number + count]):
            raise CorruptionError(f"page {number}, which {name} leads to, is used twice, or is free")
        self._taken[number : number + count] = b"\x01" * count

    def _offsets(self, page: bytes, number: int, kind: int, name: str) -> tuple[int, ...]:
        """Return where the nodes of a page begin."""
        itself, _, flags, lower, upper = _HEADER.unpack_from(page)
        if (itself, flags & _KINDS) != (number, kind) or not _HEADER.size < lower <= upper <= self._page_bytes:
            raise CorruptionError(f"page {number} of {name} is not what leads to it says")
        offsets = struct.unpack_from(f"={(lower - _HEADER.size) // 2}H", page, _HEADER.size)
        if min(offsets) < upper or max(offsets) > self._page_bytes - _NODE.size:
            raise CorruptionError(f"page {number} of {name} is corrupt")
        return offsets

    def _page(self, number: int, count: int) -> bytes:
        return os.pread(self._file, count * self._page_bytes, number * self._page_bytes)


def _compare(name: str, what: str, found: int, said: int) -> None:
    if found != said:
        raise CorruptionError(f"{name} has {found} {what}, and says {said}")


def clear_gaps(file: Path, page_bytes: int) -> None:
    """Overwrite with zeros all bytes without rows on every page of a copy that no process has open: between the node
    list and the nodes, and after a value with pages of its own. Deleted rows leave their bytes there. Every page must
    be in use, as in a compacted copy. Raises `CorruptionError`.
    """
    with file.open("r+b") as opened:
        descriptor = opened.fileno()
        number, pages = 2, os.fstat(descriptor).st_size // page_bytes
        while number < pages:
            page = os.pread(descriptor, page_bytes, number * page_bytes)
            itself, _, flags, lower, upper = _HEADER.unpack_from(page)
            if itself != number:
                raise CorruptionError(f"page {number} of the copy says that it is page {itself}")
            if flags & _OVERFLOW:
                number += _OVERFLOW_HEADER.unpack_from(page)[3]
                continue
            if _HEADER.size <= lower < upper <= page_bytes:
                os.pwrite(descriptor, bytes(upper - lower), number * page_bytes + lower)
            if flags & _LEAF:
                for begins, ends in _ends_elsewhere(descriptor, page, lower, page_bytes):
                    os.pwrite(descriptor, bytes(ends - begins), begins)
            number += 1


def _ends_elsewhere(descriptor: int, page: bytes, lower: int, page_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield (end of the value, end of its pages) in the file, of each value of a leaf that has pages of its own."""
    for at in struct.unpack_from(f"={(lower - _HEADER.size) // 2}H", page, _HEADER.size):
        low, high, flags, key_bytes = _NODE.unpack_from(page, at)
        if flags & _ELSEWHERE:
            (first,) = _NUMBER.unpack_from(page, at + _NODE.size + key_bytes)
            begins = first * page_bytes
            pages = _OVERFLOW_HEADER.unpack(os.pread(descriptor, _OVERFLOW_HEADER.size, begins))[3]
            yield begins + _HEADER.size + (low | high << 16), begins + pages * page_bytes
