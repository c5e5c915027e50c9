"""What the engine owes beside the contract of every engine: fences, lost connections, a full disk, two that begin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count

import msgspec
import pytest

from svc.command.data_directory import read_through
from svc.features.lists.jobs import NewEntry, add_entries
from svc.features.lists.lists import first_list_id
from svc.features.lists.queries import AskedLists
from svc.features.lists.tables import FILLED_LISTS, LISTED
from svc.features.organizations.jobs import create_organization
from svc.features.schema import SCHEMA
from svc.features.tables import TABLES
from svc.kernel.store.engine import EngineError, KeyRange, StoreFullError, Writer
from svc.kernel.store.installation import NewerStoreError, OlderStoreError
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.connection.errors import ConnectionLostError, DatabaseError, SqlError
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire
from svc.kernel.store.postgresql.engine import HELD_ROWS, PostgresqlEngine
from svc.kernel.store.schema.codec import Key, Opaque
from svc.kernel.store.schema.key_parts import DIGEST_16, U32
from svc.kernel.store.schema.table import FOR_EVER, NOT_PERSONAL, Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.tenants.queries import organization
from svc.kernel.tenants.tables import BALANCES, ORGANIZATIONS
from svc.world import pause
from tests.support.cutting_proxy import CuttingProxy
from tests.support.postgresql import Cluster
from tests.support.schemas import program_with
from tests.support.worlds import inline


@pytest.fixture
def engine(url: StoreUrl) -> Iterator[PostgresqlEngine]:
    with closing(opened(url)) as engine:
        yield engine


def opened(url: StoreUrl) -> PostgresqlEngine:
    engine = PostgresqlEngine.open(url)
    engine.open_tables(["organizations", "visitors", "meta"], create=True)
    return engine


def put(key: bytes, value: bytes = b"value", table: str = "visitors") -> Callable[[Writer], None]:
    return lambda writer: writer.put(table, key, value)


def value(engine: PostgresqlEngine, key: bytes, table: str = "visitors") -> bytes | None:
    with closing(engine.read()) as reader:
        return reader.get(table, key)


def key(organization: int, rest: bytes = b"\0\0\0\1") -> bytes:
    return organization.to_bytes(4) + rest


def test_the_organization_is_a_column_where_keys_begin_with_it(
    engine: PostgresqlEngine, cluster: Cluster, database: str
):
    engine.write(lambda writer: [put(key(7))(writer), put(key(8))(writer), put(b"name", table="meta")(writer)])
    rows = cluster.execute("select organization, encode(key, 'hex') from svc.visitors order by 1", database)
    assert rows == [("7", key(7).hex()), ("8", key(8).hex())]
    assert cluster.execute("select organization from svc.meta", database) == [("0",)]


def test_no_store_table_has_the_name_of_an_internal_table():
    assert not {table.name for table in TABLES} & statements.INTERNAL


@pytest.mark.parametrize("number", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_any_number_is_a_valid_range_bound(engine: PostgresqlEngine, number: int):
    engine.write(lambda writer: [put(key(1))(writer), put(key(5))(writer)])
    with closing(engine.read()) as reader:
        below = [row for row, _ in reader.range(KeyRange("visitors", b"", key(number)))]
        onward = [row for row, _ in reader.range(KeyRange("visitors", key(number), None))]
    assert below == [row for row in (key(1), key(5)) if row < key(number)]
    assert onward == [row for row in (key(1), key(5)) if row >= key(number)]


def test_a_writer_takes_every_fence_and_others_wait(
    engine: PostgresqlEngine, url: StoreUrl, cluster: Cluster, database: str
):
    engine.write(lambda writer: [put(key(number), table="organizations")(writer) for number in (3, 1)])
    with closing(opened(url)) as other, ThreadPoolExecutor() as pool:
        began = threading.Event()

        def second(writer: Writer) -> bytes | None:
            return writer.get("visitors", key(1))

        def first(writer: Writer) -> None:
            waiting.append(pool.submit(other.write, second))
            while not cluster.execute("select 1 from pg_locks where not granted", database):
                pause(0.01)
            began.set()
            writer.put("visitors", key(1), b"of the first")

        waiting = []
        engine.write(first)
        assert began.is_set()
        assert waiting[0].result() == b"of the first", "it waited for the commit"
    turns = dict(cluster.execute("select organization, turn from svc.writers", database))
    assert set(turns) == {"0", "1", "3"}


def test_a_writer_that_fails_or_changes_nothing_does_not_advance_the_fences(
    engine: PostgresqlEngine, cluster: Cluster, database: str
):
    engine.write(put(key(1), table="organizations"))
    before = cluster.execute("select * from svc.writers", database)

    def fail(writer: Writer) -> None:
        writer.put("visitors", key(1), b"x")
        assert writer.get("visitors", key(1)) == b"x"
        raise LookupError

    with pytest.raises(LookupError):
        engine.write(fail)
    assert engine.write(lambda writer: writer.delete("visitors", key(1))) is False
    assert cluster.execute("select * from svc.writers", database) == before


def test_more_rows_than_are_buffered_are_still_one_commit(engine: PostgresqlEngine):
    count = 2 * HELD_ROWS + 1

    def fill(writer: Writer) -> None:
        for number in range(count):
            writer.put("visitors", key(1, number.to_bytes(4)), b"x")

    engine.write(fill)
    with closing(engine.read()) as reader:
        assert reader.count("visitors") == count
        assert sum(1 for _ in reader.range(KeyRange("visitors"))) == count


def test_rows_of_many_sizes_are_read_in_pages_of_bounded_size(engine: PostgresqlEngine):
    sizes = [1 << 20, 0, 3 << 20, *[10] * 300, 2 << 20]
    rows = {key(1, number.to_bytes(4)): bytes(size) for number, size in enumerate(sizes)}
    engine.write(lambda writer: writer.put_many("visitors", list(rows.items())))
    with closing(engine.read()) as reader:
        assert dict(reader.range(KeyRange("visitors"))) == rows
        assert list(reader.range(KeyRange("visitors", reverse=True))) == sorted(rows.items(), reverse=True)


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of statements of each round trip of commands from now on."""
    exchange_now, trips = Wire.exchange_now, list[int]()

    def counted(wire: Wire, asked: Sequence[Statement]) -> list[Result]:
        trips.append(len(asked))
        return exchange_now(wire, asked)

    monkeypatch.setattr(Wire, "exchange_now", counted)
    return trips


