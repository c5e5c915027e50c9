"""Moving a store from one engine to another, row by row, and proving that both hold the same.

Rows go in the order of their keys, some thousand in a commit. The row with the version goes last, together with the
deletion of the mark of a move: so nothing can open a store that is half there, and a move that was killed goes on after
the last row that arrived. The operation log is left behind: a follower of the store begins again.

What may live here: what is the same for all engines.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from blake3 import blake3

from svc.features.tables import TABLES
from svc.kernel.store.engine import Engine, KeyRange, MissingTableError, Reader, Writer
from svc.kernel.store.files.durable_files import temporary_folder
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.table import Table, installed
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import QUIET, Steps, counted
from svc.kernel.store.tables import FOLLOWING, META, OPERATIONS
from svc.kernel.values.errors import OperatorError

T = TypeVar("T")

ROWS_A_COMMIT = 20_000
BYTES_A_COMMIT = 32 << 20
LEFT_BEHIND = (FOLLOWING, OPERATIONS)
_MARK, _COMMIT = "moving_from", "moving_commit"
"""In the target's META while a move is under way: the pepper's mark and the commit of the source."""

_Row = tuple[bytes, bytes]


class MoveError(OperatorError):
    """The store cannot be moved; the message says why, and nothing of the source was changed."""


class Moved(NamedTuple):
    """What a move has done."""

    rows: int
    """That the target now has."""
    bytes: int
    """Of their keys and values."""
    resumed_rows: int
    """Of these, rows that an earlier move had brought."""
    tables: dict[str, int]
    """table -> rows, each compared by count and checksum."""


def move(source: Engine, target: Engine, steps: Steps = QUIET, *, rows_a_commit: int = ROWS_A_COMMIT) -> Moved:
    """Copy every row of `source`, which nobody may write to, and compare. Tables of `source` are open; those of
    `target` are made here. Raises `MoveError`, `StoreFullError`, `EngineError` and `CorruptionError`.
    """
    with closing(source.read()) as reader:
        snapshot = Snapshot(reader)
        names = [table.name for table in TABLES]
        _refuse_others_rows(target, snapshot, names)
        target.open_tables(names, create=True)
        target.write(lambda writer: _mark(Transaction(writer), snapshot))
        total = sum(reader.count(table.name) for table in _MOVED)
        steps.stage("moving rows", total)
        resumed = sum(_copy(reader, target, table, steps, rows_a_commit) for table in _MOVED)
        steps.stage("comparing rows", 2 * total)
        with closing(target.read()) as written:
            sums = {table.name: _compared(table, reader, written, steps) for table in _MOVED}
        with closing(source.read()) as later:
            if later.commit != reader.commit:
                raise MoveError("the source was written to meanwhile: stop what uses it, empty the target, and repeat")
        meta = target.write(lambda writer: _finish(Transaction(writer), reader))
    sums[META.name] = meta
    tables = {name: one.rows for name, one in sums.items()}
    return Moved(sum(tables.values()), sum(one.bytes for one in sums.values()), resumed, tables)


_MOVED = tuple(table for table in TABLES if table not in (META, *LEFT_BEHIND))
"""Before META, whose rows say that the store is whole."""


def _refuse_others_rows(target: Engine, source: Snapshot, names: list[str]) -> None:
    existing = target.tables()
    try:
        target.open_tables(existing)
    except MissingTableError:  # removed by another at this moment
        raise MoveError("the target is being changed by another program") from None
    with closing(target.read()) as reader:
        snapshot = Snapshot(reader)
        has_rows = any(next(reader.range(KeyRange(name, keys_only=True)), None) for name in existing)
        if not has_rows:
            return
        if META.name in existing and snapshot.has(META, "version"):
            raise MoveError("the target holds a store already: name an empty one")
        mark = snapshot.get(META, _MARK) if META.name in existing else None
        if mark is None or existing - set(names):
            raise MoveError("the target has rows of something else: name an empty one")
        if (mark, snapshot.get(META, _COMMIT)) != _identity(source):
            raise MoveError("the target has part of another store, or of this one before it changed: empty it first")


def _identity(source: Snapshot) -> tuple[int, int]:
    return source.get(META, "pepper_mark") or 0, source.reader.commit


def _mark(transaction: Transaction, source: Snapshot) -> None:
    for name, value in zip((_MARK, _COMMIT), _identity(source), strict=True):
        if transaction.get(META, name) is None:
            transaction.put(META, (name,), value)


def _finish(transaction: Transaction, source: Reader) -> _Sum:
    for name in (_MARK, _COMMIT):
        transaction.delete(META, name)
    transaction.writer.put_many(META.name, list(source.range(KeyRange(META.name))))
    return _compared(META, source, transaction.writer, QUIET)


def _copy(source: Reader, target: Engine, table: Table[Any], steps: Steps, rows_a_commit: int) -> int:
    """Copy the rows that have not arrived yet; return how many were there before."""
    with closing(target.read()) as reader:
        last = next(reader.range(KeyRange(table.name, reverse=True, keys_only=True)), None)
        arrived = 0 if last is None else reader.count(table.name)
    steps.step(arrived)
    rows = _verified(table, source.range(KeyRange(table.name, b"" if last is None else last[0] + b"\0")))
    write_rows(target, table.name, rows, steps, rows_a_commit)
    return arrived


def write_rows(
    target: Engine,
    table: str,
    rows: Iterator[_Row],
    steps: Steps,
    rows_a_commit: int = ROWS_A_COMMIT,
    *,
    may_use_reserve: bool = False,
) -> None:
    """Write rows in the order of their keys, some in each commit; `steps` gets how many. Raises as `Engine.write`."""
    while batch := list(up_to(islice(rows, rows_a_commit), BYTES_A_COMMIT, _row_bytes)):
        target.write(partial(_put, table=table, rows=batch), may_use_reserve=may_use_reserve)
        steps.step(len(batch))


def _put(writer: Writer, *, table: str, rows: list[_Row]) -> None:
    writer.put_many(table, rows)


def _verified(table: Table[Any], rows: Iterator[_Row]) -> Iterator[_Row]:
    for key, value in rows:
        table.verify_checksum(key, value)
        yield key, value


def up_to(items: Iterator[T], most: int, size: Callable[[T], int]) -> Iterator[T]:
    """Yield the next of these that are together as large as `most`, by `size` of each, or all that are left."""
    for item in items:
        yield item
        most -= size(item)
        if most <= 0:
            return


def _row_bytes(row: _Row) -> int:
    key, value = row
    return len(key) + len(value)


class _Sum(NamedTuple):
    rows: int
    bytes: int
    digest: bytes


def _compared(table: Table[Any], source: Reader, target: Reader, steps: Steps) -> _Sum:
    """Return the sum of both tables. Raises `MoveError` where they differ."""
    expected, found = _sum(source, table, steps), _sum(target, table, steps)
    if found != expected:
        raise MoveError(
            f"{table.name} differs: it has {expected.rows} rows in the source and {found.rows} in the target. Empty "
            "the target and repeat"
        )
    return found


def _sum(reader: Reader, table: Table[Any], steps: Steps) -> _Sum:
    """Hash rows in their order, each length before its bytes, so that no two different tables share a digest."""
    hasher, rows, size = blake3(), 0, 0
    for key, value in counted(reader.range(KeyRange(table.name)), steps):
        hasher.update(b"%d:%d:" % (len(key), len(value)))
        hasher.update(key)
        hasher.update(value)
        rows += 1
        size += len(key) + len(value)
    return _Sum(rows, size, hasher.digest())


@contextmanager
def copied_here(store: ReadOnlyStore, map_bytes: int, steps: Steps) -> Generator[ReadOnlyStore]:
    """Copy the rows of a database to this machine, for a check that reads each of them many times: the rules between
    rows read some twenty rows per event, and each would be a round trip. Corrupt rows are copied unchanged.

    The `with` block gets one state of a store in a temporary folder, which is deleted at the end. It takes as much disk
    as the store has rows, at most `map_bytes`. Raises `StoreFullError` if there is no space, and `EngineError`.
    """
    names = [table.name for table in TABLES]
    with TemporaryDirectory(prefix="svc-", dir=temporary_folder()) as folder:
        engine = LmdbEngine.open(Path(folder), map_bytes=map_bytes, durable=False, check_row=installed().check_row)
        with closing(engine):
            engine.open_tables(names, create=True)
            with store.read() as snapshot:
                steps.stage("fetching rows", sum(snapshot.reader.count(name) for name in names))
                for name in names:
                    rows = snapshot.reader.range(KeyRange(name, checked=False))
                    write_rows(engine, name, rows, steps, may_use_reserve=True)
            yield ReadOnlyStore(engine)
