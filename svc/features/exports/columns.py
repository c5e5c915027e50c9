"""Events as plain columns with types, for SQL and Parquet: the columns of CSV.

What may live here: one event in, one row out.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Literal, get_args
from uuid import UUID

import msgspec

from svc.features.exports.lines import COLUMNS, ERROR
from svc.identify.events.event_row import unreadable_event_row
from svc.identify.model import Verdict
from svc.identify.records import Event

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
    """Raises `TypeError` for a field that `plain_row` would have to shape."""
    of_field = _TYPES[name]
    types = {type(part) if isinstance(part, str) else part for part in _parts(of_field)} - {type(None)}
    for found, kind in _KINDS:
        if types == {found}:
            return kind
    raise TypeError(f"{name} is not a plain column: say in `_SHAPED` and `plain_row` what it holds")


def _parts(of_field: Any) -> list[Any]:
    """The members of a union and the texts of a literal, or the type itself."""
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
