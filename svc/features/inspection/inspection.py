"""Looking into a store: rows as they lie there, corrupt ones among them, and what belongs to one request or visitor.

Rows are read some at a time, each time in a state of its own, and none is held while somebody reads what was printed:
so a pager that is left open does not make the file of a running service grow. What is committed meanwhile may show in
one row and not in another. Keys are shown in parts, and read as people write them; what would let somebody in is never
shown whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from svc.features.erasure import policies
from svc.features.erasure.visitors import events_of
from svc.features.reviews.queries import subject_stem
from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.records import DELIVERY_KINDS
from svc.features.webhooks.tables import ATTEMPTS, DELIVERIES, DUE, ENDPOINT_COUNTS, REFUSALS, WEBHOOK_EVENTS
from svc.identify.tables.attestation import ATTESTED_KEYS, VISITOR_KEYS
from svc.identify.tables.events import DEFERRED_REPORTS, DOCUMENTS, EVENTS, IDEMPOTENCY
from svc.identify.tables.visitors import DELETED_VISITORS, ERASURES, VISITOR_IDS
from svc.kernel.access.tables import AUDIT
from svc.kernel.store.engine import EngineError
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.codec import MAX_KEY_BYTES, TEXT_LAYOUT, CorruptionError
from svc.kernel.store.schema.key_parts import abbreviated
from svc.kernel.store.schema.table import Table
from svc.kernel.tenants.tables import LEDGER, ORGANIZATION_IDS, ORGANIZATIONS
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
REFUSAL_NOTIFIED_MS = 120_000
"""The event about refusals is made at once or when the minute has ended; twice as long is searched."""


class Row(NamedTuple):
    """A row as it was found, corrupt ones included."""

    table: Table[Any]
    key: bytes
    value: Any
    """`None` where it cannot be read."""
    problem: str | None = None
    """Why it cannot be read."""


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
    """About `ROWS_A_READ` rows and where to go on, which is after a sound one; `None` = at the end."""
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
        return Row(table, key, table.value.decode(body))
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


def of_request(store: ReadOnlyStore, request_id: UUID) -> list[Row]:
    """Return the stored rows of a request, in order of time: its event, report, charge, idempotency key, webhook events
    with their deliveries and attempts, and audit record; for a refused request, the count of refusals and the event
    about them. Corrupt rows that were met follow: they may be of this request.
    """
    found: list[Row] = []
    for organization in rows(store, ORGANIZATIONS):
        if organization.problem is not None:
            found.append(organization)
        found += _of_request(store, int.from_bytes(organization.key[:4]), request_id)
    return sorted(found, key=_at_ms)


def _of_request(store: ReadOnlyStore, number: int, request_id: UUID) -> Iterator[Row]:
    identified = False
    for table in (EVENTS, DOCUMENTS, LEDGER, DEFERRED_REPORTS, AUDIT):
        for row in find_rows(store, table, number, request_id.bytes):
            identified |= table is EVENTS
            yield row
    for table in (IDEMPOTENCY, REFUSALS):
        for row in rows(store, table, table.key.prefix(number)):
            if row.problem is not None or row.value.request_id == request_id.bytes:
                yield row
    for row in _webhook_events(store, number, request_id, identified=identified):
        yield row
        yield from _deliveries(store, number, row.key[-16:])


def _webhook_events(store: ReadOnlyStore, number: int, request_id: UUID, *, identified: bool) -> Iterator[Row]:
    """Those of an identification have ids that follow from its own; a refusal's name it in what they say."""
    if identified:
        for event_type in OF_IDENTIFICATION:
            event_id = identification_event_id(event_type, request_id)
            yield from find_rows(store, WEBHOOK_EVENTS, number, event_id.bytes)
        return
    at_ms = made_at_ms(request_id.bytes)
    name = str(request_id).encode()
    for row in _from(store, WEBHOOK_EVENTS, number, first_id(at_ms)):
        if row.problem is None and made_at_ms(row.key[-16:]) > at_ms + REFUSAL_NOTIFIED_MS:
            return
        if row.problem is not None or name in row.value.body:
            yield row


