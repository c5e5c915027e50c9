"""A copy of a database's rows on this machine, for what reads each of them many times.

The rules between rows ask for some twenty rows of each event, one after the other. From a database each is a round
trip: copying everything once takes a fraction of that. Rows are copied as they lie there, corrupt ones too.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from svc.store.engine import KeyRange, Reader, Writer
from svc.store.lmdb.engine import LmdbEngine
from svc.store.reading import ReadOnlyStore
from svc.store.snapshot import check_row
from svc.store.steps import Steps
from svc.store.tables import TABLES

ROWS_A_COMMIT = 10_000


@contextmanager
def copied_here(store: ReadOnlyStore, map_bytes: int, steps: Steps) -> Generator[ReadOnlyStore]:
    """One state of a store in a folder for temporary files, deleted at the end. Takes as much of its disk as the store
    has rows, at most `map_bytes`. Raises `StoreFullError` where there is no room, and `EngineError`.
    """
    names = [table.name for table in TABLES]
    with TemporaryDirectory(prefix="svc-") as folder:
        engine = LmdbEngine.open(Path(folder), map_bytes=map_bytes, durable=False, check_row=check_row)
        with closing(engine):
            engine.open_tables(names, create=True)
            with store.read() as snapshot:
                steps.stage("fetching rows", sum(snapshot.reader.count(name) for name in names))
                for name in names:
                    _copy(snapshot.reader, engine, name, steps)
            yield ReadOnlyStore(engine)


def _copy(source: Reader, target: LmdbEngine, table: str, steps: Steps) -> None:
    rows = source.range(KeyRange(table, checked=False))
    while batch := list(islice(rows, ROWS_A_COMMIT)):
        target.write(partial(_put, table=table, rows=batch), may_use_reserve=True)
        steps.step(len(batch))


def _put(writer: Writer, *, table: str, rows: list[tuple[bytes, bytes]]) -> None:
    writer.put_many(table, rows)
