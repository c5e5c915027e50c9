"""A store that is moved to another engine and back is the same store, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from svc.features.backup.move import LEFT_BEHIND, MoveError, move
from svc.features.checks.invariants import violations
from svc.features.tables import TABLES
from svc.identify.tables import VISITORS
from svc.kernel.store import operations
from svc.kernel.store.engine import Engine, KeyRange, Writer
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.local import LocalStore
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.reading import read_only, read_only_database
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.tables import META
from tests.store.release import RELEASED, unpack
from tests.support.engines import Watched, Wrapped
from tests.support.postgresql import Cluster
from tests.support.worlds import inline

NEWEST = max(
    RELEASED.glob("*.tar.xz"), key=lambda file: [int(part) for part in file.name[: -len(".tar.xz")].split(".")]
)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something of everything."""
    return unpack(NEWEST, tmp_path_factory.mktemp("released")).directory / "store"


@pytest.fixture
def source(released: Path) -> Iterator[Engine]:
    with read_only(released, live=True) as store:
        yield store.engine


@pytest.fixture
def target(cluster: Cluster, database: str) -> Iterator[Engine]:
    with closing(PostgresqlEngine.open(cluster.url(database))) as engine:
        yield engine


@contextmanager
def in_file(directory: Path) -> Iterator[LmdbEngine]:
    with closing(LmdbEngine.open(directory, map_bytes=64 << 20, durable=False)) as engine:
        yield engine


def rows_of(engine: Engine) -> dict[str, list[tuple[bytes, bytes]]]:
    with closing(engine.read()) as reader:
        return {table.name: list(reader.range(KeyRange(table.name))) for table in TABLES if table not in LEFT_BEHIND}


class Stopped(Exception):  # noqa: N818  an outcome
    """The process ends here."""


