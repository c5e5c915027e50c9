"""How keys and values become bytes. The laws, each held by a test:

- the byte order of two packed keys is the order of their values, part by part;
- `unpack(pack(key)) == key`, `decode(encode(value)) == value`, and `pack(unpack(raw)) == raw`, whatever was flipped;
- a golden test pins the bytes of every table, so that a change of format is a decision.

Keys are fixed-width big-endian parts, then at most one text (UTF-8 keeps code point order). LMDB holds keys of at most
511 bytes, so whatever is long and chosen by a user is keyed by its digest. Values are CBOR (RFC 8949) arrays of
msgspec structs, or a fixed binary layout where size and speed matter most. What shows a flipped bit stands before the
value of every row: see `tables.Table`.
"""

from __future__ import annotations

import re
import struct
from collections import namedtuple
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

import cbor2
import msgspec

from svc.kernel.values.errors import OperatorError

V = TypeVar("V")

MAX_KEY_BYTES = 511
_ANY_BYTES = "surrogateescape"
"""A text that a flipped bit made invalid UTF-8 is read, and packed, as the same bytes: its row fails its check."""
_LAYOUT = re.compile(r"[BHIQ]|[1-9]\d*s")


class CorruptionError(OperatorError):
    """A row does not match its checksum or its type; the data must be restored from a backup."""

    @property
    def line(self) -> str:
        """Its text with what to do: keep the store for the investigation, restore a backup."""
        return f"corrupt: {self}; keep it to find the cause, and restore a sound backup (svc restore --help)"


class CorruptPageError(CorruptionError):
    """A page is not what leads to it says. The transaction is over, and nothing of it is stored."""


class UnknownValueError(CorruptionError):
    """A record is whole, and has a value that this program does not know: another version wrote it."""

    @property
    def line(self) -> str:
        """Its text alone: nothing is corrupt, so nothing has to be restored."""
        return str(self)


TEXT_LAYOUT = ""
"""The layout of a part that is a text, which takes the rest of the key."""


class KeyPart(NamedTuple):
    """One part of a key. `layout`: a big-endian struct format without `>`: `B`, `H`, `I`, `Q` are unsigned integers,
    `16s` is sixteen bytes. `read` takes what `show` makes, and raises `ValueError` for any other text.
    """

    layout: str
    show: Callable[[Any], str | int]
    """Format a value for people."""
    read: Callable[[str], Any]
    period_ms: int = 0
    """Length of the period, for parts that count periods since 1970."""
    is_secret: bool = False


class Key:
    """The layout of a table's key: its parts by name; a text can only be the last. A trailing underscore keeps a name
    from being a word of Python's, and is not shown. Raises `ValueError`.
    """

    def __init__(self, **parts: KeyPart) -> None:
        self.parts = parts
        layouts = [part.layout for part in parts.values()]
        self._text = layouts[-1] == TEXT_LAYOUT
        fixed = layouts[:-1] if self._text else layouts
        for layout in fixed:
            if not _LAYOUT.fullmatch(layout):
                raise ValueError(f"the layout {layout!r} is none of B, H, I, Q and NNs, and a text comes last")
        self._prefixes = [struct.Struct(">" + "".join(fixed[:count])) for count in range(len(fixed) + 1)]
        self._fixed = self._prefixes[-1]
        if not self._text:
            self.pack = self._fixed.pack
        self._named = namedtuple("Row", parts)._make  # noqa: PYI024  # pyright: ignore[reportUntypedNamedTuple]  of any types

    def pack(self, *values: Any) -> bytes:
        """Return the whole key from one value for each part. Raises `ValueError` for a key of more than 511 bytes or
        none, and `struct.error` for values that the layout cannot hold.
        """
        packed = self._fixed.pack(*values[:-1]) + values[-1].encode(errors=_ANY_BYTES)
        if not 0 < len(packed) <= MAX_KEY_BYTES:
            raise ValueError(f"a key of {len(packed)} bytes; LMDB takes 1 to {MAX_KEY_BYTES}")
        return packed

    def prefix(self, *values: Any) -> bytes:
        """Return what keys with these first parts begin with. Raises `struct.error` for values beyond the layout."""
        fixed = len(self._prefixes) - 1
        if len(values) <= fixed:
            return self._prefixes[len(values)].pack(*values)
        return self.pack(*values)

    def unpack(self, raw: bytes) -> Any:
        """Return a key's parts, as a tuple that names them too. Raises `struct.error` for too few bytes."""
        values = self._fixed.unpack_from(raw)
        return self._named((*values, raw[self._fixed.size :].decode(errors=_ANY_BYTES)) if self._text else values)


class Value(Protocol[V]):
    """A value codec. `decode` raises `CorruptionError`, also as `UnknownValueError`."""

    def encode(self, value: V, /) -> bytes:
        """Return the bytes to store, without checksum."""
        ...

    def decode(self, raw: bytes, /) -> V:
        """Return the value that `encode` was given. Raises `CorruptionError`."""
        ...


