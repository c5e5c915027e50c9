"""The driver against a real server: round trips, errors, lost connections, cancellation, timeouts."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest
import trio
import trio.testing

from svc.kernel.store.engine import EngineError
from svc.kernel.store.postgresql.connection import connecting
from svc.kernel.store.postgresql.connection.connecting import refuse_old_server
from svc.kernel.store.postgresql.connection.errors import ConnectionLostError, DatabaseError, SqlError
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import byteas, int4, int4s, int8, integer
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Timeouts, Wire
from tests.support.cutting_proxy import CuttingProxy, Direction
from tests.support.postgresql import Cluster

ONE = Statement(b"select 1")
TABLE = Statement(b"create table rows (key bytea primary key, value bytea not null)", prepared=False)
INSERT = b"insert into rows select * from unnest($1::bytea[], $2::bytea[])"
COUNT = Statement(b"select count(*) from rows")

Exchange = Callable[[Wire, list[Statement]], list[Result]]


def blocking(wire: Wire, statements: list[Statement]) -> list[Result]:
    return wire.exchange_now(statements)


def in_trio(wire: Wire, statements: list[Statement]) -> list[Result]:
    return trio.run(wire.exchange, statements)


both = pytest.mark.parametrize("exchange", [blocking, in_trio])


@pytest.fixture
def wire(url: StoreUrl) -> Iterator[Wire]:
    with closing(Wire.connect_now(url)) as wire:
        yield wire


def insert(*rows: tuple[bytes, bytes]) -> Statement:
    return Statement(INSERT, (byteas([key for key, _ in rows]), byteas([value for _, value in rows])))


@both
def test_an_exchange_of_many_statements_is_one_round_trip(wire: Wire, exchange: Exchange):
    round_trips, sent = wire.round_trips, wire.statements
    results = exchange(wire, [TABLE, insert((b"a", b"1"), (b"b", b"2")), COUNT, ONE])
    assert [result.changed for result in results] == [0, 2, 1, 1]
    assert integer(results[2].rows[0][0]) == 2
    assert (wire.round_trips - round_trips, wire.statements - sent) == (1, 4)


@both
def test_values_arrive_as_they_were_sent(wire: Wire, exchange: Exchange):
    blobs = [b"", b"\0", bytes(range(256)), b"x" * 100_000]
    sql = b"select $1::int4, $2::int8, $3::bytea, $4::bytea, unnest($5::bytea[]), unnest($6::int4[])"
    (result,) = exchange(
        wire,
        [Statement(sql, (int4(-5), int8(1 << 40), b"\xff\0", None, byteas(blobs), int4s([1, -2, 3, 4])))],
    )
    assert [row[4] for row in result.rows] == blobs
    assert [integer(row[5]) for row in result.rows] == [1, -2, 3, 4]
    row = result.rows[0]
    assert (integer(row[0]), integer(row[1]), row[2], row[3]) == (-5, 1 << 40, b"\xff\0", None)
    (empty,) = exchange(wire, [Statement(b"select unnest($1::bytea[]), unnest($2::int4[])", (byteas([]), int4s([])))])
    assert empty.rows == []


@both
def test_a_statement_is_prepared_once(wire: Wire, exchange: Exchange):
    exchange(wire, [ONE, ONE])
    exchange(wire, [ONE])
    prepared = Statement(b"select count(*) from pg_prepared_statements where statement = 'select 1'", prepared=False)
    assert integer(exchange(wire, [prepared])[0].rows[0][0]) == 1


def test_the_name_of_a_prepared_statement_follows_from_its_text(url: StoreUrl):
    """In whatever order a connection met them: in a session that is another's, no other statement is run."""
    listed = Statement(b"select name, statement from pg_prepared_statements", prepared=False)
    names = list[set[tuple[bytes, ...]]]()
    for order in ([ONE, Statement(b"select 2")], [Statement(b"select 2"), ONE]):
        with closing(Wire.connect_now(url)) as wire:
            wire.exchange_now(order)
            names.append(set(wire.exchange_now([listed])[0].rows))
    assert names[0] == names[1]
    assert len(names[0]) == 2


@both
def test_data_larger_than_the_socket_buffers_is_sent_in_both_directions(wire: Wire, exchange: Exchange):
    """The server answers before everything was sent: who only sends would wait for ever."""
    sql, large = b"select $1::bytea", bytes(1 << 20)
    results = exchange(wire, [Statement(sql, (large,)) for _ in range(24)])
    assert all(result.rows == [(large,)] for result in results)


