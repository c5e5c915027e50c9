"""The page `docs/report-fields.md`: every field that is read of a report, with its path, type and unit.

What may live here: the page. Its rows come from the tables of the adapters; `tools.reference` prints it.
"""

from __future__ import annotations

from typing import NamedTuple

from svc.identify.model import Attribute
from svc.identify.report import ADAPTERS, native
from svc.identify.report.canonical import FOLLOWING
from svc.identify.report.table import IN_ANY_REPORT, Field


class FieldRow(NamedTuple):
    """One path that an adapter reads: a row of `docs/report-fields.md`."""

    adapter: str
    """Name of the adapter; empty for fields of any report."""
    field: str
    """The canonical field: an attribute (capitals), a field of `Claims`, `rest` (leaves), or a part of a reading."""
    path: str
    """Where its value stands, in the notation of `table.fields`."""
    kind: str
    """Type, unit and bounds of all values of the field, as its converter says."""


def field_rows() -> list[FieldRow]:
    """Every path that is read of any report, adapter by adapter, in the order of the tables."""
    tables = [("", IN_ANY_REPORT), *((adapter.name, adapter.table) for adapter in ADAPTERS)]
    return [
        FieldRow(name, _name(field), path, _kind(field))
        for name, table in tables
        for field in table.fields
        for path in field.paths
    ]


def _name(field: Field) -> str:
    return field.name.name if isinstance(field.name, Attribute) else field.name


def _kind(field: Field) -> str:
    """The first paragraph of the converter's docstring, on one line, and the unit of fields that are mere numbers."""
    unit = _UNITS.get(_name(field), "")
    return " ".join((field.convert.__doc__ or "").partition("\n\n")[0].split()) + (unit and f" Unit: {unit}.")


_UNITS = {
    "cores": "logical processors",
    "memory_gb": "gigabytes",
    "color_depth": "bits of a pixel",
    "touch_points": "fingers",
    "plugin_count": "plugins",
    "eval_length": "characters of `eval.toString()`",
}

_CLOSED = (
    "An app's report has a closed schema: a field that is not listed here is archived and never compared, whether it",
    "stands at the top level, in `device`, in `settings` or in `flags`. These are archived for people to read:",
)


def page() -> str:
    """The whole text of `docs/report-fields.md`, in Markdown."""
    lines = [
        "# Report fields",
        "",
        "This page is generated from the adapters of the collectors (`make reference`). It lists every field of",
        "`signals` that is read. Fields in capitals are compared to recognize a device; the others are used for",
        "detection. Fields that are not listed are compared as `path=value`, or only archived; of an app's report they",
        "are never compared. A value of another type, too long or too large counts as missing.",
        "",
        "Notation: `a.b` is member `b` of `a`; `a or b.c` is member `c` of the first of them that is an object with",
        "members; `a.(b,c)` reads `b` and `c` of the object `a`; `a.*` reads all of its members; `a[].b` reads `b` of",
        "every entry of the list `a`; `@a` is the field `a` of the same collector.",
        "",
        "Attributes derived from other fields, for collectors whose own table does not contain them:",
        "",
        "| attribute | follows from |",
        "|---|---|",
        *(f"| `{name}` | {sources} |" for name, sources in FOLLOWING.items()),
    ]
    rows = field_rows()
    places = {"": "the top level of any report"} | {adapter.name: adapter.where for adapter in ADAPTERS}
    for name, where in places.items():
        lines += ["", f"## {name or 'Any report'}", "", f"Paths start from {where}.", ""]
        lines += ["| field | path | type, unit and bounds |", "|---|---|---|"]
        grouped: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            if row.adapter == name:
                grouped.setdefault((row.field, row.kind), []).append(f"`{row.path.replace('|', ' or ')}`")
        lines += [
            f"| `{field}` | {', '.join(paths)} | {kind.replace('|', chr(92) + '|')} |"
            for (field, kind), paths in grouped.items()
        ]
        if name == native.ADAPTER.name:
            lines += ["", *_CLOSED, "", "| path | says |", "|---|---|"]
            lines += [f"| `{path}` | {meaning} |" for path, meaning in native.ARCHIVED.items()]
    return "\n".join(lines) + "\n"
