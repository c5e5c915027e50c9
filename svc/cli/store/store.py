"""`svc store` and `svc pepper`: what is done to a store while nothing uses it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import click
import msgspec

from svc.command.changes import Change, commit
from svc.command.data_directory import database_at, database_of, opened
from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, data_option, file_option, json_option, progress, settings, show
from svc.features.backup.move import Moved
from svc.features.backup.move import move as move_rows
from svc.features.quarantine.command import quarantine
from svc.features.upgrade import compact as compacting
from svc.features.upgrade import upgrade
from svc.identify.indexing.jobs import rebuild
from svc.kernel.access.jobs import revoke_all_keys
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, is_initialized, refuse_without_data
from svc.kernel.store.engine import Engine, EngineError
from svc.kernel.store.files.ending import ended_by_signals
from svc.kernel.store.files.serve_lock import sole_process
from svc.kernel.store.installation import put_new_pepper
from svc.kernel.store.opening import engine_at, open_store
from svc.kernel.store.postgresql.connection.url import StoreUrl, is_store_url
from svc.kernel.store.reading import read_only, read_only_database
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.errors import DirectoryError, explained
from svc.world import World, elapsed_s


@click.group(cls=CommandGroup)
def pepper() -> None:
    """Manage the pepper, the secret behind all key hashes."""


@pepper.command(epilog=examples("svc pepper replace --revoke-all-keys --data /var/lib/svc"))
@click.option("--revoke-all-keys", "agreed", is_flag=True, help="Confirm that every key is revoked; required.")
@data_option
@json_option
def replace(agreed: bool, directory: Path, as_json: bool) -> None:
    """Create a new pepper if the old one is lost or leaked. Stop the service, and every node, first.

    Every key of every organization is revoked permanently, no password or one-time code of a member and no stored
    cursor holds any more, and every webhook endpoint signs with another secret: issue new keys, reset members, and
    rotate the secrets. Visitors, events and balances stay.
    """
    if not agreed:
        raise click.UsageError("this revokes every key of every organization, for good: say so with --revoke-all-keys")
    config, world = settings(), World.real()
    path = config.pepper_path() or directory / "pepper"
    database = database_of(config)
    if database is None:
        refuse_without_data(directory)
        following = "start the service"
    else:
        following = "copy it to every node and start them"
    with _alone(database or directory, "svc pepper replace", _OLD_PEPPER_REASON):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        revoked = _replace(database or directory / "store", path, config, world)
    show({"pepper": str(path), "revoked_keys": revoked}, as_json=as_json)
    if not as_json:
        click.echo(
            f"\nkeep a copy of it elsewhere; {following}, issue keys, reset members, rotate the secret of each endpoint"
        )


_OLD_PEPPER_REASON = "a running service would keep the old pepper and reject every key made with the new one"


@contextmanager
def _alone(location: Path | StoreUrl, command: str, reason: str) -> Generator[None]:
    """Be the only one on a store for a `with` block, as far as that can be said: hold the lock of a data directory, or
    refuse while nodes serve a database. `reason`: tells an operator who is refused what would go wrong.
    """
    if isinstance(location, Path):
        with sole_process(location, command, World.real().now_ms, reason=reason):
            yield
    else:
        _refuse_beside_nodes(location, reason)
        yield


def _refuse_beside_nodes(database: StoreUrl, reason: str) -> None:
    from svc.kernel.store.postgresql.cluster.nodes import living_nodes  # noqa: PLC0415  commands start faster without

    try:
        if not is_initialized(database):
            raise CommandError(f"{database} holds no store of this service")
        living = living_nodes(database)
    except EngineError as error:
        raise CommandError(f"{database} cannot be used: {error}") from error
    if living:
        raise CommandError(
            f"nodes serve {database}, and {reason}: stop {', '.join(living)} (a node that was killed counts for 10 s)"
        )


def _replace(location: Path | StoreUrl, path: Path, config: Config, world: World) -> int:
    """Revoke all keys and replace the pepper. Return how many keys were revoked."""
    store = open_store(location, world.run_sync, map_bytes=config.map_bytes(), upgrade=False, now_ms=world.now_ms)
    try:
        return put_new_pepper(store, path, world.entropy, partial(_revoke_all, Opened(store, b""), world))
    except OSError as error:
        raise DirectoryError(explained("cannot write", error.filename or path, error)) from error
    finally:
        store.close()


def _revoke_all(found: Opened, world: World) -> int:
    """Revoke keys organization by organization, each with its audit record. Return how many."""
    with found.store.read() as snapshot:
        organizations = lookups.all_organizations(snapshot)
    revoked = 0
    for organization in organizations:
        job = partial(revoke_all_keys, number=organization.number, now_ms=world.now_ms())
        revoked += commit(found, world, job, lambda count, of=organization: Change(of.number, of.id) if count else None)
    return revoked


@click.group(cls=CommandGroup)
def store() -> None:
    """Compact the store's file, rebuild its indexes, take corrupt events out, or move it to PostgreSQL."""


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
    with (
        sole_process(directory, "svc store compact", World.real().now_ms, reason=reason),
        ended_by_signals(),
        progress() as steps,
    ):
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
    database = database_of(settings())
    if database is None:
        refuse_without_data(directory)
    reason = "what is to be recorded meanwhile would wait until the end"
    with (
        _alone(database or directory, "svc store rebuild-indexes", reason),
        opened(directory) as found,
        progress() as steps,
    ):
        done = found.store.change_log(partial(rebuild, now_ms=World.real().now_ms(), steps=steps))
    show(msgspec.structs.asdict(done), as_json=as_json)


