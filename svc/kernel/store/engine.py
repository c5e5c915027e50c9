"""The interface between the store and the engine that keeps its bytes: tables by name, bytes in, bytes out.

An engine keeps named tables, each an ordered map from bytes to bytes. Keys are ordered byte by byte, have 1 to
`codec.MAX_KEY_BYTES` bytes and are unique in their table. Readers see one committed state; one writer at a time makes
the next. What the bytes mean is the business of the layers above: `snapshot.py` packs keys and checks values,
`store.py` groups jobs into commits.

`tests/store/test_engine.py` is the contract: every engine passes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.values.errors import OperatorError

T = TypeVar("T")

OUTSIDE: AbstractContextManager[object] = nullcontext()
"""A context for writers that does nothing; several may enter it at once."""

CheckRow = Callable[[str, bytes, bytes], object]
"""(table, key, value): raises `codec.CorruptionError` where the value is not what was written under that key."""


class EngineError(Exception):
    """The engine or the disk below it failed. Nobody knows whether a commit that raises it is durable."""


class MissingTableError(EngineError):
    """The engine has no table of that name, and was not asked to create it."""


class UnavailableError(EngineError):
    """The engine did not respond in time; another try may succeed. The changes are stored completely or not at all."""


class InUseError(EngineError):
    """Another process has the engine's files open, where one alone may."""


class StoreFullError(OperatorError):
    """The map or the disk is full, but for the reserve for deletes; nothing of the batch was stored."""


class CheckDepth(IntEnum):
    """How thoroughly an engine checks its own structure; each depth includes the ones before it."""

    COMMIT = 0
    """The list of free pages, which says of which commit it is."""
    BRANCHES = 1
    """And every page but those of rows and large values, unless it is a table's only one: 1 s for 5 GB."""
    EVERYTHING = 2
    """Every page: 20 s for 5 GB."""


class Space(NamedTuple):
    """The size of an engine, and what prevents it from shrinking."""

    used_bytes: int
    """Pages in use, free pages inside the file included."""
    limit_bytes: int
    """How large the engine's own settings let it become."""
    disk_free_bytes: int
    """Left on the disk of the data directory, for this user."""
    readers: int
    """Reader slots taken, by any process. A thread keeps its slot after its read."""
    reader_lag: int
    """Commits since the oldest state that is still being read: pages that they freed cannot be used again."""


class KeyRange(NamedTuple):
    """The rows of a table with `first` <= key < `beyond`."""

    table: str
    first: bytes = b""
    beyond: bytes | None = None
    """`None` = to the end of the table."""
    reverse: bool = False
    """Largest key first."""
    keys_only: bool = False
    """Values are not read, and are b""."""
    checked: bool = True
    """The engine checks that keys are in order, and the rows on either side of the range with its `CheckRow` (the
    caller checks the rows that it is given). Else rows come as they are found, for callers that look for corruption."""


class Reader(Protocol):
    """A committed state, readable until it is closed. It belongs to the thread that opened it. Every method raises
    `EngineError` if the engine fails and `KeyError` if the table was not opened.
    """

    __slots__ = ()

    @property
    def commit(self) -> int:
        """The number of the last commit in this state; a writer's, in that it began with. Equal ones, equal states."""
        ...

    @property
    def is_missing(self) -> bool:
        """Whether something was asked for that was not fetched yet: what is read is a guess, and is read again."""
        return False

    def get(self, table: str, key: bytes, /) -> bytes | None:
        """Return the value under a key, without verifying it; `None` if there is none."""
        ...

    def get_many(self, table: str, keys: Sequence[bytes], /) -> list[bytes | None]:
        """Return what `get` does for each of these keys, in their order."""
        return [self.get(table, key) for key in keys]

    def range(self, asked: KeyRange, /) -> Iterator[tuple[bytes, bytes]]:
        """Return (key, value) in key order; do not write to the table meanwhile. Raises `codec.CorruptionError`."""
        ...

    def count(self, table: str, /) -> int:
        """Return the number of rows of a table; takes no longer for a large one."""
        ...

    def size(self, table: str, /) -> int:
        """Return the bytes that a table takes, as far as the engine knows."""
        ...

    def evaluate(self, read: Callable[[Reader], T], /) -> T:
        """Return the result of a pure function of this state; of a writer, earlier writes included. In a database a row
        is a round trip: there the function runs again, over the rows that it asked for. Raises what it raises.
        """
        return read(self)

    def close(self) -> None:
        """Release the state, so that its pages can be reused. Nothing may be read afterwards."""


