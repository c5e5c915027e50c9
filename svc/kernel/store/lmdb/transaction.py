"""Reader and writer over an LMDB transaction.

A B-tree search tells the truth if the rows on either side of where it ended are what was written there, in their
places: a corrupt key leads astray only searches that end beside it. So a range checks those rows, and the order of all
(ADR 18). That a single key is not there is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Never, TypeVar

import lmdb

from svc.kernel.store.engine import CheckRow, EngineError, KeyRange, Reader, Writer
from svc.kernel.store.lmdb.free_space import write_failure
from svc.kernel.store.schema.codec import CorruptionError, CorruptPageError

T = TypeVar("T")

_CORRUPT_PAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.BadTxnError)
"""The last one: LMDB refuses everything in a transaction that has read such a page."""


class _Ended:
    """Placeholder for a transaction that has ended; may be ended again."""

    def abort(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Never:
        raise lmdb.Error("the transaction has ended")


_ENDED = _Ended()


class LmdbReader(Reader):
    """An LMDB read transaction; it takes about a microsecond to begin. The methods are described in `Reader`."""

    __slots__ = ("_check_row", "_handle", "_tables")

    def __init__(self, handle: Any, tables: Mapping[str, Any], check_row: CheckRow) -> None:
        self._handle = handle
        self._tables = tables
        self._check_row = check_row

    @property
    def commit(self) -> int:
        """See `Reader.commit`: LMDB's transaction number."""
        return self._handle.id()

    def get(self, table: str, key: bytes, /) -> bytes | None:
        """See `Reader.get`. That a key is missing is believed without a look at the rows beside it (ADR 18)."""
        try:
            return self._handle.get(key, None, self._tables[table])  # keyword arguments would cost half as much again
        except lmdb.Error as error:
            raise _read_failure(error) from error

    def get_many(self, table: str, keys: Sequence[bytes], /) -> list[bytes | None]:
        """See `Reader.get_many`: one search for each key."""
        get, database = self._handle.get, self._tables[table]
        try:
            return [get(key, None, database) for key in keys]
        except lmdb.Error as error:
            raise _read_failure(error) from error

    def range(self, asked: KeyRange, /) -> Iterator[tuple[bytes, bytes]]:
        """See `Reader.range`. The cursor is open until the iterator is used up or closed."""
        return self._down(asked) if asked.reverse else self._up(asked)

    def _up(self, asked: KeyRange) -> Iterator[tuple[bytes, bytes]]:
        table, first, beyond, _, keys_only, checked = asked
        try:
            with self._handle.cursor(db=self._tables[table]) as cursor:
                found = cursor.set_range(first)
                before = self._checked_before(asked, cursor, found=found) if checked else b""
                while found:
                    key = cursor.key()
                    if checked and key <= before:
                        raise _out_of_order(table, key)
                    if beyond is not None and key >= beyond:
                        if checked:  # the key ends the range, so it must be verified first
                            self._check_bound(asked, key, cursor.value())
                        return
                    yield key, b"" if keys_only else cursor.value()
                    found, before = cursor.next(), key
        except lmdb.Error as error:
            raise _read_failure(error) from error

    def _down(self, asked: KeyRange) -> Iterator[tuple[bytes, bytes]]:
        table, first, beyond, _, keys_only, checked = asked
        try:
            with self._handle.cursor(db=self._tables[table]) as cursor:
                found = beyond is not None and cursor.set_range(beyond)
                if found and checked:
                    self._check_bound(asked, cursor.key(), cursor.value())
                if not (cursor.prev() if found else cursor.last()):
                    return
                after = beyond
                for key in cursor.iterprev(keys=True, values=False):
                    if checked and after is not None and key >= after:
                        raise _out_of_order(table, key)
                    if key < first:
                        if checked:
                            self._check_bound(asked, key, cursor.value())
                        return
                    yield key, b"" if keys_only else cursor.value()
                    after = key
        except lmdb.Error as error:
            raise _read_failure(error) from error

    def _check_bound(self, asked: KeyRange, key: bytes, value: bytes) -> None:
        """Verify a row next to a range. Raises `CorruptionError` if the row is in the range, or would be if one bit of
        its key were flipped: then it is a row of this range under a corrupt key. Any other fault of it concerns the
        organization that owns it, and no other (decisions 17.5).
        """
        try:
            self._check_row(asked.table, key, value)
        except CorruptionError:
            if _is_in(asked, key) or any(self._is_row_of(asked, one, value) for one in _with_one_bit_flipped(key)):
                raise

    def _is_row_of(self, asked: KeyRange, key: bytes, value: bytes) -> bool:
        if not _is_in(asked, key):
            return False
        try:
            self._check_row(asked.table, key, value)
        except CorruptionError:
            return False
        return True

    def _checked_before(self, asked: KeyRange, cursor: Any, *, found: bool) -> bytes:
        """Return the last key before a range, or b"". If `found`, the cursor stays at the first key from there on."""
        table, key = asked.table, asked.first
        if found:
            following = cursor.key()
            if following < key:
                raise _out_of_order(table, following)
            self._check_bound(asked, following, cursor.value())
        if not (cursor.prev() if found else cursor.last()):
            if found:
                cursor.first()
            elif count := self.count(table):
                raise CorruptionError(f"{table} counts {count} rows and shows none")
            return b""
        before: bytes = cursor.key()
        if before >= key:
            raise _out_of_order(table, before)
        self._check_bound(asked, before, cursor.value())
        if found:
            cursor.next()
        return before

    def count(self, table: str, /) -> int:
        """Return the number of rows of a table, from its header: no row is read."""
        return self._stat(table)["entries"]

    def size(self, table: str, /) -> int:
        """Return the bytes of the branch, leaf and overflow pages of a table, from its header."""
        stat = self._stat(table)
        return stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])

    def _stat(self, table: str) -> dict[str, int]:
        try:
            return self._handle.stat(self._tables[table])
        except lmdb.Error as error:
            raise _read_failure(error) from error

    def close(self) -> None:
        """End the transaction; its pages may be used again. Values that were read stay valid, they are copies.

        py-lmdb frees the reader slot with the last reference to the transaction, so none is kept here: who still refers
        to this reader, such as the traceback of a rejected write, does not hold one of the few slots.
        """
        self._handle.abort()
        self._handle = _ENDED