@both
def test_the_first_error_is_raised_after_reading_all_and_the_connection_stays_usable(wire: Wire, exchange: Exchange):
    exchange(wire, [TABLE, insert((b"a", b"1"))])
    with pytest.raises(SqlError, match="duplicate key") as raised:
        exchange(wire, [insert((b"b", b"2")), insert((b"a", b"3")), Statement(b"select no_such_thing"), ONE])
    assert raised.value.state == "23505"
    assert not raised.value.is_repeatable
    assert not wire.is_in_transaction
    assert integer(exchange(wire, [COUNT])[0].rows[0][0]) == 1, "the exchange is one transaction, and was undone"


@both
def test_a_statement_that_failed_to_prepare_is_prepared_again(wire: Wire, exchange: Exchange):
    for _ in range(2):
        with pytest.raises(SqlError) as raised:
            exchange(wire, [COUNT])
        assert raised.value.state == "42P01"
        assert "svc check" in str(raised.value)
    exchange(wire, [TABLE])
    with pytest.raises(SqlError):
        exchange(wire, [Statement(b"select 1/0"), COUNT])
    assert integer(exchange(wire, [COUNT])[0].rows[0][0]) == 0


@both
def test_an_error_inside_a_transaction_leaves_it_to_be_rolled_back(wire: Wire, exchange: Exchange):
    with pytest.raises(SqlError):
        exchange(wire, [Statement(b"begin"), Statement(b"select 1/0"), Statement(b"commit")])
    assert wire.is_in_transaction
    exchange(wire, [Statement(b"rollback")])
    assert not wire.is_in_transaction


def test_a_wrong_value_closes_the_connection(wire: Wire):
    with pytest.raises(TypeError):
        wire.exchange_now([ONE, Statement(b"select $1::text", ("no bytes",))])  # type: ignore[arg-type]
    assert not wire.is_open


STEPS = [Statement(b"begin"), insert((b"b", b"2")), Statement(b"commit")]


