"""How a row of the store is shown to the operator: names for its parts, moments as such, and no secret.

What devices and customers sent is personal data, and shown only where that is asked for.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from svc.features.inspection.inspection import Row, show_key, show_key_bytes
from svc.features.webhooks.records import DeliveryKey
from svc.identify.events.archive import inflate
from svc.identify.events.segments import Digests, Segment, Slots
from svc.identify.network.request_headers import read_headers
from svc.kernel.access.audit import WITHHELD, asked
from svc.kernel.store.schema.codec import Opaque, Signed
from svc.kernel.store.schema.key_parts import abbreviated, moment, show_uuid
from svc.kernel.store.schema.operation_log import unpack_batch
from svc.kernel.store.schema.table import SENT

_ADDRESSES = frozenset({"url", "endpoint_url"})
"""Fields of which path and query may be what lets one in."""
_SECONDS = frozenset({"at_s", "first_seen_s", "last_seen_s"})
_IDS = frozenset({"request_id", "event_id"})


def shown(row: Row, *, payload: bool) -> dict[str, Any]:
    """Return a row as JSON values by name. Without `payload`, what devices and customers sent is left out
    (`tables`).
    """
    if row.problem is not None:
        return {"table": row.table.name, "key_bytes": show_key_bytes(row.table, row.key), "corrupt": row.problem}
    value = _value(row)
    return {
        "table": row.table.name,
        "key": show_key(row.table, row.key),
        "value": _fields(value, payload=payload),
    }


def _value(row: Row) -> dict[str, Any]:
    form, value = row.table.value, row.value
    if isinstance(form, Signed):
        return {form.name: value}
    if isinstance(form, Opaque):
        return _opaque(form, value)
    if isinstance(value, Digests):
        return {"digests": len(value.values)}
    if isinstance(value, Segment):
        return {"events": sum(1 for _ in Slots(value.slots).living()), "digests": len(value.digests)}
    return value._asdict() if isinstance(value, DeliveryKey) else msgspec.structs.asdict(value)


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
    """What a batch changed, where it is whole: rows per table. Its rows may be anything, so they are not shown."""
    try:
        batch = unpack_batch(value)
    except ValueError:
        return {}
    return {"at": moment(batch.at_ms), "rows": {table: len(changed) for table, changed in batch.changes.items()}}


def _fields(fields: dict[str, Any], *, payload: bool) -> dict[str, Any]:
    return {_name(name): _field(name, value, payload=payload) for name, value in fields.items()}


def _name(field: str) -> str:
    """A moment's stands without its unit."""
    if field in _SECONDS:
        return field.removesuffix("_s")
    return field if field == "duration_ms" else field.removesuffix("_ms")


def _field(name: str, value: Any, *, payload: bool) -> Any:
    if value is None:
        return None
    if name in SENT and isinstance(value, bytes | str):  # the `signals` of a verdict are our own
        return _sent(name, value) if payload else WITHHELD
    if name in _ADDRESSES and not payload:
        return asked({"url": value})["url"]
    if name in _IDS and isinstance(value, bytes):
        return show_uuid(value)
    if name != _name(name):
        return _moments(1000 if name in _SECONDS else 1, value)
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
    """Reports and headers lie deflated, webhook events as they are sent; all are JSON."""
    if not isinstance(value, bytes):
        return value
    try:
        if name == "headers":
            return msgspec.to_builtins(read_headers(value))
        return msgspec.json.decode(inflate(value) if name == "signals" else value)
    except (zlib.error, msgspec.DecodeError):
        return value.hex()
