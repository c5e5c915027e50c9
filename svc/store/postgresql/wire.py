"""The driver: one connection to PostgreSQL, on libpq's pipeline mode. One exchange is one round trip.

    wire = await Wire.connect(url)
    kept, found = await wire.exchange([Statement(b"insert ..."), Statement(b"select ...", (key,))])

The protocol is written once, as generators that yield what they wait for; trio drives them for the service, and
`poll` for the command line (`connect_now`, `exchange_now`). A statement is prepared on its way when it is first used:
nothing has to be declared, and preparing takes no round trip.

What may live here: connections, statements and their results. No table and no transaction: callers send `begin` and
`commit` as they send everything else.
"""

from __future__ import annotations

import select
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from itertools import count
from typing import Any, NamedTuple, TypeVar

import psycopg
import trio
from psycopg import pq
from psycopg.pq import abc

from svc.store.postgresql.errors import ConnectionLostError, DatabaseError, SqlError, connecting_failed, error_of
from svc.store.postgresql.url import StoreUrl
from svc.world import elapsed_s

T = TypeVar("T")

OLDEST_SERVER = 14
CONNECT_S = 10.0
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)


class Statement(NamedTuple):
    """SQL with `$1`, `$2` … and their values in PostgreSQL's binary format, which casts in the SQL declare."""

    sql: bytes
    parameters: Sequence[bytes | None] = ()
    prepared: bool = True
    """Whether the connection keeps the plan. For what is sent once, and what cannot be prepared, say no."""


class Result(NamedTuple):
    """What a statement gave."""

    rows: list[tuple[Any, ...]]
    """Each value `bytes` in binary format, or `None`."""
    changed: int
    """Rows inserted, updated, deleted or selected."""


class Notice(NamedTuple):
    """What `notify` sent."""

    channel: bytes
    payload: bytes
    process: int
    """Process id of the session that sent it: `Wire.process` of this one for its own."""


class WireStatistics(NamedTuple):
    """What one connection has done."""

    round_trips: int
    statements: int
    waits: int
    """Times that an exchange had to wait for the network or the database."""


class Timeouts(NamedTuple):
    """In seconds; `None` = no limit."""

    statement_s: float | None = 30.0
    """The database ends a statement that takes longer."""
    lock_s: float | None = 10.0
    """The database ends a statement that waits longer for a row of another."""
    idle_s: float | None = 60.0
    """The database ends a session that does nothing for longer inside a transaction."""
    answer_s: float | None = 60.0
    """The driver gives up a connection on which an exchange takes longer."""


class _For(Enum):
    """What a generator waits for."""

    READABLE = 1
    WRITABLE = 2
    EITHER = 3


Steps = Generator[tuple[int, _For], None, T]
"""Yields a socket and what it waits for."""


