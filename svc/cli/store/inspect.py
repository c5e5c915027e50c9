"""`svc inspect`: what lies in a store, row by row, on a running service or in a snapshot. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial, wraps
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import click
import msgspec
from click.core import ParameterSource

from svc.command.data_directory import reading_directory, reading_snapshot
from svc.command.help import CommandGroup, examples
from svc.command.output import (
    CommandError,
    ShownTable,
    directory_option,
    json_lines_option,
    json_option,
    no_directory,
    readable,
    settings,
    show,
    show_json,
    show_table,
    store_option,
)
from svc.features.backup import snapshots
from svc.features.inspection.inspection import (
    Row,
    find_organization,
    of_request,
    organization_name,
    read_key,
    read_prefix,
)
from svc.features.inspection.inspection import rows as rows_of
from svc.features.inspection.showing import shown
from svc.features.inspection.subject_rows import of_visitor
from svc.features.tables import TABLES
from svc.identify.scoring.signals import EVIDENCE, PHRASES, meaning
from svc.kernel.store.reading import ReadOnlyFile, ReadOnlyStore
from svc.kernel.store.schema.table import Table
from svc.kernel.values.ids import is_visitor_id
from svc.kernel.values.struct_fields import named
from svc.kernel.values.timestamps import timestamp

F = TypeVar("F", bound=Callable[..., Any])
BY_NAME = {table.name: table for table in TABLES}


def source_options(command: F) -> F:
    """Add `--data DIR`, `--store URL` or `--snapshot PATH`; the command gets `store`, open while it runs. None, or a
    snapshot beside another, is a usage error.
    """

    @directory_option("The data directory, also while a service runs on it.")
    @store_option
    @click.option(
        "--snapshot", type=click.Path(path_type=Path), metavar="PATH", help="A snapshot of svc backup instead."
    )
    @click.pass_context
    @wraps(command)
    def given(context: click.Context, directory: Path | None, snapshot: Path | None, **rest: Any) -> Any:
        config = settings()
        if snapshot is None and directory is None and config.store is None:
            raise no_directory(", or a --snapshot")
        if snapshot is not None and context.get_parameter_source("directory") is ParameterSource.COMMANDLINE:
            raise click.UsageError("name --snapshot or --data, not both")
        with reading_directory(directory, config) if snapshot is None else reading_snapshot(snapshot) as store:
            return command(store=store, **rest)

    return given  # pyright: ignore[reportReturnType]  click calls it with the options above


def row_options(command: F) -> F:
    """Add `--payload` and `--json`, passed on as `payload` and `as_json`."""
    payload = "Show reports, webhook bodies, tags, addresses, notes and list entries as well: personal data."
    return json_lines_option(click.option("--payload", is_flag=True, help=payload)(command))


@click.group(cls=CommandGroup)
def inspect() -> None:
    """Look into a store, on a running service or in a snapshot. Nothing is written.

    Corrupt rows are shown with their keys, key digests are shortened, and what devices sent or people wrote needs
    --payload.
    """


@inspect.command(epilog=examples("svc inspect tables", "svc inspect tables --growth /var/backups/svc/SNAPSHOT"))
@click.option("--growth", "older", type=click.Path(path_type=Path), metavar="PATH", help="Compare with this snapshot.")
@source_options
@json_option
def tables(older: Path | None, store: ReadOnlyStore, as_json: bool) -> None:
    """Show rows and bytes of every table, the file, and its free space.

    A snapshot has no free or half empty pages: compare bytes between two snapshots, rows between any two stores.
    """
    sizes, summary = _sizes(store), _summary(store)
    columns: tuple[str, ...] = ("table", "rows", "pages", "bytes", "bytes_per_row")
    if older is not None:
        with reading_snapshot(older) as before:
            earlier = _sizes(before)
        for name, row in sizes.items():
            row |= {f"{what}_growth": row[what] - earlier[name][what] for what in ("rows", "bytes")}
        summary["growth_since"] = _taken_at(older)
        columns += ("rows_growth", "bytes_growth")
    page_bytes = summary.get("page_bytes")
    if page_bytes is None:
        columns = tuple(name for name in columns if name != "pages")
    listed = [row if page_bytes is None else {**row, "pages": row["bytes"] // page_bytes} for row in sizes.values()]
    show(summary, ShownTable("tables", listed, columns), as_json=as_json)


def _summary(store: ReadOnlyStore) -> dict[str, Any]:
    """Return the sizes of a file's parts, or the size of a database."""
    if not isinstance(store, ReadOnlyFile):
        with store.read() as snapshot:
            return {"commit": snapshot.reader.commit, "database_bytes": store.used_bytes}
    size = store.size()
    return {
        "commit": size.commit,
        "file_bytes": size.pages * size.page_bytes,
        "free_bytes": size.free_pages * size.page_bytes,
        "map_bytes": size.map_bytes,
        "page_bytes": size.page_bytes,
    }


