"""Looking into a store: rows as they lie there, corrupt ones among them, and what names one request.

Which rows those are is said where tables are declared: a new table needs no line here.

Rows are read some at a time, each time in a state of its own, and none is held while somebody reads what was printed:
so a pager that is left open does not make the file of a running service grow. What is committed meanwhile may show in
one row and not in another. Keys are shown in parts, and read as people write them; what would let somebody in is never
shown whole.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from svc.kernel.store.engine import EngineError
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.codec import MAX_KEY_BYTES, TEXT_LAYOUT, CorruptionError, Opaque, Record
from svc.kernel.store.schema.key_parts import UUID_V7, abbreviated
from svc.kernel.store.schema.table import Table, installed
from svc.kernel.tenants.tables import ORGANIZATION_IDS, ORGANIZATIONS
from svc.kernel.values.ids import first_id, made_at_ms


def show_key(table: Table[Any], raw: bytes) -> dict[str, Any]:
    """Return a dict of name -> shown value of each part of a packed key. Only for a key whose checksum was verified:
    corrupt bytes may raise.
    """
    parts = table.key.parts.items()
    return {
        name.rstrip("_"): part.show(value) for (name, part), value in zip(parts, table.key.unpack(raw), strict=True)
    }


def show_key_bytes(table: Table[Any], raw: bytes) -> str:
    """Return a key whose checksum fails, in hexadecimal digits; where it may hold a secret, only the first of them."""
    is_secret = any(part.is_secret for part in table.key.parts.values())
    return abbreviated(raw) if is_secret else raw.hex()


def read_key(table: Table[Any], texts: Sequence[str]) -> bytes:
    """Return the packed beginning of the keys whose first parts are these texts, each as `show_key` shows it. Raises
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
    """Return the first bytes of a key, from hexadecimal digits, or from the text itself where the whole key is a text.
    Raises `ValueError`.
    """
    if all(part.layout == TEXT_LAYOUT for part in table.key.parts.values()):
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ValueError(
            f"{text!r}: the keys of {table.name} are not text, so name bytes in hexadecimal digits"
        ) from error


ROWS_A_READ = 100
MAX_CORRUPT = 10_000
"""Rows in a row that fail their check, before it is said that the table cannot be read."""
MAX_NAMED_LATER_MS = 120_000
"""A webhook event about a request is made at once, or when the minute of refusals has ended; twice as long is searched.
"""


class Row(NamedTuple):
    """A row as it was found, corrupt ones included."""

    table: Table[Any]
    key: bytes
    value: Any
    """`None` where it cannot be read."""
    problem: str | None = None
    """Why it cannot be read."""
    raw: bytes = b""
    """The value as it is stored."""


def rows(store: ReadOnlyStore, table: Table[Any], stem: bytes = b"", start: bytes | None = None) -> Iterator[Row]:
    """Yield rows whose packed key begins with `stem`, in their order; with `start`, from that packed key on.

    A row that fails its check is given wherever it is met, its key being no more to be believed than its value.
    Raises `CorruptionError` where the table cannot be read.
    """
    following = stem if start is None else start
    while following is not None:
        found, following = _some(store, table, stem, following)
        yield from found


def _some(store: ReadOnlyStore, table: Table[Any], stem: bytes, start: bytes) -> tuple[list[Row], bytes | None]:
    """Read about `ROWS_A_READ` rows; return them and where to go on, which is after a sound row; `None` at the end."""
    found: list[Row] = []
    try:
        with store.read() as snapshot:
            for key, raw in snapshot.unchecked(table, start):
                row = _row(table, key, raw)
                if row.problem is None and not key.startswith(stem):
                    return found, None
                found.append(row)
                if row.problem is None and key >= start and len(found) >= ROWS_A_READ:
                    return found, key + b"\0"
                if len(found) >= MAX_CORRUPT:
                    raise CorruptionError(
                        f"{table.name} has no sound row for long after {show_key_bytes(table, start)}"
                    )
    except EngineError as error:
        raise CorruptionError(f"{table.name} cannot be read: {error}") from error
    return found, None


def _row(table: Table[Any], key: bytes, raw: bytes) -> Row:
    try:
        body = table.verify_checksum(key, raw)
    except CorruptionError:
        return Row(table, key, None, "fails its check")
    try:
        return Row(table, key, table.value.decode(body), raw=body)
    except CorruptionError as error:
        return Row(table, key, None, str(error))


def find_rows(store: ReadOnlyStore, table: Table[Any], *key: Any) -> Iterator[Row]:
    """Yield the row under this key, with its `problem` if it is corrupt; nothing if there is none."""
    packed = table.key.pack(*key)
    yield from (row for row in rows(store, table, packed) if row.key == packed)