class Wire:
    """One connection. One exchange at a time; `is_open` says whether another is possible.

    An exchange that is cancelled, or that loses its connection, closes the connection: what was sent may still be
    committed, and nobody reads the answer.
    """

    def __init__(self, connection: abc.PGconn, timeouts: Timeouts) -> None:
        self._connection = connection
        self._timeouts = timeouts
        self._names: dict[bytes, bytes] = {}
        self._numbers = count()
        self._busy = False
        self._round_trips = self._statements = self._waits = 0

    @classmethod
    async def connect(cls, url: StoreUrl, timeouts: Timeouts = Timeouts()) -> Wire:  # noqa: B008  an immutable tuple
        """Connect, for a trio task. Raises `ConnectionLostError`, `SqlError`, `DatabaseError` for an old server."""
        wire = cls(await _driven(_connecting(await _with_addresses(url)), CONNECT_S), timeouts)
        await wire.exchange([_settings(timeouts)])
        return wire

    @classmethod
    def connect_now(cls, url: StoreUrl, timeouts: Timeouts = Timeouts()) -> Wire:  # noqa: B008  an immutable tuple
        """`connect`, blocking the calling thread."""
        wire = cls(_driven_now(_connecting(url), CONNECT_S), timeouts)
        wire.exchange_now([_settings(timeouts)])
        return wire

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used, as far as this side knows."""
        return self._connection.status == pq.ConnStatus.OK

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, failed ones among them."""
        return self._connection.transaction_status in (
            pq.TransactionStatus.INTRANS,
            pq.TransactionStatus.INERROR,
        )

    @property
    def process(self) -> int:
        """Process id of the server's side of this session."""
        return self._connection.backend_pid

    @property
    def server_version(self) -> int:
        """Major version of the server."""
        return self._connection.server_version // 10_000

    def statistics(self) -> WireStatistics:
        """Counts since the connection was made."""
        return WireStatistics(self._round_trips, self._statements, self._waits)

    async def exchange(self, statements: Sequence[Statement]) -> list[Result]:
        """Send all, wait once; a result for each, in order.

        Outside `begin` and `commit` they are one transaction. Raises, when everything was read, `SqlError` of the first
        that failed (those behind it were not run), and `ConnectionLostError`.
        """
        try:
            return await _driven(self._exchanging(statements), self._timeouts.answer_s)
        except SqlError:
            raise
        except BaseException:
            self.close()
            raise

    def exchange_now(self, statements: Sequence[Statement]) -> list[Result]:
        """`exchange`, blocking the calling thread."""
        try:
            return _driven_now(self._exchanging(statements), self._timeouts.answer_s)
        except SqlError:
            raise
        except BaseException:
            self.close()
            raise

    async def notices(self) -> list[Notice]:
        """Wait for what `notify` sent on channels that this connection listens to. Not during an exchange.

        Raises `ConnectionLostError`. May be cancelled without loss.
        """
        return await _driven(self._noticing(), None)

    def close(self) -> None:
        """End the connection; the database undoes what was not committed. Never fails."""
        self._connection.finish()

    def _exchanging(self, statements: Sequence[Statement]) -> Steps[list[Result]]:
        assert not self._busy, "one exchange at a time"
        if not self.is_open:
            raise ConnectionLostError("the connection to the database is closed")
        self._busy = True
        self._round_trips += 1
        self._statements += len(statements)
        try:
            sent = self._send(statements)
            yield from self._flushing()
            return (yield from self._receiving(sent))
        except psycopg.Error as error:
            raise ConnectionLostError(_text(self._connection) or str(error)) from None
        finally:
            self._busy = False

    def _send(self, statements: Sequence[Statement]) -> list[bytes | None]:
        """For each answer to come: the SQL that it prepares, or `None` for a statement's result."""
        connection = self._connection
        sent: list[bytes | None] = []
        for sql, parameters, prepared in statements:
            formats = [pq.Format.BINARY] * len(parameters)
            if prepared:
                name = self._names.get(sql)
                if name is None:
                    name = self._names[sql] = b"s%d" % next(self._numbers)
                    connection.send_prepare(name, sql)
                    sent.append(sql)
                connection.send_query_prepared(name, parameters, formats, pq.Format.BINARY)
            else:
                connection.send_query_params(sql, parameters, None, formats, pq.Format.BINARY)
            sent.append(None)
        connection.pipeline_sync()
        return sent

    def _flushing(self) -> Steps[None]:
        """Reads as well: a server that answers a long pipeline stops reading until its answers are taken."""
        connection = self._connection
        while connection.flush():
            self._waits += 1
            yield connection.socket, _For.EITHER
            connection.consume_input()

    def _receiving(self, sent: list[bytes | None]) -> Steps[list[Result]]:
        results, failure = list[Result](), None
        for prepares in sent:
            answer = yield from self._answer()
            if answer.status in _FAILED:
                failure = failure or _failure(answer)
                if isinstance(failure, ConnectionLostError):
                    raise failure
            if prepares is None:
                results.append(_result(answer))
            elif answer.status != pq.ExecStatus.COMMAND_OK:
                self._names.pop(prepares, None)
        end = yield from self._answer()
        if end.status != pq.ExecStatus.PIPELINE_SYNC:
            raise ConnectionLostError("the database's responses are out of step")
        if failure is not None:
            raise failure
        return results

    def _answer(self) -> Steps[abc.PGresult]:
        connection = self._connection
        while True:
            while connection.is_busy():
                self._waits += 1
                yield connection.socket, _For.READABLE
                connection.consume_input()
            answer = connection.get_result()
            if answer is not None:
                return answer
            if connection.status != pq.ConnStatus.OK:  # otherwise: the end of the answers to one statement
                raise ConnectionLostError(_text(connection))

    def _noticing(self) -> Steps[list[Notice]]:
        connection, found = self._connection, list[Notice]()
        try:
            while not found:
                while (notify := connection.notifies()) is not None:
                    found.append(Notice(notify.relname, notify.extra, notify.be_pid))
                if not found:
                    yield connection.socket, _For.READABLE
                    connection.consume_input()
        except psycopg.Error as error:
            message = _text(connection) or str(error)
            self.close()
            raise ConnectionLostError(message) from None
        return found


async def _with_addresses(url: StoreUrl) -> StoreUrl:
    """The same with the addresses of its hosts, which libpq would look up while the loop stands still. Raises
    `ConnectionLostError` where there are none.
    """
    hosts = url.parameters.get("host", "").split(",")
    if "hostaddr" in url.parameters or not any(hosts):
        return url
    ports = url.parameters.get("port", "").split(",")
    found: list[tuple[str, str, str]] = []
    for host, port in zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=False):
        if not host or host.startswith(("/", "@")):  # a socket in the file system
            found.append((host, "", port))
            continue
        with trio.move_on_after(CONNECT_S), suppress(OSError):
            addresses = await trio.socket.getaddrinfo(host, None, type=trio.socket.SOCK_STREAM)
            found += [(host, str(address[4][0]), port) for address in addresses]
    if not found:
        raise ConnectionLostError(f"no address is known of the database's host {', '.join(hosts)}")
    names, addresses, numbers = (",".join(column) for column in zip(*found, strict=True))
    return replace(url, parameters={**url.parameters, "host": names, "hostaddr": addresses, "port": numbers})


