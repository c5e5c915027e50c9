"""How a connection is made, to the first of a store's hosts that will do, each with its own time; and what drives the
protocol: generators that yield a socket and what they wait for, in a trio task or on a thread.

libpq's `connect_timeout` and its way from host to host belong to calls that block. Without them it would wait for one
dead machine as long as TCP does, so each host is an attempt of its own.
"""

from __future__ import annotations

import select
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import TypeVar

import psycopg
import trio
from psycopg import pq
from psycopg.pq import abc

from svc.kernel.store.postgresql.connection.errors import ConnectionLostError, DatabaseError, connecting_failed
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.world import elapsed_s

OLDEST_SERVER = 14
CONNECT_S = 10.0
"""Time for a single host, unless the URL has `connect_timeout`."""
CONNECT_EACH_S = 3.0
"""Time for each of several hosts: one that does not respond must not delay the next one for long."""


async def connected(url: StoreUrl) -> abc.PGconn:
    """Connect in pipeline mode. Raises `ConnectionLostError`, or `DatabaseError` if another attempt would fail too."""
    failures = list[ConnectionLostError | DatabaseError]()
    for host, limit_s in _hosts(await _with_addresses(url)):
        try:
            return await driven(_connecting(host), limit_s)
        except (ConnectionLostError, DatabaseError) as error:
            failures.append(_of(host, error))
    raise _failure(failures)


def connected_now(url: StoreUrl) -> abc.PGconn:
    """Connect as `connected` does, blocking the calling thread."""
    failures = list[ConnectionLostError | DatabaseError]()
    for host, limit_s in _hosts(url):
        try:
            return driven_now(_connecting(host), limit_s)
        except (ConnectionLostError, DatabaseError) as error:
            failures.append(_of(host, error))
    raise _failure(failures)


def _hosts(url: StoreUrl) -> Iterator[tuple[StoreUrl, float]]:
    """Yield each host as a URL of its own, and the seconds that it has."""
    lists = {name: url.parameters[name].split(",") for name in ("host", "hostaddr", "port") if name in url.parameters}
    count = max((len(values) for values in lists.values()), default=1)
    if any(len(values) not in (1, count) for values in lists.values()):
        raise DatabaseError("the store's URL has another number of hosts than of addresses or ports")
    limit_s = float(url.parameters.get("connect_timeout", 0)) or (CONNECT_S if count == 1 else CONNECT_EACH_S)
    for index in range(count):
        own = {name: values[index % len(values)] for name, values in lists.items()}
        yield replace(url, parameters={**url.parameters, **own}), limit_s


def _of(host: StoreUrl, error: ConnectionLostError | DatabaseError) -> ConnectionLostError | DatabaseError:
    """Return the error with its host, which libpq had no time to name."""
    name = host.parameters.get("host", "")
    return type(error)(f"{name}: {error}") if name and name not in str(error) else error


def _failure(failures: list[ConnectionLostError | DatabaseError]) -> ConnectionLostError | DatabaseError:
    """Join the failures of all hosts. If one may succeed later, so may the next attempt."""
    if len(failures) == 1:
        return failures[0]
    lasting = all(isinstance(failure, DatabaseError) for failure in failures)
    text = "; ".join(dict.fromkeys(map(str, failures)))
    return DatabaseError(text) if lasting else ConnectionLostError(text)


async def _with_addresses(url: StoreUrl) -> StoreUrl:
    """Return the URL with its hosts' addresses, which libpq would block for. Raises `ConnectionLostError`."""
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


def _connecting(url: StoreUrl) -> WireSteps[abc.PGconn]:
    try:
        connection = pq.PGconn.connect_start(url.conninfo())
    except psycopg.Error as error:
        raise connecting_failed(str(error)) from None
    try:
        while (status := connection.connect_poll()) != pq.PollingStatus.OK:
            if status == pq.PollingStatus.FAILED:
                raise connecting_failed(connection.get_error_message())  # noqa: TRY301  closed below
            reading = status == pq.PollingStatus.READING
            yield connection.socket, For.READABLE if reading else For.WRITABLE
        refuse_old_server(connection.server_version)
        connection.nonblocking = 1
        connection.enter_pipeline_mode()
    except BaseException:
        connection.finish()
        raise
    return connection


def refuse_old_server(version: int) -> None:
    """Raise `DatabaseError` if a server's version, such as 140003 for 14.3, is too old."""
    if version < OLDEST_SERVER * 10_000:
        raise DatabaseError(
            f"the database is PostgreSQL {version // 10_000}: this program needs {OLDEST_SERVER} or later"
        )


T = TypeVar("T")


class For(Enum):
    """What a generator waits for."""

    READABLE = 1
    WRITABLE = 2
    EITHER = 3


WireSteps = Generator[tuple[int, For], None, T]
"""Yields a socket and what it waits for."""


async def driven(steps: WireSteps[T], limit_s: float | None) -> T:
    """Run a generator in a trio task. Raises `ConnectionLostError` after `limit_s`."""
    try:
        with trio.fail_after(float("inf") if limit_s is None else limit_s):
            while True:
                socket, waits_for = next(steps)
                await _WAITS[waits_for](socket)
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


def driven_now(steps: WireSteps[T], limit_s: float | None) -> T:
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


_WAITS: dict[For, Callable[[int], Awaitable[None]]] = {
    For.READABLE: trio.lowlevel.wait_readable,
    For.WRITABLE: trio.lowlevel.wait_writable,
    For.EITHER: _either,
}
_EVENTS = {
    For.READABLE: select.POLLIN,
    For.WRITABLE: select.POLLOUT,
    For.EITHER: select.POLLIN | select.POLLOUT,
}
