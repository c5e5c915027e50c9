"""HTTP/1.1 of a server without any I/O: bytes in and events out, responses in and bytes out.

What may live here: the state of one connection and the rules of its bytes. Nothing here waits, reads a clock or knows a
socket: `connection.py` moves the bytes and keeps the time, `asgi.py` is the application's view of a request.

Plain messages are read and written by `plain.py`. For all others `HttpProtocol` stands on h11, and is stricter: h11
sees only bytes that have passed the checks of this module. So lines end in CRLF, heads and chunk lines are bounded, and
a request that two parsers could read in two ways is malformed. A connection never becomes HTTP/2, h2c or a websocket.
"""

from __future__ import annotations

import enum
import re
from typing import cast

import h11

from svc.http.messages import (
    HOST,
    MOST_FIELDS,
    WITHOUT_BODY,
    BodyPart,
    EndOfRequest,
    Headers,
    HttpEvent,
    MalformedRequest,
    RequestHead,
    ResponseError,
)
from svc.http.phases import CLOSING, IDLE, Step, advance
from svc.http.plain import PlainResponse, read_plain, write_plain

LINE_TROUBLE = re.compile(rb"(?<!\r)\n|\r[^\n]|\n[ \t]")
"""A line feed alone, a carriage return alone, a folded line (RFC 9112, 2.2 and 5.2)."""
CHUNK_LINE = re.compile(rb"([0-9a-fA-F]{1,8})(?:;[\t\x20-\x7e\x80-\xff]{0,256})?\r\n")
"""A size that fits into 32 bits, since not every parser has more, and extensions that are text (RFC 9112, 7.1.1)."""
MOST_CHUNK_LINE_BYTES = 8 + 1 + 256 + 2
MOST_CHUNKS = 4_096
"""In one body. Each costs 10 us to read, so that tiny ones are a way to keep a server busy."""
NOT_IN_TRAILERS = frozenset({b"content-length", b"transfer-encoding", b"host"})
"""They say where a request ends and whose it is, which has been settled by then (RFC 9110, 6.5.1)."""
CRLF = b"\r\n"
FIRST_PRINTABLE = 0x21


class _Part(enum.Enum):
    """What the next bytes of the input belong to."""

    HEAD = enum.auto()
    DATA = enum.auto()
    """A body of known length."""
    CHUNK_LINE = enum.auto()
    """With the line end behind the chunk before."""
    CHUNK_DATA = enum.auto()
    TRAILERS = enum.auto()
    NEXT_REQUEST = enum.auto()
    """This one is complete."""
    NOTHING = enum.auto()
    """This one is malformed."""


