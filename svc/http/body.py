"""Request bodies: media type, bounded gunzip, strict JSON, and what is wrong with them in the caller's words.

What may live here: bytes and headers in, a typed value or a `Refusal` out. Source: decisions 1.4, 1.5 and 1.9,
interface 8. Nothing here raises on any input.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from svc.kernel.values.refusals import Issue, Location, Refusal, invalid
from svc.kernel.values.struct_fields import sent

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

MAX_BODY_BYTES = 1 << 20
"""After decompression (interface 8)."""
MAX_WIRE_BYTES = MAX_BODY_BYTES + 4096
"""Before: gzip of bytes that do not shrink adds a few hundred."""
MAX_DEPTH = 32
MAX_VALUES = 20_000
MAX_DIGITS = 512
"""Of one number. A float ends at 309, and what a longer integer costs to read grows with the square of its length."""

_UNSUPPORTED = Refusal("unsupported_media_type")
_TOO_LARGE = Refusal("payload_too_large")
_MALFORMED_GZIP = invalid("", "malformed_encoding")
_MALFORMED_JSON = invalid("", "malformed_json")
_TOO_DEEP = invalid("", "too_deep")
_TOO_MANY_VALUES = invalid("", "out_of_range")

_WHERE = re.compile(r" - at `\$\.?(.*)`$")
_QUOTED = re.compile(r"`([^`]*)`")
_BOUND = re.compile(r"Expected `\w+`( of length)? ([<>]=) (\d+)")
_QUOTED_STRING = re.compile(r'"[^"]*"')


def acceptable(content_type: str | None, content_encoding: str | None, content_length: str | None) -> Refusal | None:
    """Return `413` or `415` for a request that its headers alone rule out, before a byte of the body is read (decisions
    1.4, 1.9); `None` for any other.
    """
    most_bytes = MAX_BODY_BYTES if content_encoding is None else MAX_WIRE_BYTES
    if content_length is not None and content_length.isdecimal() and int(content_length) > most_bytes:
        return _TOO_LARGE
    if content_type is not None and not _is_json(content_type):
        return _UNSUPPORTED
    if content_encoding is not None and content_encoding.strip().lower() not in ("", "identity", "gzip"):
        return _UNSUPPORTED
    return None


def _is_json(content_type: str) -> bool:
    """Return whether the media type is JSON. A comma outside quotes joins two headers, which is not JSON."""
    media_type, _, parameters = content_type.partition(";")
    return media_type.strip().lower() == "application/json" and "," not in _QUOTED_STRING.sub("", parameters)


def unpack(wire: bytes, content_type: str | None, content_encoding: str | None) -> bytes | Refusal:
    """Return the body without its `Content-Encoding`, within the limits of decisions 1.4 and 1.9. `413`, `415`, or
    `422` with the issue.
    """
    body = wire
    if content_encoding is not None and content_encoding.strip().lower() == "gzip":
        unpacked = gunzip(wire)
        if isinstance(unpacked, Refusal):
            return unpacked
        body = unpacked
    if len(body) > MAX_BODY_BYTES:
        return _TOO_LARGE
    if content_type is None and body:
        return _UNSUPPORTED
    return beyond_bounds(body) or body


def beyond_bounds(text: bytes) -> Refusal | None:
    """Return `422` for JSON that exceeds the limits on depth, number of values and size of numbers (decisions 1.4),
    counted in the text before it is decoded; `None` within the limits. The result is exact for valid JSON; the decoder
    refuses invalid JSON that passes.
    """
    structure = text.translate(_AS_LISTS, _NO_STRUCTURE)
    containers = structure.count(b"[")
    # Brackets and commas inside strings are counted with the others.
    few = containers + structure.count(b",") < MAX_VALUES and not _may_have_many_digits(text)
    if few and containers <= MAX_DEPTH:
        return None
    # Without what is escaped, every quote begins or ends a string, and every second part lies between two strings.
    is_escaped = b"\\" in text and _ESCAPED.search(text) is not None
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"") if is_escaped else text
    if len(plain) > 4 * MAX_VALUES and plain.count(b'"') > 4 * MAX_VALUES:  # a value may have a name
        return _TOO_MANY_VALUES
    if few:
        return _TOO_DEEP if _is_too_deep(_brackets(plain if is_escaped else structure)) else None
    outside = b'"'.join(plain.split(b'"')[::2]).translate(_AS_LISTS, b" \t\r\n")
    brackets = outside.translate(None, _NO_BRACKETS)
    if _MANY_OPENED in brackets:
        return _TOO_DEEP
    values = outside.count(b",") + outside.count(b"[") - outside.count(b"[]") + 1
    if values > MAX_VALUES or _MANY_DIGITS in outside.translate(_AS_ZEROS):
        return _TOO_MANY_VALUES
    return _TOO_DEEP if _is_too_deep(brackets) else None


def _may_have_many_digits(text: bytes) -> bool:
    """Return whether a number may have more than `MAX_DIGITS` digits; those inside strings count too. A run that long
    covers eight places in a row of every 64th, so few texts are searched as a whole.
    """
    return _EIGHT_DIGITS in text[::64].translate(_AS_ZEROS) and _MANY_DIGITS in text.translate(_AS_ZEROS)


def _brackets(plain: bytes) -> bytes:
    """Return the brackets outside strings, each as that of a list. Only brackets and quotes are kept, so two adjacent
    quotes enclose nothing that matters.
    """
    quoted = plain.translate(_AS_LISTS, _NEITHER_BRACKETS_NOR_QUOTES).replace(b'""', b"")
    return b"".join(quoted.split(b'"')[::2])


def _is_too_deep(brackets: bytes) -> bool:
    """Return whether lists are nested too deeply. The decoder refuses brackets that do not match."""
    if _MANY_OPENED in brackets:
        return True
    for _ in range(MAX_DEPTH):
        if b"[]" not in brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return b"[]" in brackets


_ESCAPED = re.compile(rb'\\[\\"]')
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{},"')
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]")
_NEITHER_BRACKETS_NOR_QUOTES = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_AS_ZEROS = bytes(ord("0") if byte in b"0123456789" else 0 for byte in range(256))
_MANY_OPENED = b"[" * (MAX_DEPTH + 1)
_MANY_DIGITS = b"0" * (MAX_DIGITS + 1)
_EIGHT_DIGITS = b"0" * (MAX_DIGITS // 64)


class _Sdk(msgspec.Struct):
    platform: str


class _WithSdk(msgspec.Struct):
    sdk: _Sdk


_decode_sdk = msgspec.json.Decoder(_WithSdk).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def sdk_platform(text: bytes, body: msgspec.Struct | Refusal) -> str | None:
    """Return `sdk.platform` of a body, given its text and the result of `decode`, even if the body is refused, since
    authorization comes before that (decisions 2.7). `None` if it has none, or is not JSON.
    """
    if not isinstance(body, Refusal):
        sdk: Any = getattr(body, "sdk", None)
        return None if sdk is None else sent(sdk.platform)
    found = _read(_decode_sdk, text)
    return None if isinstance(found, Refusal) else found.sdk.platform


def gunzip(wire: bytes) -> bytes | Refusal:
    """Unpack exactly one gzip member. Refusals: `413` if it unpacks to more than 1 MiB, of which at most one byte more
    is unpacked; `422` (`malformed_encoding`) if it is broken or followed by other bytes (decisions 1.9).
    """
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        body = inflater.decompress(wire, MAX_BODY_BYTES + 1)
    except zlib.error:
        return _MALFORMED_GZIP
    if len(body) > MAX_BODY_BYTES:
        return _TOO_LARGE
    if not inflater.eof or inflater.unused_data:
        return _MALFORMED_GZIP
    return body


def decode(body: bytes, kind: type[S]) -> S | Refusal:
    """Decode a body strictly into a struct: UTF-8, no `NaN`, no name twice at the top (decisions 1.4). `422
    validation_error` with the field that is wrong. The limits on size and depth are those of `unpack`, which comes
    before.
    """
    try:
        value = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        # A value of the wrong type is only worth naming when the text is JSON at all, to its end.
        text = _read(msgspec.json.decode, body)
        return text if isinstance(text, Refusal) else _with_member(explain(str(error), "body"), text, kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _MALFORMED_JSON
    except RecursionError:
        return _TOO_DEEP
    return _wrong_names(body, value) or value


def _with_member(refusal: Refusal, value: Any, kind: type[msgspec.Struct]) -> Refusal:
    """Return the refusal with the name of the map's member at fault, of which the decoder says only `weights[...]`."""
    (fault,) = refusal.details
    for field in msgspec.structs.fields(kind):
        if fault.field != f"{field.encode_name}[...]":
            continue
        for name, member in value[field.encode_name].items():
            try:
                msgspec.convert({name: member}, field.type)
            except msgspec.ValidationError:
                return invalid(f"{field.encode_name}.{name}", fault.issue, fault.location)
    return refusal