def _sizes(store: ReadOnlyStore) -> dict[str, dict[str, Any]]:
    """Return the size of each table in one state; `bytes` are those of whole pages."""
    sizes: dict[str, dict[str, Any]] = {}
    with store.read() as snapshot:
        for table in TABLES:
            count, taken = snapshot.count(table), snapshot.size(table)
            per_row = round(taken / count) if count else None
            sizes[table.name] = {"table": table.name, "rows": count, "bytes": taken, "bytes_per_row": per_row}
    return sizes


def _taken_at(path: Path) -> str | None:
    if not path.is_dir() or not snapshots.is_snapshot(path):
        return None
    return timestamp(snapshots.read(path).manifest.taken_at_ms)


@inspect.command(epilog=examples("svc inspect readers"))
@source_options
@json_option
def readers(store: ReadOnlyStore, as_json: bool) -> None:
    """Show processes that read the store, and how many commits old their views are.

    Pages freed since the oldest view cannot be reused. A running service removes an ended process within a minute.
    Only for a store in a data directory.
    """
    if not isinstance(store, ReadOnlyFile):
        raise CommandError("readers of a database are sessions: its view pg_stat_activity shows them")
    commit = store.size().commit
    found = [
        named(reader, "process", "thread", "commit")
        | {"behind": None if reader.commit is None else max(0, commit - reader.commit)}
        for reader in store.readers()
    ]
    show_table(found, ("process", "thread", "commit", "behind"), "readers", as_json=as_json)


@inspect.command(epilog=examples("svc inspect rows organization_keys --org ORG --limit 10"))
@click.argument("table")
@click.option("--org", "organization", metavar="ORG", help="Organization: its id or number.")
@click.option("--key", "parts", multiple=True, metavar="PART", help="A part of the key; repeat in order.")
@click.option("--prefix", metavar="P", help="First bytes of the key in hexadecimal, or text for text keys.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000_000), default=100, show_default=True, metavar="N", help="Maximum number."
)
@row_options
@source_options
def rows(
    table: str,
    organization: str | None,
    parts: tuple[str, ...],
    prefix: str | None,
    limit: int,
    store: ReadOnlyStore,
    payload: bool,
    as_json: bool,
) -> None:
    """Show rows of a table in key order.

    Write parts of keys as they are shown: --org ORG --key 2026-01-05
    """
    found = BY_NAME.get(table)
    if found is None:
        raise CommandError(f"there is no table {table!r}; there are {', '.join(BY_NAME)}")
    try:
        stem = _stem(store, found, organization, parts, prefix)
    except ValueError as error:
        raise CommandError(str(error)) from error
    all_rows = rows_of(store, found, stem)
    _print(store, islice(all_rows, limit), payload=payload, as_json=as_json, more=all_rows)


def _stem(
    store: ReadOnlyStore, table: Table[Any], organization: str | None, parts: tuple[str, ...], prefix: str | None
) -> bytes:
    if prefix is not None:
        if organization is not None or parts:
            raise click.UsageError("--prefix goes without --org and --key")
        return read_prefix(table, prefix)
    if organization is None:
        return read_key(table, parts)
    if not table.by_organization:
        raise CommandError(f"the rows of {table.name} are not kept by organization")
    return read_key(table, (str(_number(store, organization)), *parts))


