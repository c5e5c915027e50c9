"""Rows of an event that cannot be read: the commands for them, and their removal from the store into a file
(decisions 17.5, docs/adr/0186).

What may live here: what is corrupt of an event, its record, and the transaction that removes it. An event whose own row
is corrupt goes with all its rows; of a readable event, its corrupt archive or deferred report goes alone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec

from svc.features.erasure.policies import purge
from svc.features.erasure.tables import ERASED_EVENTS
from svc.features.labels.invariants import expected_label_rows
from svc.identify.events.hour_counts import NOTHING, HourCounts
from svc.identify.events.listing import Position
from svc.identify.index.digests import digest_of
from svc.identify.index.queries import Scope, Search, is_indexed, remove, values_at
from svc.identify.model import LABELS
from svc.identify.queries.events import event_if_readable
from svc.identify.recording.visitors import report_bytes
from svc.identify.tables import DEFERRED_REPORTS, DOCUMENTS, EVENT_SEGMENTS, EVENT_TAIL, EVENTS, HOURS, LATE_EVENTS
from svc.kernel.store.files import durable_files
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.jobs import release
from svc.kernel.tenants.queries import organizations
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.ids import HOUR_MS, made_at_ms
from svc.kernel.values.timestamps import timestamp

QUARANTINED = (EVENTS, DOCUMENTS, DEFERRED_REPORTS)
"""Tables out of which `svc store quarantine` takes rows."""
REBUILT = (EVENT_TAIL, EVENT_SEGMENTS, LATE_EVENTS, HOURS)
"""Tables that `svc store rebuild-indexes` makes again from the events."""


def corrupt_rows(snapshot: Snapshot, table: Table[Any], row: int, error: CorruptionError) -> Iterator[str]:
    """Yield a sentence for each corrupt row of a table whose `row`, counted from 1, is the first of them; of a table
    for which there is no command, one for the first.
    """
    found = corrupt_events(snapshot, table) if table in QUARANTINED else iter(())
    for number, request_id, fault in found:
        row = 0
        yield (
            f"{table.name}: request {request_id} of organization {number} cannot be read: {fault}; "
            f"`svc store quarantine {request_id}` takes it out"
        )
    if not row:
        return
    remedy = "; `svc store rebuild-indexes` makes it again" if table in REBUILT else ""
    yield f"{table.name}, row {row}: {error}{remedy}"


def corrupt_events(snapshot: Snapshot, table: Table[Any]) -> Iterator[tuple[int, UUID, CorruptionError]]:
    """Yield (organization number, request id, what is wrong) of each corrupt row of a table of `QUARANTINED`."""
    for key, raw in snapshot.unchecked(table, b""):
        try:
            table.decode(key, raw)
        except CorruptionError as error:
            number, request_id = table.key.unpack(key)
            yield number, UUID(bytes=request_id), error


FOLDER = "quarantine"
"""In the data directory; one file for each event."""
_CLOCK_MS = 25 * HOUR_MS
"""Further than that no arrival is from the time in its request id."""


class TakenRow(NamedTuple):
    """A row that leads to an event, or is of it."""

    table: str
    key: bytes
    raw: bytes
    """As it is stored, checksum included."""
    because: str
    """Why it cannot be read; empty for a sound row that goes along."""


class CorruptEvent(NamedTuple):
    """An event of which a row cannot be read."""

    organization: int
    request_id: bytes
    scope: Scope | None
    """Where the index has it; `None` = nowhere."""
    position: Position | None
    rows: tuple[TakenRow, ...]
    is_whole: bool
    """Whether the event itself is corrupt, and goes."""
    excess: tuple[Excess, ...]


class Excess(NamedTuple):
    """By how much a counter is above what the readable events add up to."""

    table: Table[Any]
    key: tuple[Any, ...]
    counts: Any


def find(snapshot: Snapshot, request_id: UUID) -> CorruptEvent | bool:
    """Return what is corrupt of an event of any organization; `True` if all of it can be read, `False` if there is no
    such event. Counts what the hour, and the labels if it has one, add up to without it.
    """
    is_known = False
    for number in organizations(snapshot):
        raw_id = request_id.bytes
        found = tuple(_rows(snapshot, number, raw_id))
        scope, position = _place(snapshot, number, raw_id)
        if not found and scope is None:
            continue
        is_known = True
        is_whole = event_if_readable(snapshot, number, raw_id) is None
        if is_whole or any(row.because for row in found):
            rows = found if is_whole else tuple(row for row in found if row.because)
            excess = tuple(_excess(snapshot, number, scope, position)) if is_whole else ()
            if scope is not None and position is not None and is_whole:
                rows += tuple(_taken(snapshot, EVENT_TAIL, EVENT_TAIL.key.pack(*scope, *position)))
            return CorruptEvent(number, raw_id, scope, position, rows, is_whole, excess)
    return is_known


def _rows(snapshot: Snapshot, number: int, request_id: bytes) -> Iterator[TakenRow]:
    for table in QUARANTINED:
        yield from _taken(snapshot, table, table.key.pack(number, request_id))


def _taken(snapshot: Snapshot, table: Table[Any], key: bytes) -> Iterator[TakenRow]:
    raw = snapshot.reader.get(table.name, key)
    if raw is not None:
        yield TakenRow(table.name, key, raw, _fault(table, key, raw))


def _fault(table: Table[Any], key: bytes, raw: bytes) -> str:
    try:
        table.decode(key, raw)
    except CorruptionError as error:
        return str(error)
    return ""


def _place(snapshot: Snapshot, number: int, request_id: bytes) -> tuple[Scope, Position] | tuple[None, None]:
    """Return where the index has an event whose row is unreadable. Most arrive at the time in their id."""
    made_ms = made_at_ms(request_id)
    scopes = [Scope(number, environment) for environment in range(len(ENVIRONMENTS))]
    expected = Position(made_ms, request_id)
    for scope in scopes:
        if is_indexed(snapshot, scope, expected):
            return scope, expected
    for scope in scopes:
        oldest, beyond = (max(made_ms - _CLOCK_MS, 0), bytes(16)), (made_ms + _CLOCK_MS, bytes(16))
        for position in Search(snapshot, scope, (), oldest, beyond):
            if position.request_id == request_id:
                return scope, position
    return None, None


def _excess(snapshot: Snapshot, number: int, scope: Scope | None, position: Position | None) -> Iterator[Excess]:
    """Yield what counters have of unreadable events: of the event's hour, and of all labels if it may have one."""
    if scope is None or position is None:
        return
    hour = position.arrival_ms // HOUR_MS
    kept = snapshot.get(HOURS, *scope, hour)
    if kept is not None:
        yield Excess(HOURS, (*scope, hour), less(kept, _hour(snapshot, scope, hour)))
    values = values_at(snapshot, scope, position)
    if values is None or any(digest_of("label", label) in values for label in LABELS):
        for table, expected in expected_label_rows(snapshot, number).items():
            for key, counts in snapshot.scan(table, number):
                excess = less(counts, expected.get(key[1:], type(counts)()))
                if excess != type(counts)():
                    yield Excess(table, key, excess)


