"""Exported files: cells that no reader of CSV takes apart or evaluates, and files that are complete or not there."""

from __future__ import annotations

import csv
import io
import os
import pty
import re
import sys
import tty
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.command.output import CommandError
from svc.features.exports.event_files import output_file
from svc.features.exports.lines import csv_cell
from svc.kernel.values.text_files import csv_line, written

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
HOSTILE = st.text(
    st.sampled_from([*FORMULA, *" \t\r\n\v\f\0\x1c\x85\xa0\u2028\u3000\u200b\ufeff;,'\"\\|ax1"]), max_size=12
)


def begins_a_formula(cell: str) -> bool:
    return cell.strip().lstrip("\u200b\ufeff \xa0\u3000").startswith(tuple(FORMULA))


@given(st.lists(st.lists(HOSTILE, min_size=3, max_size=3), min_size=1, max_size=3))
@example([["x\r=1+cmd|calc", "\n=1", "a"]])
@example([["\uff1d1", " =1", "\u200b@x"]])
@example([["x;=1", 'x;"=1', "x; +1"]])
@example([["", "", ';"'], ["", "", ""]])
def test_every_csv_reader_finds_the_same_rows_and_no_cell_starts_a_formula(rows: list[list[str]]):
    text = b"".join(csv_line(tuple(map(csv_cell, row))) for row in rows).decode()
    for source in (io.StringIO(text, newline=""), io.StringIO(text, newline=None), text.splitlines(keepends=True)):
        assert list(csv.reader(source, strict=True)) == [list(map(csv_cell, row)) for row in rows]
    for delimiter in ",;":
        read = list(csv.reader(text.splitlines(), delimiter=delimiter))
        assert delimiter == ";" or len(read) == len(rows), "a reader of semicolons takes rows together at a quote"
        assert not [cell for row in read for cell in row if begins_a_formula(cell)]


@given(HOSTILE)
@example("x\n=1")
def test_no_line_of_a_cell_starts_a_formula_by_commas_or_semicolons(text: str):
    """Entries of lists keep their line breaks, since they are read again."""
    parts = re.split("[;\n\r]", written(text))
    assert not [part for part in parts if begins_a_formula(part)]


@pytest.mark.parametrize("text", ["", "cart", "a=b", "a-b; c", "DOMAIN\\user", "Müller 🙂", "x@example.com"])
def test_a_cell_without_formula_and_control_characters_is_exact(text: str):
    assert csv_cell(text) == text


def written_to_a_terminal(content: bytes, monkeypatch: pytest.MonkeyPatch) -> bytes:
    terminal, of_process = pty.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as read, os.fdopen(of_process, "w", encoding="utf-8") as out:
        tty.setraw(of_process)
        monkeypatch.setattr(sys, "stdout", out)
        with output_file(None) as write:
            write(content)
        return read.read(1000)


def test_characters_that_move_the_cursor_are_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    """U+009B begins a control sequence as ESC [ does, and JSON leaves it as it is. A file or a pipe has every byte."""
    hostile = {"tag": "\x9b2J\u202egnp\x1b[A"}
    assert written_to_a_terminal(b"a\x1b[2Jb,\r\n", monkeypatch) == b"a\\u001b[2Jb,\\u000d\n"
    line = msgspec.json.encode(hostile) + b"\n"
    shown = written_to_a_terminal(line, monkeypatch)
    assert shown == b'{"tag":"\\u009b2J\\u202egnp\\u001b[A"}\n'
    assert msgspec.json.decode(shown) == hostile


def write_half(path: Path, error: BaseException) -> None:
    with output_file(path) as write:
        write(b"half of it")
        raise error


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_an_interrupted_export_leaves_the_existing_file(tmp_path: Path, name: str):
    path = tmp_path / name
    with pytest.raises(KeyboardInterrupt):
        write_half(path, KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"complete")
    with pytest.raises(CommandError, match=rf"cannot write {path}: the disk is full"):
        write_half(path, OSError(28, "the disk is full"))
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"complete", [path])


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_is_replaced_and_not_followed(tmp_path: Path, *, there: bool):
    target, path = tmp_path / "target", tmp_path / "events.csv"
    if there:
        target.write_bytes(b"untouched")
    path.symlink_to(target)
    with output_file(path) as write:
        write(b"exported")
    assert (path.is_symlink(), path.read_bytes(), path.stat().st_mode & 0o777) == (False, b"exported", 0o600)
    assert target.exists() == there
    assert not there or target.read_bytes() == b"untouched"
