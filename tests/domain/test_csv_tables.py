"""Decisions 12.1: of CSV files what can be read in one way is read, and nothing else is taken for a value."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.command.output import CommandError
from svc.features.lists.command import read_csv
from svc.kernel.values.text_files import FORMULA, SEPARATORS, CsvError, Form, csv_line, read_table, written
from svc.kernel.values.timestamps import read_timestamp

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "csv_tables.json").read_bytes())
"""The console reads the same ones (`web/pages/test/workplace.test.ts`)."""
FORM = Form(("value", "note", "expires_at"), ("value",))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_file_is_read_or_refused(vector: dict[str, Any]):
    content = vector["text"].encode()
    if "error" in vector:
        with pytest.raises(CommandError) as refused:
            read_csv(content, vector["kind"], 0)
        assert str(refused.value).startswith(vector["error"].replace("\t", "\\t"))
        assert str(refused.value).endswith("; nothing was added")
        return
    table, entries = read_csv(content, vector["kind"], 0)
    assert (table.separator, table.header is not None) == (vector["separator"], vector["has_header"])
    assert [[each.value, each.note, each.expires_at_ms] for each in entries] == [
        [value, note, read_timestamp(expires) if expires else None] for value, note, expires in vector["entries"]
    ]


def test_a_separator_that_is_given_is_not_looked_for():
    rows = read_table(b"a;b\n", FORM, "comma").rows
    assert [row.cells["value"] for row in rows] == ["a;b"]
    rows = read_table(b"user-1;x\n", FORM, "semicolon").rows
    assert [(row.cells["value"], row.cells["note"]) for row in rows] == [("user-1", "x")]


_WORDS = st.text(st.sampled_from("ab 1;,\t\"'=\n\u200b\uff0b"), max_size=8)


@given(st.lists(st.tuples(_WORDS, _WORDS), min_size=1, max_size=4), st.sampled_from(sorted(SEPARATORS)))
def test_what_is_quoted_comes_back_whatever_it_has(rows: list[tuple[str, str]], separator: str):
    """With a header of both columns there is one way to read a file."""
    by = SEPARATORS[separator]
    lines = [f"value{by}note", *(by.join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) for row in rows)]
    table = read_table("\n".join(lines).encode(), FORM)
    assert table.separator == separator
    read = [(row.cells["value"], row.cells["note"]) for row in table.rows]
    plain = [tuple(cell.strip() for cell in row) for row in rows]
    is_marked = re.compile("(^|[;\t\n])'['\\s\"\u200b]*[=\uff0b]|^'.*'$", re.DOTALL)
    assert [
        row for row, said in zip(read, filter(any, plain), strict=True) if not any(map(is_marked.search, said))
    ] == [row for row in plain if any(row) and not any(map(is_marked.search, row))]


@given(st.lists(st.tuples(_WORDS.filter(bool), _WORDS), min_size=1, max_size=4))
@example([("\n\n=", "x;\t'=y"), (" =x", "'=x"), (" ", "' '"), ("\ufeff-1", "a;\uff1db"), ("'' x", "x\t")])
def test_what_an_export_writes_comes_back_and_begins_no_formula(rows: list[tuple[str, str]]):
    lines = csv_line(("value", "note")) + b"".join(csv_line((written(value), written(note))) for value, note in rows)
    assert [(row.cells["value"], row.cells["note"]) for row in read_table(lines, FORM).rows] == rows
    for separator in SEPARATORS.values():
        cells = [
            cell for line in csv.reader(io.StringIO(lines.decode(), newline=""), delimiter=separator) for cell in line
        ]
        assert not [cell for cell in cells if re.match(FORMULA, cell)]


@given(st.text(st.sampled_from('value,note;\t"x\n '), max_size=60))
def test_any_text_is_read_or_refused_by_its_line(text: str):
    try:
        table = read_table(text.encode(), FORM)
    except CsvError as error:
        fault = str(error)
    else:
        fault = "line 0"
        assert all(row.line >= 1 and set(row.cells) == set(FORM.columns) for row in table.rows)
    assert fault.startswith("line ")