def decode_signals(raw: bytes) -> dict[str, Any] | Refusal:
    """Decode `signals`, given as the raw JSON in a decoded body. Returns `422` (`wrong_type`) if it is not
    an object.
    """
    return _read(_decode_object, raw) if raw[:1] == b"{" else invalid("signals", "wrong_type")


def _read(decoder: Callable[[bytes], T], text: bytes) -> T | Refusal:
    """Return the decoded text, or `422` where it is not valid JSON."""
    try:
        return decoder(text)
    except (msgspec.DecodeError, ValueError):  # such as for text that is not UTF-8
        return _MALFORMED_JSON
    except RecursionError:
        return _TOO_DEEP


def _wrong_names(body: bytes, value: msgspec.Struct) -> Refusal | None:
    """Refuse a member name that occurs twice at the top level (decisions 1.4).

    The decoder silently keeps the last of two. Unknown names are refused already, so a repeated name is spelled out
    twice or hidden behind an escape. Where neither can be, the members are not compared one by one.
    """
    outside = _without_object(body, value)
    if b"\\u" not in outside and all(outside.count(name) <= 1 for name in _quoted_names(type(value))):
        return None
    # Objects as the pairs that they are written in; numbers, which do not matter here, as their length.
    pairs = json.JSONDecoder(object_pairs_hook=list, parse_int=len, parse_float=len, strict=False)
    members = _read(lambda text: pairs.decode(text.decode(errors="replace")), body)
    if isinstance(members, Refusal):
        return members
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            return invalid(name, "invalid_value")
        seen.add(name)
    return None