def _read_failure(error: lmdb.Error) -> EngineError | CorruptPageError:
    return CorruptPageError(str(error)) if isinstance(error, _CORRUPT_PAGE) else EngineError(str(error))


def _is_in(asked: KeyRange, key: bytes) -> bool:
    return key >= asked.first and (asked.beyond is None or key < asked.beyond)


def _with_one_bit_flipped(key: bytes) -> Iterator[bytes]:
    for index in range(len(key)):
        for bit in range(8):
            yield key[:index] + bytes([key[index] ^ 1 << bit]) + key[index + 1 :]


class LmdbWriter(LmdbReader, Writer):
    """The write transaction. py-lmdb ties it to the thread that began it, and says nothing when that is broken."""

    __slots__ = ("_environment",)

    def __init__(
        self, environment: lmdb.Environment, handle: Any, tables: Mapping[str, Any], check_row: CheckRow
    ) -> None:
        super().__init__(handle, tables, check_row)
        self._environment = environment

    @property
    def commit(self) -> int:
        """See `Reader.commit`. LMDB numbers a write transaction by the commit that it will be."""
        return self._handle.id() - 1

    def _failure(self, error: lmdb.Error) -> Exception:
        return _read_failure(error) if isinstance(error, _CORRUPT_PAGE) else write_failure(self._environment, error)

    def put(self, table: str, key: bytes, value: bytes, /) -> None:
        """See `Writer.put`. Raises `CorruptPageError` as well."""
        try:
            self._handle.put(key, value, db=self._tables[table])
        except lmdb.Error as error:
            raise self._failure(error) from error

    def put_many(self, table: str, rows: Sequence[tuple[bytes, bytes]], /) -> None:
        """See `Writer.put_many`: one LMDB call with one cursor. Rows after all others are appended (`MDB_APPEND`):
        their pages become full, while LMDB otherwise splits a page with two or three large rows in half (ADR 72).
        """
        if not rows:
            return
        try:
            with self._handle.cursor(db=self._tables[table]) as cursor:
                is_behind = not cursor.last() or cursor.key() < rows[0][0]
                cursor.putmulti(rows, append=is_behind and all(a[0] < b[0] for a, b in pairwise(rows)))
        except lmdb.Error as error:
            raise self._failure(error) from error

    def delete(self, table: str, key: bytes, /) -> bool:
        """See `Writer.delete`. LMDB copies a page before it changes it, so this may raise `StoreFullError`."""
        try:
            return self._handle.delete(key, db=self._tables[table])
        except lmdb.Error as error:
            raise self._failure(error) from error

    def clear(self, table: str, /) -> None:
        """See `Writer.clear`. The table stays open; its pages are freed without reading its rows."""
        try:
            self._handle.drop(self._tables[table], delete=False)
        except lmdb.Error as error:
            raise self._failure(error) from error


def _out_of_order(table: str, key: bytes) -> CorruptionError:
    return CorruptionError(f"rows of {table} are not in order: {key.hex()}")
