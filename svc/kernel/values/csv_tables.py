"""CSV files that people hand in: which separator and header they have, and their rows by the names of columns.

What may live here: the bytes of a file in, its rows or one sentence about its first fault out. Spreadsheets write
commas, semicolons or tabs by country, and people spell headers as they like. What can be understood in one way is;
nothing else is taken for a value. The console reads files by the same rules (`web/pages/console/entries/csv.ts`), and
both pass the same vectors (`tests/domain/csv_tables.json`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from svc.kernel.values.text_files import NotTextError, decode_text

SEPARATORS: Final = {"comma": ",", "semicolon": ";", "tab": "\t"}
"""Name -> character. The first one is assumed for a file that shows none."""
_FORMULA = re.compile(r"^'(?=[=+\-@])")
"""The prefix that an export adds to what a spreadsheet would evaluate."""


class CsvError(ValueError):
    """A file that cannot be read: a sentence that begins with the number of the line, from 1, where there is one."""


class Form(NamedTuple):
    """The form that a kind of file must have."""

    columns: tuple[str, ...]
    """Their names, in the order of a file without a header."""
    needed: tuple[str, ...]
    """Columns that a header must have."""
    needs_header: bool = False
    """Whether a file without a header is refused."""
    suspects: frozenset[str] = frozenset()
    """Other names that show a first line to be a header if it begins with one."""


class Row(NamedTuple):
    """One row of a file."""

    line: int
    """Where it begins, from 1."""
    cells: dict[str, str]
    """Column -> text, without blanks around it; empty for a column that is not there."""


class Table(NamedTuple):
    """The content of a file that was read."""

    separator: str
    """Name in `SEPARATORS`."""
    header: tuple[str, ...] | None
    """Its columns; `None` = it has no header."""
    rows: list[Row]


def read_table(content: bytes, form: Form, separator: str | None = None) -> Table:
    """Return the table of a file. Raises `CsvError` for its first fault, also if separator or header are not clear.
    `separator`: a name in `SEPARATORS`; `None` = as the file shows.
    """
    try:
        text = decode_text(content)
    except NotTextError as error:
        raise CsvError(f"the file {error}") from error
    first = {name: _first(text, SEPARATORS[name]) for name in ([separator] if separator else SEPARATORS)}
    found, header = _header(first, form)
    name = found or next(iter(first))
    records = _records(text, SEPARATORS[name])
    if header is not None:
        next(records)
    is_given = separator is not None
    rows = [
        Row(record.line, _cells(record, header, form, name, is_given=is_given))
        for record in records
        if any(map(str.strip, record.cells))
    ]
    return Table(name, header, rows)


class _Record(NamedTuple):
    line: int
    cells: list[str]
    is_quoted: bool
    """Whether the first cell is."""


def _first(text: str, separator: str) -> _Record | None:
    """Return the first record; `None` if there is none by this separator."""
    try:
        return next(_records(text, separator), None)
    except CsvError:
        return None


def _records(text: str, separator: str) -> Iterator[_Record]:
    """Yield the records of a file. Raises `CsvError` at one that is not closed."""
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield _Record(line, cells, lines[line - 1].lstrip(" ").startswith('"'))
            line = reader.line_num + 1
    except csv.Error as error:
        raise CsvError(f"line {line}: {error}") from None


def _header(first: dict[str, _Record | None], form: Form) -> tuple[str | None, tuple[str, ...] | None]:
    """Return the separator by which the first record is a header, and the columns; no separator if it is none. Raises
    `CsvError` for one that is almost a header.
    """
    wrong: str | None = None
    for name, record in first.items():
        names = _names(record.cells if record else ())
        fault = _header_fault(names, form)
        if fault is None:
            return name, names
        if not form.suspects.isdisjoint(names[:1]) or not set(form.columns).isdisjoint(names):
            wrong = wrong or fault
    columns = ",".join(form.columns)
    if wrong is not None:
        raise CsvError(f"line 1: it looks like a header, and {wrong}: begin the file with {columns}")
    if form.needs_header:
        raise CsvError(f"line 1: the header is not {columns}")
    return None, None


def _header_fault(names: Sequence[str], form: Form) -> str | None:
    """Return why names are not a header; `None` if they are."""
    unknown = [name for name in names if name not in form.columns]
    if unknown:
        return f"{unknown[0]!r} is no column"
    if len(set(names)) < len(names):
        return "a column is there twice"
    missing = [name for name in form.needed if name not in names]
    return f"the column {missing[0]} is missing" if missing else None


def _names(cells: Iterable[str]) -> tuple[str, ...]:
    """Return the cells of a header as columns are spelled, without empty ones at the end."""
    names = [re.sub(r"[\s-]+", "_", cell.strip()).lower() for cell in cells]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def _cells(
    record: _Record, header: tuple[str, ...] | None, form: Form, separator: str, *, is_given: bool
) -> dict[str, str]:
    """Return the cells by column. Raises `CsvError` if there are more cells, or if another separator may be meant."""
    line, columns = record.line, header or form.columns
    cells = [_FORMULA.sub("", cell.strip()) for cell in record.cells]
    while len(cells) > len(columns) and not cells[-1]:
        cells.pop()
    if len(cells) > len(columns):
        raise CsvError(f"line {line}: {len(cells)} columns, and there are {len(columns)}: {', '.join(columns)}")
    names = _names(record.cells)
    if len(names) > 1 and _header_fault(names, form) is None:
        raise CsvError(f"line {line}: it is a header, and not the first line")
    is_whole = header is not None and len(header) > 1 and len(record.cells) >= len(header)
    others = [name for name in SEPARATORS if name != separator and SEPARATORS[name] in cells[0]]
    if others and not (is_whole or record.is_quoted or is_given):
        raise CsvError(
            f"line {line}: {record.cells[0]!r} has a {others[0]}: put it in quotes, or begin the file with "
            f"{SEPARATORS[others[0]].join(form.columns)!r}"
        )
    return {name: cells[columns.index(name)] if name in columns[: len(cells)] else "" for name in form.columns}