@pytest.fixture
def paid(url: StoreUrl) -> Iterator[Store]:
    with closing(open_store(url, inline)) as store:
        store.write_one_now(lambda transaction: [transaction.put(BALANCES, (one,), 200 + one) for one in range(1, 500)])
        yield store


def test_a_change_of_many_rows_by_a_command_takes_few_round_trips(paid: Store, trips: list[int]):
    """It holds the fences of all organizations meanwhile."""

    def pay_out(transaction: Transaction) -> int:
        named = [transaction.get(BALANCES, number) or 0 for number in range(1, 200)]
        paid = sum(transaction.get(BALANCES, other) or 0 for other in named)
        return paid + sum(transaction.delete(BALANCES, number) for number in range(1, 100))

    trips.clear()
    assert paid.write_one_now(pay_out, is_pure=True) == sum(range(401, 600)) + 99
    assert len(trips) < 10, trips
    with paid.read() as snapshot:
        assert len(list(snapshot.scan_keys(BALANCES, ()))) == 400


def test_a_job_of_a_command_runs_once_unless_it_is_pure(paid: Store):
    """One that draws an id asks for other rows in each run, and one that prints a secret prints another."""
    drawn = count(1000)

    def pay(transaction: Transaction) -> int:
        number = next(drawn)
        assert transaction.get(BALANCES, number) is None
        transaction.put(BALANCES, (number,), 1)
        return number

    assert [paid.write_one_now(pay), next(drawn)] == [1000, 1001]
    with pytest.raises(EngineError, match="asks for more"):  # and not for ever
        paid.write_one_now(pay, is_pure=True)


