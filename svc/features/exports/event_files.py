"""Files of events and changes: JSON lines, CSV or Parquet; complete or not there, and readable by their owner alone."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Generic, Literal, Protocol, TypeVar
from uuid import UUID

import msgspec

from svc.command.output import CommandError, standard_output
from svc.features.changes.bodies import change_body
from svc.features.changes.jobs import Change
from svc.features.exports.lines import (
    FILE_COLUMNS,
    FILE_KINDS,
    Kind,
    csv_row,
    json_row,
    plain_row,
    unreadable_csv_row,
    unreadable_json_row,
    unreadable_row,
)
from svc.identify.queries.events import EventMatch, UnreadableEvent
from svc.identify.records import Event
from svc.kernel.store.files import durable_files
from svc.kernel.store.files.ending import ended_by_signals
from svc.kernel.values.errors import explained
from svc.kernel.values.text_files import csv_line
from svc.kernel.values.timestamps import timestamp

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R = TypeVar("R")

_PREFIX, _SUFFIX = ".svc-export-", ".partial"
PARTIAL = f"{_PREFIX}*{_SUFFIX}"
"""Names of files that are being written, or were left by a program that was ended."""


@contextmanager
def output_file(path: Path | None) -> Generator[Callable[[bytes], Any]]:
    """Open for writing, in a `with` block, standard output or a file that only its owner can read, since exports are
    personal data. The file appears under its name, replacing an earlier one, when it is complete. A device or a pipe is
    written directly. Raises `CommandError` if the file cannot be written.
    """
    if path is None:
        yield standard_output()
        sys.stdout.buffer.flush()
        return
    try:
        with ended_by_signals(), path.open("wb") if _is_special(path) else _replacement(path) as file:
            if path.suffix != ".gz":
                yield file.write
                return
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                yield packed.write
    except OSError as error:
        raise CommandError(explained("cannot write", path, error)) from error


def _is_special(path: Path) -> bool:
    """Return whether it is a device, a pipe, or an open file such as `/dev/stdout`; not for other symbolic links."""
    folder = path.parent.resolve()
    if folder in {Path("/dev"), Path("/dev/fd")} or folder.is_relative_to("/proc"):
        return True
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISLNK(mode)


@contextmanager
def _replacement(path: Path) -> Generator[IO[bytes]]:
    """Yield a temporary file of mode 0600 beside `path`. It replaces `path` at the end, and is deleted on failure."""
    descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        durable_files.sync(Path(name))
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


Form = Literal["jsonl", "csv", "parquet"]
FORMS: tuple[Form, ...] = ("jsonl", "csv", "parquet")
_OF_CHANGE = ("type", "at")
CHANGE_KINDS: dict[str, Kind] = {"type": "text", "at": "time", **FILE_KINDS}
_ROWS_A_GROUP = 10_000
"""Of Parquet, held in memory: about 20 MB."""

Write = Callable[[bytes], Any]
_encoder = msgspec.json.Encoder()


class EventFile(Protocol[T_contra]):
    """A file that is being written."""

    def add(self, found: T_contra, /) -> None:
        """Write one row, or keep it back; of an event that cannot be read, its id and the error."""
        ...

    def end(self) -> None:
        """Write what was buffered, and the end of the file in this format."""
        ...


def event_file(form: Form, write: Write) -> EventFile[EventMatch | UnreadableEvent]:
    """Return a file of that form, whose bytes go to `write`. Raises `CommandError` if Parquet is not installed."""
    match form:
        case "jsonl":
            return _Lines(write, _of_event(json_row, unreadable_json_row))
        case "csv":
            write(csv_line(FILE_COLUMNS))
            return _Lines(write, _of_event(csv_row, unreadable_csv_row))
        case "parquet":
            return _Parquet(write, FILE_KINDS, _of_event(plain_row, unreadable_row))


def _of_event(row: Callable[[Event, UUID], R], unreadable: Callable[[UUID], R]) -> Callable[..., R]:
    def of(found: EventMatch | UnreadableEvent) -> R:
        if isinstance(found, UnreadableEvent):
            return unreadable(found.request_id)
        return row(found.event, found.request_id)

    return of


def change_file(form: Form, write: Write) -> EventFile[Change]:
    """Return the same of changes: the columns of an event stand behind those of the change. What has no event has its
    id, and its label where that alone is kept.
    """
    match form:
        case "jsonl":
            return _Lines(write, _json_change)
        case "csv":
            write(csv_line(_OF_CHANGE + FILE_COLUMNS))
            return _Lines(write, _csv_change)
        case "parquet":
            return _Parquet(write, CHANGE_KINDS, _plain_change)


def _json_change(change: Change) -> bytes:
    return _encoder.encode(change_body(change)) + b"\n"


def _csv_change(change: Change) -> bytes:
    match change.event:
        case EventMatch(request_id, event):
            row = csv_row(event, request_id)
        case UnreadableEvent(request_id):
            row = unreadable_csv_row(request_id)
        case None:
            row = csv_line(tuple(_alone(change).get(name) or "" for name in FILE_COLUMNS))
    return csv_line((change.type, timestamp(change.at_ms))).rstrip(b"\n") + b"," + row


def _plain_change(change: Change) -> dict[str, Any]:
    match change.event:
        case EventMatch(request_id, event):
            row = plain_row(event, request_id)
        case UnreadableEvent(request_id):
            row = unreadable_row(request_id)
        case None:
            row: dict[str, Any] = _alone(change)
    return {**row, "type": change.type, "at": change.at_ms}


def _alone(change: Change) -> dict[str, str | None]:
    """Return what is known of an event that is not there."""
    label, reason = change.labeled or (None, None)
    return {"request_id": str(change.request_id), "label": label, "label_reason": reason}


class _Lines(Generic[T]):
    def __init__(self, write: Write, line: Callable[[T], bytes]) -> None:
        self._write, self._line = write, line

    def add(self, found: T, /) -> None:
        self._write(self._line(found))

    def end(self) -> None:
        pass


class _Parquet(Generic[T]):
    """A Parquet file with the columns and types of CSV: `request_id` as text, `occurred_at` in milliseconds of UTC."""

    def __init__(self, write: Write, kinds: Mapping[str, Kind], row: Callable[[T], dict[str, Any]]) -> None:
        try:
            pyarrow: Any = import_module("pyarrow")  # an extra, and half a second
            parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise CommandError(
                "Parquet needs pyarrow: pip install 'svc-visitor-id[parquet]', or choose another --format"
            ) from None
        self._row = row
        types: dict[Kind, Any] = {
            "id": pyarrow.string(),
            "time": pyarrow.timestamp("ms", tz="UTC"),
            "text": pyarrow.string(),
            "texts": pyarrow.list_(pyarrow.string()),
            "integer": pyarrow.int32(),
            "boolean": pyarrow.bool_(),
        }
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
        self._writer: Any = parquet.ParquetWriter(_Out(write), self._schema, compression="zstd")
        self._batch: Any = pyarrow.RecordBatch.from_pylist
        self._rows = list[dict[str, Any]]()

    def add(self, found: T, /) -> None:
        self._rows.append(self._row(found))
        if len(self._rows) == _ROWS_A_GROUP:
            self._flush()

    def end(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_batch(self._batch(self._rows, schema=self._schema))
            self._rows.clear()


class _Out:
    """The file interface that pyarrow needs."""

    closed = False

    def __init__(self, write: Write) -> None:
        self._write, self._size = write, 0

    def write(self, content: Any) -> int:
        size = len(content)
        self._write(bytes(content))
        self._size += size
        return size

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass
