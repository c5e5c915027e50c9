"""From one record to the next, and to the body that shows it: what both call the same is taken over, and nobody writes
it twice.

What may live here: the rules by which fields of records become fields of other records and of bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    fields: dict[str, Any] = {}
    for record in records:
        plan, read = _plan(body, type(record))
        for (name, shape, nothing), value in zip(plan, read(record), strict=True):
            if value is not None:
                fields[name] = value if shape is None else shape(value)
            elif nothing is not UNSET:
                fields[name] = None
    return body(**(fields | others))


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
    """Return fields and properties by name; `created_at` is `created_at_ms` in RFC 3339, and `None` stays."""

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


def fields_sent(body: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a request that were not left out, by name."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}


_Read = Callable[[Any], tuple[Any, ...]]
_Plan = tuple[tuple[str, Callable[[Any], Any] | None, Any], ...]
"""(name, how it is written if not as it is, default) of fields of a body."""


@cache
def _plan(body: type[msgspec.Struct], record: type[msgspec.Struct]) -> tuple[_Plan, _Read]:
    """Return the fields of the body that the record has, and a function that reads them all."""
    known = _known(record)
    fields = [field for field in msgspec.structs.fields(body) if {field.name, f"{field.name}_ms"} & known]
    plan = tuple((field.name, None if field.name in known else timestamp, field.default) for field in fields)
    return plan, _reader([name if shape is None else f"{name}_ms" for name, shape, _ in plan])


def _reader(names: Sequence[str]) -> _Read:
    """Return a function that reads these fields of a record, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


@cache
def _shared(kind: type[msgspec.Struct], record: type[msgspec.Struct]) -> tuple[tuple[str, ...], _Read]:
    """Return the fields of `kind` that the record has, and a function that reads them all."""
    known = _known(record)
    names = tuple(name for name in kind.__struct_fields__ if name in known)
    return names, _reader(names)


def _known(record: type[msgspec.Struct]) -> set[str]:
    return {*record.__struct_fields__, *(name for name, value in vars(record).items() if isinstance(value, property))}
