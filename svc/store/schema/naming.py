"""How whole keys are shown, and read as people write them, for the inspector of a store (`svc inspect`).

What would let somebody in is never shown whole.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from svc.store.schema.codec import TEXT_LAYOUT
from svc.store.schema.key_parts import abbreviated
from svc.store.schema.table import Table


def show_key(table: Table[Any], raw: bytes) -> dict[str, Any]:
    """Name -> shown value of each part of a packed key. Only for a key whose checksum was verified: corrupt bytes may
    raise.
    """
    parts = table.key.parts.items()
    return {
        name.rstrip("_"): part.show(value) for (name, part), value in zip(parts, table.key.unpack(raw), strict=True)
    }


def show_key_bytes(table: Table[Any], raw: bytes) -> str:
    """A key whose checksum fails, in hexadecimal digits; where it may hold a secret, only the first of them."""
    is_secret = any(part.is_secret for part in table.key.parts.values())
    return abbreviated(raw) if is_secret else raw.hex()


def read_key(table: Table[Any], texts: Sequence[str]) -> bytes:
    """The packed beginning of the keys whose first parts are these texts, each as `show_key` shows it. Raises
    `ValueError`, which names the part.
    """
    parts = {name.rstrip("_"): part for name, part in table.key.parts.items()}
    if len(texts) > len(parts):
        raise ValueError(f"a key of {table.name} has {len(parts)} parts: {', '.join(parts)}")
    values: list[Any] = []
    for text, (name, part) in zip(texts, parts.items(), strict=False):
        try:
            values.append(part.read(text))
        except ValueError as error:
            raise ValueError(f"{name} of {table.name}: {error}") from error
    try:
        return table.key.prefix(*values)
    except struct.error as error:
        raise ValueError(f"no key of {table.name} has such a number: {error}") from error


def read_prefix(table: Table[Any], text: str) -> bytes:
    """The first bytes of a key, from hexadecimal digits, or from the text itself where the whole key is a text. Raises
    `ValueError`.
    """
    if all(part.layout == TEXT_LAYOUT for part in table.key.parts.values()):
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ValueError(
            f"{text!r}: the keys of {table.name} are no text, so name bytes in hexadecimal digits"
        ) from error