class Record(Generic[V]):
    """CBOR of an `array_like` msgspec struct. Fields may be appended with defaults, never moved. `remembered`: the
    number of decoded records that the table caches by key and bytes, for small tables of frozen structs that every
    request reads.
    """

    def __init__(self, kind: type[V], *, remembered: int = 0) -> None:
        self._kind = kind
        self.fields: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
        self.remembered = remembered

    def encode(self, value: V) -> bytes:
        """Return the record as CBOR (RFC 8949): an array of the fields in their order."""
        return cbor2.dumps(msgspec.to_builtins(value, builtin_types=(bytes,)))

    def decode(self, raw: bytes) -> V:
        """Return a record; fields that the row lacks get their defaults. Raises `CorruptionError` for bytes that are
        not CBOR, and `UnknownValueError` for CBOR that does not match the struct.
        """
        name = self._kind.__name__
        try:
            return msgspec.convert(self._nested(cbor2.loads(raw)), self._kind, builtin_types=(bytes,))
        except cbor2.CBORDecodeError as error:
            raise CorruptionError(f"a record of type {name} cannot be read: {error}") from error
        except msgspec.ValidationError as error:
            raise UnknownValueError(
                f"a record of type {name} has a value that this version of svc does not know: {error}; "
                "run the version that wrote it"
            ) from error

    def _nested(self, row: Any) -> Any:
        """Convert what was read to the form of the record."""
        return row


class Flattened(Record[V]):
    """A record with another one as its first field, whose fields lie among its own on disk, in the order of `stored`.

    A row of an older version ends early, and what is missing has its default: so in `stored` the fields of each of the
    two stand in their own order. Raises `ValueError` where they do not, or where one is missing.
    """

    def __init__(self, kind: type[V], stored: tuple[str, ...]) -> None:
        super().__init__(kind)
        inner, *outer = msgspec.structs.fields(kind)  # pyright: ignore[reportArgumentType]  a struct
        inner_names, outer_names = inner.type.__struct_fields__, tuple(field.name for field in outer)
        self.stored = stored
        self._inner = [position for position, name in enumerate(stored) if name in inner_names]
        self._outer = [position for position, name in enumerate(stored) if name in outer_names]
        both = (*inner_names, *outer_names)
        if tuple(stored[position] for position in (*self._inner, *self._outer)) != both or len(stored) != len(both):
            raise ValueError(f"the fields of {kind.__name__} are to be stored each once, and in their order")
        self._to_stored = itemgetter(*(both.index(name) for name in stored))
        self._take_inner, self._take_outer = itemgetter(*self._inner), itemgetter(*self._outer)

    def encode(self, value: V) -> bytes:
        """Return one CBOR array of the fields of both structs, in the order of `stored`."""
        inner, *outer = msgspec.to_builtins(value, builtin_types=(bytes,))
        return cbor2.dumps(self._to_stored((*inner, *outer)))

    def _nested(self, row: Any) -> Any:
        if not isinstance(row, list):
            return row  # stored records are lists
        fields = cast("list[Any]", row)
        count = len(fields)
        if count >= len(self.stored):
            return self._take_inner(fields), *self._take_outer(fields)
        inner, outer = (
            [fields[position] for position in positions if position < count] for positions in (self._inner, self._outer)
        )
        return inner, *outer


class Layout(Generic[V]):
    """A value with a binary layout of its own: `pack()` on the value, a reader beside it."""

    def __init__(self, pack: Callable[[V], bytes], unpack: Callable[[bytes], V]) -> None:
        self.encode = pack
        self._unpack = unpack

    def decode(self, raw: bytes) -> V:
        """Return the reader's value. Raises `CorruptionError` for its `ValueError`, `IndexError` or `struct.error`."""
        try:
            return self._unpack(raw)
        except (struct.error, ValueError, IndexError) as error:
            raise CorruptionError(f"a packed value of {len(raw)} bytes cannot be read: {error}") from error


class Signed:
    """A codec of signed 64-bit integers. `name`: what the number is, for the inspector."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, value: int) -> bytes:
        """Return eight bytes, big-endian. Raises `OverflowError` beyond 64 bits."""
        return value.to_bytes(8, signed=True)

    def decode(self, raw: bytes) -> int:
        """Return the number in eight bytes. Raises `CorruptionError` for any other length."""
        if len(raw) != 8:
            raise CorruptionError(f"a number of {len(raw)} bytes")
        return int.from_bytes(raw, signed=True)


Holds = Literal["nothing", "digest", "bytes", "batch"]


class Opaque:
    """Bytes without structure. `holds` describes them for the inspector."""

    def __init__(self, holds: Holds = "nothing") -> None:
        self.holds: Holds = holds

    def encode(self, value: bytes) -> bytes:
        """Return the bytes themselves, unchanged."""
        return value

    def decode(self, raw: bytes) -> bytes:
        """Return the bytes themselves, of any length."""
        return raw
