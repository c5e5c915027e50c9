"""How a row of the store is shown to the operator: names for its parts, moments as such, and no secret.

What devices and customers sent is personal data, and so is what people wrote; it is shown only where that is asked for.
A field is shown by its type and by its name: `..._ms` and `..._s` are moments, `..._id` of 16 bytes is a UUID, an
`...url` is shown without what may let one in, and of those in `table.SENT` and `WRITTEN` nothing is shown. A record
that holds what nobody may see has `shown()`.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from svc.features.inspection.inspection import Row, show_key, show_key_bytes
from svc.identify.events.archive import inflate
from svc.identify.history.activity import AddressActivity, VisitorActivity
from svc.identify.matching import Visitor
from svc.identify.network.request_headers import read_headers
from svc.identify.queries.velocity import activity_of
from svc.identify.velocity.counts import EMPTY
from svc.kernel.access.audit import WITHHELD, asked
from svc.kernel.store.schema.codec import Opaque, Signed
from svc.kernel.store.schema.key_parts import DAY, abbreviated, moment, show_uuid
from svc.kernel.store.schema.operation_log import unpack_batch
from svc.kernel.store.schema.table import SENT

WRITTEN = frozenset({"text", "note", "query", "value", "email", "place"})
"""Fields of records with words of members, what they put into lists and filters, and who and where they are; `value` is
also a part of keys.
"""
_NO_MOMENTS = ("duration_ms", "_per_s")
"""Ends of names that are lengths and rates."""


def shown(row: Row, *, payload: bool) -> dict[str, Any]:
    """Return a row as JSON values by name. Without `payload`, what devices and customers sent, and what
    people wrote, is left out.
    """
    if row.problem is not None:
        return {"table": row.table.name, "key_bytes": show_key_bytes(row.table, row.key), "corrupt": row.problem}
    return {
        "table": row.table.name,
        "key": {
            name: WITHHELD if name in WRITTEN and not payload else part
            for name, part in show_key(row.table, row.key).items()
        },
        "value": _fields(_value(row), payload=payload),
    }


def _value(row: Row) -> dict[str, Any]:
    form, value = row.table.value, row.value
    if isinstance(form, Signed):
        return {form.name: value}
    if isinstance(form, Opaque):
        return _opaque(form, value)
    if hasattr(value, "shown"):
        return value.shown()
    if isinstance(value, Visitor):
        return {**msgspec.structs.asdict(value), "activity": _activity(activity_of(value))}
    if isinstance(value, AddressActivity):
        return _activity(value)
    return value._asdict() if isinstance(value, tuple) else msgspec.structs.asdict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportAttributeAccessIssue]  a named one


def _activity(value: VisitorActivity | AddressActivity) -> dict[str, Any]:
    """Return velocity by the kind of environment, as far as there is any, and the day."""
    shown = {kind: row for kind, row in (("live", value.live), ("test", value.test)) if row != EMPTY}
    if not value.history.day:
        return {**shown}
    return {**shown, "history": {**msgspec.structs.asdict(value.history), "day": DAY.show(value.history.day)}}


def _opaque(form: Opaque, value: bytes) -> dict[str, Any]:
    match form.holds:
        case "nothing":
            return {}
        case "digest":
            return {"digest": abbreviated(value)}
        case "bytes":
            return {"bytes": len(value)}
        case "batch":
            return {"bytes": len(value), **(_batch(value) if value else {})}


def _batch(value: bytes) -> dict[str, Any]:
    """Return the time of an intact batch and rows per table. Values are left out, since they may be anything."""
    try:
        batch = unpack_batch(value)
    except ValueError:
        return {}
    return {"at": moment(batch.at_ms), "rows": {table: len(changed) for table, changed in batch.changes.items()}}


def _fields(fields: dict[str, Any], *, payload: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields.items():
        unit = 0 if name.endswith(_NO_MOMENTS) else {"ms": 1, "s": 1000}.get(name.rpartition("_")[2], 0)
        stem = name.rpartition("_")[0] if unit else name  # a moment's name stands without its unit
        found[stem] = _moments(unit, value) if unit and value is not None else _field(name, value, payload=payload)
    return found


def _field(name: str, value: Any, *, payload: bool) -> Any:
    if name in SENT and isinstance(value, bytes | str):  # the `signals` of a verdict are our own
        return _sent(name, value) if payload else WITHHELD
    if name in WRITTEN and value and not payload:
        return WITHHELD
    if name.endswith("url") and isinstance(value, str) and not payload:
        return asked({"url": value})["url"]
    if name.endswith("_id") and isinstance(value, bytes) and len(value) == 16:
        return show_uuid(value)
    return _plain(value, payload=payload)


def _moments(unit_ms: int, value: int | tuple[int, ...]) -> Any:
    if isinstance(value, tuple):
        return [moment(unit_ms * each) for each in value]
    return moment(unit_ms * value)


def _plain(value: Any, *, payload: bool) -> Any:
    match value:
        case msgspec.Struct():
            return _fields(msgspec.structs.asdict(value), payload=payload)
        case dict():
            return {str(name): _plain(inner, payload=payload) for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  any record's
        case list() | tuple():
            return [_plain(inner, payload=payload) for inner in value]  # pyright: ignore[reportUnknownVariableType]  as above
        case bytes():
            return value.hex()
        case _:
            return value


def _sent(name: str, value: Any) -> Any:
    """Decode the JSON of reports and headers, which are stored deflated, and of webhook events."""
    if not isinstance(value, bytes):
        return value
    try:
        if name == "headers":
            return msgspec.to_builtins(read_headers(value))
        return msgspec.json.decode(inflate(value) if name == "signals" else value)
    except (zlib.error, msgspec.DecodeError):
        return value.hex()
