"""`svc export`: events and visitors as files, for other programs, for back-testing and for data subjects."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

import click
import msgspec
from click.core import ParameterSource

from svc.cli.help import CommandGroup, examples
from svc.cli.output import CommandError, data_option, standard_output
from svc.cli.records.event_source import (
    Wanted,
    events_wanted,
    filter_options,
    number_of,
    oldest_first,
    reading,
    say_nothing_found,
    time_options,
)
from svc.cli.records.events import Archived, Archives
from svc.cli.terminal import progress
from svc.domain.events.export import COLUMNS, csv_line, csv_row, json_row
from svc.domain.events.listing import Filters
from svc.domain.ids import is_visitor_id, made_at_ms
from svc.domain.model import Environment
from svc.domain.timestamps import timestamp
from svc.store import durable_files
from svc.store.inspection.inspection import Row
from svc.store.inspection.reading import ReadOnlyStore
from svc.store.inspection.showing import shown
from svc.store.inspection.visitor_rows import VisitorRows
from svc.store.schema.key_parts import show_uuid
from svc.store.steps import QUIET, Steps
from svc.store.views.events import EventMatch
from svc.world import World


def visitor_export(store: ReadOnlyStore, organization_id: str, number: int, visitor_id: str) -> Iterator[bytes]:
    """The document in pieces: `{organization_id, visitor_id, exported_at, event_count, visitor: {table: [row]},
    events: [{request_id, rows: {table: [row]}}]}`, events by their ids, oldest first; a row has `key` and `value` as
    `svc inspect` shows them. Raises `CommandError` where nothing is kept of such a visitor.
    """
    found = VisitorRows(store, number, visitor_id) if is_visitor_id(visitor_id) else None
    if found is None or not found.exists:
        raise CommandError(f"{organization_id} has no visitor {visitor_id!r}; `svc visitor list` shows them")
    head = {
        "organization_id": organization_id,
        "visitor_id": visitor_id,
        "exported_at": timestamp(World.real().now_ms()),
        "event_count": len(found.request_ids),
        "visitor": _by_table(found.of_visitor()),
    }
    return _pieces(head, found)


def _pieces(head: dict[str, Any], found: VisitorRows) -> Iterator[bytes]:
    yield _encoder.encode(head)[:-1] + b',"events":['
    comma = b"\n"
    for request_id in sorted(found.request_ids, key=made_at_ms):
        rows = found.of_event(request_id)
        if rows:
            yield comma + _encoder.encode({"request_id": show_uuid(request_id), "rows": _by_table(rows)})
            comma = b",\n"
    yield b"\n]}\n"


def _by_table(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        described = shown(row, payload=True)
        tables[described.pop("table")].append(described)
    return tables


_PERMILLE = 1000
_OF_EVENTS = ("environment", "since_ms", "until_ms")
"""Options of `svc export visitor` that its one document has no use for."""

_encoder = msgspec.json.Encoder()
output_option = click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write, readable by you alone; .gz is compressed. Standard output else.",
)


@click.group(cls=CommandGroup)
def export() -> None:
    """Export events or a visitor to a file."""


@export.command(
    "events",
    epilog=examples(
        "svc export events ORG --since 7d --format csv --output events.csv",
        "svc export events ORG --documents --output traffic.jsonl.gz",
    ),
)
@click.argument("organization_id", metavar="ORG")
@filter_options(since="30d")
@click.option(
    "--format",
    "form",
    type=click.Choice(("jsonl", "csv")),
    default="jsonl",
    show_default=True,
    help="JSON lines, or CSV with a fixed list of columns.",
)
@click.option("--documents", is_flag=True, help="With the archived reports, which `svc replay` needs. JSON lines only.")
@output_option
@data_option
def export_events(
    organization_id: str, wanted: Wanted, form: str, documents: bool, output: Path | None, directory: Path
) -> None:
    """Events of an organization, oldest first, also while the service runs.

    A JSON line is a row of GET /events, with --documents the response of GET /events/{request_id} and the headers of
    its request. In CSV, lists are joined by spaces, control characters such as line breaks are escaped, and a cell
    that begins with = + - @ gets an apostrophe in front, so that no spreadsheet evaluates it. Events that arrive after
    the start are not in it.
    """
    if documents and form == "csv":
        raise click.UsageError("--documents goes with JSON lines alone: a report has no columns")
    _export(organization_id, wanted, form, output, directory, documents=documents)


def _export(
    organization_id: str, wanted: Wanted, form: str, output: Path | None, directory: Path, *, documents: bool = False
) -> None:
    with reading(directory) as store:
        number = number_of(store, organization_id)
        with output_file(output) as write, _progress(output) as steps:
            if documents:
                read = partial(Archives().read_all, number)
                written = _write(store, number, wanted, steps, write, _archived, read_events=read)
            elif form == "csv":
                write(csv_line(COLUMNS))
                written = _write(store, number, wanted, steps, write, _csv_row)
            else:
                written = _write(store, number, wanted, steps, write, _json_row)
    if not written:
        say_nothing_found(wanted.environment)


@export.command(
    "visitor",
    epilog=examples(
        "svc export visitor ORG VISITOR --output visitor.json",
        "svc export visitor ORG VISITOR --format csv --since 7d --output visits.csv",
    ),
)
@click.argument("organization_id", metavar="ORG")
@click.argument("visitor_id", metavar="VISITOR")
@click.option(
    "--format",
    "form",
    type=click.Choice(("json", "jsonl", "csv")),
    default="json",
    show_default=True,
    help="One JSON document with everything, or the visitor's events as JSON lines or CSV.",
)
@time_options(since="30d")
@output_option
@data_option
@click.pass_context
def export_visitor(  # noqa: PLR0913, PLR0917  one parameter per option
    context: click.Context,
    organization_id: str,
    visitor_id: str,
    form: str,
    environment: Environment,
    since_ms: int,
    until_ms: int | None,
    output: Path | None,
    directory: Path,
) -> None:
    """Export everything stored about a visitor as one JSON document, for a data subject's request.

    It has the rows that svc visitor erase would delete, in every environment, reports and webhooks included. With
    --format jsonl or csv the visitor's events alone, of one environment and time, as svc export events writes them. The
    same as svc visitor export.
    """
    if form != "json":
        if not is_visitor_id(visitor_id):
            raise CommandError(f"{visitor_id!r} is no visitor id, which is 20 letters and digits")
        wanted = events_wanted(environment, since_ms, until_ms, Filters(visitor_id=visitor_id))
        _export(organization_id, wanted, form, output, directory)
        return
    if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in _OF_EVENTS):
        raise click.UsageError("--environment, --since and --until go with --format jsonl or csv: json has everything")
    with reading(directory) as store:
        parts = visitor_export(store, organization_id, number_of(store, organization_id), visitor_id)
        with output_file(output) as write:
            for part in parts:
                write(part)


def _write(
    store: ReadOnlyStore,
    number: int,
    wanted: Wanted,
    steps: Steps,
    write: Callable[[bytes], Any],
    encode: Callable[[Any], bytes],
    **reading_options: Any,
) -> int:
    """Write every event, encoded, and return how many; the progress is the share of the time that was asked for."""
    steps.stage("exporting", _PERMILLE)
    written = shown = 0
    for stretch in oldest_first(store, number, wanted, **reading_options):
        for found in stretch.found:
            write(encode(found))
        written += len(stretch.found)
        reached = _PERMILLE * (stretch.to_ms - wanted.since_ms) // (wanted.until_ms - wanted.since_ms)
        steps.step(reached - shown)
        shown = reached
    return written


def _json_row(match: EventMatch) -> bytes:
    return json_row(match.event, match.request_id)


def _csv_row(match: EventMatch) -> bytes:
    return csv_row(match.event, match.request_id)


def _archived(archived: Archived) -> bytes:
    return archived.line() + b"\n"


@contextmanager
def output_file(path: Path | None) -> Generator[Callable[[bytes], Any]]:
    """Standard output, or a file that only its owner can read, since exports are personal data.

    The file gets its name, and replaces what had it, when it is complete. A device or a pipe is written as it is.
    Raises `CommandError` where the file cannot be written.
    """
    if path is None:
        yield standard_output()
        sys.stdout.buffer.flush()
        return
    try:
        with path.open("wb") if _is_special(path) else _replacement(path) as file:
            if path.suffix != ".gz":
                yield file.write
                return
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                yield packed.write
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def _is_special(path: Path) -> bool:
    """Whether it is a device, a pipe, or an open file such as `/dev/stdout`. Follows no other symbolic link."""
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
    """A temporary file of mode 0600 beside `path`: renamed to it at the end of the block, deleted where that fails."""
    descriptor, name = tempfile.mkstemp(prefix=".svc-export-", suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        durable_files.sync(Path(name))
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _progress(output: Path | None) -> Any:
    """None where the export itself goes to the terminal."""
    return nullcontext(QUIET) if output is None and sys.stdout.isatty() else progress()
