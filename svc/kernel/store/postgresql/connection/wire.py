"""The driver: one connection to PostgreSQL, on libpq's pipeline mode. One exchange is one round trip.

    wire = await Wire.connect(url)
    kept, found = await wire.exchange([Statement(b"insert ..."), Statement(b"select ...", (key,))])

The protocol is written once, as generators that yield what they wait for; trio drives them for the service, and
`poll` for the command line (`connect_now`, `exchange_now`). A statement is prepared on its way when it is first used:
nothing has to be declared, and preparing takes no round trip. Behind a pooler nothing is prepared and nothing is set:
the next transaction may find itself in another session.

What may live here: connections, how they are lent to tasks, statements and their results. No table and no transaction:
callers send `begin` and `commit` as they send everything else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from hashlib import blake2s
from typing import Any, NamedTuple

import psycopg
import trio
from psycopg import pq
from psycopg.pq import abc

from svc.kernel.store.postgresql.connection.connecting import (
    For,
    WireSteps,
    connected,
    connected_now,
    driven,
    driven_now,
)
from svc.kernel.store.postgresql.connection.errors import ConnectionLostError, SqlError, error_of
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import integer

_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)


class Statement(NamedTuple):
    """SQL with `$1`, `$2` … and their values in PostgreSQL's binary format; casts in the SQL declare their types."""

    sql: bytes
    parameters: Sequence[bytes | None] = ()
    prepared: bool = True
    """Whether the connection keeps the plan. `False` for what is sent once, and what cannot be prepared."""


class Result(NamedTuple):
    """The result of a statement."""

    rows: list[tuple[Any, ...]]
    """Each value `bytes` in binary format, or `None`."""
    changed: int
    """Rows inserted, updated, deleted or selected."""


class Notice(NamedTuple):
    """A notice that `notify` sent."""

    channel: bytes
    payload: bytes
    process: int
    """Process id of the session that sent it: `Wire.process` of this one for its own."""


class Timeouts(NamedTuple):
    """Time limits in seconds; `None` = no limit."""

    statement_s: float | None = 30.0
    """The database ends a statement that takes longer."""
    lock_s: float | None = 10.0
    """The database ends a statement that waits longer for a row of another."""
    idle_s: float | None = 60.0
    """The database ends a session that does nothing for longer inside a transaction."""
    answer_s: float | None = 60.0
    """The driver gives up a connection on which an exchange takes longer."""