store.add_command(quarantine)

_REASON = "what another process commits meanwhile would not be moved"


@store.command(
    epilog=examples(
        "svc store move --from /var/lib/svc --to postgresql://svc@db.example/svc",
        "svc store move --from postgresql://svc@db.example/svc --to /var/lib/svc",
    )
)
@click.option("--from", "source", required=True, metavar="DIR|URL", help="The data directory or database to read.")
@click.option("--to", "target", required=True, metavar="DIR|URL", help="The empty one to fill.")
@json_option
def move(source: str, target: str, as_json: bool) -> None:
    """Copy a store from a data directory to a database, or back. Stop every service on it before.

    Each row is verified as it is read; at the end both sides are compared, table by table, by count and checksum. The
    source is not changed. Interrupted at any moment, the same command goes on where it stopped, and nothing can open
    the target until it is whole. The pepper is not moved: it stays in the data directory, or where SVC_PEPPER_FILE
    says. What a follower of the store (`svc backup --follow`) has not copied yet is not moved.
    """
    config = settings()
    if source == target:
        raise CommandError("the store is there already: name two places")
    began_at = elapsed_s()
    with (
        _source(_location(source, config)) as reading,
        _target(_location(target, config), config) as writing,
        progress() as steps,
    ):
        moved = move_rows(reading, writing, steps)
    show(_shown(moved, elapsed_s() - began_at), as_json=as_json)
    if not as_json:
        _show_next_step(target, config)


def _location(text: str, config: Config) -> Path | StoreUrl:
    return database_at(text, config) if is_store_url(text) else Path(text)


@contextmanager
def _source(location: Path | StoreUrl) -> Generator[Engine]:
    if isinstance(location, Path):
        refuse_without_data(location)
        reading = partial(read_only, location / "store", live=True)
    else:
        reading = partial(read_only_database, location)
    with _alone(location, "svc store move", _REASON), reading() as store:
        yield store.engine


@contextmanager
def _target(location: Path | StoreUrl, config: Config) -> Generator[Engine]:
    if not isinstance(location, Path):
        with closing(engine_at(location)) as engine:
            yield engine
        return
    location.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (
        _alone(location, "svc store move", _REASON),
        closing(engine_at(location / "store", map_bytes=config.map_bytes())) as engine,
    ):
        yield engine


def _shown(moved: Moved, seconds: float) -> dict[str, int | float]:
    """Return figures for people and programs. Rows that an earlier run moved do not count for the speed."""
    return {
        "tables": sum(1 for rows in moved.tables.values() if rows),
        "rows": moved.rows,
        "bytes": moved.bytes,
        "resumed_rows": moved.resumed_rows,
        "seconds": round(seconds, 1),
        "rows_per_s": round((moved.rows - moved.resumed_rows) / max(seconds, 0.001)),
    }


def _show_next_step(target: str, config: Config) -> None:
    click.echo("\nboth sides have the same rows, by count and checksum of every table")
    if is_store_url(target):
        click.echo(f"start the service with SVC_STORE={target}, and with the same pepper on every node")
    elif config.pepper_file is None and not (Path(target) / "pepper").exists():
        click.echo(f"put the pepper into {target}/pepper before you start the service on it")
