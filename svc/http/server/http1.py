"""HTTP/1.1 of a server without any I/O: bytes in and events out, responses in and bytes out.

What may live here: the state of one connection and the rules of its bytes. Nothing here waits, reads a clock or knows a
socket: `connection.py` moves the bytes and keeps the time.

It is stricter than the standard asks, since a proxy before us may understand a request in another way: lines end in
CRLF, heads and chunk lines are bounded, a body is framed once, and a target is a path and a query. What two parsers
could read in two ways is malformed. A connection never becomes HTTP/2, h2c or a websocket.
"""

from __future__ import annotations

import enum
import re

from svc.http.server.messages import (
    BodyPart,
    EndOfRequest,
    Headers,
    HttpEvent,
    MalformedRequest,
    RequestHead,
    ResponseError,
)

CRLF = b"\r\n"
FIRST_PRINTABLE = 0x21
MAX_FIELDS = 128
"""Lines of a head, the request line among them."""
MAX_CHUNKS = 4_096
"""In one body. Each costs some microseconds to read, so that tiny ones are a way to keep a server busy."""
MAX_CHUNK_LINE_BYTES = 8 + 1 + 256 + 2

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_FIELD = rb"%b:[\t\x20-\x7e\x80-\xff]*\r\n" % _TOKEN
_HEAD = re.compile(rb'(%b) (/[!"$-~]*) HTTP/(1\.[01])\r\n((?:%b){0,%d})\r\n' % (_TOKEN, _FIELD, MAX_FIELDS - 1))
_FIELDS = re.compile(rb"(?:%b)*" % _FIELD)
_LENGTH = re.compile(rb"[0-9]{1,20}")
_HOST = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)
"""uri-host [ ":" port ] of RFC 3986; nothing that could start a path, a query or user information."""
_LINE_TROUBLE = re.compile(rb"(?<!\r)\n|\r[^\n]|\n[ \t]")
"""A line feed alone, a carriage return alone, a folded line (RFC 9112, 2.2 and 5.2)."""
_CHUNK_LINE = re.compile(rb"([0-9a-fA-F]{1,8})(?:;[\t\x20-\x7e\x80-\xff]{0,256})?\r\n")
"""A size that fits into 32 bits, since not every parser has more, and extensions that are text (RFC 9112, 7.1.1)."""
_NOT_IN_TRAILERS = frozenset({b"content-length", b"transfer-encoding", b"host"})
"""They say where a request ends and whose it is, which has been settled by then (RFC 9110, 6.5.1)."""
_OF_SERVER = frozenset({b"connection", b"transfer-encoding", b"upgrade"})
"""Fields of a response that only the server itself may write."""
_WITHOUT_BODY = frozenset({204, 304})


class Phase(enum.IntEnum):  # of which a hash, unlike that of `Enum`, costs next to nothing
    """Where a connection is in its present request: it decides which deadline holds. From `CLOSING` on nothing is read,
    no request follows, and a connection only advances.
    """

    IDLE = enum.auto()
    HEAD = enum.auto()
    """The first byte is there, the head is not complete."""
    BODY = enum.auto()
    """The head is there, the body is not complete, and no response has begun."""
    RESPONSE = enum.auto()
    """All has been read, or a response has begun. The application's time is its own, each write has its limit."""
    CLOSING = enum.auto()
    LINGERING = enum.auto()
    """Closing, and what still comes is dropped, so that no reset is sent."""
    CUT = enum.auto()
    """Nothing more reaches the client."""


IDLE, HEAD, BODY, RESPONSE, CLOSING, LINGERING, CUT = Phase
# By these names, since the name of a member within its class is looked up by Python code: ten times the cost.


class _Part(enum.IntEnum):
    """The part of a message that the next bytes of the input belong to."""

    HEAD = enum.auto()
    DATA = enum.auto()
    """A body of known length."""
    CHUNK_LINE = enum.auto()
    """With the line end behind the chunk before."""
    CHUNK_DATA = enum.auto()
    TRAILERS = enum.auto()
    COMPLETE = enum.auto()
    """The next request, when this one has its response."""
    MALFORMED = enum.auto()


class _Written(enum.IntEnum):
    """How much of the present response is written."""

    NOTHING = enum.auto()
    HEAD = enum.auto()
    ALL = enum.auto()