class Writer(Reader, Protocol):
    """The next state while it is being made; reads see earlier writes. Only for the thread of `Engine.write`."""

    __slots__ = ()

    def put(self, table: str, key: bytes, value: bytes, /) -> None:
        """Insert or replace a row. The key has 1 to `MAX_KEY_BYTES` bytes. Raises `StoreFullError` as well."""
        ...

    def put_many(self, table: str, rows: Sequence[tuple[bytes, bytes]], /) -> None:
        """Insert or replace rows of one table, as `put` does; fastest in key order. Raises `StoreFullError` as well."""
        ...

    def delete(self, table: str, key: bytes, /) -> bool:
        """Delete a row; return whether it existed. Raises `StoreFullError` as well, as it takes pages first."""
        ...

    def delete_many(self, table: str, keys: Sequence[bytes], /) -> None:
        """Delete rows of one table that exist, as `delete` does. Raises `StoreFullError` as well."""
        for key in keys:
            self.delete(table, key)

    def clear(self, table: str, /) -> None:
        """Delete every row of a table. Raises `StoreFullError` as well."""
        ...


class Engine(Protocol):
    """Keeps the bytes of a store: named tables of ordered keys, any number of readers, one writer at a time. What
    the methods do that have a body is for an engine whose bytes are not in files of this machine.
    """

    def tables(self) -> set[str]:
        """Return the names of all tables, opened or not. Raises `codec.CorruptionError` where the list is corrupt."""
        ...

    def open_tables(self, names: Iterable[str], /, *, create: bool = False) -> None:
        """Open tables before they are used; `create` those that are missing, or raise `MissingTableError`."""
        ...

    def read(self) -> Reader:
        """Return a reader of the last committed state. Close it soon: it keeps that state's pages from being reused."""
        ...

    def lost(self) -> str | None:
        """Return why writes are stored nowhere: the file was replaced, removed or cut; `None` if it is in place."""
        return None

    def note_commit(self) -> None:
        """Record which commit the store has reached, for the next one who opens it. Raises `OSError`."""

    def why_stalled(self) -> str:
        """Return one line about the possible cause of a commit that has not finished."""
        ...

    def write(
        self,
        group: Callable[[Writer], T],
        /,
        *,
        may_use_reserve: bool = False,
        inside: AbstractContextManager[object] = OUTSIDE,
    ) -> T:
        """Run `group` on the calling thread, commit what it wrote with one fsync, and return its result once that is
        durable. There is one writer at a time, across processes; others wait. If `group` raises, nothing is stored and
        the exception is passed on.

        `may_use_reserve`: the commit may use the space that is kept for deletes. `inside`: a context that is entered
        when it is this writer's turn, and left when only the commit remains. Raises `EngineError`, and `StoreFullError`
        if the changes do not fit: then nothing is stored.
        """
        ...

    def take_turn(self) -> Callable[[], None] | None:
        """Take the turn of processes that write the same rows (`contention.py`); return a function that ends it, `None`
        while somebody else has it. It is no lock of the engine: others may write.
        """
        ...

    def space(self) -> Space:
        """Return the sizes and readers as they are now: asks the disk and reads every reader slot."""
        ...

    def capacity_bytes(self) -> int:
        """Return how many bytes the engine can hold: its own limit, or the whole disk if that is smaller."""
        ...

    def is_low(self) -> bool:
        """Return whether ordinary writes are rejected for lack of free space, or soon will be."""
        return False

    def check(self, depth: CheckDepth, steps: Steps = QUIET) -> None:
        """Check the engine's own structure to this depth, but not the rows. Raises `codec.CorruptionError`."""

    def clear_stale_readers(self) -> int:
        """Free the reader slots of processes that died; return how many there were."""
        return 0

    def close(self) -> None:
        """Close the files. No reader or writer may be open; nothing may be called afterwards."""
        ...


class OpenEngine(Protocol):
    """Opens or creates an engine. Tests pass one that wraps the real engine (`tests/support/engines.py`)."""

    def __call__(self, directory: Path, /, *, map_bytes: int, durable: bool, check_row: CheckRow) -> Engine:
        """Open the engine. Raises `EngineError` and `codec.CorruptionError`."""
        ...


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the smallest key that is larger than every key that begins with `prefix`; `None` if there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None