def _connecting(url: StoreUrl) -> Steps[abc.PGconn]:
    try:
        connection = pq.PGconn.connect_start(url.conninfo())
    except psycopg.Error as error:
        raise connecting_failed(str(error)) from None
    try:
        while (status := connection.connect_poll()) != pq.PollingStatus.OK:
            _refuse_failure(connection, status)
            reading = status == pq.PollingStatus.READING
            yield connection.socket, _For.READABLE if reading else _For.WRITABLE
        refuse_old_server(connection.server_version)
        connection.nonblocking = 1
        connection.enter_pipeline_mode()
    except BaseException:
        connection.finish()
        raise
    return connection


def _refuse_failure(connection: abc.PGconn, status: int) -> None:
    if status == pq.PollingStatus.FAILED:
        raise connecting_failed(_text(connection))


def refuse_old_server(version: int) -> None:
    """Raises `DatabaseError` where a server's version, as in 140003 for 14.3, is too old."""
    if version < OLDEST_SERVER * 10_000:
        raise DatabaseError(
            f"the database is PostgreSQL {version // 10_000}: this program needs {OLDEST_SERVER} or later"
        )


def _settings(timeouts: Timeouts) -> Statement:
    """What holds for the session, as one statement."""
    settings = {
        "statement_timeout": _milliseconds(timeouts.statement_s),
        "lock_timeout": _milliseconds(timeouts.lock_s),
        "idle_in_transaction_session_timeout": _milliseconds(timeouts.idle_s),
        "client_encoding": "UTF8",
        "jit": "off",  # statements of microseconds
        "plan_cache_mode": "force_generic_plan",
    }
    sql = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
    return Statement(f"select {sql}".encode(), prepared=False)


def _milliseconds(seconds: float | None) -> int:
    return 0 if seconds is None else max(1, round(1000 * seconds))


def _result(answer: abc.PGresult) -> Result:
    value, columns = answer.get_value, range(answer.nfields)
    rows = [tuple([value(row, column) for column in columns]) for row in range(answer.ntuples)]
    return Result(rows, answer.command_tuples or 0)


def _failure(answer: abc.PGresult) -> SqlError | ConnectionLostError:
    state = answer.error_field(pq.DiagnosticField.SQLSTATE)
    message = answer.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
    if message is None:
        return error_of("", answer.get_error_message())
    return error_of("" if state is None else state.decode(), message.decode(errors="replace"))


def _text(connection: abc.PGconn) -> str:
    return " ".join(connection.get_error_message().split())


async def _driven(steps: Steps[T], limit_s: float | None) -> T:
    """Run a generator in a trio task. Raises `ConnectionLostError` after `limit_s`."""
    try:
        with trio.fail_after(float("inf") if limit_s is None else limit_s):
            while True:
                socket, waits_for = next(steps)
                match waits_for:
                    case _For.READABLE:
                        await trio.lowlevel.wait_readable(socket)
                    case _For.WRITABLE:
                        await trio.lowlevel.wait_writable(socket)
                    case _For.EITHER:
                        await _either(socket)
    except StopIteration as end:
        return end.value
    except trio.TooSlowError:
        raise ConnectionLostError(f"the database did not respond for {limit_s:g} seconds") from None
    finally:
        steps.close()


async def _either(socket: int) -> None:
    async with trio.open_nursery() as nursery:

        async def first(wait: Callable[[int], Awaitable[None]]) -> None:
            await wait(socket)
            nursery.cancel_scope.cancel()

        nursery.start_soon(first, trio.lowlevel.wait_readable)
        nursery.start_soon(first, trio.lowlevel.wait_writable)


def _driven_now(steps: Steps[T], limit_s: float | None) -> T:
    """Run a generator on the calling thread. Raises `ConnectionLostError` after `limit_s`."""
    ends_at = None if limit_s is None else elapsed_s() + limit_s
    try:
        while True:
            socket, waits_for = next(steps)
            poll = select.poll()
            poll.register(socket, _EVENTS[waits_for])
            left_s = None if ends_at is None else ends_at - elapsed_s()
            if not poll.poll(None if left_s is None else max(0, 1000 * left_s)):
                raise ConnectionLostError(f"the database did not respond for {limit_s:g} seconds")
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


_EVENTS = {
    _For.READABLE: select.POLLIN,
    _For.WRITABLE: select.POLLOUT,
    _For.EITHER: select.POLLIN | select.POLLOUT,
}
