"""Sockets that listen, the connections that are accepted from them, and the certificate of TLS.

Sockets are opened here, or inherited from a supervisor that keeps them open while the service restarts. That needs no
event loop: the parent of several workers opens its sockets before it forks, and each worker makes listeners of them.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections import deque
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

import structlog
import trio
from cryptography import x509

from svc.kernel.limits.lasting import LastingFault
from svc.kernel.net.addresses import read_bind
from svc.kernel.values.errors import OperatorError, explained
from svc.workers.shared_memory import ConnectionShare
from svc.world import elapsed_s

log = structlog.get_logger()

FIRST_DESCRIPTOR = 3
"""Of those that systemd passes (sd_listen_fds(3))."""
AT_ONCE = 8
"""Connections that are accepted in one pass of the loop. Few, so that workers who share a socket share a burst, too."""
ACCEPT_CAPACITY_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}
"""Of `accept`, where no connection fits."""
FULL_S = 0.1
"""Between two tries while no connection fits."""
NO_ROOM = "no connection can be accepted"
NO_ROOM_STEP = "raise the limit of open files (LimitNOFILE=, ulimit -n) above twice max_connections"
LEFT_S = 0.002
"""How long a worker with more connections than another leaves a waiting one to that worker, which takes it in a tenth
of that time if it is idle, and later than this one could if it is busy."""
METRICS = "metrics"
"""Name of the inherited sockets that are for the metrics: `FileDescriptorName=` of systemd.socket(5)."""


class ListeningSockets(NamedTuple):
    """The listening sockets: for clients, and for readers of the metrics (none if metrics are not served)."""

    clients: list[socket.socket]
    metrics: list[socket.socket]

    def close(self) -> None:
        """Close them in this process; others that have inherited them go on listening."""
        for one in (*self.clients, *self.metrics):
            one.close()


def open_sockets(bind: str, backlog: int) -> list[socket.socket]:
    """Listen on `host:port` and return the sockets: one for each address of a host name; no host means every address.
    Raises `ValueError` for text of another form, and `OSError` if an address cannot be bound.
    """
    host, port = read_bind(bind)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    unusable: OSError | None = None
    try:
        for family, kind, protocol, _, address in found:
            try:
                one = socket.socket(family, kind, protocol)
            except OSError as error:  # a kernel without IPv6 still resolves its addresses
                unusable = error
                continue
            opened.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen(backlog)
    except BaseException:
        for one in opened:
            one.close()
        raise
    if not opened:
        raise unusable or OSError(f"{bind!r} has no address")
    return opened


def inherited_sockets(environment: MutableMapping[str, str]) -> ListeningSockets:
    """Return the sockets that systemd passed to this process, which may be none (sd_listen_fds(3)).

    The variables that announce them are removed, so that no other process takes them for its own. Raises `ValueError`
    for a descriptor that is not a listening TCP socket.
    """
    process, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    names = environment.pop("LISTEN_FDNAMES", "").split(":")
    inherited = ListeningSockets([], [])
    if process != str(os.getpid()) or not count.isdigit():
        return inherited
    for number in range(int(count)):
        descriptor = FIRST_DESCRIPTOR + number
        name = names[number] if number < len(names) else ""
        (inherited.metrics if name == METRICS else inherited.clients).append(_listening(descriptor))
    return inherited


def _listening(descriptor: int) -> socket.socket:
    os.set_inheritable(descriptor, False)
    with suppress(OSError):
        found = socket.socket(fileno=descriptor)
        is_tcp = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
        if is_tcp and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return found
        found.detach()
    raise ValueError(
        f"the inherited descriptor {descriptor} is not a TCP socket that listens: a socket unit needs "
        "ListenStream=HOST:PORT and Accept=no"
    )


class PlainListener(trio.abc.Listener[trio.SocketStream]):
    """As `trio.SocketListener`, for a socket that listens and does not block, with several connections in one pass.

    trio's listener accepts one in each pass. While passes are long, a client that connects behind some hundred others
    would wait for some hundred passes before this service knows of it: the kernel's queue has no turns.
    """

    def __init__(self, plain: socket.socket, share: ConnectionShare | None = None) -> None:
        """`share`: this worker's, where several listen on the socket; each stream counts from when it is accepted, and
        who is given it takes it off in the end.
        """
        self._plain = plain
        self.share = share
        self._inner = trio.SocketListener(trio.socket.from_stdlib_socket(plain))
        self._accepted: deque[trio.SocketStream] = deque()
        """Handed out before the loop goes on, so that none is left here when the listener is closed."""
        self._no_room = LastingFault(elapsed_s)
        self._most_left = 1
        """Connections to take next of those that others have left: more each time, as they may be stopped."""

    @property
    def socket(self) -> trio.socket.SocketType:
        """The socket that listens."""
        return self._inner.socket

    async def accept(self) -> trio.SocketStream:
        """Accept the next connection; there is no checkpoint if it was accepted together with the previous one. Where
        the system has no room for it, wait until it has. Raises `OSError` for other causes.
        """
        while not self._accepted:
            try:
                await self._accept_some()
            except OSError as error:
                if error.errno not in ACCEPT_CAPACITY_ERRNOS:
                    raise
                if (fields := self._no_room.met("accept")) is not None:
                    log.warning(NO_ROOM, reason=error.strerror, next_step=NO_ROOM_STEP, **fields)
                await trio.sleep(FULL_S)
        if (fields := self._no_room.over()) is not None:
            log.info("connections are accepted again", **fields)
        return self._accepted.popleft()

    async def _accept_some(self) -> None:
        if self._is_ahead():
            await trio.lowlevel.wait_readable(self._plain)
            if self._is_ahead():
                await trio.sleep(LEFT_S)
            while len(self._accepted) < self._most_left and self._take_waiting():
                pass
            self._most_left = min(2 * self._most_left, AT_ONCE) if self._accepted else 1
        else:
            self._most_left = 1
            self._take(await self._inner.accept())
            while len(self._accepted) < AT_ONCE and not self._is_ahead() and self._take_waiting():
                pass

    def _is_ahead(self) -> bool:
        return self.share is not None and self.share.is_ahead()

    def _take_waiting(self) -> bool:
        """Accept a connection that waits; return whether there was one. Raises `OSError` where the system has no room
        for it, if none was accepted before, which is handed out first.
        """
        try:
            accepted, _ = self._plain.accept()
        except OSError as error:
            if error.errno in ACCEPT_CAPACITY_ERRNOS and not self._accepted:
                raise
            return False
        accepted.setblocking(False)
        self._take(trio.SocketStream(trio.socket.from_stdlib_socket(accepted)))
        return True

    def _take(self, stream: trio.SocketStream) -> None:
        self._accepted.append(stream)
        if self.share is not None:
            self.share.add(1)

    async def aclose(self) -> None:
        """Close the socket that listens; connections that were accepted go on."""
        await self._inner.aclose()


class CertificateError(OperatorError):
    """The files cannot serve TLS; the message names the file and says what is wrong."""


class Certificate(NamedTuple):
    """A certificate that TLS can be served with, and its period of validity."""

    context: ssl.SSLContext
    not_before: datetime
    not_after: datetime

    def is_valid(self, now: datetime) -> bool:
        """Return whether a client whose clock shows `now` (with a time zone) accepts it; both ends of the period are
        inclusive.
        """
        return self.not_before <= now <= self.not_after


def read_certificate(certfile: Path, keyfile: Path) -> Certificate:
    """Return the certificate with its chain, the leaf first, and the key of the leaf, both PEM. Raises
    `CertificateError`.

    TLS 1.2 is the oldest version that is spoken, as RFC 8996 asks, and a client cannot have a new handshake within its
    connection, which would cost it little and the server much.
    """
    chain = _read(certfile)
    _read(keyfile)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        leaf = x509.load_pem_x509_certificates(chain)[0]
    except ValueError as error:
        raise CertificateError(f"{certfile} holds no PEM certificate") from error
    try:
        context.load_cert_chain(certfile, keyfile, password=lambda: _refuse_passphrase(keyfile))
    except ssl.SSLError as error:
        raise CertificateError(_explain(error, certfile, keyfile)) from error
    return Certificate(context, leaf.not_valid_before_utc, leaf.not_valid_after_utc)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(explained("cannot read", path, error)) from error


def _refuse_passphrase(keyfile: Path) -> NoReturn:
    """Refuse an encrypted key: OpenSSL would ask for the passphrase on the terminal, where nobody is."""
    raise CertificateError(
        f"{keyfile} is encrypted; store the key without a passphrase, readable for the service alone"
    )


def _explain(error: ssl.SSLError, certfile: Path, keyfile: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{keyfile} is not the key of the certificate in {certfile}"
    if not error.reason:
        return f"{keyfile} holds no PEM key"
    return f"{certfile} and {keyfile} cannot be used: {error.reason.lower().replace('_', ' ')}"


class TlsListener(trio.abc.Listener[trio.SSLStream[trio.SocketStream]]):
    """As `trio.SSLListener`, with a context that can be replaced for connections that are accepted later."""

    def __init__(self, transport_listener: PlainListener, context: ssl.SSLContext) -> None:
        self.transport_listener = transport_listener
        self.use(context)

    def use(self, context: ssl.SSLContext) -> None:
        """Show this certificate to connections that are accepted from now on. Of the protocols behind TLS, `http/1.1`
        is offered and nothing else.
        """
        context.set_alpn_protocols(["http/1.1"])
        self._context = context

    async def accept(self) -> trio.SSLStream[trio.SocketStream]:
        """Accept the next connection. Its handshake is left to the connection's own task, so that a slow one does not
        delay others.
        """
        stream = await self.transport_listener.accept()
        return trio.SSLStream(stream, self._context, server_side=True, https_compatible=True)

    async def aclose(self) -> None:
        """Close the socket that listens; connections that were accepted go on."""
        await self.transport_listener.aclose()
