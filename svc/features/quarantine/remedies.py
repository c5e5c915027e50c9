"""What can be done about rows that cannot be read (decisions 17.5): which command names which rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from svc.identify.tables.events import (
    DEFERRED_REPORTS,
    DOCUMENTS,
    EVENT_SEGMENTS,
    EVENT_TAIL,
    EVENTS,
    HOURS,
    LATE_EVENTS,
)
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot

QUARANTINED = (EVENTS, DOCUMENTS, DEFERRED_REPORTS)
"""Of which `svc store quarantine` takes rows out."""
REBUILT = (EVENT_TAIL, EVENT_SEGMENTS, LATE_EVENTS, HOURS)
"""Which `svc store rebuild-indexes` makes again of the events."""


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
