"""HTTP/1.1 as the edge speaks it: hypercorn's protocol without its ways out and without h11's leniency.

What may live here: from bytes to requests and from answers to bytes. Sockets and time are `connection.py`.

- `StrictReceiveBuffer` is h11's input buffer, which takes line ends that two parsers may read in two ways.
- `is_unambiguous` refuses what h11 accepts but a proxy before us may have understood otherwise.
- `GuardedStream` is hypercorn's request, with the application *pulling* the body. That gives back-pressure, asks for
  a body (`100 Continue`) only when somebody wants it, and needs no task that carries messages.
- `GuardedProtocol` is hypercorn's HTTP/1.1 protocol that never becomes HTTP/2, h2c or a websocket. It answers a body
  that nobody read with `Connection: close`, and writes an answer in one piece.
"""

from __future__ import annotations

import enum
import re
from typing import Protocol, cast
from urllib.parse import unquote

import h11
import trio
from h11._receivebuffer import ReceiveBuffer  # private: the one place where h11's leniency can be taken back
from hypercorn.config import Config
from hypercorn.events import Event
from hypercorn.protocol.events import Body, EndBody, Response, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent, ConnectionState, HTTPScope

Headers = list[tuple[bytes, bytes]]
Address = tuple[str, int] | None

LINE_TROUBLE = re.compile(rb"(?<!\r)\n|\r[^\n]|\n[ \t]")
"""A line feed alone, a carriage return alone, a folded line (RFC 9112, 2.2 and 5.2)."""
CHUNK_LINE = re.compile(rb"[0-9a-fA-F]{1,8}(?:[ \t]*;[\t\x20-\x7e\x80-\xff]{0,256})?\r\n")
"""A size that fits into 32 bits, since not every parser has more, and extensions that are text (RFC 9112, 7.1.1)."""
MOST_FIELDS = 128
MOST_CHUNKS = 4_096
"""In one body. Each costs 10 us to read, so that tiny ones are a way to keep a server busy."""
CHUNKS_AT_ONCE = 64
"""Then everybody else has a turn."""
BODY_PART_BYTES = 512
"""A handler is woken for so much of a body, or for its end: not for each byte of a client that sends them one by one.
Less than what is read ahead, or they would wait for each other."""
NOT_IN_TRAILERS = frozenset({b"content-length", b"transfer-encoding", b"host"})
"""They say where a request ends and whose it is, which has been settled by then (RFC 9110, 6.5.1)."""
HOST = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)
"""uri-host [ ":" port ] of RFC 3986; nothing that could start a path, a query or user information."""
WHOLE_REQUEST_READ = {
    h11.DONE,
    h11.MUST_CLOSE,
    h11.CLOSED,
    # A request for an upgrade: nothing is switched, it is answered as any other.
    h11.MIGHT_SWITCH_PROTOCOL,  # pyright: ignore[reportPrivateImportUsage]  documented, left out of h11's __all__
}


class Phase(enum.Enum):
    """Where a connection is in its present request: it decides which deadline holds."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    """The first byte is there, the head is not complete."""
    BODY = enum.auto()
    """A handler runs and the body is not complete."""
    RESPONSE = enum.auto()
    """All has been read, or a response has begun. The handler's time is its own, each write has its limit."""
    CLOSING = enum.auto()


class Step(enum.Enum):
    """What moves a connection from one phase to the next."""

    INPUT = enum.auto()
    """The first bytes of a request."""
    HEAD_READ = enum.auto()
    REQUEST_READ = enum.auto()
    RESPONSE_BEGUN = enum.auto()
    RESPONSE_SENT = enum.auto()
    """The response is complete, and the connection is kept for another request."""
    CLOSE = enum.auto()


TRANSITIONS: dict[Phase, dict[Step, Phase]] = {
    Phase.IDLE: {Step.INPUT: Phase.HEAD, Step.CLOSE: Phase.CLOSING},
    Phase.HEAD: {Step.HEAD_READ: Phase.BODY, Step.CLOSE: Phase.CLOSING},
    Phase.BODY: {
        Step.REQUEST_READ: Phase.RESPONSE,
        Step.RESPONSE_BEGUN: Phase.RESPONSE,
        Step.CLOSE: Phase.CLOSING,
    },
    Phase.RESPONSE: {
        Step.REQUEST_READ: Phase.RESPONSE,
        Step.RESPONSE_BEGUN: Phase.RESPONSE,
        Step.RESPONSE_SENT: Phase.IDLE,
        Step.CLOSE: Phase.CLOSING,
    },
    # What is still under way when the connection closes takes its steps and changes nothing.
    Phase.CLOSING: dict.fromkeys(Step, Phase.CLOSING),
}
"""Every step that can be taken, by the phase in which it is taken."""


