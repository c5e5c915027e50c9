"""The tables of the adapters are complete: each path counts, nothing else is read, and the page shows them all."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from svc.identify.model import Attribute, Claims
from svc.identify.report import ADAPTERS
from svc.identify.report.canonical import FOLLOWING
from svc.identify.report.fpscanner import STANDARD_PLUGINS_HASH
from svc.identify.report.native import ARCHIVED, FLAGS, TABLE
from svc.identify.report.table import IN_ANY_REPORT, Adapter, Field, FieldTable, fields
from tests.domain.test_report_fingerprintjs import components
from tests.domain.test_report_hostile import APP, PROBES, SECTIONS, TREE, places, replaced
from tests.domain.test_report_plain import plain
from tools.report_fields import field_rows, page

PAGE = Path(__file__).parents[2] / "docs" / "report-fields.md"
BOTD = {
    "webGL": {"vendor": "WebKit", "renderer": "Mozilla"}, "languages": [["de"], ["de", "en"]], "evalLength": 33,
    "windowSize": {"outerWidth": 800, "outerHeight": 600, "innerWidth": 780, "innerHeight": 500}, "process": {"a": 1},
}  # fmt: skip
REPORTS: dict[str, Any] = {
    "native": APP,
    "fingerprintjs": {"components": components(touchSupport={"value": {"maxTouchPoints": 5, "touchEvent": True}})},
    "thumbmark": {"thumbmark": TREE},
    "fpscanner": {"fpscanner": SECTIONS},
    "probes": {"probes": PROBES},
    "plain": plain(fontPreferences={"default": 1}, math={"acos": 1.5}),
    "botd": {"botd": {name: {"state": 0, "value": value} for name, value in BOTD.items()}},
}
VALUES: list[Any] = [
    None, 7, 640, 820, -1, -4, True, False, "7", "12", "de-DE", "Brave", "iPad1", "17.4", "100x200", "none",
    "unstable", "deferred",
    "WebKit WebGL", "android", "ios", "a1b2c3d4e5f60718", ["compressed_texture"], ["MAX_TEXTURE_MAX_ANISOTROPY=1"],
    "0123456789abcdef", STANDARD_PLUGINS_HASH, [3, 4], [1, 2, 3, 4], [["de"]], ["A"], ["pointer: coarse"],
    ["forced-colors: active"], ["p|q|r"], ["ALIASED_POINT_SIZE_RANGE=33901=1,1024", "A=1=2"], [{"name": "p"}],
    [{"brand": "B", "version": "1"}], {"a": 1}, {"a": "b", "c": "d", "e": "f"}, {"prefersReducedMotion": True}, "",
]  # fmt: skip
"""Each kind of value that a converter takes."""


def root_of(adapter: Adapter) -> Any:
    part = adapter.find(copy.deepcopy(REPORTS[adapter.name]), set())
    assert part is not None
    return part.root


def keys_of(path: str) -> list[str]:
    """The names that lead to the value that the path gives, of alternatives the first."""
    for end in ("[]", ".(", ".*"):
        path = path.partition(end)[0]
    return [name.partition("|")[0] for name in path.split(".")]


def with_value(root: Any, keys: list[str], value: Any) -> Any:
    copied = dict(root) if isinstance(root, dict) else {}
    copied[keys[0]] = with_value(copied.get(keys[0]), keys[1:], value) if keys[1:] else value
    return copied


def counts(table: FieldTable, field: Field, path: str, root: Any) -> bool:
    """Whether some value at the path changes what is read, by itself or beside others at the field's other paths."""
    others = [keys_of(other) for other in field.paths if other != path and other[0] != "@"]
    alone = FieldTable([field])
    bases = [root, {}]
    for filling in VALUES if others else ():
        bases.append(root)
        for keys in others:
            bases[-1] = with_value(bases[-1], keys, filling)
    for base in bases:
        seen = {repr(alone.read("x", with_value(base, keys_of(path), value))) for value in VALUES}
        if len(seen) > 1:
            return True
    return False


TABLES = [pytest.param(adapter.table, root_of(adapter), id=adapter.name) for adapter in ADAPTERS]


@pytest.mark.parametrize(("table", "root"), [*TABLES, pytest.param(IN_ANY_REPORT, {}, id="any")])
def test_every_path_of_a_table_is_used(table: FieldTable, root: Any):
    for field in table.fields:
        for path in field.paths:
            if path[0] != "@":
                assert counts(table, field, path, root), (field.name, path)


def is_listed(place: tuple[Any, ...], paths: list[str]) -> bool:
    """Whether a value at this place is what a path leads to, holds such a value, or lies within one."""
    names = [name for name in place if isinstance(name, str)]
    for path in paths:
        before, _, inside = path.partition(".(")
        within = inside.rstrip(")").split(",") if inside else []
        keys = before.replace("[]", "").removesuffix(".*").split(".")
        same = all(name in key.split("|") for name, key in zip(names, keys, strict=False))
        if same and not (within and len(names) > len(keys) and names[len(keys)] not in within):
            return True
    return False


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_nothing_is_read_that_no_path_lists(adapter: Adapter):
    root = root_of(adapter)
    expected = adapter.table.read("x", root)
    paths = [path for field in adapter.table.fields for path in field.paths]
    unlisted = [place for place in places(root)[1:] if not is_listed(place, paths)]
    extra = {f"other{number}": value for number, value in enumerate(VALUES)}
    for place in unlisted:
        for value in (7, "other", True, ["x"], {"a": 1}):
            assert adapter.table.read("x", replaced(root, place, value)) == expected, place
    if "fonts.*" not in paths:
        holders = [place for place in places(root) if place == () or not is_listed((*place, "other"), paths)]
        for place in holders:
            inner = root
            for name in place:
                inner = inner[name]
            if isinstance(inner, dict):
                changed = replaced(root, place, {**inner, **extra})
                assert adapter.table.read("x", changed) == expected, place


def test_a_row_names_its_adapter_a_field_and_its_content():
    rows = field_rows()
    assert {row.adapter for row in rows} == {"", *(adapter.name for adapter in ADAPTERS)}
    assert len(rows) == sum(len(field.paths) for adapter in ADAPTERS for field in adapter.table.fields) + 12
    assert all(row.kind.endswith(".") and row.kind[0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-" for row in rows)
    given = {row.field for row in rows} | set(FOLLOWING)
    assert {name for name in given if name.isupper()} | {"REST"} == set(Attribute.__members__)
    assert set(Claims.__struct_fields__) <= given
    flag = "`true`, the number 1, or either as text; anything else leaves the flag unset."
    assert ("native", "device_flags", f"flags.{FLAGS[0]}", flag) in rows


def test_the_page_lists_what_apps_send_for_people_alone():
    section = page().partition("## native\n")[2].partition("\n## ")[0]
    for path, meaning in ARCHIVED.items():
        assert f"| `{path}` | {meaning} |" in section
    assert set(ARCHIVED).isdisjoint(path for field in TABLE.fields for path in field.paths)


def test_the_page_is_generated_from_the_tables():
    assert PAGE.read_text() == page(), "write it again: python -m tools.reference report-fields > docs/report-fields.md"


def test_the_order_of_the_rows_has_no_effect():
    table = FieldTable(fields(lambda a, b: [a, b], several="@language + b"), fields(lambda a: a, language="a"))
    assert table.read("x", {"a": 1, "b": 2}).parts == {"several": [1, 2]}