def test_a_command_reads_the_rows_of_a_scan_together(paid: Store, trips: list[int]):
    def scan(snapshot: Snapshot, behind: int, count: int) -> Iterator[tuple[int, int]]:
        for number in range(behind + 1, min(behind + 1 + count, 500)):
            yield number, snapshot.get(BALANCES, snapshot.get(BALANCES, number) or 0) or 0

    trips.clear()
    found = dict(read_through(paid, scan, 0))
    assert found == {number: 400 + number if number < 300 else 0 for number in range(1, 500)}
    assert len(trips) < 50, len(trips)


def test_a_full_disk_stores_nothing_and_is_reported(engine: PostgresqlEngine, cluster: Cluster, database: str):
    """As the server says it: from a trigger, since no test may fill a disk."""
    cluster.execute(
        "create function svc.full() returns trigger language plpgsql as $$ begin"
        " raise exception 'could not extend file' using errcode = '53100'; end $$;"
        "create trigger full_disk before insert on svc.visitors for each row execute function svc.full()",
        database,
    )
    with pytest.raises(StoreFullError, match="free some space"):
        engine.write(lambda writer: [put(b"name", table="meta")(writer), put(key(1))(writer)])
    assert value(engine, b"name", "meta") is None
    cluster.execute("drop trigger full_disk on svc.visitors", database)
    engine.write(put(key(1)))
    assert value(engine, key(1)) == b"value"


def test_a_missing_privilege_is_reported(cluster: Cluster, database: str, engine: PostgresqlEngine):
    engine.write(put(key(1)))
    cluster.execute("create role reader login; grant usage on schema svc to reader", database)
    cluster.execute("grant select on all tables in schema svc to reader", database)
    try:
        url = StoreUrl("", {**cluster.url(database).parameters, "user": "reader"})
        with closing(PostgresqlEngine.open(url)) as limited:
            limited.open_tables(["visitors"])
            assert value(limited, key(1)) == b"value"
            with pytest.raises(SqlError, match="must own the schema") as raised:
                limited.write(put(key(2)))
            assert raised.value.state == "42501"
    finally:
        cluster.execute("drop owned by reader; drop role reader", database)


def test_connections_lost_while_idle_are_replaced(engine: PostgresqlEngine, cluster: Cluster, database: str):
    with closing(engine.read()), closing(engine.read()):
        pass
    end_sessions(cluster, database)
    engine.write(put(key(1)))
    end_sessions(cluster, database)
    assert value(engine, key(1)) == b"value"


def end_sessions(cluster: Cluster, database: str) -> None:
    cluster.execute(
        f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{database}' "
        "and pid <> pg_backend_pid()"
    )


def test_a_connection_lost_in_a_transaction_rolls_it_back(engine: PostgresqlEngine, cluster: Cluster, database: str):
    def lose(writer: Writer) -> None:
        writer.put("visitors", key(1), b"x")
        assert writer.count("visitors") == 1
        end_sessions(cluster, database)

    with pytest.raises(ConnectionLostError):
        engine.write(lose)
    assert value(engine, key(1)) is None
    with closing(engine.read()) as reader:
        end_sessions(cluster, database)
        with pytest.raises(EngineError):
            reader.get("visitors", key(1))
    assert value(engine, key(1)) is None