def find_organization(store: ReadOnlyStore, text: str) -> int | None:
    """Return the number of an organization, given its id or that number as text; `None` if there is none. Raises
    `CorruptionError` if the row of the id cannot be read.
    """
    if text.isascii() and text.isdecimal() and len(text) <= len(str(2**32)):
        number = int(text)
        return number if number < 2**32 and any(find_rows(store, ORGANIZATIONS, number)) else None
    for row in find_rows(store, ORGANIZATION_IDS, text) if 0 < len(text.encode()) <= MAX_KEY_BYTES else ():
        if row.problem is not None:
            raise CorruptionError(f"the row of {text} in {row.table.name} {row.problem}; name it by its number")
        return row.value
    return None


def organization_name(store: ReadOnlyStore, number: int) -> str:
    """Return ` (NAME)` of an organization, to stand behind its number; empty where its row cannot be read."""
    return next((f" ({row.value.name})" for row in find_rows(store, ORGANIZATIONS, number) if row.value), "")


_NAMING_REQUESTS = frozenset({"request_id", "body"})
_NAMING_EVENTS = frozenset({"event_id"})
"""Fields of records that name a request, and a webhook event about one."""


def of_request(store: ReadOnlyStore, request_id: UUID) -> list[Row]:
    """Return the stored rows that name a request or a webhook event about it, in their keys or records, in order of
    time. Corrupt rows that were met follow: they may be of this request.
    """
    found: list[Row] = []
    for organization in rows(store, ORGANIZATIONS):
        if organization.problem is not None:
            found.append(organization)
        number = int.from_bytes(organization.key[:4])
        named = list(_naming(store, number, request_id.bytes, _NAMING_REQUESTS))
        events = {row.key[-16:] for row in named if list(row.table.key.parts) == ["organization", "event_id"]}
        for event_id in events:
            named += _naming(store, number, event_id, _NAMING_EVENTS)
        found += {(row.table.name, row.key): row for row in named}.values()
    return sorted(found, key=lambda row: (_at_ms(row), "request_id" not in row.table.key.parts))  # first the event


def _naming(store: ReadOnlyStore, number: int, raw_id: bytes, fields: frozenset[str]) -> Iterator[Row]:
    """Yield rows of the organization with this id in one of these fields, or as the second or third part of the key.
    Indexes are left out, since they hold nothing.
    """
    for table in installed().tables:
        if not table.by_organization or (isinstance(table.value, Opaque) and table.value.holds == "nothing"):
            continue
        parts = list(table.key.parts.values())
        place = parts.index(UUID_V7) if UUID_V7 in parts else 0
        if place == 1:
            yield from under(store, table, number, raw_id)
        if place == 2 and parts[1].layout in ("B", "H", "I"):
            for lead in _leads(store, table, number):
                yield from under(store, table, number, lead, raw_id)
        named = fields.intersection(table.value.fields) if isinstance(table.value, Record) else ()
        if named:
            yield from _with_id(store, table, number, raw_id, in_order=place == 1, soon=place == 1 and "body" in named)


def _with_id(
    store: ReadOnlyStore, table: Table[Any], number: int, raw_id: bytes, *, in_order: bool, soon: bool
) -> Iterator[Row]:
    """Yield rows with the id in their bytes. With `in_order`, rows older than the id are skipped; with `soon`, also
    those made more than `MAX_NAMED_LATER_MS` after it.
    """
    at_ms, text = made_at_ms(raw_id), str(UUID(bytes=raw_id)).encode()
    start = table.key.prefix(number, first_id(at_ms)) if in_order else None
    for row in rows(store, table, table.key.prefix(number), start):
        if soon and row.problem is None and made_at_ms(row.key[-16:]) > at_ms + MAX_NAMED_LATER_MS:
            return
        if row.problem is not None or raw_id in row.raw or text in row.raw:
            yield row


def _leads(store: ReadOnlyStore, table: Table[Any], number: int) -> Iterator[int]:
    """Yield the values of the key's second part, with one look-up each."""
    lead = 0
    while (first := next(_from(store, table, number, lead), None)) is not None:
        lead = table.key.unpack(first.key)[1]
        yield lead
        lead += 1


def _from(store: ReadOnlyStore, table: Table[Any], number: int, first: int) -> Iterator[Row]:
    """Yield sound rows of the organization whose second key part is `first` or more."""
    found = rows(store, table, table.key.prefix(number), table.key.prefix(number, first))
    return (row for row in found if row.problem is None)


def _at_ms(row: Row) -> float:
    """Return when a row was created; infinity, which sorts last, where it does not say so."""
    fields: dict[str, Any] = msgspec.structs.asdict(row.value) if isinstance(row.value, msgspec.Struct) else {}
    times = [at for name, at in fields.items() if name.endswith("at_ms") and isinstance(at, int)]
    parts = list(row.table.key.parts.values())
    if not times and row.problem is None and UUID_V7 in parts:
        return made_at_ms(row.table.key.unpack(row.key)[parts.index(UUID_V7)])
    return min(times, default=inf)


def under(store: ReadOnlyStore, table: Table[Any], *lead: Any) -> Iterator[Row]:
    """Yield the rows whose keys begin with these parts, with their `problem` where they are corrupt."""
    stem = table.key.prefix(*lead)
    yield from (row for row in rows(store, table, stem) if row.key.startswith(stem))
