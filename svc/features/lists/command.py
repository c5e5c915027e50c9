"""`svc list`: lists of visitors, accounts, addresses and more, which rules look up (decisions 12)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import IO

import click

from svc.command.changes import apply
from svc.command.data_directory import read_through
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import (
    CommandError,
    ShownTable,
    confirmed,
    readable,
    show,
    show_json,
    standard_output,
    yes_option,
)
from svc.features.lists import jobs as transactions
from svc.features.lists.jobs import ROWS_OF_AN_ENTRY, Added, NewEntry
from svc.features.lists.lists import (
    LIST_KINDS,
    LONGEST_NOTE,
    MAX_ENTRIES,
    ListEntry,
    ListKind,
    StoredList,
    canonical,
    is_list_name,
)
from svc.features.lists.queries import entries_behind, named_list
from svc.features.lists.standing import list_effects
from svc.features.rules.jobs import ruleset_in_force
from svc.identify.velocity.counts import KINDS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import items_of_step
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.text_files import SEPARATORS, CsvError, Form, Row, Table, csv_line, read_table, written
from svc.kernel.values.timestamps import read_timestamp, timestamp

COLUMNS = ("value", "note", "expires_at")
"""Of the CSV, in this order; what is behind the value may be left out."""
SUSPECTS = frozenset(
    {"account", "account_id", "customer", "customer_id", "email", "id", "tag", "user", "user_id", "username", "values"}
)
"""First lines that begin so are headers of other programs, where any text may be a value."""
SHORTENED = re.compile(r"\d(?:[.,]\d+)?E\+\d\d+", re.ASCII)
"""A number of many digits, as a spreadsheet writes it in fewer."""
MAX_SHOWN = 5
"""Entries that are shown before they are added."""
_SHOWN = ("name", "kind", "entries", "id", "created_at", "updated_at")


@click.group("list", cls=OrganizationGroup)
def lists() -> None:
    """List, create, delete, import and export lists of values, which rules look up."""


@lists.command("list", reads=True, epilog=examples("svc list list ORG", "svc list list ORG --json"))
def list_(operation: Operation) -> None:
    """List all lists of an organization, the six that each has among them."""
    operation.show_rows(operation.call("lists.routes.listLists")["lists"], "lists", _SHOWN)


@lists.command(epilog=examples("svc list create ORG vip_accounts --kind account"))
@click.argument("name")
@click.option("--kind", type=click.Choice(LIST_KINDS), required=True, help="What its entries are.")
def create(operation: Operation, name: str, kind: str) -> None:
    """Create an empty list. Rules name it by NAME: a letter, then letters, digits and _, in lower case."""
    if not is_list_name(name):
        raise CommandError(f"{name!r} is not a list name: a lower-case letter, then up to 47 of a-z, 0-9 and _")
    operation.show(operation.call("lists.routes.createList", body={"name": name, "kind": kind}, about=name))


@lists.command(epilog=examples("svc list delete ORG vip_accounts", "svc list delete ORG vip_accounts --yes"))
@click.argument("name")
@yes_option
def delete(operation: Operation, name: str, sure: bool) -> None:
    """Delete a list with its entries."""
    known = _named(operation, name)
    if not known.is_permanent:
        confirmed(f"This deletes the list {name} of {operation.organization_id} with its entries, for good.", sure=sure)
    operation.call("lists.routes.deleteList", list_id=known.id, about=name, recorded={"name": name})
    deleted = {"organization_id": operation.organization_id, "id": known.id, "name": name, "status": "deleted"}
    operation.show(deleted)


@lists.command(
    "import",
    epilog=examples(
        "svc list import ORG blocked_addresses networks.csv",
        "svc list import ORG vip_accounts export.csv --dry-run",
        "svc list import ORG vip_accounts - --separator semicolon",
    ),
)
@click.argument("name")
@click.argument("file", type=click.File("rb"))
@click.option("--separator", type=click.Choice(tuple(SEPARATORS)), help="Of the columns; found if not given.")
@click.option("--dry-run", is_flag=True, help="Show how the file is read, and add nothing.")
@yes_option
def import_(operation: Operation, name: str, file: IO[bytes], separator: str | None, dry_run: bool, sure: bool) -> None:
    """Add the entries of a CSV file to a list; - is standard input.

    Columns are value, note and expires_at, the last two optional. The first line may name them, in any order and
    spelling; they are separated by commas, semicolons or tabs. A value that is in the list gets a new note and expiry.
    If a line is wrong, or could be read in two ways, nothing is added.

    On a terminal the first entries are shown, and you are asked; elsewhere they are added at once.
    """
    known = _named(operation, name)
    table, entries = read_csv(file.read(), known.kind, operation.now_ms, separator)
    shortened = [row for row in table.rows if SHORTENED.fullmatch(row.cells["value"])]
    if shortened:
        line, value = shortened[0].line, shortened[0].cells["value"]
        _warn(
            f"{len(shortened)} of {len(table.rows)} values look like long numbers whose last digits a spreadsheet "
            f"dropped, such as {value} (line {line}): make the column text, and export the file again"
        )
    if dry_run:
        _show_first(name, table, entries, as_json=operation.as_json)
        return
    if not sure and not operation.as_json and sys.stdin.isatty() and file.name != sys.stdin.name:
        _show_first(name, table, entries, as_json=False)
        many = f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'}"
        confirmed(f"This adds {many} to {name}.", sure=False)
    added = _import(operation, known, entries)
    with operation.store.read() as snapshot:
        warnings = _warnings(snapshot, operation.number, name)
    operation.show({"id": known.id, "name": name, "added": added.added, "replaced": added.replaced})
    for warning in warnings:
        _warn(warning)


def _warn(warning: str) -> None:
    click.echo(f"Warning: {readable(warning)}", err=True)


def _warnings(snapshot: Snapshot, number: int, name: str) -> list[str]:
    """Return why entries of a built-in list have no effect, by kind of environment."""
    return [
        f"{name} ({kind}): {effect.reason}"
        for kind in KINDS
        for effect in list_effects(ruleset_in_force(snapshot, number, kind))
        if effect.name == name and effect.effect == "never"
    ]


def _show_first(name: str, table: Table, entries: list[NewEntry], *, as_json: bool) -> None:
    """Show how a file was read: its separator, header and first entries."""
    rows = [_row_of(entry.value, entry.note, entry.expires_at_ms) for entry in entries[:MAX_SHOWN]]
    read = {
        "name": name,
        "separator": table.separator,
        "header": None if table.header is None else ",".join(table.header),
        "entries": len(entries),
    }
    show(read, ShownTable("first", rows, COLUMNS), as_json=as_json)


def _import(operation: Operation, known: StoredList, entries: list[NewEntry]) -> Added:
    """Add the entries in several transactions, if all of them fit. The first one also writes the audit record."""
    number, now_ms = operation.number, operation.now_ms
    values = {entry.value for entry in entries}
    if not _has_room(operation, len(values)):
        values.difference_update(entry.value for entry in _entries(operation, known))
        if not _has_room(operation, len(values)):
            raise CommandError(f"an organization has at most {MAX_ENTRIES:,} entries in its lists; nothing was added")
    added = replaced = 0
    most = items_of_step(3 * ROWS_OF_AN_ENTRY)  # with each, two that have expired may be deleted
    for start in range(0, max(len(entries), 1), most):
        some = entries[start : start + most]

        def job(transaction: Transaction, some: list[NewEntry] = some, start: int = start) -> Added:
            outcome = transactions.add_entries(transaction, number, known.id, some, now_ms)
            if isinstance(outcome, Refusal):
                raise CommandError(f"{outcome.message} {start} of {len(entries)} entries were added before.")
            return outcome

        outcome = (
            apply(operation.found, job, is_pure=True)
            if start
            else operation.change(job, {"entries": entries}, known.id, is_pure=True)
        )
        added, replaced = added + outcome.added, replaced + outcome.replaced
    return Added(added, replaced)


def _has_room(operation: Operation, added: int) -> bool:
    with operation.store.read() as snapshot:
        return transactions.has_room(snapshot, operation.number, added, operation.now_ms)


def read_csv(content: bytes, kind: ListKind, now_ms: int, separator: str | None = None) -> tuple[Table, list[NewEntry]]:
    """Return a CSV file as it was read, and its entries. Raises `CommandError` with the number of the first line that
    is wrong. `separator`: see `read_table`.
    """
    form = Form(COLUMNS, ("value",), suspects=SUSPECTS if kind in ("account", "tag") else frozenset())
    try:
        table = read_table(content, form, separator)
    except CsvError as error:
        raise CommandError(f"{error}; nothing was added") from None
    return table, [_entry(row, kind, now_ms) for row in table.rows]


def _entry(row: Row, kind: ListKind, now_ms: int) -> NewEntry:
    value, note, expires_at = (row.cells[column] for column in COLUMNS)
    spelled = canonical(kind, value)
    at_ms = read_timestamp(expires_at) if expires_at else None
    fault = None
    if spelled is None:
        fault = f"{value!r} is not a value of a list of kind {kind}"
    elif len(note) > LONGEST_NOTE:
        fault = f"the note has more than {LONGEST_NOTE} characters"
    elif expires_at and at_ms is None:
        fault = f"{expires_at!r} is not a time such as 2026-01-05T10:00:00Z"
    elif at_ms is not None and at_ms <= now_ms:
        fault = f"{expires_at} is in the past"
    if fault is not None or spelled is None:
        raise CommandError(f"line {row.line}: {fault}; nothing was added")
    return NewEntry(spelled, note, at_ms)


@lists.command(reads=True, epilog=examples("svc list export ORG blocked_addresses > networks.csv"))
@click.argument("name")
def export(operation: Operation, name: str) -> None:
    """Print the entries of a list as CSV, as `svc list import` reads it, without those that have expired.

    A cell that begins with = + - @ gets an apostrophe in front, so that no spreadsheet evaluates it; --json has exact
    values.
    """
    known = _named(operation, name)
    entries = _entries(operation, known)
    if operation.as_json:
        show_json({"id": known.id, "name": name, "kind": known.kind, "entries": [_row(each) for each in entries]})
        return
    write = standard_output()
    write(csv_line(COLUMNS))
    for entry in entries:
        write(csv_line(tuple(written(value or "") for value in _row(entry).values())))
    sys.stdout.buffer.flush()


def _entries(operation: Operation, known: StoredList) -> Iterator[ListEntry]:
    """Yield the living entries in the order of their values."""

    def scan(snapshot: Snapshot, after: str, count: int) -> list[tuple[str, ListEntry]]:
        return entries_behind(snapshot, operation.number, known.id, "", after, count)

    return (entry for _, entry in read_through(operation.store, scan, "") if entry.is_living(operation.now_ms))


def _row(entry: ListEntry) -> dict[str, str | None]:
    return _row_of(entry.value, entry.note, entry.expires_at_ms)


def _row_of(value: str, note: str, expires_at_ms: int | None) -> dict[str, str | None]:
    expires_at = None if expires_at_ms is None else timestamp(expires_at_ms)
    return dict(zip(COLUMNS, (value, note, expires_at), strict=True))


def _named(operation: Operation, name: str) -> StoredList:
    with operation.store.read() as snapshot:
        found = named_list(snapshot, operation.number, name)
    if found is None:
        of = operation.organization_id
        raise CommandError(f"{of} has no list {name!r}; `svc list list {of}` shows them")
    return found