def advance(phase: Phase, step: Step) -> Phase:
    """The phase after a step. Raises `RuntimeError` for a step that `TRANSITIONS` does not have."""
    following = TRANSITIONS[phase].get(step)
    if following is None:
        raise RuntimeError(f"no {step.name} in the phase {phase.name}")
    return following


class ConnectionPort(Protocol):
    """What the protocol asks of the connection that it runs on."""

    @property
    def phase(self) -> Phase:
        """The present phase, which decides what input means."""
        ...

    def advance(self, step: Step) -> None:
        """Take a step of `TRANSITIONS`. Raises `RuntimeError` for one that cannot be taken."""

    async def protocol_send(self, event: Event) -> None:
        """Keep bytes for the next `flush`, or act on the end of a request or of the connection."""

    async def flush(self) -> None:
        """Write the bytes that were kept. Raises nothing for what the client does."""

    async def refuse(self, status: int) -> None:
        """Send the edge's own response with this status, and close."""

    def start_handler(self, stream: GuardedStream) -> None:
        """Run the application for this request in a task of its own."""

    def response_begins(self) -> None:
        """The head of the response is about to be sent."""

    def resume_reading(self) -> None:
        """There is capacity for more of the body."""


class StrictReceiveBuffer(ReceiveBuffer):
    """h11's input buffer, refusing lines that do not end in CRLF, folded lines, heads over the limit, odd chunks."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self.chunks = 0
        """Of the present body, as far as they have begun."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a complete head, else `None`. Raises `h11.LocalProtocolError`, hint 431 for a large one."""
        data = self._data
        if data.startswith(b"\r\n"):
            self._extract(2)
            return []
        end = data.find(b"\r\n\r\n", self._multiple_lines_search)
        checked_to = len(data) if end < 0 else end + 4
        if LINE_TROUBLE.search(data, self._multiple_lines_search, checked_to):
            raise h11.LocalProtocolError("a line does not end in CRLF, or is folded")
        if checked_to > self._max_bytes:
            raise h11.LocalProtocolError("the header fields are too large", error_status_hint=431)
        if end < 0:
            self._multiple_lines_search = max(0, checked_to - 3)
            return None
        lines = self._extract(checked_to)[:-4].split(b"\r\n")
        if len(lines) > MOST_FIELDS:
            raise h11.LocalProtocolError("too many header fields", error_status_hint=431)
        self.chunks = 0
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """The line that begins a chunk, else `None`. Raises `h11.LocalProtocolError` for a malformed one."""
        line = super().maybe_extract_next_line()
        if line is not None:
            self.chunks += 1
            if self.chunks > MOST_CHUNKS or not CHUNK_LINE.fullmatch(line):
                raise h11.LocalProtocolError("too many chunks, or not the beginning of one")
        return line


def is_unambiguous(request: h11.Request, headers: Headers) -> bool:
    """Whether a request that h11 accepts can mean one thing only, to us and to any proxy before us.

    Refused: versions other than 1.0 and 1.1, among them the preface of HTTP/2; targets that are not a path and a
    query; a body framed twice; chunks in HTTP/1.0, which does not know them; a Host that is not one (RFC 9112, 3.2
    and 6).
    """
    if request.method == b"CONNECT" or request.http_version not in {b"1.1", b"1.0"}:
        return False
    if request.target[:1] != b"/" or b"#" in request.target:
        return False
    has_length = is_chunked = False
    for name, value in headers:
        if name == b"content-length":
            has_length = True
        elif name == b"transfer-encoding":
            is_chunked = True
        elif name == b"host" and not HOST.fullmatch(value):
            return False
    return not is_chunked or (not has_length and request.http_version == b"1.1")


