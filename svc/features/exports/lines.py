"""Events as lines of JSON or of CSV that no spreadsheet evaluates, and as typed columns for SQL and Parquet.

What may live here: one event in, one line or row out. `svc export` and the console write files of them.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Any, Literal, cast, get_args
from uuid import UUID

import msgspec

from svc.identify.events.event_row import (
    DecisionBody,
    EventBody,
    EventTriggerBody,
    TriggerBody,
    event_row,
    unreadable_event_row,
)
from svc.identify.model import Verdict
from svc.identify.records import EVENT_FIELDS, Event
from svc.kernel.values.text_files import FORMULA, csv_line

_FIRST = (
    "request_id", "occurred_at", "environment", "visitor_id", "visitor_is_new", "visitor_confidence", "identifiable",
    "state", "reason", "suspect_score", "suspect_level", "signals", "triggers", "platform", "sdk_platform",
    "sdk_version", "origin", "tag", "ip_address", "country_code", "country_name", "asn", "asn_name",
    "anonymity_network", "agent", "agent_version", "os", "device_kind", "visitor_kind", "has_document",
    "proven", "account_id", "account_verified", "action", "decision", "rule", "label", "label_reason",
)  # fmt: skip
COLUMNS = _FIRST + tuple(
    name for name in EVENT_FIELDS if name in EventBody.__struct_fields__ and name not in (*_FIRST, "velocity")
)
"""Of an event as cells, in this order: later fields follow as they are appended to it. Velocity alone is not a cell."""
ERROR = "error"
"""The last column of a file: `unreadable` for an event that is corrupt in the store (decisions 17.5)."""
FILE_COLUMNS = (*COLUMNS, ERROR)
"""Of CSV, in this order."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What some readers of CSV take for the end of a row or of a cell."""
_FORMULA = re.compile(f"(^|;)(?={FORMULA})")
"""Where a cell begins that a spreadsheet would evaluate. Some spreadsheets separate cells by semicolons."""

_encoder = msgspec.json.Encoder()


def json_row(event: Event, request_id: UUID) -> bytes:
    """Return a row of `GET /events`, and a line break."""
    return _encoder.encode(event_row(event, request_id)) + b"\n"


def csv_row(event: Event, request_id: UUID) -> bytes:
    """Return an event as a row with the cells of `FILE_COLUMNS`."""
    row = event_row(event, request_id)
    return csv_line((*(_cell(row, name) for name in COLUMNS), ""))


def unreadable_json_row(request_id: UUID) -> bytes:
    """Return the line of an event that cannot be read."""
    return _encoder.encode(unreadable_event_row(request_id)) + b"\n"


def unreadable_csv_row(request_id: UUID) -> bytes:
    """Return the row of an event that cannot be read: its id, and the error."""
    row = unreadable_event_row(request_id)
    return csv_line((row.request_id, *[""] * (len(COLUMNS) - 1), row.error))


def _cell(row: EventBody, name: str) -> str:
    value = _rule(row) if name == "rule" else getattr(row, name)
    match value:
        case msgspec.UNSET | None:
            return ""
        case bool():
            return "true" if value else "false"
        case DecisionBody(action=action):
            return csv_cell(action)
        case tuple():
            return " ".join(each.signal for each in cast("tuple[TriggerBody | EventTriggerBody, ...]", value))
        case _:
            return csv_cell(str(value))


def _rule(row: EventBody) -> str | None:
    return row.decision.rule if isinstance(row.decision, DecisionBody) else None


def csv_cell(text: str) -> str:
    """Return a text on one line in every program, and with an apostrophe wherever a spreadsheet would begin a formula.
    Control characters become escape sequences; backslashes of the text itself stay as they are.
    """
    return _FORMULA.sub(r"\1'", _CONTROL.sub(_escape_sequence, text))


def _escape_sequence(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


Kind = Literal["id", "time", "text", "texts", "integer", "boolean"]

_SHAPED: dict[str, Kind] = {
    "request_id": "id",
    "occurred_at": "time",
    "signals": "texts",
    "triggers": "texts",
    "account_verified": "boolean",
    "decision": "text",
    "rule": "text",
}
"""Columns whose value is not a field of the event, or of its verdict, as it is."""
_TYPES = {field.name: field.type for record in (Verdict, Event) for field in msgspec.structs.fields(record)}


def _kind(name: str) -> Kind:
    """Return the kind of a column. Raises `TypeError` for a field that `plain_row` would have to shape."""
    of_field = _TYPES[name]
    types = {type(part) if isinstance(part, str) else part for part in _parts(of_field)} - {type(None)}
    for found, kind in _KINDS:
        if types == {found}:
            return kind
    raise TypeError(f"{name} is not a plain column: say in `_SHAPED` and `plain_row` what it holds")


def _parts(of_field: Any) -> list[Any]:
    """Return the members of a union and the texts of a literal, or the type itself."""
    inner = get_args(of_field)
    return [part for one in inner for part in _parts(one)] if inner else [of_field]


_KINDS: tuple[tuple[type, Kind], ...] = ((bool, "boolean"), (int, "integer"), (str, "text"))
KINDS: dict[str, Kind] = {name: _SHAPED.get(name) or _kind(name) for name in COLUMNS}
"""Name -> what it holds, in their order. Later versions append."""
FILE_KINDS: dict[str, Kind] = {**KINDS, ERROR: "text"}
"""The same of a file, whose last column says why an event has no other values (decisions 17.5)."""
_FIELDS = tuple(name for name in COLUMNS if name not in _SHAPED)
_fields = attrgetter(*(name if name in Event.__struct_fields__ else f"verdict.{name}" for name in _FIELDS))


def plain_row(event: Event, request_id: UUID) -> dict[str, Any]:
    """Return the value of each column by its name, in no order: an id and a text as `str`, a time in Unix milliseconds,
    several texts as a list. `None` for what does not apply, or was not stored yet.

    `signals` and `triggers` are names, heaviest first; `decision` and `rule` the action and the name of the rule that
    decided.
    """
    verdict = event.verdict
    row = dict(zip(_FIELDS, _fields(event), strict=True))
    row["request_id"] = str(request_id)
    row["occurred_at"] = event.occurred_at_ms
    row["signals"] = None if verdict.signals is None else [fired.signal for fired in verdict.signals]
    row["triggers"] = [group.signal for group in verdict.triggers]
    row["account_verified"] = None if event.account_id is None else event.account_verified
    decision = verdict.decision
    row["decision"], row["rule"] = (None, None) if decision is None else (decision.action, decision.rule)
    return row


def unreadable_row(request_id: UUID) -> dict[str, Any]:
    """Return the values of the columns of `FILE_KINDS` of an event that cannot be read; others are null."""
    row = unreadable_event_row(request_id)
    return {"request_id": row.request_id, ERROR: row.error}