_AT_HEAD, _AT_DATA, _AT_CHUNK_LINE, _AT_CHUNK_DATA, _AT_TRAILERS, _COMPLETE, _MALFORMED = _Part
_NOTHING, _BEGUN, _ALL = _Written
# As the phases, by these names.


class _MalformedError(Exception):
    def __init__(self, status: int = 400) -> None:
        super().__init__()
        self.status = status


class HttpProtocol:
    """One connection, which carries one request after another. The caller passes on what it reads (`receive_data`,
    `receive_eof`), takes events until there are none, and writes the bytes that the `send_...` methods return. `phase`
    tells which deadline applies. No input raises: malformed input is a `MalformedRequest` event. Sending what is not
    allowed raises `ResponseError`.
    """

    def __init__(self, max_head_bytes: int) -> None:
        self.phase = IDLE
        self._max_head_bytes = max_head_bytes
        self._input = bytearray()
        """What has arrived and is not out as an event."""
        self._is_at_eof = False
        self._part = _AT_HEAD
        self._remaining = 0
        """How much of the data is still to come, while the part is one with data."""
        self._searched = 0
        """How much of the head or the trailers is known to be in order and to have no end."""
        self._chunks = 0
        """Of the present body, as far as they have begun."""
        self._method = ""
        self._is_1_0 = False
        self._is_last = False
        """Whether no request follows the present one."""
        self.is_continue_due = False
        """Whether the client waits to be asked for the body."""
        self._written = _NOTHING
        self._to_write: int | None = 0
        """How much of the response's body is still to come; `None` = of any length."""
        self._has_body = True
        """Whether the present response may have one."""

    # The request

    def receive_data(self, data: bytes | bytearray) -> None:
        """Take bytes that were read. The first bytes of a request end the phase `IDLE`."""
        self._input += data
        if self.phase is IDLE:
            self.phase = HEAD

    def receive_eof(self) -> None:
        """Note that the client sends no more. A request that has begun and is not complete is malformed."""
        self._is_at_eof = True

    def next_event(self) -> HttpEvent | None:
        """Return the next event; `None` if more has to be read, or the response has to be completed first."""
        if self.phase is IDLE or self.phase >= CLOSING or self._part >= _COMPLETE:
            return None
        try:
            event = self._read()
        except _MalformedError as error:
            error.__traceback__ = None  # its frames refer to it: a reference cycle
            event = MalformedRequest(error.status)
        if event is None and self._is_at_eof:
            event = MalformedRequest(400)
        if isinstance(event, MalformedRequest):
            self._part = _MALFORMED
        return event

    @property
    def has_unread_body(self) -> bool:
        """Return whether the present request is incomplete: a response that begins now is the last one."""
        return self._part is not _COMPLETE

    @property
    def has_unread_input(self) -> bool:
        """Return whether the client has sent, or may be sending, bytes that nobody reads if the connection ends now."""
        return not self._is_at_eof and (bool(self._input) or self._part not in (_AT_HEAD, _COMPLETE))

    # The response

    @property
    def is_response_begun(self) -> bool:
        """Return whether the head of the response has been written."""
        return self._written is not _NOTHING

    @property
    def can_continue(self) -> bool:
        """Return whether the response is complete and another request may follow on this connection."""
        is_over = self._written is _ALL and not self._is_last and self._part is _COMPLETE
        return is_over and not self._is_at_eof and not self.is_closing

    def send_continue(self) -> bytes:
        """Return the bytes that ask for the body (`100 Continue`)."""
        self.is_continue_due = False
        return b"HTTP/1.1 100 \r\n\r\n"

    def send_head(self, status: int, headers: Headers, *, is_last: bool = False) -> bytes:
        """Begin the response. Where it is the last one on this connection, it says `Connection: close`.

        It is the last one with `is_last`, when the client wants that, or when its request has not been read to the end.
        """
        lines = b"".join([b"%b: %b\r\n" % field for field in headers])
        is_well_formed = 200 <= status <= 999 and lines.count(CRLF) == len(headers) and _FIELDS.fullmatch(lines)
        if self._written is not _NOTHING or not is_well_formed:
            raise self._failed("the response has begun, or its head is none")
        length: int | None = None
        for name, value in headers:
            field = name.lower()
            is_length = field == b"content-length"
            if field in _OF_SERVER or (is_length and (length is not None or not _LENGTH.fullmatch(value))):
                raise self._failed("a length that is none or comes twice, or a field that is the server's to write")
            if is_length:
                length = int(value)
        self._is_last = self._is_last or is_last or self.has_unread_body
        self._has_body = self._method != "HEAD" and status not in _WITHOUT_BODY
        self._to_write = length
        if self._is_chunked:
            lines += b"transfer-encoding: chunked\r\n"
        if self._is_last:
            lines += b"connection: close\r\n"
        self._written = _BEGUN
        self.is_continue_due = False
        self._advance(RESPONSE)
        return b"HTTP/1.1 %d \r\n%b\r\n" % (status, lines)

    def send_body(self, data: bytes) -> bytes:
        """Return the bytes of a part of the body: chunked where its length was not said, none if the response has no
        body. Raises `ResponseError` for more than its Content-Length.
        """
        if self._written is not _BEGUN:
            raise self._failed("no response that goes on")
        if not data or not self._has_body:
            return b""
        if self._to_write is not None:
            self._to_write -= len(data)
            if self._to_write < 0:
                raise self._failed("the body is longer than its Content-Length")
        return b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data

    def send_end(self) -> bytes:
        """Complete the response, and return the bytes to send. Raises `ResponseError` if the body is shorter than its
        Content-Length.
        """
        if self._written is not _BEGUN or (self._has_body and self._to_write):
            raise self._failed("no response, or its body is shorter than its Content-Length")
        self._written = _ALL
        return b"0\r\n\r\n" if self._is_chunked else b""

    def start_next_cycle(self) -> None:
        """Begin the next request, part of which may have been read. Call this only if `can_continue`."""
        self._part, self._written = _AT_HEAD, _NOTHING
        self.phase = HEAD if self._input else IDLE

    # The end

    @property
    def is_closing(self) -> bool:
        """Return whether nothing is read any more."""
        return self.phase >= CLOSING

    def close(self, *, linger: bool = False) -> None:
        """End the connection: no request follows. With `linger`, input is discarded for a while."""
        self._advance(LINGERING if linger else CLOSING)

    def cut(self) -> None:
        """End the connection at once: nothing more reaches the client."""
        self._advance(CUT)

    def _advance(self, phase: Phase) -> None:
        self.phase = max(self.phase, phase)

    def _failed(self, why: str) -> ResponseError:
        self._is_last = True
        return ResponseError(why)

    @property
    def _is_chunked(self) -> bool:
        return self._to_write is None and self._has_body and not self._is_1_0

    # Reading

    def _read(self) -> HttpEvent | None:
        if self._part is _AT_HEAD:
            return self._read_head()
        while self._part is _AT_CHUNK_LINE:
            if not self._read_chunk_line():
                return None
            if self._part is _AT_CHUNK_DATA and self._input:
                return self._read_data()
        if self._part is _AT_TRAILERS:
            return self._read_trailers()
        if self._part is _AT_DATA and not self._remaining:
            return self._complete()
        return self._read_data() if self._input else None

    def _read_head(self) -> RequestHead | None:
        end = self._input.find(b"\r\n\r\n", self._searched) + 4
        matched = _HEAD.fullmatch(self._input, 0, end) if 4 <= end <= self._max_head_bytes else None
        if matched is None:
            self._look_for_trouble()
            return None
        method, target, version, lines = matched.groups()
        split = [line.partition(b":") for line in lines[:-2].split(CRLF)] if lines else []
        headers = [(name.lower(), value.strip(b" \t")) for name, _, value in split]
        fields = dict(headers)
        self._is_1_0 = version == b"1.0"
        length = _body_length(headers, fields, is_1_0=self._is_1_0)
        if method == b"CONNECT":
            raise _MalformedError
        del self._input[:end]
        self._searched = self._chunks = 0
        self._method = method.decode("ascii")
        self._part = _AT_CHUNK_LINE if length is None else _AT_DATA
        self._remaining = length or 0
        is_kept = fields.get(b"connection", b"keep-alive").lower() == b"keep-alive" and len(fields) == len(headers)
        self._is_last = self._is_1_0 or (not is_kept and b"close" in _tokens(headers, b"connection"))
        waits = b"expect" in fields and b"100-continue" in _tokens(headers, b"expect")
        self.is_continue_due = waits and not self._is_1_0 and length != 0 and not self._input
        self._advance(BODY)
        return RequestHead(self._method, target, version.decode(), headers)

    def _look_for_trouble(self) -> None:
        """Raise what is wrong with a head or trailers that are incomplete or invalid. The first fault decides, so that
        it does not matter in which pieces the bytes arrive.
        """
        data, most = self._input, self._max_head_bytes
        if self._part is _AT_HEAD and data and data[0] < FIRST_PRINTABLE:
            raise _MalformedError  # a line end, a space, the first byte of TLS: no need to wait for the rest
        end = data.find(b"\r\n\r\n", self._searched)
        arrived = len(data) if end < 0 else end + 4
        if _LINE_TROUBLE.search(data, self._searched, min(arrived, most + 1)):
            raise _MalformedError
        if arrived > most:
            raise _MalformedError(431)
        if end < 0:
            self._searched = max(0, arrived - 3)
            return
        if data.count(CRLF, 0, arrived) - 1 > MAX_FIELDS:
            raise _MalformedError(431)
        if self._part is _AT_HEAD:
            raise _MalformedError

    def _read_chunk_line(self) -> bool:
        """Read the end of the previous chunk and the line before the next. Return whether they have arrived."""
        start = len(CRLF) if self._chunks else 0
        if not CRLF.startswith(self._input[:start]):
            raise _MalformedError  # a chunk is longer than it says
        end = self._input.find(b"\n", start, start + MAX_CHUNK_LINE_BYTES) + 1
        if not end and len(self._input) < start + MAX_CHUNK_LINE_BYTES:
            return False
        line = _CHUNK_LINE.match(self._input, start)
        self._chunks += 1
        if line is None or self._chunks > MAX_CHUNKS:
            raise _MalformedError
        self._remaining = int(line[1], 16)
        self._part = _AT_CHUNK_DATA if self._remaining else _AT_TRAILERS
        del self._input[:end]
        return True

    def _read_data(self) -> BodyPart:
        data = bytes(self._input[: self._remaining])
        del self._input[: self._remaining]
        self._remaining -= len(data)
        self.is_continue_due = False
        if self._part is _AT_CHUNK_DATA and not self._remaining:
            self._part = _AT_CHUNK_LINE
        return BodyPart(data)

    def _read_trailers(self) -> EndOfRequest | None:
        if self._input.startswith(CRLF):
            del self._input[:2]
            return self._complete()
        self._look_for_trouble()
        end = self._input.find(b"\r\n\r\n", self._searched) + 2
        if end < 2:
            return None
        if not _FIELDS.fullmatch(self._input, 0, end):
            raise _MalformedError
        names = {line.partition(b":")[0].lower() for line in bytes(self._input[:end]).split(CRLF)}
        if names & _NOT_IN_TRAILERS:
            raise _MalformedError
        del self._input[: end + 2]
        self._searched = 0
        return self._complete()

    def _complete(self) -> EndOfRequest:
        self._part = _COMPLETE
        self.is_continue_due = False
        self._advance(RESPONSE)
        return EndOfRequest()


def _body_length(headers: Headers, fields: dict[bytes, bytes], *, is_1_0: bool) -> int | None:
    """Return the length of the body, `None` for chunks. Raises `_MalformedError` for a body framed twice or in an
    unknown way, chunks in HTTP/1.0, which does not know them, and an invalid Host (RFC 9112, 3.2 and 6).
    """
    if len(fields) != len(headers):
        names = [name for name, _ in headers]
        if names.count(b"host") > 1 or names.count(b"transfer-encoding") > 1:
            raise _MalformedError
        if len({value for name, value in headers if name == b"content-length"}) > 1:
            raise _MalformedError
    host = fields.get(b"host", b"" if is_1_0 else None)
    if host is None or not _HOST.fullmatch(host):
        raise _MalformedError
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if coding is not None:
        if length is not None or is_1_0 or coding.lower() != b"chunked":
            raise _MalformedError
        return None
    if length is not None and not _LENGTH.fullmatch(length):
        raise _MalformedError
    return int(length or 0)


def _tokens(headers: Headers, name: bytes) -> set[bytes]:
    """Return the members of a comma-separated field in lower case."""
    values = b",".join(value for known, value in headers if known == name)
    return {token.strip(b" \t") for token in values.lower().split(b",")}