class GuardedStream(HTTPStream):
    """One request on its way to the application, and its response on the way back."""

    def __init__(self, protocol: GuardedProtocol) -> None:
        super().__init__(
            protocol.app,
            protocol.config,
            protocol.context,
            protocol.task_group,
            protocol.ssl,
            protocol.client,
            protocol.server,
            protocol.stream_send,
            STREAM_ID,
        )
        self.handling = trio.CancelScope()
        self.more_body = False
        """Whether the application has announced more of the answer than the part it is sending."""
        self.start_time = 0.0  # read only by hypercorn's access log, which is off
        self._protocol = protocol
        self._received = bytearray()
        self._is_complete = False
        self._is_delivered = False
        self._arrival: trio.Event | None = None

    def begin(self, request: h11.Request, headers: Headers) -> None:
        """Make the ASGI scope of a request whose head has been read."""
        path, _, query_string = request.target.partition(b"?")
        self.scope = HTTPScope(
            type="http",
            http_version=request.http_version.decode(),
            asgi={"spec_version": "2.1", "version": "3.0"},
            # As it came: methods are case-sensitive (RFC 9110, 9.1), and h11 frames the answer by what it saw.
            method=request.method.decode("ascii"),
            scheme=self.scheme,
            path=unquote(path.decode("ascii")),
            raw_path=path,
            query_string=query_string,
            root_path=self.config.root_path,
            headers=headers,
            client=self.client,
            server=self.server,
            state=ConnectionState({}),
            extensions={},
        )

    @property
    def read_ahead_bytes(self) -> int:
        """Bytes of the body that have arrived and that the application has not taken."""
        return len(self._received)

    def body_arrived(self, data: bytes | bytearray) -> None:
        """Keep bytes of the body; the application is woken when there are `BODY_PART_BYTES` of them."""
        self._received += data
        if len(self._received) >= BODY_PART_BYTES:
            self._announce()

    def body_completed(self) -> None:
        """No more of the body will come: wake the application."""
        self._is_complete = True
        self._announce()

    async def handle(self, event: StreamEvent) -> None:
        """The stream is over: the response is complete, or the client is gone, and its handler is cancelled."""
        if isinstance(event, StreamClosed) and not self.closed:
            self.closed = True
            if self.state is ASGIHTTPState.REQUEST:
                self.handling.cancel()
            self._announce()

    async def receive(self) -> ASGIReceiveEvent:
        """ASGI `receive`: at least `BODY_PART_BYTES` of the body, or its last part; then its end."""
        await self._protocol.send_100_continue()
        while not self.closed and (
            self._is_delivered or not (self._is_complete or len(self._received) >= BODY_PART_BYTES)
        ):
            self._arrival = trio.Event()
            await self._arrival.wait()
        if self.closed:
            return {"type": "http.disconnect"}
        body = bytes(self._received)
        self._received.clear()
        self._is_delivered = self._is_complete
        self._protocol.resume_reading()
        return {"type": "http.request", "body": body, "more_body": not self._is_complete}

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """ASGI `send`; dropped where the stream is closed. `None` = the application has returned."""
        if self.closed and message is not None:
            return
        if message is not None:
            self.more_body = bool(message.get("more_body", False))
        await super().app_send(message)

    async def _send_error_response(self, status_code: int) -> None:
        """The application ended without an answer."""
        await self._protocol.refuse(status_code)

    def _announce(self) -> None:
        if self._arrival is not None:
            self._arrival.set()


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 and nothing else, one request after another."""

    connection: h11.Connection  # pyright: ignore[reportIncompatibleVariableOverride]  never hypercorn's websocket one
    stream: GuardedStream | None  # pyright: ignore[reportIncompatibleVariableOverride]  nor its websocket stream

    def __init__(
        self,
        link: ConnectionPort,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        *,
        is_tls: bool,
        client: Address,
        server: Address,
    ) -> None:
        super().__init__(
            app,
            config,
            context,
            TaskGroup(),  # never entered: the connection's own nursery runs the handlers
            ConnectionState({}),
            is_tls,
            client,
            server,
            link.protocol_send,
        )
        self._link = link
        self._lines = StrictReceiveBuffer(config.h11_max_incomplete_size)
        self.connection._receive_buffer = self._lines  # pyright: ignore[reportPrivateUsage] # noqa: SLF001  see StrictReceiveBuffer

    @property
    def read_ahead_bytes(self) -> int:
        """Bytes read from the socket that no handler has taken: of this body, and of requests behind it."""
        return len(self._lines) + (self.stream.read_ahead_bytes if self.stream is not None else 0)

    @property
    def has_unread_body(self) -> bool:
        """Whether the present request has not arrived whole."""
        return self.connection.their_state not in WHOLE_REQUEST_READ

    @property
    def has_unread_input(self) -> bool:
        """Whether the client has sent, or may be sending, bytes that nobody reads if the connection ends now."""
        return bool(self._lines) or self.has_unread_body

    async def receive(self, data: bytes | bytearray) -> None:
        """Take bytes from the socket: start a handler, pass on its body, or refuse what is malformed."""
        self.connection.receive_data(bytes(data))
        await self._handle_events()

    async def resume(self) -> None:
        """Handle what arrived behind the request that has just been answered (pipelining)."""
        await self._handle_events()

    async def disconnected(self) -> None:
        """The client sends no more: an unfinished request gets a 400; a handler is cancelled."""
        if self._link.phase in {Phase.HEAD, Phase.BODY}:
            await self.refuse(400)
        elif self.stream is not None and self.stream.state is ASGIHTTPState.REQUEST:
            await self._close_stream()

    async def refuse(self, status: int) -> None:
        """Cancel the handler if there is one, and send the edge's own response."""
        if self.stream is not None:
            self.stream.handling.cancel()
            self.stream.closed = True
        await self._link.refuse(status)

    async def send_100_continue(self) -> None:
        """Send `100 Continue` now if the client waits for it (RFC 9110, 10.1.1); else nothing."""
        if self.connection.they_are_waiting_for_100_continue:
            await self._send_h11_event(h11.InformationalResponse(status_code=100, headers=[]))
            await self._link.flush()

    def resume_reading(self) -> None:
        """See `ConnectionPort.resume_reading`."""
        self._link.resume_reading()

    async def stream_send(self, event: StreamEvent) -> None:
        """Send a part of a response; the last one on a connection says `Connection: close`."""
        kind = type(event)
        if kind is Response:
            self._link.response_begins()
            if self.context.terminated.is_set() or self.has_unread_body:
                response = cast("Response", event)
                headers = [*response.headers, (b"connection", b"close")]
                event = Response(STREAM_ID, headers, response.status_code)
        await super().stream_send(event)
        # Head, body and end leave in one write wherever the application has them all at once.
        if kind is EndBody or (kind is Body and self.stream is not None and self.stream.more_body):
            await self._link.flush()

    async def _handle_events(self) -> None:
        while self._link.phase is not Phase.CLOSING:
            try:
                event = self.connection.next_event()
            except h11.RemoteProtocolError as error:
                error.__traceback__ = None  # its frames know it, and this connection: a circle
                await self._refuse_malformed(431 if error.error_status_hint == 431 else 400)
                return
            if isinstance(event, h11.Request):
                if not self._begin(event):
                    await self._refuse_malformed(400)
                    return
            elif isinstance(event, h11.Data):
                if self.stream is not None:
                    self.stream.body_arrived(event.data)
                if event.chunk_start and self._lines.chunks % CHUNKS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
            elif isinstance(event, h11.EndOfMessage):
                if any(name in NOT_IN_TRAILERS for name, _ in event.headers):
                    await self._refuse_malformed(400)
                else:
                    self._complete()
                return
            else:  # more input is needed, or the next request has to wait for the end of this one
                return

    def _begin(self, request: h11.Request) -> bool:
        headers = list(request.headers)
        if not is_unambiguous(request, headers):
            return False
        self._link.advance(Step.HEAD_READ)
        stream = GuardedStream(self)
        self.stream = stream  # pyright: ignore[reportIncompatibleVariableOverride]  as declared above
        stream.begin(request, headers)
        self._link.start_handler(stream)
        return True

    def _complete(self) -> None:
        self._link.advance(Step.REQUEST_READ)
        if self.stream is not None:
            self.stream.body_completed()

    async def _refuse_malformed(self, status: int) -> None:
        # Where an answer has begun before its request was read, it has said that it is the last one.
        if self.stream is None or self.stream.state is ASGIHTTPState.REQUEST:
            await self.refuse(status)
