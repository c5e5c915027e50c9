"""Plain messages of HTTP/1.1: the common case, read by one strict regular expression and written without a library.

What may live here: pure functions from bytes to a head, and from a head to bytes. A request is plain where every parser
reads it in one way and nothing has to be negotiated: HTTP/1.1, at most one Content-Length, and neither codings,
expectations, upgrades nor wishes about the connection. Everything else is `None` here, and h11's (`protocol.py`), which
understands each plain message in the same way: `tests/http/test_plain.py` compares the two, byte for byte.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from svc.http.messages import HOST, MOST_FIELDS, WITHOUT_BODY, Headers, RequestHead, ResponseError

_FIELD = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n"
_HEAD = re.compile(
    rb'([A-Z]{3,16}) (/[!"$-~]*) HTTP/1\.1\r\n((?:%b){1,%d})\r\n' % (_FIELD, MOST_FIELDS - 1)  # and the request line
)
_FIELDS = re.compile(rb"(?:%b)*" % _FIELD)
_LENGTH = re.compile(rb"[0-9]{1,15}")
_BLANKS = b" \t"
_TUNNEL = b"CONNECT"
_WITHOUT_LENGTH = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})
"""Methods whose requests are plain without a Content-Length, too: then they have no body."""
_NEGOTIATED = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"connection"})
_EVENT_STREAM = b"text/event-stream"
"""Who asks for it is read from while the response goes on, so that it ends at once when its client leaves."""


class PlainRequest(NamedTuple):
    """A plain head, and how many bytes of body follow it."""

    head: RequestHead
    length: int


def read_plain(data: bytes) -> PlainRequest | None:
    """A plain request from all bytes of its head, the empty line included; `None` for any other."""
    matched = _HEAD.fullmatch(data)
    if matched is None or matched[1] == _TUNNEL:
        return None
    method, target, lines = matched.groups()
    split = [line.partition(b":") for line in lines[:-2].split(b"\r\n")]
    headers = [(name.lower(), value.strip(_BLANKS)) for name, _, value in split]
    fields = dict(headers)
    if len(fields) != len(headers) and _says_twice(headers):
        return None
    if not (_NEGOTIATED.isdisjoint(fields) or _only_stays(fields)):
        return None
    host, length = fields.get(b"host"), fields.get(b"content-length")
    if host is None or not HOST.fullmatch(host) or _EVENT_STREAM in fields.get(b"accept", b"").lower():
        return None
    if method not in _WITHOUT_LENGTH if length is None else not _LENGTH.fullmatch(length):
        return None
    return PlainRequest(RequestHead(method.decode("ascii"), target, "1.1", headers), int(length or 0))


def _says_twice(headers: Headers) -> bool:
    """Whether a field that decides something comes more than once."""
    names = [name for name, _ in headers]
    return any(names.count(name) > 1 for name in (b"host", b"content-length", b"connection", b"accept"))


def _only_stays(fields: dict[bytes, bytes]) -> bool:
    """Whether all that is negotiated is what holds anyway: the connection is kept."""
    others = _NEGOTIATED - {b"connection"}
    return others.isdisjoint(fields) and fields[b"connection"].lower() == b"keep-alive"


class PlainResponse:
    """A response that is written without h11. Raises `ResponseError` for a body of another length than it announces."""

    __slots__ = ("_is_complete", "_is_last", "_remaining", "head")

    def __init__(self, head: bytes, length: int, *, is_last: bool) -> None:
        self.head = head
        self._remaining = length
        self._is_last = is_last
        self._is_complete = False

    @property
    def can_continue(self) -> bool:
        """Whether it is complete, and has not said that it is the last one."""
        return self._is_complete and not self._is_last

    def body(self, data: bytes) -> bytes:
        """A part of the body, as it is written."""
        self._remaining -= len(data)
        if self._remaining < 0:
            self._is_complete = False
            raise ResponseError("the body is longer than its Content-Length")
        return data

    def end(self) -> bytes:
        """End the response. Nothing is left to be written; raises `ResponseError` where the body is too short."""
        if self._remaining or self._is_complete:
            raise ResponseError("the body is shorter than its Content-Length, or has ended")
        self._is_complete = True
        return b""


def write_plain(status: int, headers: Headers, method: bytes, *, is_last: bool) -> PlainResponse | None:
    """The head of a response with one Content-Length, or with a status that allows no body; `None` for any other.

    With `is_last` it says that the connection closes.
    """
    lines = b"".join([b"%b: %b\r\n" % field for field in headers])
    if not 200 <= status <= 999 or lines.count(b"\r\n") != len(headers) or not _FIELDS.fullmatch(lines):
        return None
    lengths: list[bytes] = []
    for name, value in headers:
        lowered = name.lower()
        if lowered == b"content-length":
            lengths.append(value)
        elif lowered in _NEGOTIATED or lowered == b"host":
            return None
    if len(lengths) > 1 or (lengths and not _LENGTH.fullmatch(lengths[0])):
        return None
    has_body = status not in WITHOUT_BODY
    if has_body and not lengths:
        return None
    length = int(lengths[0]) if has_body and method != b"HEAD" else 0
    head = b"HTTP/1.1 %d \r\n%b%b\r\n" % (status, lines, b"connection: close\r\n" * is_last)
    return PlainResponse(head, length, is_last=is_last)
