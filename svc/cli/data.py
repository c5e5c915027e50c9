"""`svc data` and `svc check`: what is known of addresses, and whether a store is whole."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from svc.cli.data_directory import database_of, reading_snapshot
from svc.cli.examples import examples
from svc.cli.mistakes import CommandGroup
from svc.cli.network_in_use import network_in_use
from svc.cli.output import (
    CommandError,
    ShownTable,
    directory_option,
    json_option,
    no_directory,
    settings,
    show,
    show_table,
    store_option,
)
from svc.cli.progress import progress
from svc.domain.addresses import read_address
from svc.domain.network import Known, all_ranges, read_network
from svc.domain.timestamps import utc
from svc.network_data.folder import Entry
from svc.network_data.kept import sole_writer
from svc.network_data.lookup import is_stale
from svc.network_data.sources import SOURCES
from svc.network_data.update import UpdateOutcome, origin_of, update, wanted
from svc.store.backup import snapshots
from svc.store.directory import find_pepper, pepper_mark
from svc.store.local_copy import copied_here
from svc.store.postgresql.url import StoreUrl
from svc.store.reading import ReadOnlyStore, read_only, read_only_database
from svc.store.steps import Steps
from svc.store.tables import META
from svc.store.verification import Verification, faults
from svc.webhook_transport.connections import tls_context
from svc.world import World

SHOWN = 50
"""Violations printed; the rest is counted."""

network_data_option = directory_option(
    "The data directory, whose folder `network` holds the databases; may be missing."
)


@click.group(cls=CommandGroup)
def data() -> None:
    """Show and update network data."""


@data.command(epilog=examples("svc data status --data /var/lib/svc"))
@network_data_option
@json_option
def status(directory: Path | None, as_json: bool) -> None:
    """Show the network databases in use with their age, and why others are rejected."""
    config, today = settings(), utc(World.real().now_ms()).date()
    built_in, folder, reading, network_data = network_in_use(config, directory)
    summary: dict[str, Any] = {
        "network_data": network_data.state(today, config.network_stale_days),
        "directory": None if folder is None else str(folder),
        "built_in_ranges": "off" if built_in is None else "on",
    }
    if built_in is not None:
        summary |= {"built_at": built_in.built_at.isoformat(), "ranges": len(built_in)}
    if not network_data:
        summary["identifications"] = "unavailable, and free"
    files = [_file_row(name, entry, today, config.network_stale_days) for name, entry in reading.items()]
    columns = ("file", "kind", "built_at", "entries", "age_days", "stale", "problem")
    show(summary, ShownTable("files", files, columns), as_json=as_json)


def _file_row(name: str, entry: Entry, today: date, stale_days: int) -> dict[str, Any]:
    row: dict[str, Any] = {"file": name}
    if entry.problem is not None:
        where = "" if entry.problem.line is None else f"line {entry.problem.line}: "
        row["problem"] = where + entry.problem.says
    if entry.source is not None:
        built_at = entry.source.built_at
        row |= {
            "kind": entry.source.kind,
            "built_at": built_at.isoformat(),
            "entries": entry.source.entries,
            "age_days": (today - built_at).days,
            "stale": is_stale(built_at, today, stale_days),
        }
    return row


@data.command("check", epilog=examples("svc data check 203.0.113.7", "svc data check 2001:db8::1 --json"))
@click.argument("ip")
@network_data_option
@json_option
def check_address(ip: str, directory: Path | None, as_json: bool) -> None:
    """Show what the databases say about an IP address, and which one says it."""
    address = read_address(ip)
    if address is None:
        raise CommandError(f"{ip!r} is not an IPv4 or IPv6 address")
    ranges = network_in_use(settings(), directory).data or None
    network = read_network(str(address), ranges)
    known = {name: value for name, value in msgspec.to_builtins(network).items() if value not in (None, False)}
    if network.anonymity_network is not None:
        known["anonymity_network"] = network.anonymity_network
    found = ranges.find(address) if ranges is not None and network.state == "enriched" else None
    sources = [] if found is None else [ShownTable("sources", _sources(found), ("fact", "says", "source"))]
    show({"ip": str(address), **known}, *sources, as_json=as_json)


def _sources(known: Known) -> list[dict[str, str]]:
    """Each fact with where it is from; of countries and networks the ones that are believed."""
    rows = [{"fact": one.kind, "says": one.provider, "source": one.source} for one in all_ranges(known)]
    if known.country is not None:
        rows.append({"fact": "country", "says": known.country.code, "source": known.country.source})
    if known.system is not None:
        system = known.system
        rows.append({"fact": "asn", "says": f"{system.number} {system.name or ''}".rstrip(), "source": system.source})
    return rows


@data.command("sources", epilog=examples("svc data sources"))
@json_option
def list_sources(*, as_json: bool) -> None:
    """The databases and lists that `svc data update` can fetch, their licences, and which are recommended."""
    rows = [
        {"name": source.name, "file": source.file, "recommended": source.recommended, "licence": source.licence}
        | {"credit": source.credit, "urls": list(source.urls)}
        for source in SOURCES
    ]
    if not as_json:
        rows = [row | {"recommended": "yes" if row["recommended"] else "no"} for row in rows]
    show_table(rows, ("name", "recommended", "credit"), "sources", as_json=as_json)


@data.command("update", epilog=examples("svc data update --data /var/lib/svc"))
@network_data_option
@click.option(
    "--from",
    "place",
    metavar="PLACE",
    help="A mirror instead of the publishers: a folder kept by another `svc data update`, or its https:// URL.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file of certificate authorities to trust besides the public ones, for a mirror.",
)
@json_option
def update_files(directory: Path | None, place: str | None, ca_file: Path | None, *, as_json: bool) -> None:
    """Fetch the newest network databases and lists, and replace those that are there.

    Updates what it installed before and what the setting `network_sources` names, or the recommended sources if that
    is not set. A file is replaced only by one that reads well and is at least half as large. A running service uses the
    new files within 30 seconds. Requests go to the publishers (`svc data sources`) or the mirror, and carry nothing
    of this machine but its address.
    """
    config = settings()
    folder = config.network_files(directory)
    if folder is None:
        raise no_directory()
    origin = origin_of(place, lambda: _tls(ca_file))
    with sole_writer(folder):
        sources = wanted(folder, config.network_sources, origin)
        now = utc(World.real().now_ms())
        outcomes = list(update(folder, sources, origin, now))
    rows = [_outcome_row(outcome) for outcome in outcomes]
    columns = ("file", "result", "entries_before", "entries", "built_before", "built_at")
    show_table(rows, columns, "files", as_json=as_json)
    failed = [outcome for outcome in outcomes if outcome.problem is not None]
    for outcome in failed:
        click.echo(f"svc: {outcome.source.file}: {outcome.problem}", err=True)
    if failed:
        hint = "; a machine without outbound access needs a mirror (--from)" if place is None else ""
        raise CommandError(f"{len(failed)} of {len(outcomes)} files could not be updated in full{hint}")


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return tls_context(ca_file)
    except OSError as error:
        raise CommandError(f"{ca_file} holds no certificate authorities: {error.strerror or error}") from error


def _outcome_row(outcome: UpdateOutcome) -> dict[str, Any]:
    row: dict[str, Any] = {"file": outcome.source.file, "name": outcome.source.name, "result": outcome.result}
    if outcome.before is not None:
        row |= {"entries_before": outcome.before.entries, "built_before": outcome.before.built_at.isoformat()}
    if outcome.after is not None:
        row |= {"entries": outcome.after.entries, "built_at": outcome.after.built_at.isoformat()}
    return row | ({} if outcome.problem is None else {"problem": outcome.problem})


@click.command(epilog=examples("svc check --data /var/lib/svc", "svc check /var/backups/svc/SNAPSHOT"))
@click.argument("snapshot", metavar="[SNAPSHOT]", required=False, type=click.Path(path_type=Path))
@network_data_option
@store_option
@json_option
@click.pass_context
def check(context: click.Context, snapshot: Path | None, directory: Path | None, as_json: bool) -> None:
    """Check every invariant of a data directory, or of a snapshot that `svc backup` made.

    Nothing is written. Reading the directory of a busy service makes its store grow: check a snapshot instead. The
    rows of a database are copied first, into the folder for temporary files (TMPDIR), which needs space for all of
    them.
    """
    if snapshot is None and directory is None:
        raise no_directory(", or a snapshot")
    named = context.get_parameter_source("directory") is ParameterSource.COMMANDLINE
    if snapshot is not None and named:
        raise click.UsageError("name a snapshot or --data, not both")
    with progress() as steps:
        first, total = _check_snapshot(snapshot, steps) if snapshot else _check_directory(directory or Path(), steps)
    if as_json:
        show({"ok": not total, "violations": total, "first": first}, as_json=True)
    else:
        for sentence in first:
            click.echo(sentence)
    if total:
        raise CommandError(f"{total} violations; restore from a backup, and keep this directory to find the cause")
    if not as_json:
        click.echo("every invariant holds")


def _check_directory(directory: Path, steps: Steps) -> tuple[list[str], int]:
    config = settings()
    pepper = find_pepper(directory, config.pepper_path(), with_store=config.store is None)
    database = database_of(config)
    opened = (
        read_only(directory / "store", live=True) if database is None else _fetched(database, config.map_bytes(), steps)
    )
    with opened as store, store.read() as state:
        if state.get(META, "pepper_mark") not in (None, pepper_mark(pepper.read_bytes())):
            raise CommandError(f"{pepper} is not the pepper that this store's keys were made with")
        return _shown_of(faults(store, state, Verification.FULL, steps))


@contextmanager
def _fetched(database: StoreUrl, map_bytes: int, steps: Steps) -> Generator[ReadOnlyStore]:
    with read_only_database(database) as there, copied_here(there, map_bytes, steps) as here:
        yield here


def _check_snapshot(path: Path, steps: Steps) -> tuple[list[str], int]:
    """Its file against its manifest, then its rows. A bare `data.mdb` has no manifest."""
    if not path.exists():
        raise CommandError(f"{path} is not there")
    if path.is_dir():
        if not snapshots.is_snapshot(path):
            raise CommandError(
                f"{path} is no snapshot; `svc backup` makes folders named snapshot-... with a manifest.json"
            )
        snapshots.check_file(snapshots.read(path), steps)
    with reading_snapshot(path) as store, store.read() as state:
        return _shown_of(faults(store, state, Verification.FULL, steps))


def _shown_of(broken: Iterator[str]) -> tuple[list[str], int]:
    first = list(islice(broken, SHOWN))
    return first, len(first) + sum(1 for _ in broken)
