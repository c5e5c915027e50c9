"""`svc export`: events and visitors as files, for other programs, for back-testing and for data subjects; `svc sql`:
events as a table in the database.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import click
import msgspec
from click.core import ParameterSource

from svc.command.data_directory import Readable, database_of, known_organization, opened, reading
from svc.command.help import CommandGroup, examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, confirmed, data_option, json_option, progress, settings, show, yes_option
from svc.features.events.command import Archived, Archives
from svc.features.events.source import (
    Wanted,
    events_wanted,
    filter_options,
    oldest_first,
    refuse_filters,
    refuse_in_feed,
    say_nothing_found,
    time_options,
)
from svc.features.events.tail_command import feed_store
from svc.features.exports.event_files import FORMS, Form, event_file, output_file
from svc.features.exports.hourly import HoursWanted, export_hours
from svc.features.exports.lines import unreadable_json_row
from svc.features.inspection.inspection import Row
from svc.features.inspection.showing import shown
from svc.features.inspection.subject_rows import SubjectRows
from svc.identify.events.listing import filters_of
from svc.identify.model import Subject
from svc.identify.queries.events import UnreadableEvent
from svc.identify.velocity.counts import ACCOUNT_ID
from svc.kernel.store.engine import Engine
from svc.kernel.store.reading import ReadOnlyStore, read_only_database
from svc.kernel.store.schema.key_parts import show_uuid
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.values.fields import Environment
from svc.kernel.values.ids import is_visitor_id
from svc.kernel.values.timestamps import timestamp
from svc.world import World


@click.group(cls=CommandGroup)
def sql() -> None:
    """Keep events in a table of plain columns, for SQL on PostgreSQL."""


@sql.command(epilog=examples("svc sql install --reader grafana --store postgresql://svc@db.example/svc"))
@click.option("--reader", metavar="ROLE", help="A role that may read it, and no other table of the store.")
@data_option
@json_option
def install(reader: str | None, directory: Path, as_json: bool) -> None:
    """Make the table svc.sql_events, fill it and keep it. Nodes may go on serving.

    From then on the transaction that writes, changes or deletes an event does the same in the table. Run it again after
    an upgrade, for new columns; to let another role read it; or if svc check reports missing rows.
    """
    with _database(directory) as (tables, engine), progress() as steps:
        done = tables.install(engine, reader, steps)
    show(done._asdict(), as_json=as_json)


@sql.command("show", epilog=examples("svc sql show --store postgresql://svc@db.example/svc"))
@data_option
@json_option
def show_(directory: Path, as_json: bool) -> None:
    """Show whether the table is installed, its rows and bytes, and who may read it."""
    with _database(directory) as (tables, engine):
        show(tables.installation(engine)._asdict(), as_json=as_json)


@sql.command(epilog=examples("svc sql remove --store postgresql://svc@db.example/svc"))
@yes_option
@data_option
@json_option
def remove(sure: bool, directory: Path, as_json: bool) -> None:
    """Drop the table. Events stay in the store."""
    with _database(directory) as (tables, engine):
        confirmed("This drops svc.sql_events, which dashboards may read.", sure=sure)
        tables.remove(engine)
    if as_json:
        show({"installed": False}, as_json=True)
    else:
        click.echo("svc.sql_events is gone")


@contextmanager
def _database(directory: Path) -> Generator[tuple[ModuleType, Engine]]:
    """Yield `sql_installation` and the engine of the store, which is in a database and of this version."""
    del directory  # which holds the pepper, and what is done here needs no key
    database = database_of(settings())
    if database is None:
        raise CommandError(
            "the store is in a data directory: name a database with --store, or export events with "
            "`svc export events --format parquet`"
        )
    with read_only_database(database) as store:
        from svc.features.exports import sql_installation  # noqa: PLC0415  needs the driver, which is an extra

        yield sql_installation, store.engine


def subject_export(
    store: ReadOnlyStore, organization_id: str, number: int, subject: Subject, subject_id: str
) -> Iterator[bytes]:
    """Return the document of a visitor or an account in pieces: `{organization_id, visitor_id | account_id,
    exported_at, event_count, visitor | account: {table: [row]}, events: [{request_id, rows: {table: [row]}}]}`, events
    by their ids, oldest first; a row has `key` and `value` as `svc inspect` shows them, a corrupt one with `corrupt` in
    their place (decisions 17.5). Raises `CommandError` if nothing is kept of it.
    """
    is_id = is_visitor_id if subject == "visitor" else ACCOUNT_ID.fullmatch
    found = SubjectRows(store, number, subject, subject_id) if is_id(subject_id) else None
    if found is None or not found.exists:
        raise CommandError(f"{organization_id} has no {subject} {subject_id!r}; `svc {subject} list` shows them")
    head = {
        "organization_id": organization_id,
        f"{subject}_id": subject_id,
        "exported_at": timestamp(World.real().now_ms()),
        "event_count": len(found.request_ids),
        subject: _by_table(found.of_subject()),
    }
    return _pieces(head, found)


def _pieces(head: dict[str, Any], found: SubjectRows) -> Iterator[bytes]:
    yield _encoder.encode(head)[:-1] + b',"events":['
    comma = b"\n"
    for request_id, rows in found.of_events():
        yield comma + _encoder.encode({"request_id": show_uuid(request_id), "rows": _by_table(rows)})
        comma = b",\n"
    yield b"\n]}\n"
    if found.corrupt:
        click.echo(f"{found.corrupt} corrupt rows, which the document names; `svc check` says what to do.", err=True)


def _by_table(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        described = shown(row, payload=True)
        tables[described.pop("table")].append(described)
    return tables


_PERMILLE = 1000
_OF_EVENTS = ("environment", "since_ms", "until_ms")
"""Options of `svc export visitor` and `account` that their one document has no use for."""

_encoder = msgspec.json.Encoder()
output_option = click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write, readable by you alone; .gz is compressed. Standard output else.",
)


@click.group(cls=OrganizationGroup)
def export() -> None:
    """Export events, a visitor or an account to a file."""


@export.command(
    "events",
    reads=True,
    has_json=False,
    epilog=examples(
        "svc export events ORG --since 7d --format csv --output events.csv",
        "svc export events ORG --documents --output traffic.jsonl.gz",
        "svc export events ORG --since 400d --format parquet --hourly /srv/events --follow",
        "svc export events ORG --since 400d --hourly /srv/changes --changes --follow",
    ),
)
@filter_options(since="30d")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    default="jsonl",
    show_default=True,
    help="JSON lines, or a fixed list of columns as CSV or Parquet (extra `parquet`).",
)
@click.option(
    "--hourly",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write a file for each complete hour that is not there yet, into a folder.",
)
@click.option("--follow", is_flag=True, help="Go on with the hours that come; with --hourly.")
@click.option("--changes", is_flag=True, help="Write the changes of events, as GET /changes has them; with --hourly.")
@click.option("--documents", is_flag=True, help="Add the archived reports, which `svc replay` needs. JSON lines only.")
@output_option
def export_events(
    operation: Operation,
    wanted: Wanted,
    form: Form,
    folder: Path | None,
    documents: bool,
    output: Path | None,
    **of_hours: bool,
) -> None:
    """Export events of an organization, oldest first, also while the service runs.

    A JSON line is a row of GET /events, with --documents the response of GET /events/{request_id} and the headers of
    its request. In CSV, lists are joined by spaces, control characters such as line breaks are escaped, and a cell
    that begins with = + - @ gets an apostrophe in front, so that no spreadsheet evaluates it. Parquet has the same
    columns with types and exact values. Events that arrive after the start are not in it.

    With --hourly, files such as events-2026-01-05T10Z.parquet are written two minutes after their hour (UTC), each
    under its name when it is complete. The next run goes on behind the last one, wherever that was ended. They are the
    feed of svc events tail --from, in parts: an event that is stored later is in a later file. With --changes, files
    such as changes-2026-01-05T10Z.jsonl have each event as event.created, and again as event.updated and event.erased.
    """
    if folder is not None and (documents or output is not None):
        raise click.UsageError("--hourly names its files itself, and has no --documents")
    for option, is_set in of_hours.items():
        if is_set and folder is None:
            raise click.UsageError(f"--{option} goes with --hourly")
    if of_hours["changes"]:
        refuse_filters(wanted)
    if folder is not None:
        refuse_in_feed(wanted, "--hourly")
    if documents and form != "jsonl":
        raise click.UsageError("--documents goes with JSON lines alone: a report has no columns")
    if folder is not None:
        with opened(operation.directory) as found, feed_store(found) as store:
            number = known_organization(store, operation.organization_id).number
            hours = HoursWanted(operation.organization_id, number, wanted, form, of_hours["changes"])
            export_hours(store, hours, folder, follow=of_hours["follow"])
        return
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise click.UsageError("Parquet is not text: name a file with --output")
    if form == "parquet" and output is not None and output.suffix == ".gz":
        raise click.UsageError("Parquet is compressed: name a file without .gz")
    _export(operation, wanted, form, output, documents=documents)


def _export(operation: Operation, wanted: Wanted, form: Form, output: Path | None, *, documents: bool = False) -> None:
    number, store = operation.number, operation.store
    with output_file(output) as write, _progress(output) as steps:
        if documents:
            read = partial(Archives().read_all, number)
            written = _write(store, number, wanted, steps, lambda each: write(_archived_line(each)), read_events=read)
        else:
            file = event_file(form, write)
            written = _write(store, number, wanted, steps, file.add)
            file.end()
    if not written:
        say_nothing_found(wanted.environment)


def subject_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of what exports a visitor or an account."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(("json", "jsonl", "csv")),
        default="json",
        show_default=True,
        help="One JSON document with everything, or the events alone as JSON lines or CSV.",
    )
    return form(time_options(since="30d")(output_option(command)))


@export.command(
    "visitor",
    reads=True,
    has_json=False,
    epilog=examples(
        "svc export visitor ORG VISITOR --output visitor.json",
        "svc export visitor ORG VISITOR --format csv --since 7d --output visits.csv",
    ),
)
@click.argument("visitor_id", metavar="VISITOR")
@subject_options
def export_visitor(operation: Operation, visitor_id: str, **options: Any) -> None:
    """Export everything stored about a visitor as one JSON document, for a data subject's request.

    It has the rows that svc visitor erase would delete, in every environment, reports and webhooks included. With
    --format jsonl or csv the visitor's events alone, of one environment and time, as svc export events writes them. The
    same as svc visitor export.
    """
    if options["form"] != "json" and not is_visitor_id(visitor_id):
        raise CommandError(f"{visitor_id!r} is not a visitor id, which is 20 letters and digits")
    _export_subject(operation, "visitor", visitor_id, **options)


@export.command(
    "account",
    reads=True,
    has_json=False,
    epilog=examples(
        "svc export account ORG ACCOUNT --output account.json",
        "svc export account ORG ACCOUNT --format csv --since 7d --output visits.csv",
    ),
)
@click.argument("account_id", metavar="ACCOUNT")
@subject_options
def export_account(operation: Operation, account_id: str, **options: Any) -> None:
    """Export everything stored about an account as one JSON document, for a data subject's request.

    It has the rows out of which svc account erase would take the account, in every environment: the events of all
    its visitors, with their reports and webhooks, and its labels, reviews, notes and lists. With --format jsonl or csv
    the account's events alone, of one environment and time, as svc export events writes them. The same as svc account
    export.
    """
    _export_subject(operation, "account", account_id, **options)


def _export_subject(
    operation: Operation,
    subject: Subject,
    subject_id: str,
    form: Literal["json", "jsonl", "csv"],
    environment: Environment,
    since_ms: int,
    until_ms: int | None,
    output: Path | None,
) -> None:
    if form != "json":
        wanted = events_wanted(environment, since_ms, until_ms, filters_of(subject, subject_id))
        _export(operation, wanted, form, output)
        return
    context = click.get_current_context()
    if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in _OF_EVENTS):
        raise click.UsageError("--environment, --since and --until go with --format jsonl or csv: json has everything")
    with reading(operation.directory) as store:
        number = known_organization(store, operation.organization_id).number
        parts = subject_export(store, operation.organization_id, number, subject, subject_id)
        with output_file(output) as write:
            for part in parts:
                write(part)


def _archived_line(found: Archived | UnreadableEvent) -> bytes:
    return unreadable_json_row(found.request_id) if isinstance(found, UnreadableEvent) else found.line() + b"\n"


def _write(
    store: Readable,
    number: int,
    wanted: Wanted,
    steps: Steps,
    add: Callable[[Any], Any],
    **reading_options: Any,
) -> int:
    """Add every event and return how many; progress is the share of the time window."""
    steps.stage("exporting", _PERMILLE)
    written = shown = 0
    for stretch in oldest_first(store, number, wanted, **reading_options):
        for found in stretch.found:
            add(found)
        written += len(stretch.found)
        reached = _PERMILLE * (stretch.to_ms - wanted.since_ms) // (wanted.until_ms - wanted.since_ms)
        steps.step(reached - shown)
        shown = reached
    return written


def _progress(output: Path | None) -> Any:
    """Return a progress display; a silent one where the export itself goes to the terminal."""
    return nullcontext(QUIET) if output is None and sys.stdout.isatty() else progress()
