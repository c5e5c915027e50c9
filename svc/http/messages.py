"""What passes between the bytes of a connection and its requests: heads, parts of bodies, and what is wrong with them.

What may live here: values of HTTP/1.1, and the limits that both of its readers keep (`protocol.py`, `plain.py`).
"""

from __future__ import annotations

import re

import msgspec

Headers = list[tuple[bytes, bytes]]

MOST_FIELDS = 128
"""Lines of a head, the request line among them."""
HOST = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)
"""uri-host [ ":" port ] of RFC 3986; nothing that could start a path, a query or user information."""
WITHOUT_BODY = frozenset({204, 304})


class RequestHead(msgspec.Struct, frozen=True):
    """The first event of a request."""

    method: str
    """As it came: methods are case-sensitive (RFC 9110, 9.1)."""
    target: bytes
    """A path with or without a query, in printable ASCII."""
    http_version: str
    """1.0 or 1.1."""
    headers: Headers
    """Names in lower case."""


class BodyPart(msgspec.Struct, frozen=True):
    """Some bytes of the body, at least one; where it is cut says nothing."""

    data: bytes | bytearray


class EndOfRequest(msgspec.Struct, frozen=True):
    """The last event of a request."""


class MalformedRequest(msgspec.Struct, frozen=True):
    """The request cannot be understood, or its client has closed within it. No event follows."""

    status: int
    """400, or 431 for too large or too many header fields."""


HttpEvent = RequestHead | BodyPart | EndOfRequest | MalformedRequest


class ResponseError(Exception):
    """A response that HTTP/1.1 or ASGI does not allow: a mistake of the application."""
