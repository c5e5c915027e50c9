"""From one record to the next, and to the body that shows it: what both call the same is taken over, and nobody writes
it twice.

What may live here: the rules by which fields of records become fields of other records and of bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from svc.kernel.values.timestamps import timestamp

B = TypeVar("B", bound=msgspec.Struct)
T = TypeVar("T")


def body_of(body: type[B], *records: msgspec.Struct, **others: Any) -> B:
    """Return a body from the fields and properties of `records`, whose names must differ, and from `others`, fields
    that no record has in the form of the body. `created_at` is written from `created_at_ms` (RFC 3339). `None` is left
    out if the field is optional, else `null`. Raises `TypeError` if a required field is missing.
    """
    fields = {
        name: value if shape is None or value is None else shape(value)
        for record in records
        for name, read, shape, nothing in _plan(body, type(record))
        if name not in others and ((value := read(record)) is not None or nothing is not UNSET)
    }
    return body(**fields, **others)


def record_of(kind: type[B], *records: msgspec.Struct, **others: Any) -> B:
    """Return a record from the fields and properties of `records` that have the same name, as they are, but for
    `UNSET`, which becomes `None`. `others` are the fields that no record has, and win over those that one has. Raises
    `TypeError` if a required field is in neither.
    """
    fields: dict[str, Any] = {}
    for record in records:
        names, read = _shared(kind, type(record))
        fields |= {name: None if value is UNSET else value for name, value in zip(names, read(record), strict=True)}
    return kind(**(fields | others))


def named(record: Any, *names: str) -> dict[str, Any]:
    """Return fields and properties of a record by name; `created_at` is `created_at_ms` in RFC 3339, and
    `None` stays.
    """

    def read(name: str) -> Any:
        if hasattr(record, name):
            return getattr(record, name)
        at_ms = getattr(record, f"{name}_ms")
        return None if at_ms is None else timestamp(at_ms)

    return {name: read(name) for name in names}


def present(value: Any) -> Any:
    """Return the value, or `UNSET` for `None`: what does not apply is left out of a body, not `null` (interface 2)."""
    return UNSET if value is None else value


def sent(value: T | UnsetType) -> T | None:
    """Return the value of a field of a request, `None` if it was left out."""
    return None if value is UNSET else value


@cache
def _plan(
    body: type[msgspec.Struct], record: type[msgspec.Struct]
) -> tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any] | None, Any], ...]:
    """Return (name, how to read it, how to write it or `None`, default) of each body field that the record has."""
    known = _known(record)
    return tuple(
        (
            (field.name, attrgetter(field.name), None, field.default)
            if field.name in known
            else (field.name, attrgetter(f"{field.name}_ms"), timestamp, field.default)
        )
        for field in msgspec.structs.fields(body)
        if field.name in known or f"{field.name}_ms" in known
    )


@cache
def _shared(
    kind: type[msgspec.Struct], record: type[msgspec.Struct]
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Return the fields of `kind` that the record has, and what reads them all."""
    known = _known(record)
    names = tuple(name for name in kind.__struct_fields__ if name in known)
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda value: tuple(getattr(value, name) for name in names)


def _known(record: type[msgspec.Struct]) -> set[str]:
    return {*record.__struct_fields__, *(name for name, value in vars(record).items() if isinstance(value, property))}
