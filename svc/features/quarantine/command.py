"""`svc store quarantine`: corrupt events, out of the store and into files."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import click

from svc.command.changes import Change, commit
from svc.command.data_directory import opened
from svc.command.help import examples
from svc.command.output import CommandError, data_option, json_option, show
from svc.features.quarantine.jobs import ChangedError, CorruptEvent, find, record, take_out, write
from svc.kernel.store.directory import Opened
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants import queries as lookups
from svc.world import World


@click.command(epilog=examples("svc store quarantine 019b76da-a800-7000-8000-000000000000 --data /var/lib/svc"))
@click.argument("request_ids", type=click.UUID, nargs=-1, required=True, metavar="REQUEST_ID...")
@data_option
@json_option
def quarantine(request_ids: tuple[UUID, ...], directory: Path, as_json: bool) -> None:
    """Take events that cannot be read out of the store, into the folder quarantine of the data directory.

    `svc check` names them. Lists, feeds, exports and statistics then are as if they had never been. The file of each
    has its rows as they were stored, and why they could not be read; delete it when you have no more use for it. If
    only the archived or deferred report of an event is corrupt, that alone goes. An event that can be read is refused,
    and so is an unknown one; then nothing is changed. It works while the service runs, and may be run again.
    """
    world = World.real()
    with opened(directory) as found:
        wanted = tuple(dict.fromkeys(request_ids))
        for request_id in wanted:
            _corrupt(found, request_id)
        rows = [_take_out(found, world, directory, request_id) for request_id in wanted]
    if as_json:
        show({"quarantined": rows}, as_json=True)
        return
    for row in rows:
        click.echo(f"{row['request_id']}  {', '.join(row['tables'])}  {row['file']}")


def _corrupt(found: Opened, request_id: UUID) -> CorruptEvent:
    """Find a corrupt event. Raises `CommandError` if it is unknown or readable, or its rows cannot be counted."""
    try:
        with found.store.read() as snapshot:
            corrupt = find(snapshot, request_id)
    except CorruptionError as error:
        raise CommandError(
            f"what belongs to event {request_id} cannot be counted: {error}; run svc check, and svc store "
            "rebuild-indexes if it names indexes or counters"
        ) from error
    if corrupt is True:
        raise CommandError(f"event {request_id} can be read: nothing was changed")
    if corrupt is False:
        raise CommandError(f"there is no event {request_id}: nothing was changed")
    return corrupt


def _take_out(found: Opened, world: World, directory: Path, request_id: UUID) -> dict[str, Any]:
    """Write a durable record, then take the event out. After an interruption the next run replaces the record."""
    corrupt = _corrupt(found, request_id)
    with found.store.read() as snapshot:
        organization_id = lookups.organization(snapshot, corrupt.organization).id
    try:
        path = write(directory, corrupt, record(corrupt, organization_id, world.now_ms()))
    except OSError as error:
        raise CommandError(f"the record of {request_id} cannot be written: {error}; the store is unchanged") from error

    def job(transaction: Transaction) -> None:
        try:
            take_out(transaction, corrupt)
        except ChangedError:
            raise CommandError(f"event {request_id} was changed meanwhile: run the command again") from None

    commit(found, world, job, lambda _: Change(corrupt.organization, str(request_id)))
    tables = [row.table for row in corrupt.rows if row.because] or ["index"]
    return {"request_id": str(request_id), "organization_id": organization_id, "tables": tables, "file": str(path)}
