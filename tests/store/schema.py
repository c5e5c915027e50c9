"""The schema of the store as text: what `tables.py` says of every table, so that a change of it cannot go unnoticed.

Open enumerations are declared as text in the records, so their members are no part of it. Members of closed ones are:
an older program could not read a row that names a new one.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from svc.features.tables import TABLES
from svc.features.webhooks.records import DELIVERY_KINDS, WEBHOOK_ENVIRONMENTS
from svc.kernel.store.schema.codec import TEXT_LAYOUT, Flattened, Key, Layout, Record
from svc.kernel.store.tables import META
from svc.kernel.values.fields import ENVIRONMENTS, PLATFORMS


def schema() -> dict[str, Any]:
    """Tables with the layout of their keys and what their values are; the fields of records in their order; the
    lists whose places stand in keys; and the bytes under one key.
    """
    records: dict[str, list[str]] = {}
    return {
        "tables": {table.name: f"{layout(table.key)} -> {_value(table.value, records)}" for table in TABLES},
        "records": records,
        "a row": META.encode(META.key.pack("version"), 1).hex(),
        "places": {
            "environments": ENVIRONMENTS,
            "platforms": PLATFORMS,
            "webhook environments": WEBHOOK_ENVIRONMENTS,
            "delivery kinds": DELIVERY_KINDS,
        },
    }


def layout(key: Key) -> str:
    """The struct format of the fixed parts of a key, then `text` if there is one."""
    layouts = [part.layout for part in key.parts.values()]
    return " ".join(filter(None, ("".join(layouts), "text" if layouts[-1] == TEXT_LAYOUT else "")))


def _value(value: Any, records: dict[str, list[str]]) -> str:
    if isinstance(value, Flattened):
        _flatten(value, records)
    if isinstance(value, Record):
        return _kind(value._kind, records)
    if isinstance(value, Layout):
        return f"layout of {value._unpack.__qualname__.partition('.')[0]}"
    return type(value).__name__


def _flatten(value: Flattened[Any], records: dict[str, list[str]]) -> None:
    """The fields of both records as they lie on disk, under the name of the outer one."""
    inner, *outer = msgspec.structs.fields(value._kind)
    name = value._kind.__name__
    records[name] = []
    both = {field.encode_name: field for field in (*msgspec.structs.fields(inner.type), *outer)}
    records[name] += [_field(both[stored], records) for stored in value.stored]


def _kind(kind: Any, records: dict[str, list[str]]) -> str:
    """The name of a type; records that it is made of are noted with their fields."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind.__name__ not in records:
            records[kind.__name__] = []
            records[kind.__name__] += [_field(field, records) for field in msgspec.structs.fields(kind)]
        return kind.__name__
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _kind(arguments[0], records)
    if origin is Literal:
        return " | ".join(map(repr, arguments))
    if origin in (Union, types.UnionType):
        return " | ".join(_kind(one, records) for one in arguments)
    if origin is not None:
        return f"{origin.__name__}[{', '.join(_kind(one, records) for one in arguments)}]"
    return "..." if kind is ... else "None" if kind is types.NoneType else kind.__name__


def _field(field: msgspec.structs.FieldInfo, records: dict[str, list[str]]) -> str:
    has_default = field.default is not msgspec.NODEFAULT
    return f"{field.encode_name}: {_kind(field.type, records)}" + (f" = {field.default!r}" if has_default else "")
