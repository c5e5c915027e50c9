"""A strict reader of DER (X.690), as far as a key description needs it.

What may live here: elements and the few universal types that the attestation extension is made of. What is not written
the one way that DER allows is refused: lengths and tag numbers in their shortest form, booleans of 00 or FF only. There
is no recursion: the caller walks down the schema that it knows.
"""

from __future__ import annotations

from typing import NamedTuple

BOOLEAN, INTEGER, OCTET_STRING, ENUMERATED, SEQUENCE, SET = 0x01, 0x02, 0x04, 0x0A, 0x30, 0x31
"""Whole identifier bytes: class universal, the constructed bit where the type has parts."""
_CONTEXT_CONSTRUCTED = 0xA0
_LONG_NUMBER = 0x1F
_MAX_TAG_NUMBER = 1 << 14
"""Two bytes of seven bits; the highest that Android has given is below a thousand."""
_MAX_INTEGER_BYTES = 9
"""64 bits and a sign."""


class NotDer(Exception):  # noqa: N818  what was sent is at fault, not the caller
    """The bytes are not DER, or another type than the schema asks for. Never leaves the package."""


class Element(NamedTuple):
    """One tag, length and value."""

    identifier: int
    """The identifier byte; its low five bits are all set where `number` says more."""
    number: int
    content: bytes


def read_only(raw: bytes) -> Element:
    """The one element that these bytes are."""
    found = read_all(raw)
    if len(found) != 1:
        raise NotDer
    return found[0]


def read_all(raw: bytes) -> list[Element]:
    """The elements that follow each other in these bytes, to the last byte."""
    found: list[Element] = []
    at = 0
    try:
        while at < len(raw):
            identifier = raw[at]
            number, at = _number(raw, at)
            length, at = _length(raw, at)
            if at + length > len(raw):
                raise NotDer
            found.append(Element(identifier, number, raw[at : at + length]))
            at += length
    except IndexError:
        raise NotDer from None
    return found


def parts(element: Element, identifier: int = SEQUENCE) -> list[Element]:
    """What a SEQUENCE, or a SET, holds."""
    return read_all(_content(element, identifier))


def explicit(element: Element) -> tuple[int, Element]:
    """Number and content of `[number] EXPLICIT`."""
    if element.identifier & ~_LONG_NUMBER != _CONTEXT_CONSTRUCTED:
        raise NotDer
    return element.number, read_only(element.content)


def octets(element: Element) -> bytes:
    return _content(element, OCTET_STRING)


def integer(element: Element, identifier: int = INTEGER) -> int:
    """An INTEGER, or an ENUMERATED, of at most 64 bits."""
    content = _content(element, identifier)
    if not 0 < len(content) <= _MAX_INTEGER_BYTES:
        raise NotDer
    if len(content) > 1 and (content[0], content[1] >> 7) in ((0x00, 0), (0xFF, 1)):
        raise NotDer
    return int.from_bytes(content, signed=True)


def boolean(element: Element) -> bool:
    content = _content(element, BOOLEAN)
    if content not in (b"\x00", b"\xff"):
        raise NotDer
    return content == b"\xff"


def _content(element: Element, identifier: int) -> bytes:
    if element.identifier != identifier:
        raise NotDer
    return element.content


def _number(raw: bytes, at: int) -> tuple[int, int]:
    number = raw[at] & _LONG_NUMBER
    at += 1
    if number < _LONG_NUMBER:
        return number, at
    number = 0
    while True:
        byte = raw[at]
        at += 1
        number = number << 7 | byte & 0x7F
        if not 0 < number < _MAX_TAG_NUMBER:  # zero so far = padded
            raise NotDer
        if byte < 0x80:
            break
    if number < _LONG_NUMBER:
        raise NotDer
    return number, at


def _length(raw: bytes, at: int) -> tuple[int, int]:
    first = raw[at]
    at += 1
    if first < 0x80:
        return first, at
    count = first & 0x7F
    if not 0 < count <= 3 or at + count > len(raw):
        raise NotDer
    length = int.from_bytes(raw[at : at + count])
    if length < 0x80 or length >> (count - 1) * 8 == 0:
        raise NotDer
    return length, at + count