def _deliveries(store: ReadOnlyStore, number: int, event_id: bytes) -> Iterator[Row]:
    """To every endpoint that the organization has had, and each attempt; ids of attempts are later than the event's."""
    counts = list(find_rows(store, ENDPOINT_COUNTS, number))
    yield from (row for row in counts if row.problem is not None)
    given = max((row.value or 0 for row in counts), default=0)
    any_delivery = False
    for endpoint in range(1, given + 1):
        for kind in range(len(DELIVERY_KINDS)):
            for row in find_rows(store, DELIVERIES, number, endpoint, event_id, kind):
                any_delivery = True
                yield row
                if row.problem is None and row.value.is_open:
                    yield from find_rows(store, DUE, number, endpoint, row.value.due_ms, event_id, kind)
    if any_delivery:
        for row in _from(store, ATTEMPTS, number, first_id(made_at_ms(event_id))):
            if row.problem is not None or row.value.event_id == event_id:
                yield row


def _from(store: ReadOnlyStore, table: Table[Any], number: int, first: bytes | int) -> Iterator[Row]:
    """Rows of the organization whose keys have this, or something larger, behind it."""
    return rows(store, table, table.key.prefix(number), table.key.prefix(number, first))


def _at_ms(row: Row) -> float:
    """When it was created; what cannot be read comes last."""
    for name in ("occurred_at_ms", "at_ms", "received_at_ms", "created_at_ms", "queued_at_ms"):
        at_ms = getattr(row.value, name, None)
        if at_ms is not None:
            return at_ms
    if row.problem is not None:
        return float("inf")
    named: dict[str, Callable[[], int]] = {
        DOCUMENTS.name: lambda: made_at_ms(DOCUMENTS.key.unpack(row.key).request_id),
        DUE.name: lambda: DUE.key.unpack(row.key).due,
    }
    return named[row.table.name]()


def of_visitor(store: ReadOnlyStore, number: int, visitor_id: str) -> Iterator[Row]:
    """Yield a visitor's number and erasure, the rows that its number and id lead to by the declarations of the tables,
    its attested keys, and its events. Nothing if there is no such visitor; corrupt rows have a `problem`.
    """
    raw_id = visitor_id.encode()
    for row in (*find_rows(store, VISITOR_IDS, number, raw_id), *find_rows(store, ERASURES, number, raw_id)):
        yield row
        if row.value:
            yield from find_rows(store, DELETED_VISITORS, number, row.value)
            for table in policies.ERASED_BY_KEY["visitor"]:
                yield from _of_number(store, table, number, row.value)
    yield from _of_id(store, number, visitor_id)
    for row in find_rows(store, VISITOR_KEYS, number, raw_id):
        yield row
        for key_id in () if row.problem is not None else row.value.key_ids:
            yield from find_rows(store, ATTESTED_KEYS, number, key_id)
    try:
        with store.read() as snapshot:
            request_ids = sorted(events_of(snapshot, number, raw_id))
    except CorruptionError:  # of the index: then all events are looked through
        for row in rows(store, EVENTS, EVENTS.key.prefix(number)):
            if row.problem is not None or row.value.verdict.visitor_id == visitor_id:
                yield row
        return
    for request_id in request_ids:
        yield from find_rows(store, EVENTS, number, request_id)


def _of_number(store: ReadOnlyStore, table: Table[Any], number: int, visitor: int) -> Iterator[Row]:
    """Where a period comes before the visitor, by a look-up for each period that has any row."""
    _, second, *_ = table.key.parts.values()
    if not second.period_ms:
        yield from _under(store, table, number, visitor)
        return
    period = 0
    while True:
        first = next((row for row in _from(store, table, number, period) if row.problem is None), None)
        if first is None:
            return
        _, period, *_ = table.key.unpack(first.key)
        yield from _under(store, table, number, period, visitor)
        period += 1


def _of_id(store: ReadOnlyStore, number: int, visitor_id: str) -> Iterator[Row]:
    """But for the number that the id leads to."""
    for table in policies.ERASED_BY_KEY["visitor_id"]:
        if table is not VISITOR_IDS:
            yield from _under(store, table, number, visitor_id.encode())
    for table in policies.ERASED_BY_KEY["subject"]:
        yield from _under(store, table, number, *subject_stem(number, "visitor", visitor_id))


def _under(store: ReadOnlyStore, table: Table[Any], *lead: Any) -> Iterator[Row]:
    """The rows whose keys begin with these parts, with their `problem` where they are corrupt."""
    stem = table.key.prefix(*lead)
    yield from (row for row in rows(store, table, stem) if row.key.startswith(stem))
