"""The parts that keys are made of: how one lies in a key, and how people write it (`svc inspect`).

What may live here: one `KeyPart` for each kind of value that stands in a key. Which table has which is in `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from uuid import UUID

from svc.kernel.store.schema.codec import TEXT_LAYOUT, KeyPart
from svc.kernel.values.ids import DAY_MS, is_id
from svc.kernel.values.timestamps import read_timestamp, timestamp

SHOWN_OF_A_SECRET = 8
"""Hexadecimal digits: enough to tell two apart."""
LIST_PREFIX = "lst_"
"""Of the ids of lists, which keys have without it."""


def moment(at_ms: int) -> str | int:
    """Return a time (Unix ms) in RFC 3339; the number itself beyond the year 9999."""
    try:
        return timestamp(at_ms)
    except (ValueError, OverflowError, OSError):
        return at_ms


def abbreviated(secret: bytes) -> str:
    """Return the first hexadecimal digits of a secret, which is never shown whole."""
    return secret.hex()[:SHOWN_OF_A_SECRET] + "…"


def show_uuid(raw: bytes) -> str:
    """Return 16 bytes in the canonical form of a UUID."""
    return str(UUID(bytes=raw))


def _read_uuid(text: str) -> bytes:
    return UUID(text).bytes


def _read_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _read_moment(text: str) -> int:
    at_ms = read_timestamp(text)
    if at_ms is None:
        raise ValueError(f"{text!r} is not a time such as 2026-01-05T10:00:00Z")
    return at_ms


def _show_day(number: int) -> str | int:
    shown = moment(number * DAY_MS)
    return shown[:10] if isinstance(shown, str) else number


def _read_day(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def _id(prefix: str, form: str) -> KeyPart:
    """Return a part of the 20 letters and digits of an id, without its prefix."""

    def show(raw: bytes) -> str:
        return prefix + raw.decode("ascii", "replace")

    def read(text: str) -> bytes:
        if not is_id(prefix, text):
            raise ValueError(f"{text!r} is not {form}")
        return text.removeprefix(prefix).encode()

    return KeyPart("20s", show, read)


def digest(length: int, show: Callable[[bytes], str] = bytes.hex, *, is_secret: bool = False) -> KeyPart:
    """Return a part of `length` raw bytes, read from hexadecimal digits. `is_secret`: never shown whole."""

    def read(text: str) -> bytes:
        raw = bytes.fromhex(text)
        if len(raw) != length:
            raise ValueError(f"{text!r} is not {length} bytes in hexadecimal digits")
        return raw

    return KeyPart(f"{length}s", show, read, is_secret=is_secret)


def period(length_ms: int) -> KeyPart:
    """Return a part that counts periods of `length_ms` from 1970. Shown by its beginning; read from any time in it."""

    def show(number: int) -> str | int:
        return moment(number * length_ms)

    def read(text: str) -> int:
        return _read_moment(text) // length_ms

    return KeyPart("I", show, read, period_ms=length_ms)


def index_of(names: Sequence[str]) -> KeyPart:
    """Return a part that is the index of one of these names. The index is stored: append names, never reorder."""

    def show(number: int) -> str | int:
        return names[number] if number < len(names) else number

    def read(text: str) -> int:
        if text not in names:
            raise ValueError(f"{text!r} is none of {', '.join(names)}")
        return names.index(text)

    return KeyPart("B", show, read)


U8 = KeyPart("B", int, _read_number)
U32 = KeyPart("I", int, _read_number)
U64 = KeyPart("Q", int, _read_number)
TEXT = KeyPart(TEXT_LAYOUT, str, str)
UUID_V7 = KeyPart("16s", show_uuid, _read_uuid)
"""An id that begins with its time, so that it is an index by time, too."""
VISITOR_ID = _id("", "a visitor id: 20 letters and digits")
ORDERED_ID = VISITOR_ID._replace(read=str.encode)
"""Of a review or a note, without its prefix: 20 letters and digits, of which the first 8 are its time."""
LIST_ID = _id(LIST_PREFIX, f"the id of a list: {LIST_PREFIX} and 20 letters and digits")
MOMENT = KeyPart("Q", moment, _read_moment)
"""Unix time in milliseconds."""
DAY = KeyPart("I", _show_day, _read_day, period_ms=DAY_MS)
"""A UTC day since 1970."""
DIGEST_16 = digest(16)
SECRET_32 = digest(32, abbreviated, is_secret=True)
"""What would let somebody in."""