class HttpProtocol:
    """One connection, one request after another.

    The caller passes on what it reads (`receive_data`, `receive_eof`), takes events until there are none, and writes
    the bytes that the `send_...` methods return. `phase` says which deadline holds. No input raises: what cannot be
    understood is a `MalformedRequest`. What may not be sent raises `ResponseError`.
    """

    def __init__(self, max_head_bytes: int, *, lean: bool = True) -> None:
        """Without `lean` plain requests are h11's, too."""
        self.phase = IDLE
        self.is_plain = False
        """Whether the present request is plain, if its head has been read."""
        self._lean = lean
        self._max_head_bytes = max_head_bytes
        self._h11 = h11.Connection(h11.SERVER)
        self._input = bytearray()
        """What h11 has not seen."""
        self._is_at_eof = False
        self._part = _Part.HEAD
        self._remaining = 0
        """How much of the data is still to come, while the part is one with data."""
        self._searched = 0
        """How much of the head or the trailers is known to be in order and to have no end."""
        self._chunks = 0
        """Of the present body, as far as they have begun."""
        self._method = b""
        self._has_body = True
        """Whether the present response may have one."""
        self._response: PlainResponse | None = None
        """The present response, if it is plain and has begun."""

    # The request

    def receive_data(self, data: bytes | bytearray) -> None:
        """Bytes that have been read. The first ones of a request end the phase `IDLE`."""
        self._input += data
        if self.phase is IDLE:
            self._advance(Step.INPUT)

    def receive_eof(self) -> None:
        """The client sends no more. A request that has begun and is not complete is malformed."""
        self._is_at_eof = True

    def next_event(self) -> HttpEvent | None:
        """What comes next; `None` when more has to be read, or the response has to be complete first."""
        try:
            return self._read()
        except h11.RemoteProtocolError as error:
            error.__traceback__ = None  # its frames refer to it: a reference cycle
            self._part = _Part.NOTHING
            return MalformedRequest(431 if error.error_status_hint == 431 else 400)

    @property
    def buffered_bytes(self) -> int:
        """What has been received and not come out as an event."""
        return len(self._input)

    @property
    def has_unread_body(self) -> bool:
        """Whether the present request is not complete: a response that begins now is the last one."""
        return self._part is not _Part.NEXT_REQUEST

    @property
    def has_unread_input(self) -> bool:
        """Whether the client has sent, or may be sending, bytes that nobody reads if the connection ends now."""
        return not self._is_at_eof and (bool(self._input) or self.has_unread_body)

    # The response

    @property
    def is_continue_due(self) -> bool:
        """Whether the client waits to be asked for the body."""
        return self._h11.they_are_waiting_for_100_continue

    @property
    def can_continue(self) -> bool:
        """Whether the response is complete and another request may follow on this connection."""
        if self.is_closing or self._is_at_eof:
            return False
        if self._response is not None:
            return self._response.can_continue
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    def send_continue(self) -> bytes:
        """Ask for the body."""
        return self._send(h11.InformationalResponse(status_code=100, headers=[]))

    def send_head(self, status: int, headers: Headers, *, is_last: bool = False) -> bytes:
        """Begin the response. Where it is the last one on this connection, it says `Connection: close`.

        It is the last one with `is_last`, when the client wants that, or when its request has not been read to the end.
        """
        is_last = is_last or self.has_unread_body
        data = self._write_plain(status, headers, is_last=is_last)
        if not data:
            headers = [*headers, (b"connection", b"close")] if is_last else headers
            try:
                response = h11.Response(status_code=status, headers=headers)
            except h11.LocalProtocolError as error:
                raise ResponseError(str(error)) from error
            data = self._send(response)
        self._has_body = self._method != b"HEAD" and status not in WITHOUT_BODY
        self._advance(Step.RESPONSE_BEGUN)
        return data

    def send_body(self, data: bytes) -> bytes:
        """The bytes of a part of the body: chunked where its length was not said, none where the response has no body.
        Raises `ResponseError` for more than its Content-Length.
        """
        if not data or not self._has_body:
            return b""
        return self._send(h11.Data(data=data)) if self._response is None else self._response.body(data)

    def send_end(self) -> bytes:
        """Complete the response. Raises `ResponseError` if the body is shorter than its Content-Length."""
        return self._send(h11.EndOfMessage()) if self._response is None else self._response.end()

    def start_next_cycle(self) -> None:
        """Go on to the next request, of which something may be here. Only when `can_continue`."""
        if self._response is None:
            self._h11.start_next_cycle()
        self.is_plain, self._response = False, None
        self._part = _Part.HEAD
        self._advance(Step.RESPONSE_SENT)
        if self._input:
            self._advance(Step.INPUT)

    @property
    def is_closing(self) -> bool:
        """Whether the connection ends: no event comes any more."""
        return self.phase >= CLOSING

    def close(self, *, linger: bool = False) -> None:
        """End the connection when what is pending is written. `linger`: what still comes has to be dropped first."""
        self._advance(Step.LINGER if linger else Step.CLOSE)

    def cut(self) -> None:
        """End the connection: the client takes nothing more."""
        self._advance(Step.CUT)

    def _advance(self, step: Step) -> None:
        """The one place where the phase changes."""
        self.phase = advance(self.phase, step)

    def _write_plain(self, status: int, headers: Headers, *, is_last: bool) -> bytes:
        """The head of a plain response; nothing where h11 has to write it, which is made ready for that."""
        if self._response is not None:
            raise ResponseError("the response has begun")
        if not self.is_plain or self._h11.their_state is not h11.IDLE:
            return b""
        self._response = write_plain(status, headers, self._method, is_last=is_last)
        if self._response is not None:
            return self._response.head
        # Of what has been read, h11 needs the method.
        self._h11.receive_data(b"%b / HTTP/1.1\r\nHost: a\r\n\r\n" % self._method)
        while type(self._h11.next_event()) is not h11.EndOfMessage:
            pass
        return b""

    def _send(self, event: h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage) -> bytes:
        try:
            return self._h11.send(event)
        except h11.LocalProtocolError as error:
            raise ResponseError(str(error)) from error

    # Reading. What is malformed raises `h11.RemoteProtocolError` here, as h11 does.

    def _read(self) -> HttpEvent | None:
        if self.phase is IDLE or self.phase >= CLOSING:
            return None
        head = self._begin_plain() if self._lean and self._part is _Part.HEAD else None
        if head is not None or self.is_plain:
            return head or self._read_plain_body()
        return self._read_checked()

    def _read_checked(self) -> HttpEvent | None:
        # h11 has used up what it was given. It says by itself only that a body of known length has ended.
        is_fed = self._part is _Part.DATA and not self._remaining
        while self._part is not _Part.NEXT_REQUEST and self._part is not _Part.NOTHING:
            event = self._h11.next_event() if is_fed else h11.NEED_DATA
            kind = type(event)  # `isinstance` runs Python code for h11's events, which are of abstract classes
            if kind is h11.Request:
                return self._begin(cast("h11.Request", event))
            if kind is h11.Data:
                return BodyPart(cast("h11.Data", event).data)
            if kind is h11.EndOfMessage:
                return self._complete(cast("h11.EndOfMessage", event))
            checked = self._next_checked()
            if checked:
                self._h11.receive_data(checked)
                is_fed = True
            elif self._is_at_eof:
                raise h11.RemoteProtocolError("the client has closed within its request")
            else:
                return None
        return None

    def _begin(self, request: h11.Request) -> RequestHead:
        headers = [(name.lower(), value) for name, value in request.headers.raw_items()]
        version = request.http_version.decode()
        head = RequestHead(request.method.decode("ascii"), request.target, version, headers)
        return self._begun(head, body_length(request, headers))

    def _begun(self, head: RequestHead, length: int | None) -> RequestHead:
        """The head has been read. `length` is that of the body, `None` for chunks."""
        self._part = _Part.CHUNK_LINE if length is None else _Part.DATA
        self._remaining = length or 0
        self._chunks = 0
        self._method = head.method.encode()
        self._advance(Step.HEAD_READ)
        return head

    def _begin_plain(self) -> RequestHead | None:
        """The head of a plain request, if it has arrived and is one."""
        end = self._input.find(b"\r\n\r\n", self._searched) + 4
        if not 4 <= end <= self._max_head_bytes:
            return None
        plain = read_plain(bytes(self._input[:end]))
        if plain is None:
            return None
        del self._input[:end]
        self._searched = 0
        self.is_plain = True
        return self._begun(plain.head, plain.length)

    def _read_plain_body(self) -> BodyPart | EndOfRequest | None:
        if self._part is not _Part.DATA:
            return None
        if not self._remaining:
            return self._completed()
        if self._input:
            return BodyPart(self._take(self._data_end(0)))
        if self._is_at_eof:
            raise h11.RemoteProtocolError("the client has closed within its request")
        return None

    def _complete(self, end: h11.EndOfMessage) -> EndOfRequest:
        if any(name in NOT_IN_TRAILERS for name, _ in end.headers):
            raise h11.RemoteProtocolError("a trailer field that may not be one")
        return self._completed()

    def _completed(self) -> EndOfRequest:
        self._part = _Part.NEXT_REQUEST
        self._advance(Step.REQUEST_READ)
        return EndOfRequest()

    def _next_checked(self) -> bytes:
        """The next bytes for h11, which are in order; nothing when more has to arrive."""
        if not self._input:
            return b""
        if self._part is _Part.HEAD or self._part is _Part.TRAILERS:
            return self._take(self._fields_end())
        end = self._chunk_line_end() if self._part is _Part.CHUNK_LINE else 0
        if self._part is _Part.DATA or self._part is _Part.CHUNK_DATA:
            end = self._data_end(end)
        return self._take(end)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._input[:count])
        del self._input[:count]
        return taken

    def _fields_end(self) -> int:
        """Where the head or the trailers end; 0 when that has not arrived.

        The first thing that is wrong decides, so that it does not matter in which pieces the bytes arrive.
        """
        data, most = self._input, self._max_head_bytes
        if self._part is _Part.TRAILERS:
            if data.startswith(CRLF):
                return 2
        elif data[0] < FIRST_PRINTABLE:  # a line end, a space, the first byte of TLS: no need to wait for the rest
            raise h11.RemoteProtocolError("no request line")
        end = data.find(b"\r\n\r\n", self._searched)
        arrived = len(data) if end < 0 else end + 4
        if LINE_TROUBLE.search(data, self._searched, min(arrived, most + 1)):
            raise h11.RemoteProtocolError("a line does not end in CRLF, or is folded")
        if arrived > most:
            raise h11.RemoteProtocolError("the header fields are too large", error_status_hint=431)
        if end < 0:
            self._searched = max(0, arrived - 3)
            return 0
        self._searched = 0
        if data.count(CRLF, 0, arrived) - 1 > MOST_FIELDS:
            raise h11.RemoteProtocolError("too many header fields", error_status_hint=431)
        return arrived

    def _chunk_line_end(self) -> int:
        """Where the line before a chunk ends, behind the end of the chunk before; 0 when that has not arrived."""
        start = len(CRLF) if self._chunks else 0
        if not CRLF.startswith(self._input[:start]):
            raise h11.RemoteProtocolError("a chunk is longer than it says")
        end = self._input.find(b"\n", start, start + MOST_CHUNK_LINE_BYTES) + 1
        if not end and len(self._input) < start + MOST_CHUNK_LINE_BYTES:
            return 0
        line = CHUNK_LINE.match(self._input, start)
        self._chunks += 1
        if line is None or self._chunks > MOST_CHUNKS:
            raise h11.RemoteProtocolError("too many chunks, or not the beginning of one")
        self._remaining = int(line[1], 16)
        self._part = _Part.CHUNK_DATA if self._remaining else _Part.TRAILERS
        return end

    def _data_end(self, start: int) -> int:
        """How far the data reaches that has arrived."""
        end = min(start + self._remaining, len(self._input))
        self._remaining -= end - start
        if self._part is _Part.CHUNK_DATA and not self._remaining:
            self._part = _Part.CHUNK_LINE
        return end


def body_length(request: h11.Request, headers: Headers) -> int | None:
    """The length of the body, `None` for chunks, of a request that can mean one thing only to us and to any proxy.

    Raises `h11.RemoteProtocolError` for what h11 accepts but a proxy before us may have understood otherwise: versions
    other than 1.0 and 1.1, among them the preface of HTTP/2; targets that are not a path and a query; a body framed
    twice; chunks in HTTP/1.0, which does not know them; a Host that is not one (RFC 9112, 3.2 and 6).
    """
    is_known = request.method != b"CONNECT" and request.http_version in {b"1.1", b"1.0"}
    if not is_known or request.target[:1] != b"/" or b"#" in request.target:
        raise h11.RemoteProtocolError("not a path and a query, or not HTTP/1.1")
    length: int | None = None
    is_chunked = False
    for name, value in headers:
        if name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding":
            is_chunked = True
        elif name == b"host" and not HOST.fullmatch(value):
            raise h11.RemoteProtocolError("not a host")
    if not is_chunked:
        return length or 0
    if length is not None or request.http_version != b"1.1":
        raise h11.RemoteProtocolError("framed twice, or in chunks that HTTP/1.0 does not know")
    return None