class Wire:
    """One connection, which runs one exchange at a time while it `is_open`. An exchange that is cancelled or loses its
    connection closes it: what was sent may still be committed, and its result is lost.
    """

    def __init__(self, connection: abc.PGconn, timeouts: Timeouts) -> None:
        self._connection = connection
        self._timeouts = timeouts
        self._prepared: set[bytes] = set()
        self.process = connection.backend_pid
        """Process id of the server's side of this session; behind a pooler, the one at the time of connecting."""
        self.is_pooled = False
        """Whether the connection goes through a pooler, which made up the process id."""
        self._busy = False
        self.round_trips = self.statements = 0
        """Since the connection was made."""

    @classmethod
    async def connect(cls, url: StoreUrl, timeouts: Timeouts = Timeouts()) -> Wire:  # noqa: B008  an immutable tuple
        """Connect, for a trio task. Raises `ConnectionLostError`, `SqlError`, and `DatabaseError` for an old server."""
        wire = cls(await connected(url), timeouts)
        wire._note_session(await wire.exchange([_settings(timeouts, wire.process)]))
        return wire

    @classmethod
    def connect_now(cls, url: StoreUrl, timeouts: Timeouts = Timeouts()) -> Wire:  # noqa: B008  an immutable tuple
        """Connect as `connect` does, blocking the calling thread."""
        wire = cls(connected_now(url), timeouts)
        wire._note_session(wire.exchange_now([_settings(timeouts, wire.process)]))
        return wire

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used, as far as this side knows."""
        return self._connection.status == pq.ConnStatus.OK

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, even a failed one."""
        return self._connection.transaction_status in (
            pq.TransactionStatus.INTRANS,
            pq.TransactionStatus.INERROR,
        )

    async def exchange(self, statements: Sequence[Statement]) -> list[Result]:
        """Send all statements, wait once, and return a result for each, in order. Without `begin` and `commit` they are
        one transaction. When everything was read, raises the `SqlError` of the first that failed (later ones were not
        executed), and `ConnectionLostError`.
        """
        return await driven(self._exchanging(statements), self._timeouts.answer_s)

    def exchange_now(self, statements: Sequence[Statement]) -> list[Result]:
        """Run an exchange as `exchange` does, blocking the calling thread."""
        return driven_now(self._exchanging(statements), self._timeouts.answer_s)

    async def notices(self) -> list[Notice]:
        """Wait for and return notices on channels that this connection listens to. Do not call this during an exchange.
        It can be cancelled without loss. Raises `ConnectionLostError`.
        """
        return await driven(self._noticing(), None)

    def close(self) -> None:
        """Close the connection; the database rolls back what was not committed. Never fails."""
        self._connection.finish()

    def _exchanging(self, statements: Sequence[Statement]) -> WireSteps[list[Result]]:
        assert not self._busy, "one exchange at a time"
        if not self.is_open:
            raise ConnectionLostError("the connection to the database is closed")
        self._busy = True
        self.round_trips += 1
        self.statements += len(statements)
        try:
            sent = self._send(statements)
            yield from self._flushing()
            return (yield from self._receiving(sent))
        except SqlError:
            raise
        except psycopg.Error as error:
            message = _text(self._connection) or str(error)
            self.close()
            raise ConnectionLostError(message) from None
        except BaseException:  # GeneratorExit, too: the caller has given up
            self.close()
            raise
        finally:
            self._busy = False

    def _note_session(self, settings: list[Result]) -> None:
        self.process = integer(settings[0].rows[0][0])
        self.is_pooled = self.process != self._connection.backend_pid

    def _send(self, statements: Sequence[Statement]) -> list[bytes | None]:
        """Send statements. Return for each expected response the SQL that it prepares, or `None` for a result."""
        connection = self._connection
        sent: list[bytes | None] = []
        for sql, parameters, prepared in statements:
            formats = [pq.Format.BINARY] * len(parameters)
            if prepared and not self.is_pooled:
                name = _name(sql)
                if sql not in self._prepared:
                    self._prepared.add(sql)
                    connection.send_prepare(name, sql)
                    sent.append(sql)
                connection.send_query_prepared(name, parameters, formats, pq.Format.BINARY)
            else:
                connection.send_query_params(sql, parameters, None, formats, pq.Format.BINARY)
            sent.append(None)
        connection.pipeline_sync()
        return sent

    def _flushing(self) -> WireSteps[None]:
        """Flush, and read too: a server that responds to a long pipeline stops reading until it is read from."""
        connection = self._connection
        while connection.flush():
            yield connection.socket, For.EITHER
            connection.consume_input()

    def _receiving(self, sent: list[bytes | None]) -> WireSteps[list[Result]]:
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
                self._prepared.discard(prepares)
        end = yield from self._answer()
        if end.status != pq.ExecStatus.PIPELINE_SYNC:
            raise ConnectionLostError("the database's responses are out of step")
        if failure is not None:
            raise failure
        return results

    def _answer(self) -> WireSteps[abc.PGresult]:
        connection = self._connection
        while True:
            while connection.is_busy():
                yield connection.socket, For.READABLE
                connection.consume_input()
            answer = connection.get_result()
            if answer is not None:
                return answer
            if connection.status != pq.ConnStatus.OK:  # otherwise: the end of the answers to one statement
                raise ConnectionLostError(_text(connection))

    def _noticing(self) -> WireSteps[list[Notice]]:
        connection, found = self._connection, list[Notice]()
        try:
            while not found:
                while (notify := connection.notifies()) is not None:
                    found.append(Notice(notify.relname, notify.extra, notify.be_pid))
                if not found:
                    yield connection.socket, For.READABLE
                    connection.consume_input()
        except psycopg.Error as error:
            message = _text(connection) or str(error)
            self.close()
            raise ConnectionLostError(message) from None
        return found


def _settings(timeouts: Timeouts, process: int) -> Statement:
    """Ask for the server's process id, and set what holds for the session: one statement, which sets nothing unless the
    id is `process`. Behind a pooler it would change the session of the next client.
    """
    settings = {
        "statement_timeout": _milliseconds(timeouts.statement_s),
        "lock_timeout": _milliseconds(timeouts.lock_s),
        "idle_in_transaction_session_timeout": _milliseconds(timeouts.idle_s),
        "client_encoding": "UTF8",
        "jit": "off",  # statements of microseconds
        "plan_cache_mode": "force_generic_plan",
    }
    sets = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
    sql = f"select pg_backend_pid(), case when pg_backend_pid() = {process} then concat({sets}) end"
    return Statement(sql.encode(), prepared=False)


@lru_cache(1024)
def _name(sql: bytes) -> bytes:
    """Name a prepared statement by its SQL: in a session of another's, a number would name another statement."""
    return b"svc_" + blake2s(sql, digest_size=12).hexdigest().encode()


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


class Pool:
    """Lends connections to tasks, makes them as needed up to a maximum, and keeps them. Tasks wait in line."""

    def __init__(self, connect: Callable[[], Awaitable[Wire]], most: int) -> None:
        self._connect = connect
        self._free = trio.CapacityLimiter(most)
        self._idle: list[Wire] = []

    @asynccontextmanager
    async def wire(self) -> AsyncGenerator[Wire]:
        """Lend a connection for a `with` block, with no transaction open. A connection that was closed in the block, or
        has a transaction open after it, is discarded. Raises what connecting raises.
        """
        async with self._free:
            wire = self._idle.pop() if self._idle else await self._connect()
            try:
                yield wire
            except ConnectionLostError:
                self.close()  # idle connections have most likely been lost, too
                raise
            finally:
                if wire.is_open and not wire.is_in_transaction:
                    self._idle.append(wire)
                else:
                    wire.close()

    def close(self) -> None:
        """Close the connections that are not in use; others are closed when they are returned."""
        while self._idle:
            self._idle.pop().close()

    @property
    def waiting(self) -> int:
        """Number of tasks in line."""
        return self._free.statistics().tasks_waiting
