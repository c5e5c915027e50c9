"""Everything that is kept of one visitor as one JSON document, written piece by piece."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from svc.cli.output import CommandError
from svc.domain.ids import is_visitor_id, made_at_ms
from svc.domain.timestamps import timestamp
from svc.store.schema.key_parts import show_uuid
from svc.store.views.inspection import Row
from svc.store.views.reading import ReadOnlyStore
from svc.store.views.showing import shown
from svc.store.views.visitor_rows import VisitorRows
from svc.world import World

_encoder = msgspec.json.Encoder()


def visitor_export(store: ReadOnlyStore, organization_id: str, number: int, visitor_id: str) -> Iterator[bytes]:
    """The document in pieces: `{organization_id, visitor_id, exported_at, event_count, visitor: {table: [row]},
    events: [{request_id, rows: {table: [row]}}]}`, events by their ids, oldest first; a row has `key` and `value` as
    `svc inspect` shows them. Raises `CommandError` where nothing is kept of such a visitor.
    """
    found = VisitorRows(store, number, visitor_id) if is_visitor_id(visitor_id) else None
    if found is None or not found.exists:
        raise CommandError(f"{organization_id} has no visitor {visitor_id!r}; `svc visitor list` shows them")
    head = {
        "organization_id": organization_id,
        "visitor_id": visitor_id,
        "exported_at": timestamp(World.real().now_ms()),
        "event_count": len(found.request_ids),
        "visitor": _by_table(found.of_visitor()),
    }
    return _pieces(head, found)


def _pieces(head: dict[str, Any], found: VisitorRows) -> Iterator[bytes]:
    yield _encoder.encode(head)[:-1] + b',"events":['
    comma = b"\n"
    for request_id in sorted(found.request_ids, key=made_at_ms):
        rows = found.of_event(request_id)
        if rows:
            yield comma + _encoder.encode({"request_id": show_uuid(request_id), "rows": _by_table(rows)})
            comma = b",\n"
    yield b"\n]}\n"


def _by_table(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        described = shown(row, payload=True)
        tables[described.pop("table")].append(described)
    return tables