@pytest.mark.slow(2)
def test_a_write_whose_connection_is_cut_at_any_byte_is_atomic(
    cluster: Cluster, database: str, engine: PostgresqlEngine
):
    with CuttingProxy(cluster.port) as proxy:
        behind = cluster.url(database, proxy.port)
        with closing(PostgresqlEngine.open(behind)) as measured:
            measured.open_tables(["visitors", "meta"])
            before = proxy.passed["sent"]
            measured.write(two_rows(0))
            size = proxy.passed["sent"] - before
        for cut in range(0, size, size // 12):
            with closing(PostgresqlEngine.open(behind)) as cutting:
                cutting.open_tables(["visitors", "meta"])
                proxy.cut_after("sent", cut)
                with pytest.raises(ConnectionLostError):
                    cutting.write(two_rows(cut + 1))
            proxy.mend()
            visitor, meta = value(engine, key(cut + 1)), value(engine, key(cut + 1), "meta")
            assert visitor == meta


def two_rows(number: int) -> Callable[[Writer], None]:
    return lambda writer: [put(key(number))(writer), put(key(number), table="meta")(writer)][0]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_killed_server_is_found_again_with_every_commit():
    """One of its own, which writes to the disk as one in use does."""
    with closing(Cluster(durable=True)) as own, closing(opened(own.url("postgres"))) as engine:
        for number in range(2):
            engine.write(put(key(number)))
            own.kill()
            with pytest.raises(EngineError):
                engine.write(put(key(99)))
            own.start()
            assert [value(engine, key(one)) for one in range(number + 1)] == [b"value"] * (number + 1)
            assert value(engine, key(99)) is None


@pytest.mark.slow(2)
def test_stores_created_concurrently_are_one(url: StoreUrl):
    """As nodes do that start together on an empty database."""
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(url, inline), range(4)))
    for number, store in enumerate(stores):
        assert store.write_now([lambda change, at=number: change.put(BALANCES, (at,), at)]) != []
    with stores[0].read() as snapshot:
        assert snapshot.count(BALANCES) == 4
        assert snapshot.get(META, "version")
    for store in stores:
        store.close()


def add_one(transaction: Transaction) -> None:
    """A migration that shows how often it ran."""
    transaction.put(BALANCES, (1,), (transaction.get(BALANCES, 1) or 0) + 1)


@pytest.mark.slow(2)
def test_an_upgrade_started_several_times_runs_once(url: StoreUrl):
    open_store(url, inline).close()
    newer = (*SCHEMA.migrations, add_one)
    with pytest.raises(OlderStoreError, match="start `svc serve`"):
        open_store(url, inline, migrations=newer, upgrade=False)
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(url, inline, migrations=newer), range(4)))
    with stores[0].read() as snapshot:
        assert (snapshot.get(BALANCES, 1), snapshot.get(META, "version")) == (1, len(newer))
    for store in stores:
        store.close()
    with pytest.raises(NewerStoreError, match="run the newer program"):
        open_store(url, inline)


def test_a_failed_upgrade_leaves_the_store_unchanged(url: StoreUrl):
    open_store(url, inline).close()

    def fail(transaction: Transaction) -> None:
        add_one(transaction)
        raise LookupError

    with pytest.raises(LookupError):
        open_store(url, inline, migrations=(*SCHEMA.migrations, fail))
    with closing(open_store(url, inline)) as store, store.read() as snapshot:
        assert (snapshot.get(BALANCES, 1), snapshot.get(META, "version")) == (None, SCHEMA.version)