@pytest.mark.slow
@both
@pytest.mark.parametrize("direction", ["sent", "answered"])
def test_a_connection_lost_at_any_byte_is_detected(
    cluster: Cluster, database: str, exchange: Exchange, direction: Direction
):
    """Whatever arrived, the exchange ends with `ConnectionLostError`, and the row is there or is not."""
    with closing(Wire.connect_now(cluster.url(database))) as direct, CuttingProxy(cluster.port) as proxy:
        direct.exchange_now([TABLE, insert((b"a", b"1"))])
        url = cluster.url(database, proxy.port)
        with closing(Wire.connect_now(url)) as wire:
            before = proxy.passed[direction]
            exchange(wire, STEPS)
            size = proxy.passed[direction] - before
        outcomes = set[int]()
        for cut in range(0, size, max(1, size // 25)):
            direct.exchange_now([Statement(b"delete from rows where key = 'b'")])
            with closing(Wire.connect_now(url)) as wire:
                proxy.cut_after(direction, cut)
                with pytest.raises(ConnectionLostError):
                    exchange(wire, STEPS)
                assert not wire.is_open
                with pytest.raises(ConnectionLostError, match="closed"):
                    exchange(wire, [ONE])
            proxy.mend()
            outcomes.add(integer(direct.exchange_now([COUNT])[0].rows[0][0]))
        assert outcomes <= {1, 2}
        assert 1 in outcomes if direction == "sent" else 2 in outcomes


@pytest.mark.parametrize("in_trio", [False, True])
def test_a_connection_cut_during_its_setup_is_detected(cluster: Cluster, database: str, in_trio: bool):
    with CuttingProxy(cluster.port) as proxy:
        url = cluster.url(database, proxy.port)
        for size in (0, 1, 20, 200):
            proxy.cut_after("answered", size)
            with pytest.raises(ConnectionLostError):
                trio.run(Wire.connect, url) if in_trio else Wire.connect_now(url)
            proxy.mend()
        Wire.connect_now(url).close()


@both
def test_a_session_ended_by_the_server_is_lost(cluster: Cluster, wire: Wire, exchange: Exchange):
    cluster.execute(f"select pg_terminate_backend({wire.process}, 5000)")
    with pytest.raises(ConnectionLostError, match="administrator command"):
        exchange(wire, [ONE])
    assert not wire.is_open


@both
def test_a_silent_server_times_out(cluster: Cluster, database: str, exchange: Exchange):
    with CuttingProxy(cluster.port) as proxy:
        wire = Wire.connect_now(cluster.url(database, proxy.port), Timeouts(answer_s=0.1))
        proxy.fall_silent()
        with pytest.raises(ConnectionLostError, match=r"did not respond for 0\.1 seconds"):
            exchange(wire, [ONE])
        assert not wire.is_open


async def test_a_cancelled_exchange_closes_the_connection(url: StoreUrl):
    wire = await Wire.connect(url)
    with trio.move_on_after(0.05) as scope:
        await wire.exchange([Statement(b"select pg_sleep(60)")])
    assert scope.cancelled_caught
    assert not wire.is_open
    with pytest.raises(ConnectionLostError):
        await wire.exchange([ONE])


def test_an_interrupted_exchange_closes_the_connection(wire: Wire):
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            wire.exchange_now([Statement(b"select pg_sleep(60)")])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not wire.is_open


def test_the_database_ends_slow_statements_and_long_waits(url: StoreUrl):
    timeouts = Timeouts(statement_s=0.05, lock_s=0.02)
    with closing(Wire.connect_now(url)) as holder, closing(Wire.connect_now(url, timeouts)) as wire:
        with pytest.raises(SqlError, match="statement timeout") as raised:
            wire.exchange_now([Statement(b"select pg_sleep(60)")])
        assert raised.value.state == "57014"
        holder.exchange_now([TABLE, insert((b"a", b"1"))])
        lock = Statement(b"select key from rows for update")
        holder.exchange_now([Statement(b"begin"), lock])
        with pytest.raises(SqlError, match="lock timeout") as raised:
            wire.exchange_now([lock])
        assert raised.value.state == "55P03"


@pytest.mark.slow
def test_a_session_idle_in_a_transaction_is_lost(url: StoreUrl):
    """As that of a node that was stopped: others need not wait for it for long."""
    with closing(Wire.connect_now(url, Timeouts(idle_s=0.05))) as wire, closing(Wire.connect_now(url)) as other:
        other.exchange_now([TABLE, insert((b"a", b"1"))])
        lock = Statement(b"select key from rows for update")
        wire.exchange_now([Statement(b"begin"), lock])
        other.exchange_now([lock])
        with pytest.raises(ConnectionLostError, match="idle-in-transaction timeout"):
            wire.exchange_now([Statement(b"commit")])
        assert not wire.is_open


def test_a_deadlock_is_repeatable():
    assert SqlError("40P01", "deadlock detected").is_repeatable
    assert SqlError("40001", "could not serialize access").is_repeatable


async def test_exchanges_of_two_connections_run_concurrently(url: StoreUrl):
    """The second ends the wait of the first: one loop serves both."""
    first, second = await Wire.connect(url), await Wire.connect(url)
    with closing(first), closing(second):
        await first.exchange([TABLE])
        await first.exchange([Statement(b"begin"), insert((b"a", b"1"))])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                second.exchange, [insert((b"a", b"2"))._replace(sql=INSERT + b" on conflict do nothing")]
            )
            await trio.testing.wait_all_tasks_blocked()
            await first.exchange([Statement(b"commit")])
        assert integer((await second.exchange([COUNT]))[0].rows[0][0]) == 1


async def test_notices_arrive_without_an_exchange(url: StoreUrl):
    listener, sender = await Wire.connect(url), await Wire.connect(url)
    with closing(listener), closing(sender):
        await listener.exchange([Statement(b"listen news", prepared=False)])
        with trio.move_on_after(0.02):
            await listener.notices()
        assert listener.is_open
        await sender.exchange([Statement(b"select pg_notify('news', '1'), pg_notify('news', '2')")])
        found = await listener.notices()
        assert [(notice.channel, notice.payload, notice.process) for notice in found] == [
            (b"news", b"1", sender.process),
            (b"news", b"2", sender.process),
        ]
        await listener.exchange([ONE])
        sender.exchange_now([Statement(b"select pg_terminate_backend($1::int4, 5000)", (int4(listener.process),))])
        with pytest.raises(ConnectionLostError):
            await listener.notices()


def test_a_refused_connection_is_reported_with_what_to_do(cluster: Cluster, database: str):
    with pytest.raises(DatabaseError, match="create the database first"):
        Wire.connect_now(cluster.url("missing"))
    with pytest.raises(ConnectionLostError, match="refused"):
        Wire.connect_now(cluster.url(database, port=1))
    nobody = StoreUrl("", {**cluster.url(database).parameters, "user": "unknown"})
    with pytest.raises(DatabaseError, match="its pg_hba"):
        Wire.connect_now(nobody)
    cluster.execute(f"alter database {database} connection limit 0")
    cluster.execute("create role limited login")
    limited = StoreUrl("", {**cluster.url(database).parameters, "user": "limited"})
    try:
        with pytest.raises(EngineError, match="max_connections"):
            Wire.connect_now(limited)
    finally:
        cluster.execute("drop role limited")


@pytest.mark.parametrize("host", ["localhost", "localhost,127.0.0.1", "127.0.0.1,localhost"])
async def test_host_names_are_resolved(cluster: Cluster, database: str, host: str):
    for port in {str(cluster.port), ",".join([str(cluster.port)] * (1 + host.count(",")))}:
        named = StoreUrl("", {**cluster.url(database).parameters, "host": host, "port": port})
        with closing(await Wire.connect(named)) as wire:
            assert await wire.exchange([ONE])


async def test_a_unix_socket_is_connected_to(cluster: Cluster, database: str):
    given = {"host": str(cluster.directory), "port": str(cluster.port), "user": "svc", "dbname": database}
    with closing(await Wire.connect(StoreUrl("", given))) as wire:
        assert await wire.exchange([ONE])


async def test_the_first_writable_host_is_used(cluster: Cluster, database: str):
    """As after a failover: one is gone, the other serves."""
    gone = {"host": "127.0.0.1,localhost", "port": f"1,{cluster.port}", "target_session_attrs": "read-write"}
    with closing(await Wire.connect(StoreUrl("", {**cluster.url(database).parameters, **gone}))) as wire:
        assert await wire.exchange([ONE])


@pytest.mark.parametrize("in_trio", [False, True])
def test_a_silent_host_does_not_block_the_next(
    cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch, *, in_trio: bool
):
    """As a machine that is gone, of whose addresses no word comes back."""
    monkeypatch.setattr(connecting, "CONNECT_EACH_S", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        ports = f"{silent.getsockname()[1]},{cluster.port}"
        named = StoreUrl("", {**cluster.url(database).parameters, "host": "127.0.0.1,localhost", "port": ports})
        connect = partial(trio.run, Wire.connect) if in_trio else Wire.connect_now
        with closing(connect(named)) as wire:
            assert wire.exchange_now([ONE])


def test_each_of_several_failing_hosts_is_reported(cluster: Cluster):
    ports = f"1,{cluster.port}"
    missing = {**cluster.url("missing").parameters, "host": "127.0.0.1,127.0.0.1", "port": ports}
    with pytest.raises(ConnectionLostError, match=r"refused.*create the database first"):
        Wire.connect_now(StoreUrl("", missing))
    everywhere = {**missing, "port": str(cluster.port)}
    with pytest.raises(DatabaseError, match="create the database first"):
        Wire.connect_now(StoreUrl("", everywhere))
    with pytest.raises(DatabaseError, match="another number of hosts"):
        Wire.connect_now(StoreUrl("", {**missing, "port": "1,2,3"}))


async def test_a_host_without_an_address_is_reported(cluster: Cluster, database: str):
    nowhere = StoreUrl("", {**cluster.url(database).parameters, "host": "db.invalid"})
    with pytest.raises(ConnectionLostError, match="no address is known of the database's host"):
        await Wire.connect(nowhere)


def test_a_read_only_database_is_distinguished_from_a_broken_one(cluster: Cluster, database: str):
    read_only = {**cluster.url(database).parameters, "options": "-c default_transaction_read_only=on"}
    with closing(Wire.connect_now(StoreUrl("", read_only))) as wire, pytest.raises(SqlError, match="standby") as raised:
        wire.exchange_now([TABLE])
    assert raised.value.state == "25006"
    with pytest.raises(ConnectionLostError, match="name the primary"):
        Wire.connect_now(StoreUrl("", {**read_only, "target_session_attrs": "read-write"}))


def test_an_old_server_is_rejected():
    refuse_old_server(140_000)
    with pytest.raises(DatabaseError, match="PostgreSQL 13: this program needs 14"):
        refuse_old_server(130_020)
