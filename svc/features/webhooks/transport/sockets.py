"""Sockets and TLS towards receivers: one task, one request, one response at a time.

What may live here: bytes on their way to and from one address. Which address, and what the bytes mean, is said
elsewhere.

The streams are used by one task at a time, as an attempt is one task. So there is no lock, a write is tried before the
socket is waited for, and a read waits first: the response is never there yet. Through `trio.SSLStream` and httpcore's
wrapper above it an exchange took twice the CPU.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import Any

import httpcore
import trio

TLS_RECORD = 16 * 1024 + 512
"""Bytes asked of the socket at once: a whole record of TLS."""


class TlsReadError(httpcore.ReadError):
    """Something arrived that is not data: an alert, with which a receiver under TLS 1.3 refuses a client without a
    certificate after the handshake, or a record that is corrupt.
    """


class SocketBackend(httpcore.AsyncNetworkBackend):
    """Dials addresses, never names. The deadline is the caller's; timeouts of httpcore's interface are not read."""

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Connect to this address. Raises `httpcore.ConnectError`."""
        try:
            dialed = (await trio.open_tcp_stream(host, port)).socket
        except OSError as error:
            raise httpcore.ConnectError from error
        connected = socket.socket(fileno=dialed.detach())
        connected.setblocking(False)
        return Plain(connected)


class Plain(httpcore.AsyncNetworkStream):
    """A connected socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    async def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        """Return what has arrived, at least a byte; nothing at the end. Raises `httpcore.ReadError`."""
        try:
            while True:
                await trio.lowlevel.wait_readable(self._socket)
                with suppress(BlockingIOError):
                    return self._socket.recv(max_bytes)
        except (OSError, trio.ClosedResourceError) as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        """Write all bytes to the socket. Raises `httpcore.WriteError`."""
        left = memoryview(buffer)
        try:
            while left:
                try:
                    left = left[self._socket.send(left) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._socket)
        except (OSError, trio.ClosedResourceError) as error:
            raise httpcore.WriteError from error

    async def aclose(self) -> None:
        """Close the socket, also in a cancelled scope."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        """Make the TLS handshake, and return the encrypted connection. If it fails, close the connection and raise
        `httpcore.ConnectError`.
        """
        secured = Secured(self, ssl_context, server_hostname)
        try:
            await secured.shake_hands()
        except BaseException as error:
            await self.aclose()
            if isinstance(error, (ssl.SSLError, ssl.CertificateError, httpcore.NetworkError)):
                raise httpcore.ConnectError from error
            raise
        return secured

    def get_extra_info(self, info: str) -> Any:
        """Return for `is_readable` whether a read would return at once. Nothing else is known."""
        return self._is_readable() if info == "is_readable" else None

    def _is_readable(self) -> bool:
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True


class Secured(httpcore.AsyncNetworkStream):
    """TLS over a plain stream. What OpenSSL wants to send goes out before anything is read."""

    def __init__(self, plain: Plain, context: ssl.SSLContext, server_hostname: str | None) -> None:
        self._plain = plain
        self._arrived, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._leaving, server_hostname=server_hostname)

    async def shake_hands(self) -> None:
        """Make the TLS handshake, in which the certificate is verified. Raises `ssl.SSLError` if it fails, after the
        alert was sent, and `httpcore.NetworkError` if the connection ends.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except ssl.SSLError:
                with suppress(httpcore.WriteError):  # the alert says why
                    await self._flush()
                raise
            else:
                await self._flush()
                return

    async def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        """Return the bytes that have arrived, at least one; empty at the end, whether or not TLS was closed before the
        connection, since the framing of HTTP distinguishes a complete response from a truncated one. Raises
        `httpcore.ReadError`, and `TlsReadError` if TLS failed.
        """
        while True:
            try:
                return self._tls.read(max_bytes)
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError as error:
                raise TlsReadError from error

    async def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        """Send everything, in records of up to 16 KiB. Raises `httpcore.WriteError`."""
        try:
            self._tls.write(buffer)
        except ssl.SSLError as error:
            raise httpcore.WriteError from error
        await self._flush()

    async def aclose(self) -> None:
        """Close the socket without a word: the response was read to its end, or nobody wants the rest."""
        await self._plain.aclose()

    def get_extra_info(self, info: str) -> Any:
        """Return `ssl_object`, or `is_readable` of the socket."""
        return self._tls if info == "ssl_object" else self._plain.get_extra_info(info)

    async def _flush(self) -> None:
        if self._leaving.pending:
            await self._plain.write(self._leaving.read())

    async def _fill(self) -> None:
        data = await self._plain.read(TLS_RECORD)
        if data:
            self._arrived.write(data)
        else:
            self._arrived.write_eof()
