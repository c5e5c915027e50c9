"""Text as files hold it: UTF-8 with or without a byte order mark, the name of what is something else, and CSV tables.

What may live here: bytes in, text or one sentence about them out.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which Windows programs begin a file."""
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16. Those of UTF-32 begin or continue with zeros."""
_GZIP = b"\x1f\x8b"


class NotTextError(ValueError):
    """The bytes are not text of the wanted form; the message is a sentence whose subject is the file."""


def decode_text(content: bytes) -> str:
    """Return the text of a whole file, without its byte order mark; lines end with LF. Raises `NotTextError`."""
    refuse_other_encodings(content)
    try:
        return content.removeprefix(MARK).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotTextError(f"is not UTF-8 text (line {line}): save it as UTF-8") from error


def decode_toml(content: bytes) -> dict[str, Any]:
    """Return the values of a whole TOML file, as `tomllib` gives them. Raises `NotTextError`."""
    try:
        return tomllib.loads(decode_text(content))
    except tomllib.TOMLDecodeError as error:
        raise NotTextError(f"is not TOML: {error}") from error


def refuse_other_encodings(start: bytes) -> None:
    """Raise `NotTextError` if a file that begins so is UTF-16, UTF-32, or compressed by gzip."""
    if start.startswith(_GZIP):
        raise NotTextError("is compressed by gzip: decompress it first")
    if start.startswith(_UTF_16_MARKS) or b"\0" in start[:4]:
        raise NotTextError("is UTF-16 or UTF-32 text, as `>` of Windows PowerShell writes it: save it as UTF-8")


SEPARATORS: Final = {"comma": ",", "semicolon": ";", "tab": "\t"}
"""Name -> character. The first one is assumed for a file that shows none."""
_FORGOTTEN = '\\s"\u200b-\u200f\u2060\ufeff'
_SIGN = "[=+@\uff1d\uff0b\uff0d\uff20-]"
FORMULA: Final = f"[{_FORGOTTEN}]*{_SIGN}"
"""What a spreadsheet evaluates where it begins a cell: some forget blanks, quotes and what is invisible."""
_SHOWN = re.compile(f"(^|[;\t\r\n])(?=['{_FORGOTTEN}]*{_SIGN})")
_HIDDEN = re.compile(f"(^|[;\t\r\n])'(?=['{_FORGOTTEN}]*{_SIGN})")
"""With the apostrophe of an export: also where a spreadsheet that separates cells otherwise would begin one."""
_BLANK = re.compile("[\\s\ufeff]")
"""What either reader takes off the ends of a cell."""


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


def written(text: str) -> str:
    """Return the cell that `read_table` reads as this text and no spreadsheet evaluates: with an apostrophe before each
    formula, and between apostrophes if a blank is at an end.
    """
    return _SHOWN.sub(r"\1'", f"'{text}'" if _has_blank_ends(text) else text)


def csv_line(cells: tuple[str, ...]) -> bytes:
    """Return one row of CSV, of cells without control characters."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()


def _read(cell: str) -> str:
    cell = _HIDDEN.sub(r"\1", cell.strip())
    return cell[1:-1] if cell[:1] == "'" == cell[-1:] and _has_blank_ends(cell[1:-1]) else cell


def _has_blank_ends(text: str) -> bool:
    """Return whether there is a blank at an end, within as many apostrophes as are at both ends."""
    around = min(len(text) - len(text.lstrip("'")), len(text) - len(text.rstrip("'")))
    inner = text[around : len(text) - around]
    return any(map(_BLANK.match, inner[:1] + inner[-1:]))


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
    """Return (separator, columns) of a header, `None` if it is none. Raises `CsvError` for one that is almost one."""
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
        return f"{unknown[0]!r} is not a column"
    if len(set(names)) < len(names):
        return "a column appears twice"
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
    cells = [_read(cell) for cell in record.cells]
    while len(cells) > len(columns) and not cells[-1]:
        cells.pop()
    if len(cells) > len(columns):
        raise CsvError(f"line {line}: {len(cells)} columns, and there are {len(columns)}: {', '.join(columns)}")
    names = _names(record.cells)
    if len(names) > 1 and _header_fault(names, form) is None:
        raise CsvError(f"line {line}: a header that is not the first line")
    is_whole = header is not None and len(header) > 1 and len(record.cells) >= len(header)
    others = [name for name in SEPARATORS if name != separator and SEPARATORS[name] in cells[0]]
    if others and not (is_whole or record.is_quoted or is_given):
        raise CsvError(
            f"line {line}: {record.cells[0]!r} has a {others[0]}: put it in quotes, or begin the file with "
            f"{SEPARATORS[others[0]].join(form.columns)!r}"
        )
    return {name: cells[columns.index(name)] if name in columns[: len(cells)] else "" for name in form.columns}