def _hour(snapshot: Snapshot, scope: Scope, hour: int) -> HourCounts:
    """Return the sum of the readable events of an hour."""
    found = NOTHING
    bounds = (hour * HOUR_MS, bytes(16)), ((hour + 1) * HOUR_MS, bytes(16))
    for position in Search(snapshot, scope, (), *bounds):
        event = event_if_readable(snapshot, scope.number, position.request_id)
        found = found if event is None else found.plus(event)
    return found


def less(counts: Any, excess: Any) -> Any:
    """Return counts, which are numbers, dictionaries of numbers, or structs of both, less others of the same shape;
    entries that become zero are left out.
    """
    if isinstance(counts, int):
        return counts - excess
    if isinstance(counts, dict):
        one, other = cast("dict[Any, int]", counts), cast("dict[Any, int]", excess)
        left = {name: one.get(name, 0) - other.get(name, 0) for name in {*one, *other}}
        return {name: count for name, count in left.items() if count}
    fields = {name: less(getattr(counts, name), getattr(excess, name)) for name in counts.__struct_fields__}
    return msgspec.structs.replace(counts, **fields)


def record(corrupt: CorruptEvent, organization_id: str, now_ms: int) -> bytes:
    """Return the record of rows that are taken out, as JSON: what they were, when and why."""
    scope, position = corrupt.scope, corrupt.position
    content = {
        "request_id": str(UUID(bytes=corrupt.request_id)),
        "organization_id": organization_id,
        "organization_number": corrupt.organization,
        "environment": None if scope is None else ENVIRONMENTS[scope.environment],
        "arrived_at": None if position is None else timestamp(position.arrival_ms),
        "quarantined_at": timestamp(now_ms),
        "event_removed": corrupt.is_whole,
        "rows": [
            {
                "table": row.table,
                "key": row.key.hex(),
                "stored_bytes": b64encode(row.raw).decode(),
                "because": row.because or None,
            }
            for row in corrupt.rows
        ],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def write(directory: Path, corrupt: CorruptEvent, content: bytes) -> Path:
    """Write the record into the data directory, durable under its name, and return its path. One that an interrupted
    run has left is replaced. Raises `OSError`.
    """
    folder = directory / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{UUID(bytes=corrupt.request_id)}.json"
    durable_files.replace(path, content)
    durable_files.sync(directory)
    return path


class ChangedError(Exception):
    """A row is not what it was when it was found to be corrupt."""


def take_out(transaction: Transaction, corrupt: CorruptEvent) -> None:
    """Remove the rows, and what counters have of the event; `record` has them. Raises `ChangedError`."""
    number, request_id = corrupt.organization, corrupt.request_id
    for row in corrupt.rows:
        if transaction.reader.get(row.table, row.key) != row.raw:
            raise ChangedError
    archived = report_bytes(transaction, number, request_id)
    if not corrupt.is_whole:
        _take_reports(transaction, corrupt)
        release(transaction, number, report_bytes=archived - report_bytes(transaction, number, request_id))
        return
    if corrupt.scope is not None and corrupt.position is not None:
        _unindex(transaction, corrupt.scope, corrupt.position)
    purge(transaction, number, "request_id", request_id)
    # An event under a key with another bit is found twice: by the index without a row, and as a row without an index.
    release(transaction, number, events=int(corrupt.scope is not None), report_bytes=archived)
    transaction.put(ERASED_EVENTS, (number,), (transaction.get(ERASED_EVENTS, number) or 0) + 1)
    for table, key, excess in corrupt.excess:
        kept = transaction.get(table, *key)
        left = None if kept is None else less(kept, excess)
        if left is None or left == type(left)():
            transaction.delete(table, *key)
        else:
            transaction.put(table, key, left)


def _unindex(transaction: Transaction, scope: Scope, position: Position) -> None:
    """Remove the event from the index like `unindex`, by the index's own values. Late events are few."""
    keys = transaction.scan_keys(LATE_EVENTS, (*scope, position.arrival_ms), (scope.number, scope.environment + 1))
    for key in [key for key in keys if key[-1] == position.request_id]:
        transaction.delete(LATE_EVENTS, *key)
    remove(transaction, scope, {position: values_at(transaction, scope, position) or ()})


def _take_reports(transaction: Transaction, corrupt: CorruptEvent) -> None:
    number, request_id = corrupt.organization, corrupt.request_id
    for row in corrupt.rows:
        (table,) = (each for each in (DOCUMENTS, DEFERRED_REPORTS) if each.name == row.table)
        transaction.delete(table, number, request_id)
        event = transaction.get(EVENTS, number, request_id)
        if table is DOCUMENTS and event is not None:
            transaction.put(EVENTS, (number, request_id), msgspec.structs.replace(event, has_document=False))