def _without_object(body: bytes, value: msgspec.Struct) -> bytes:
    """Return the body without its free-form object, mostly the signals. Its bytes are found again where an even number
    of quotes and no escape stand before them, so that they are an object there, and not the text of a string.
    """
    for name in value.__struct_fields__:
        member = getattr(value, name)
        if member.__class__ is msgspec.Raw:
            raw = bytes(member)
            at = body.find(raw[:_BEGINNING])
            before = body[:at]
            if raw[:1] == b"{" and body.startswith(raw, at) and b"\\" not in before and not before.count(b'"') % 2:
                return before + body[at + len(raw) :]
    return body


_BEGINNING = 64
"""Bytes of an object that are searched for: more take longer to prepare."""


@cache
def _quoted_names(kind: type[msgspec.Struct]) -> list[bytes]:
    return [b'"%b"' % name.encode() for name in kind.__struct_encode_fields__]


def explain(message: str, location: Location) -> Refusal:
    """Return `422 validation_error` for the message of msgspec's `ValidationError`: which field, which issue of
    decisions 1.5, and the bound that a value or its length is beyond.
    """
    where = _WHERE.search(message)
    path = where.group(1) if where else ""
    if message.startswith("Object contains unknown field"):
        return invalid(_join(path, _named(message)), "unknown_field", location)
    if message.startswith("Object missing required field"):
        return invalid(_join(path, _named(message)), "required", location)
    refusal = invalid(path, _value_issue(message), location)
    bound = _BOUND.match(message)
    if bound is None or not path:
        return refusal
    of_length, sign, number = bound.groups()
    allowed = f"{'have a length of' if of_length else 'be'} {'at least' if sign == '>=' else 'at most'} {number}"
    return msgspec.structs.replace(refusal, explanation=f"`{path}` must {allowed}. Fix it and retry.")


def _value_issue(message: str) -> Issue:
    if "of length <=" in message:
        return "too_long"
    if "of length >=" in message or "matching regex" in message or "Invalid" in message:
        return "invalid_value"
    if "<=" in message or ">=" in message or "out of range" in message:
        return "out_of_range"
    return "wrong_type"


def _named(message: str) -> str:
    match = _QUOTED.search(message)
    return match.group(1) if match else ""


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


CLIENT_SHARE = 0.25
"""What one client may have of it: an address, or the /64 of an IPv6 address."""


class BodyBudget:
    """Bytes of bodies that are still arriving: at most `most_bytes` of all clients together, and a share of that of
    each (decisions 4).
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: Counter[str] = Counter()
        self.held_bytes = 0

    def take(self, client: str, size: int) -> bool:
        """Count `size` more bytes of a client; if there is no space for them, count nothing and return false."""
        own = self._held[client] + size
        if self.held_bytes + size > self._most_bytes or own > CLIENT_SHARE * self._most_bytes:
            return False
        self._held[client] = own
        self.held_bytes += size
        return True

    def release(self, client: str, size: int) -> None:
        """Subtract `size` bytes of a client that are no longer held."""
        self.held_bytes -= size
        self._held[client] -= size
        if not self._held[client]:
            del self._held[client]
