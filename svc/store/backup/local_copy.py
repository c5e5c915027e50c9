"""A copy of a database's rows on this machine, for what reads each of them many times.

The rules between rows ask for some twenty rows of each event, one after the other. From a database each is a round
trip: copying everything once takes a fraction of that. Rows are copied as they lie there, corrupt ones too.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from svc.store.backup.move import write_rows
from svc.store.engine import KeyRange
from svc.store.inspection.reading import ReadOnlyStore
from svc.store.lmdb.engine import LmdbEngine
from svc.store.schema.tables import TABLES
from svc.store.snapshot import check_row
from svc.store.steps import Steps


@contextmanager
def copied_here(store: ReadOnlyStore, map_bytes: int, steps: Steps) -> Generator[ReadOnlyStore]:
    """One state of a store in a folder for temporary files, deleted at the end. Takes as much of its disk as the store
    has rows, at most `map_bytes`. Raises `StoreFullError` where there is no space, and `EngineError`.
    """
    names = [table.name for table in TABLES]
    with TemporaryDirectory(prefix="svc-") as folder:
        engine = LmdbEngine.open(Path(folder), map_bytes=map_bytes, durable=False, check_row=check_row)
        with closing(engine):
            engine.open_tables(names, create=True)
            with store.read() as snapshot:
                steps.stage("fetching rows", sum(snapshot.reader.count(name) for name in names))
                for name in names:
                    rows = snapshot.reader.range(KeyRange(name, checked=False))
                    write_rows(engine, name, rows, steps, may_use_reserve=True)
            yield ReadOnlyStore(engine)