@inspect.command(epilog=examples("svc inspect request 019b76da-a800-7000-8000-000000000000"))
@click.argument("request_id", type=click.UUID)
@row_options
@source_options
def request(request_id: UUID, store: ReadOnlyStore, payload: bool, as_json: bool) -> None:
    """Show everything stored about a request, in order of time.

    Its event, report, charge and idempotency key, its reviews, its webhook events with deliveries and attempts, its
    audit record. As text, each name of evidence is followed by its meaning.
    It reads idempotency keys, reviews and later attempts, which takes time in a large store.
    """
    found = of_request(store, request_id)
    if not found:
        raise CommandError(f"nothing is kept of the request {request_id}")
    _print(store, found, payload=payload, as_json=as_json)


@inspect.command(epilog=examples("svc inspect visitor ORG VISITOR --payload"))
@click.argument("organization", metavar="ORG")
@click.argument("visitor_id", metavar="VISITOR")
@row_options
@source_options
def visitor(organization: str, visitor_id: str, store: ReadOnlyStore, payload: bool, as_json: bool) -> None:
    """Show what is stored about a visitor: every row that erasing it would delete, and its events.

    ORG is the id of an organization, or its number.
    """
    number = _number(store, organization)
    found = of_visitor(store, number, visitor_id) if is_visitor_id(visitor_id) else iter(())
    if not _print(store, found, payload=payload, as_json=as_json):
        raise CommandError(f"nothing is kept of a visitor {visitor_id!r} of this organization")


def _number(store: ReadOnlyStore, organization: str) -> int:
    number = find_organization(store, organization)
    if number is None:
        raise CommandError(f"there is no organization {organization!r}; `svc inspect rows organizations` shows them")
    return number


def _print(
    store: ReadOnlyStore, found: Iterable[Row], *, payload: bool, as_json: bool, more: Iterable[Row] = ()
) -> int:
    """Print each row as soon as it is read. Return how many there were; raise `CommandError` if some are corrupt."""
    count = corrupt = 0
    names = cache(partial(organization_name, store))
    for count, row in enumerate(found, start=1):
        corrupt += row.problem is not None
        words = shown(row, payload=payload)
        if as_json:
            show_json(words)
        else:
            click.echo(_text(words, names, is_first=count == 1))
    if any(True for _ in more):
        click.echo("There are more: raise --limit, or name more of the key.", err=True)
    if corrupt:
        raise CommandError(f"{corrupt} corrupt rows; `svc check` finds all, and a restore from a backup repairs them")
    return count


def _text(words: dict[str, Any], names: Callable[[int], str], *, is_first: bool) -> str:
    """Return the table and the key in one line, an organization with its name, and the fields of the value below."""
    key = words.get("key", {"key bytes": words.get("key_bytes"), "corrupt": words.get("corrupt")})
    fields: dict[str, Any] = words.get("value", {})
    head = f"{words['table']}  " + "  ".join(
        f"{name} {readable(None if part == '' else part)}" + (names(int(part)) if name == "organization" else "")
        for name, part in key.items()
    )
    width = max(map(len, fields), default=0)
    lines = [head if is_first else f"\n{head}"]
    for name, value in fields.items():
        lines.append(f"  {name:<{width}}  {_field(value)}")
        meanings = _explained(words["table"], name, value)
        lines += [f"  {'':<{width}}  {readable(part)}: {meaning}" for part, meaning in meanings]
    return "\n".join(lines)


def _explained(table: str, field: str, value: Any) -> list[tuple[str, str]]:
    """Return the names in this field that have a meaning of their own, each with its meaning."""
    match f"{table}.{field}":
        case "documents.evidence":
            return [(name, meaning(EVIDENCE, name)) for name in dict.fromkeys(chain.from_iterable(value.values()))]
        case "documents.changes":
            return [(name, meaning(PHRASES.changes, name)) for name in value or ()]
        case "events.verdict":
            linkage, reason = value["linkage"], value["reason"]
            why = [] if reason is None else [(reason, meaning(PHRASES.reasons, reason))]
            return [(linkage, meaning(PHRASES.linkage, linkage)), *why]
        case _:
            return []


def _field(value: Any) -> str:
    return readable(msgspec.json.encode(value).decode() if isinstance(value, dict | list) and value else value)