def test_a_schema_of_another_program_is_not_touched(url: StoreUrl, cluster: Cluster, database: str):
    cluster.execute("create schema svc; create table svc.customers (id int)", database)
    with closing(PostgresqlEngine.open(url)) as engine, pytest.raises(DatabaseError, match="another program"):
        engine.open_tables(["visitors"], create=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_several_pages_in_one_statement_are_the_same_as_each_by_itself(
    engine: PostgresqlEngine, cluster: Cluster, database: str, reverse: bool
):
    rows = [key(number, row.to_bytes(4)) for number in (1, 2, 3) for row in range(5)]
    engine.write(lambda writer: [put(row)(writer) for row in rows])
    pages = [(key(1), key(2)), (key(2, b"\0\0\0\1"), key(2, b"\0\0\0\3")), (key(2), key(4, b"")), (key(4), key(5))]
    sql = statements.pages_of_several("visitors", reverse=reverse).decode()
    for name, ends in zip((2, 4), zip(*pages, strict=True), strict=True):
        numbers, keys = (int.from_bytes(end[:4]) for end in ends), (f"'\\x{end.hex()}'" for end in ends)
        sql = sql.replace(f"${name}::int4[]", f"array[{', '.join(map(str, numbers))}]::int4[]")
        sql = sql.replace(f"${name + 1}::bytea[]", f"array[{', '.join(keys)}]::bytea[]")
    shown = cluster.execute(sql.replace("$1::int8", "3").replace("found.key", "encode(found.key, 'hex')", 1), database)
    expected: list[tuple[str, str]] = []
    for number, (low, high) in enumerate(pages, start=1):
        inside = sorted((row for row in rows if low <= row < high), reverse=reverse)
        expected += [(str(number), row.hex()) for row in inside[:3]]
    assert [row[:2] for row in shown] == expected


@pytest.mark.parametrize("rows", [0, 20, 2000])
def test_rows_are_found_by_their_keys_whatever_the_database_knows_of_the_table(
    engine: PostgresqlEngine, cluster: Cluster, database: str, rows: int
):
    """A table that was never analyzed: what is read is not every row of the organization."""
    engine.write(lambda writer: [writer.put("visitors", key(1, n.to_bytes(4)), b"value") for n in range(rows)])
    keys = ",".join(f'"\\\\x{key(1, n.to_bytes(4)).hex()}"' for n in range(200))
    cluster.execute("alter table svc.visitors set (autovacuum_enabled = off)", database)
    for sql, types, first in (
        (statements.fetch("visitors"), "int4, bytea[]", "1"),
        (statements.fetch_of_several("visitors"), "int4[], bytea[]", "'{" + ",".join("1" * 200) + "}'"),
    ):
        plan = cluster.execute(
            f"set plan_cache_mode = force_generic_plan; prepare found ({types}) as {sql.decode()}; "
            f"explain (analyze, costs off, timing off) execute found ({first}, '{{{keys}}}')",
            database,
        )
        text = "\n".join(str(line) for (line,) in plan)
        assert "Index Scan using visitors_pkey" in text, text
        assert "Filter" not in text, text


def test_the_upgrade_to_version_8_clears_the_second_rows_of_lists(url: StoreUrl):
    """As it clears those of a data directory (`tests/store/test_upgrade.py`)."""
    marks = Table("list_marks", Key(organization=U32, mark=DIGEST_16), Opaque(), FOR_EVER, NOT_PERSONAL)
    with (
        program_with(tables=(*TABLES, marks)),
        closing(open_store(url, inline, migrations=SCHEMA.migrations[:7])) as store,
    ):
        store.write_now([lambda change: change.put(marks, (1, bytes(16)), b"")])
    with closing(open_store(url, inline)) as store, store.read() as snapshot:
        assert snapshot.get(META, "version") == SCHEMA.version
    with program_with(tables=(*TABLES, marks)), closing(open_store(url, inline)) as store, store.read() as snapshot:
        assert snapshot.count(marks) == 0


def test_an_upgrade_tells_rules_of_the_lists_that_have_entries(url: StoreUrl):
    def as_before(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
        add_entries(transaction, 1, first_list_id(1, "blocked_accounts"), [NewEntry("user-1")], 0)
        owner = msgspec.structs.replace(organization(transaction, 1), filled_lists=())
        transaction.put(ORGANIZATIONS, (1,), owner)
        transaction.clear(FILLED_LISTS)
        transaction.clear(LISTED)

    with closing(open_store(url, inline, migrations=SCHEMA.migrations[:8])) as store:
        assert store.write_now([as_before]) == [None]
    with closing(open_store(url, inline)) as store, store.read() as snapshot:
        owner = organization(snapshot, 1)
        assert owner.filled_lists == ("blocked_accounts",)
        assert AskedLists(snapshot, owner, lambda _: "user-1", 0)("blocked_accounts")
