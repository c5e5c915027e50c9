"""How a row of the store is shown to who runs the service: names for its parts, moments as such, and no secret.

What devices and customers sent is personal data, and shown only where that is asked for.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from svc.domain.audit import WITHHELD, asked
from svc.domain.identification import inflate
from svc.domain.operations import unpack_batch
from svc.domain.webhooks.records import DELIVERY_KINDS
from svc.store.inspection import Row
from svc.store.naming import UUID_FORM, abbreviated, moment, show_key, show_key_bytes
from svc.store.tables import (
    BALANCES,
    DEPARTED,
    ENDPOINT_COUNTS,
    ERASED_EVENTS,
    ERASURES,
    KEY_IDS,
    MANUAL,
    META,
    OPERATIONS,
    ORGANIZATION_IDS,
    ORGANIZATION_KEYS,
    PAST_DUE,
    STATISTICS,
    VISITOR_COUNTS,
    VISITOR_IDS,
)

_SECRETS = frozenset({KEY_IDS.name, ORGANIZATION_KEYS.name})
"""Tables of which the value is the digest that a key is known by."""
_NUMBERS = {
    META.name: "value",
    ORGANIZATION_IDS.name: "organization",
    BALANCES.name: "micros",
    PAST_DUE.name: "since_ms",
    VISITOR_COUNTS.name: "given",
    VISITOR_IDS.name: "visitor",
    DEPARTED.name: "since_ms",
    ERASURES.name: "visitor",
    ERASED_EVENTS.name: "events",
    ENDPOINT_COUNTS.name: "given",
}
"""What the number under a key is."""
_PERSONAL = frozenset({"signals", "body", "tag", "ip_address"})
"""Fields that say what a device or a customer sent."""
_ADDRESSES = frozenset({"url", "endpoint_url"})
"""Fields of which path and query may be what lets one in."""
_SECONDS = frozenset({"at_s", "first_seen_s", "last_seen_s"})
_IDS = frozenset({"request_id", "event_id"})


def shown(row: Row, *, payload: bool) -> dict[str, Any]:
    """A row in words and numbers that JSON has. `payload`: with what devices and customers sent."""
    if row.problem is not None:
        return {"table": row.table.name, "key_bytes": show_key_bytes(row.table, row.key), "damaged": row.problem}
    value = _value(row)
    return {
        "table": row.table.name,
        "key": show_key(row.table, row.key),
        "value": _fields(value, payload=payload),
    }


def _value(row: Row) -> dict[str, Any]:
    name, value = row.table.name, row.value
    if isinstance(value, int):
        return {_NUMBERS[name]: value}
    return _opaque(name, value) if isinstance(value, bytes) else _by_name(value)


def _opaque(name: str, value: bytes) -> dict[str, Any]:
    if name in _SECRETS:
        return {"digest": abbreviated(value)}
    if name == MANUAL.name:
        return {"event_id": UUID_FORM.show(value[:16]), "kind": DELIVERY_KINDS[value[16]]}
    if name == OPERATIONS.name and value:
        return {"bytes": len(value), **_batch(value)}
    return {"bytes": len(value)} if name in (STATISTICS.name, OPERATIONS.name) else {}


def _batch(value: bytes) -> dict[str, Any]:
    """What a batch changed, where it is whole: rows per table. Its rows may be anything, so they are not shown."""
    try:
        batch = unpack_batch(value)
    except ValueError:
        return {}
    return {"at": moment(batch.at_ms), "rows": {table: len(changed) for table, changed in batch.changes.items()}}


def _by_name(record: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


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
    if name in _PERSONAL:
        return _sent(name, value) if payload else WITHHELD
    if name in _ADDRESSES and not payload:
        return asked({"url": value})["url"]
    if name in _IDS and isinstance(value, bytes):
        return UUID_FORM.show(value)
    if name != _name(name):
        return moment(1000 * value if name in _SECONDS else value)
    return _plain(value, payload=payload)


def _plain(value: Any, *, payload: bool) -> Any:
    match value:
        case msgspec.Struct():
            return _fields(_by_name(value), payload=payload)
        case dict():
            return {str(name): _plain(inner, payload=payload) for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  any record's
        case list() | tuple():
            return [_plain(inner, payload=payload) for inner in value]  # pyright: ignore[reportUnknownVariableType]  as above
        case bytes():
            return value.hex()
        case _:
            return value


def _sent(name: str, value: Any) -> Any:
    """Reports lie deflated, webhook events as they are sent; both are JSON."""
    if not isinstance(value, bytes):
        return value
    try:
        return msgspec.json.decode(inflate(value) if name == "signals" else value)
    except (zlib.error, msgspec.DecodeError):
        return value.hex()
