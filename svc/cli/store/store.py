"""`svc store`: what is done to a store while nothing uses it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
import msgspec

from svc.cli.data_directory import opened
from svc.cli.examples import examples
from svc.cli.mistakes import CommandGroup
from svc.cli.output import data_option, file_option, json_option, settings, show
from svc.cli.progress import progress
from svc.cli.store.move import move
from svc.store.directory import refuse_without_data
from svc.store.maintenance import compact as compacting
from svc.store.maintenance import upgrade
from svc.store.serve_lock import sole_process
from svc.store.transactions.rebuilding import rebuild
from svc.world import World


@click.group(cls=CommandGroup)
def store() -> None:
    """Compact the store's file, rebuild its indexes, or move it to PostgreSQL."""


store.add_command(move)


@store.command(epilog=examples("svc store compact --data /var/lib/svc"))
@file_option("a database frees space by itself (autovacuum); VACUUM FULL or pg_repack make its files small again")
@json_option
def compact(directory: Path, as_json: bool) -> None:
    """Rewrite the store without its free pages. Stop the service first.

    Erased and expired data then leaves the file, and the file shrinks. The disk needs space for a second copy. An
    interruption leaves the store as it was.
    """
    refuse_without_data(directory)
    reason = "what another process commits while the file is rewritten would be lost"
    with sole_process(directory, "svc store compact", World.real().now_ms, reason=reason), progress() as steps:
        done = compacting.compact(directory / "store", steps)
    show(msgspec.structs.asdict(done), as_json=as_json)
    copies = directory / upgrade.FOLDER
    if not as_json and copies.exists():
        click.echo(f"\n{copies} still holds the store as it was before an upgrade; delete it when you need it no more")


@store.command("rebuild-indexes", epilog=examples("svc store rebuild-indexes --data /var/lib/svc"))
@data_option
@json_option
def rebuild_indexes(directory: Path, as_json: bool) -> None:
    """Rebuild indexes and hourly counters from the events. Stop the service first.

    Use it if `svc check` reports missing or wrong index rows or counters. Events and everything else stay. It is
    one transaction: an interruption leaves the store as it was. A follower (`svc backup --follow`) starts again
    with a new snapshot.
    """
    if settings().store is None:
        refuse_without_data(directory)
    world = World.real()
    reason = "an identification that it records meanwhile would wait until the end"
    with (
        sole_process(directory, "svc store rebuild-indexes", world.now_ms, reason=reason),
        opened(directory) as found,
        progress() as steps,
    ):
        done = found.store.change_log(partial(rebuild, now_ms=world.now_ms(), steps=steps))
    show(msgspec.structs.asdict(done), as_json=as_json)
