"""The URL of a store, and how a connection is made: to the first of its hosts that will do, each with its own time.

libpq's `connect_timeout` and its way from host to host belong to calls that block. Without them it would wait for one
dead machine as long as TCP does, so each host is an attempt of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
import trio
from psycopg import pq
from psycopg.pq import abc

from svc.kernel.store.postgresql.connection.driving import For, WireSteps, driven, driven_now
from svc.kernel.store.postgresql.connection.errors import ConnectionLostError, DatabaseError, connecting_failed
from svc.kernel.values.fields import url_problem
from svc.kernel.values.refusals import OperatorError
from svc.kernel.values.text_files import NotTextError, decode_text

SCHEMES = ("postgresql://", "postgres://")
_SECRET = ("password", "sslpassword", "scram_client_key", "oauth_client_secret")
_OWN = {
    "fallback_application_name": "svc",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
"""Parameters of libpq that hold unless the URL has others: a dead server is noticed within half a minute."""


class StoreUrlError(OperatorError):
    """The URL of a store cannot be used; the message says why, and shows nothing that may be secret."""


@dataclass(frozen=True)
class StoreUrl:
    """The location of a store on PostgreSQL. `str` shows it without its password."""

    text: str
    """As it was given; it holds no password."""
    parameters: Mapping[str, str] = field(repr=False)
    """For libpq, the password among them."""

    def __str__(self) -> str:
        return self.text

    def conninfo(self) -> bytes:
        """Return the connection string for libpq. It contains the password: never log it."""
        return " ".join(f"{name}={_quoted(value)}" for name, value in self.parameters.items()).encode()


def is_store_url(text: str) -> bool:
    """Return whether the location of a store is a URL rather than a directory."""
    return "://" in text


def store_url(text: str, password_file: Path | None = None) -> StoreUrl:
    """Return the location that a URL names. The password is the first line of `password_file`, where one is given.

    Raises `StoreUrlError`: for another scheme, a URL that libpq cannot read, a password in it, a file that cannot be
    read.
    """
    try:
        import psycopg  # noqa: PLC0415  only for a store that is in a database: commands start faster without
        from psycopg import pq  # noqa: PLC0415  as above
    except ImportError as error:
        raise StoreUrlError("a store in PostgreSQL needs a driver: pip install 'psycopg[binary]'") from error

    if (problem := url_problem(text)) is not None:
        raise StoreUrlError(problem)
    if not text.startswith(SCHEMES):
        raise StoreUrlError(f"the store is a directory or postgresql://USER@HOST:PORT/DATABASE, not {_scheme(text)}")
    try:
        given = {
            option.keyword.decode(): option.val.decode() for option in pq.Conninfo.parse(text.encode()) if option.val
        }
    except (psycopg.Error, UnicodeError):  # its message may quote the password
        raise StoreUrlError(
            "the store's URL cannot be read: write postgresql://USER@HOST:PORT/DATABASE?PARAMETER=VALUE, with special "
            "characters as %XX"
        ) from None
    if any(name in given for name in _SECRET):
        raise StoreUrlError("the store's URL holds a secret: use a passfile or a service file of libpq for it")
    if password_file is not None:
        given["password"] = _password(password_file)
    return StoreUrl(text, {**_OWN, **given})


def _password(path: Path) -> str:
    try:
        password = decode_text(path.read_bytes()).partition("\n")[0]
    except (OSError, NotTextError) as error:
        raise StoreUrlError(f"the password file {path} cannot be read: {error}") from None
    if not password:
        raise StoreUrlError(f"the password file {path} is empty")
    return password


def _scheme(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    return f"{scheme}://…" if separator else "a path"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


OLDEST_SERVER = 14
CONNECT_S = 10.0
"""Time for a single host, unless the URL has `connect_timeout`."""
CONNECT_EACH_S = 3.0
"""Time for each of several hosts: one that does not respond must not delay the next one for long."""


async def connected(url: StoreUrl) -> abc.PGconn:
    """Connect, and return a connection in pipeline mode, for a trio task. Raises `ConnectionLostError`, and
    `DatabaseError` if another attempt would fail too.
    """
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
    """Return the URL with the addresses of its hosts: libpq would block the loop while it resolves them. Raises
    `ConnectionLostError` if there are none.
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
