"""The parts of docs/internals/format.md that follow from the tables: places, tables, policies and records.

    python -m tests.store.format_page

writes them into the page, between its marks. `test_format.py` fails when they are out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from svc.features.schema import SCHEMA
from svc.features.tables import TABLES
from svc.kernel.store.schema.table import (
    Aged,
    ErasedBy,
    ErasedByKey,
    Keep,
    KeptFor,
    LastTwoPeriods,
    NotPersonal,
    Personal,
    Swept,
    Until,
    With,
)
from svc.kernel.values.ids import DAY_MS
from tests.store.schema import schema

PAGE = Path(__file__).parents[2] / "docs/internals/format.md"
TYPES = {"B": "u8", "H": "u16", "I": "u32", "Q": "u64"}
BODIES = {"Signed": "i64", "Opaque": "bytes"}
_PART = re.compile(r"\d+s|[BHIQ]|text")


def key_parts(name: str, layout: str) -> list[tuple[str, str]]:
    """(name, type) of each part of the keys of a table."""
    types = [TYPES.get(part, f"b{part[:-1]}" if part.endswith("s") else part) for part in _PART.findall(layout)]
    (key,) = (table.key for table in TABLES if table.name == name)
    return list(zip((part.rstrip("_") for part in key.parts), types, strict=True))


def _places() -> Iterator[str]:
    yield "| list | places |"
    yield "|---|---|"
    for name, entries in schema()["places"].items():
        yield f"| {name} | {', '.join(f'{place} `{entry}`' for place, entry in enumerate(entries))} |"


def _tables() -> Iterator[str]:
    yield "| table | key | body |"
    yield "|---|---|---|"
    for name, described in schema()["tables"].items():
        layout, _, body = described.partition(" -> ")
        key = ", ".join(f"{part} `{kind}`" for part, kind in key_parts(name, layout))
        yield f"| `{name}` | {key} | `{BODIES.get(body, body.removeprefix('layout of '))}` |"


def _policies() -> Iterator[str]:
    yield "| table | kept | of a visitor |"
    yield "|---|---|---|"
    for table in TABLES:
        kept = _kept(table.keep) + (". *Stays*" if table.stays else "")
        yield f"| `{table.name}` | {kept} | {_personal(table.personal)} |"


def _kept(keep: Keep) -> str:
    match keep:
        case KeptFor(ms, setting):
            return f"for {ms // DAY_MS} days" + (f", or what `{setting}` says" if setting else "")
        case Aged(ms, since):
            return f"for {ms // DAY_MS} days from its `{since}`"
        case LastTwoPeriods():
            return "the present period and the one before"
        case Swept(why):
            return f"deleted row by row: {why}"
        case With(table):
            return f"as long as its row of `{table}`"
        case Until(what):
            return f"until {what}"


def _personal(personal: Personal) -> str:
    match personal:
        case ErasedByKey(part):
            return f"erased by `{part}`"
        case ErasedBy(function):
            return f"erased by `{function}()`"
        case NotPersonal(why):
            return why or "nothing"


def _records() -> Iterator[str]:
    for name, fields in schema()["records"].items():
        yield f"- `{name}`: " + ", ".join(f"`{field}`" for field in fields)


PARTS = {"places": _places, "tables": _tables, "policies": _policies, "records": _records}


VERSION = re.compile(r"(?<=this page describes version )\d+(?=\.)")


def written(page: str) -> str:
    """The page with the parts, and the version of the store, as they are now."""
    page, named = VERSION.subn(str(SCHEMA.version), page)
    assert named == 1, "docs/internals/format.md does not say which version it describes"
    for mark, lines in PARTS.items():
        part = "\n".join([f"<!-- {mark} -->", *lines(), "<!-- end -->"])
        page, count = re.subn(f"<!-- {mark} -->.*?<!-- end -->", lambda _, part=part: part, page, flags=re.DOTALL)
        assert count == 1, f"docs/internals/format.md has no place for its {mark}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
