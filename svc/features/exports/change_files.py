"""Files of changes: each as a line of JSON, or as the columns of its event behind those of the change."""

from __future__ import annotations

from typing import Any

import msgspec

from svc.features.changes.bodies import change_body
from svc.features.changes.jobs import Change
from svc.features.exports.event_files import EventFile, Form, Write, lines, parquet
from svc.features.exports.lines import (
    FILE_COLUMNS,
    FILE_KINDS,
    Kind,
    csv_line,
    csv_row,
    plain_row,
    unreadable_csv_row,
    unreadable_row,
)
from svc.identify.queries.events import EventMatch, UnreadableEvent
from svc.kernel.values.timestamps import timestamp

COLUMNS = ("type", "at", *FILE_COLUMNS)
"""Of CSV, in this order. What has no event has its id, and its label where that alone is kept."""
KINDS: dict[str, Kind] = {"type": "text", "at": "time", **FILE_KINDS}

_encoder = msgspec.json.Encoder()


def change_file(form: Form, write: Write) -> EventFile[Change]:
    """Return a file of that form, whose bytes go to `write`. Raises `CommandError` if Parquet is not installed."""
    match form:
        case "jsonl":
            return lines(write, _json_line)
        case "csv":
            write(csv_line(COLUMNS))
            return lines(write, _csv_line)
        case "parquet":
            return parquet(write, KINDS, _plain_row)


def _json_line(change: Change) -> bytes:
    return _encoder.encode(change_body(change)) + b"\n"


def _csv_line(change: Change) -> bytes:
    match change.event:
        case EventMatch(request_id, event):
            row = csv_row(event, request_id)
        case UnreadableEvent(request_id):
            row = unreadable_csv_row(request_id)
        case None:
            row = csv_line(tuple(_alone(change).get(name) or "" for name in FILE_COLUMNS))
    return csv_line((change.type, timestamp(change.at_ms))).rstrip(b"\n") + b"," + row


def _plain_row(change: Change) -> dict[str, Any]:
    match change.event:
        case EventMatch(request_id, event):
            row = plain_row(event, request_id)
        case UnreadableEvent(request_id):
            row = unreadable_row(request_id)
        case None:
            row: dict[str, Any] = _alone(change)
    return {**row, "type": change.type, "at": change.at_ms}


def _alone(change: Change) -> dict[str, str | None]:
    """Return what is known of an event that is not there."""
    label, reason = change.labeled or (None, None)
    return {"request_id": str(change.request_id), "label": label, "label_reason": reason}