class Stopping(Wrapped):
    """An engine whose process ends before its commit `after`."""

    def __init__(self, inner: Engine, after: int) -> None:
        super().__init__(inner)
        self.left = after

    def write(self, group: Callable[[Any], Any], /, **options: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Stopped
        return super().write(group, **options)


def test_a_store_moved_to_a_database_and_back_is_identical(source: Engine, target: Engine, tmp_path: Path):
    before = rows_of(source)
    there = move(source, target)
    assert there.tables == {name: len(rows) for name, rows in before.items()}
    assert (there.rows, there.resumed_rows) == (sum(there.tables.values()), 0)
    assert rows_of(target) == before
    with closing(target.read()) as reader:
        assert list(violations(Snapshot(reader))) == []
    with in_file(tmp_path) as third:
        assert move(target, third) == there
        assert rows_of(third) == before
    open_store(tmp_path, inline).close()


@pytest.mark.slow
def test_a_move_stopped_at_any_commit_continues_where_it_stopped(source: Engine, target: Engine):
    """And nothing opens what is half there. Few rows a commit, so that tables are cut in two."""
    before = rows_of(source)
    stops, resumed = 0, list[int]()
    while True:
        try:
            moved = move(source, Stopping(target, 9), rows_a_commit=5)  # type: ignore[arg-type]
        except Stopped:
            stops += 1
            with closing(target.read()) as reader:
                assert not Snapshot(reader).has(META, "version")
                resumed.append(sum(reader.count(table.name) for table in TABLES if table is not META))
        else:
            break
    assert stops > 5
    assert resumed == sorted(set(resumed)), "each run got further"
    assert moved.resumed_rows == resumed[-1]
    assert rows_of(target) == before


def test_a_half_moved_store_cannot_be_opened(source: Engine, cluster: Cluster, database: str):
    url = cluster.url(database)
    with closing(PostgresqlEngine.open(url)) as target, pytest.raises(Stopped):
        move(source, Stopping(target, 3))  # type: ignore[arg-type]
    with pytest.raises(CorruptionError, match="nothing says of which version"):
        open_store(url, inline)


def put(table: str, key: bytes, value: bytes) -> Callable[[Writer], None]:
    return lambda writer: writer.put(table, key, value)


def test_a_target_with_other_rows_is_rejected(source: Engine, target: Engine, tmp_path: Path):
    move(source, target)
    with pytest.raises(MoveError, match="holds a store already"):
        move(source, target)
    with in_file(tmp_path / "other") as other:
        other.open_tables(["visitors"], create=True)
        other.write(put("visitors", b"key", b"value"))
        with pytest.raises(MoveError, match="rows of something else"):
            move(source, other)
    with in_file(tmp_path / "foreign") as foreign:
        foreign.open_tables(["customers"], create=True)
        foreign.write(put("customers", b"key", b"value"))
        with pytest.raises(MoveError, match="rows of something else"):
            move(source, foreign)


def test_a_partial_copy_of_another_state_is_rejected(source: Engine, target: Engine, tmp_path: Path):
    with in_file(tmp_path) as copy:
        move(source, copy)
        with pytest.raises(Stopped):
            move(copy, Stopping(target, 3))  # type: ignore[arg-type]
        copy.write(lambda writer: Transaction(writer).put(META, ("next_organization",), 77))
        with pytest.raises(MoveError, match="or of this one before it changed"):
            move(copy, target)


def test_a_source_written_during_the_move_is_detected(source: Engine, target: Engine, tmp_path: Path):
    with in_file(tmp_path) as copy:
        move(source, copy)

        def note(kind: str, table: str, key: bytes, value: bytes) -> bool:
            if table == "visitors":
                copy.write(put("balances", b"\0\0\0\7", b"x"))
            return True

        with pytest.raises(MoveError, match="written to meanwhile"):
            move(copy, NotedMany(target, note))  # type: ignore[arg-type]


class NotedMany(Watched):
    """Notes the rows of `put_many` as well."""

    def writer(self, inner: Writer) -> Any:
        watched, note = super().writer(inner), self._note

        def put_many(table: str, rows: list[tuple[bytes, bytes]]) -> None:
            inner.put_many(table, [row for row in rows if note("put", table, *row)])

        watched.put_many = put_many
        return watched


@pytest.mark.parametrize("table", ["events", "meta"])
def test_a_missing_row_in_the_target_is_found(source: Engine, target: Engine, table: str):
    lost = rows_of(source)[table][0][0]
    losing = NotedMany(target, lambda _, name, key, value: (name, key) != (table, lost))
    with pytest.raises(MoveError, match=f"{table} differs: it has .* rows in the source"):
        move(source, losing)  # type: ignore[arg-type]
    with closing(target.read()) as reader:
        assert not Snapshot(reader).has(META, "version")


def test_a_corrupt_row_is_not_moved(source: Engine, target: Engine, tmp_path: Path):
    with in_file(tmp_path) as copy:
        move(source, copy)
        key, value = rows_of(copy)[VISITORS.name][0]
        copy.write(put(VISITORS.name, key, value[:-1] + bytes([value[-1] ^ 1])))
        with pytest.raises(CorruptionError, match="visitors"):
            move(copy, target)


def test_the_operation_log_is_not_moved(source: Engine, target: Engine, tmp_path: Path):
    with in_file(tmp_path) as copy:
        move(source, copy)
        with closing(LocalStore(copy, inline, lambda: 0)) as store:
            store.change_log(lambda change: operations.begin(change, Following(bytes(16), 0, "folder", 64 << 20)))
            store.write_now([lambda change: change.put(META, ("next_organization",), 99)])
            moved = move(copy, target)
        assert not {table.name for table in LEFT_BEHIND} & set(moved.tables)
        with closing(target.read()) as reader:
            assert operations.recorded(Snapshot(reader)) is None


def test_a_moved_store_is_read_from_a_standby_too(source: Engine, cluster: Cluster, database: str):
    """As far as one database can show it: reading needs no right to write."""
    with closing(PostgresqlEngine.open(cluster.url(database))) as target:
        move(source, target)
    cluster.execute(f"alter database {database} set default_transaction_read_only = on")
    with read_only_database(cluster.url(database)) as store, store.read() as snapshot:
        assert list(violations(snapshot)) == []
