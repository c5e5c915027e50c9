"""The page of security properties names tests that exist, at least one for each property."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/internals/hardening.md").read_text()
HEADER = "| property | attack | seen | test |"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[str]:
    """Of all tables of properties."""
    tables = [part.partition("\n\n")[0] for part in PAGE.split(HEADER)[1:]]
    return [line for table in tables for line in table.splitlines() if line.startswith("| ")]


@cache
def functions(path: str) -> frozenset[str]:
    """Names of the functions at the top of a file."""
    found = ast.parse((ROOT / path).read_text()).body
    return frozenset(each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_page_has_its_tables():
    assert len(rows()) >= 40


def test_each_property_names_tests_that_exist():
    for row in rows():
        assert row.count("|") == 5, row
        *_, tests, _ = row.split("|")
        named = _TEST.findall(tests)
        assert named, f"no test holds {row}"
        assert _TEST.sub("", tests).strip(" ,") == "", row
        for path, name in named:
            assert name.startswith("test_"), name
            assert name in functions(path), f"{path} has no {name}"
