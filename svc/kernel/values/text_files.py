"""Text as files hold it: UTF-8 with or without a byte order mark, and the name of what is something else.

What may live here: bytes in, text or one sentence about them out.
"""

from __future__ import annotations

import tomllib
from typing import Any

MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which Windows programs begin a file."""
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16. Those of UTF-32 begin or continue with zeros."""
_GZIP = b"\x1f\x8b"


class NotTextError(ValueError):
    """The bytes are not text of the wanted form; the message is a sentence whose subject is the file."""


def decode_text(content: bytes) -> str:
    """Return the text of a whole file, without its byte order mark; lines end with LF. Raises `NotTextError`."""
    refuse_other_encodings(content)
    try:
        return content.removeprefix(MARK).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotTextError(f"is not UTF-8 text (line {line}): save it as UTF-8") from error


def decode_toml(content: bytes) -> dict[str, Any]:
    """Return the values of a whole TOML file, as `tomllib` gives them. Raises `NotTextError`, also if it is not
    TOML.
    """
    try:
        return tomllib.loads(decode_text(content))
    except tomllib.TOMLDecodeError as error:
        raise NotTextError(f"is not TOML: {error}") from error


def refuse_other_encodings(start: bytes) -> None:
    """Raise `NotTextError` if a file that begins so is UTF-16, UTF-32, or compressed by gzip."""
    if start.startswith(_GZIP):
        raise NotTextError("is compressed by gzip: decompress it first")
    if start.startswith(_UTF_16_MARKS) or b"\0" in start[:4]:
        raise NotTextError("is UTF-16 or UTF-32 text, as `>` of Windows PowerShell writes it: save it as UTF-8")
