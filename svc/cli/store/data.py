"""`svc data`: what is known of addresses, and from which files."""

from __future__ import annotations

import ssl
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from svc.command.help import CommandGroup, examples
from svc.command.output import (
    CommandError,
    ShownTable,
    directory_option,
    json_option,
    no_directory,
    readable,
    settings,
    show,
    show_table,
)
from svc.identify.network.facts import Known, all_ranges, read_network
from svc.identify.network_data.folder import NOTHING, Entry, FilesInUse, locked_folder, read_folder
from svc.identify.network_data.lookup import BuiltInRanges, NetworkData, is_stale
from svc.identify.network_data.sources import SOURCES
from svc.kernel.config import Config
from svc.kernel.net.addresses import read_address
from svc.kernel.values.errors import cause
from svc.kernel.values.timestamps import utc
from svc.world import World

if TYPE_CHECKING:
    from svc.identify.network_data.update import UpdateOutcome


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
    facts = msgspec.to_builtins(network)
    known = {name: value for name, value in facts.items() if value and name != "crawlers_of"}
    if network.crawlers_of:
        known["crawler_of"] = ", ".join(network.crawlers_of)
    if network.anonymity_network is not None:
        known["anonymity_network"] = network.anonymity_network
    if known.keys() == {"state"}:
        known["facts"] = "none: no database or list in use has this address"
    found = ranges.find(address) if ranges is not None and network.state == "enriched" else None
    sources = [] if found is None else [ShownTable("sources", _sources(found), ("fact", "says", "source"))]
    show({"ip": str(address), **known}, *sources, as_json=as_json)


def _sources(known: Known) -> list[dict[str, str]]:
    """Return each fact with its source; of countries and networks only those that are believed."""
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
    """List the databases and lists that `svc data update` can fetch, their licenses, and which are recommended."""
    rows = [
        {"name": source.name, "file": source.file, "recommended": source.recommended, "license": source.license}
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
    "mirror",
    metavar="PLACE",
    help="A mirror instead of the publishers: a folder kept by another `svc data update`, or its https:// URL.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file of certificate authorities to trust besides the public ones, for a mirror.",
)
@json_option
def update_files(directory: Path | None, mirror: str | None, ca_file: Path | None, *, as_json: bool) -> None:
    """Fetch the newest network databases and lists, and replace those that are there.

    Updates what it installed before and what the setting `network_sources` names, or the recommended sources if that
    is not set. A file is replaced only by one that reads well and is at least half as large. A running service uses the
    new files within 30 seconds. Requests go to the publishers (`svc data sources`) or the mirror, and carry nothing
    of this machine but its address.
    """
    from svc.identify.network_data.update import origin_of, update, wanted  # noqa: PLC0415  only this command sends requests

    config = settings()
    folder = config.network_files(directory)
    if folder is None:
        raise no_directory()
    origin = origin_of(mirror, lambda: _tls(ca_file))
    with locked_folder(folder):
        sources = wanted(folder, config.network_sources, origin)
        now = utc(World.real().now_ms())
        outcomes = list(update(folder, sources, origin, now))
    rows = [_outcome_row(outcome) for outcome in outcomes]
    columns = ("file", "result", "entries_before", "entries", "built_before", "built_at")
    show_table(rows, columns, "files", as_json=as_json)
    failed = [outcome for outcome in outcomes if outcome.problem is not None]
    for outcome in failed:
        click.echo(f"svc: {readable(f'{outcome.source.file}: {outcome.problem}')}", err=True)
    if failed:
        hint = "; a machine without outbound access needs a mirror (--from)" if mirror is None else ""
        raise CommandError(f"{len(failed)} of {len(outcomes)} files could not be updated in full{hint}")


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    from svc.features.webhooks.transport.connections import tls_context  # noqa: PLC0415  as above

    try:
        return tls_context(ca_file)
    except OSError as error:
        raise CommandError(f"{ca_file} holds no certificate authorities: {cause(error)}") from error


def _outcome_row(outcome: UpdateOutcome) -> dict[str, Any]:
    row: dict[str, Any] = {"file": outcome.source.file, "name": outcome.source.name, "result": outcome.result}
    if outcome.before is not None:
        row |= {"entries_before": outcome.before.entries, "built_before": outcome.before.built_at.isoformat()}
    if outcome.after is not None:
        row |= {"entries": outcome.after.entries, "built_at": outcome.after.built_at.isoformat()}
    return row | ({} if outcome.problem is None else {"problem": outcome.problem})


class NetworkInUse(NamedTuple):
    """The network data in use: built-in ranges, the folder and its files, and the look-up in all of them."""

    built_in: BuiltInRanges | None
    folder: Path | None
    files: FilesInUse
    data: NetworkData


def network_in_use(config: Config, directory: Path | None) -> NetworkInUse:
    """Read the network data of these settings and this data directory. Raises `CommandError` if the folder cannot be
    listed.
    """
    folder = config.network_files(directory)
    try:
        files = NOTHING if folder is None else read_folder(folder)
    except OSError as error:
        raise CommandError(f"cannot list {folder}: {cause(error)}") from error
    built_in = BuiltInRanges() if config.network_builtin else None
    return NetworkInUse(
        built_in, folder, files, NetworkData(built_in, files, vpn_neighbors=config.network_vpn_neighbors)
    )
