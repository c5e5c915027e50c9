"""`svc pepper`: what is left to do when the pepper is lost, or known to others."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from svc.command.changes import Change, commit
from svc.command.data_directory import database_of
from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, data_option, json_option, settings, show
from svc.kernel.access.key_jobs import revoke_all_keys
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, is_initialized, refuse_without_data
from svc.kernel.store.engine import EngineError
from svc.kernel.store.files.serve_lock import sole_process
from svc.kernel.store.installation import put_new_pepper
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.errors import DirectoryError
from svc.world import World


@click.group(cls=CommandGroup)
def pepper() -> None:
    """Manage the pepper, the secret behind all key hashes."""


@pepper.command(epilog=examples("svc pepper replace --revoke-all-keys --data /var/lib/svc"))
@click.option("--revoke-all-keys", "agreed", is_flag=True, help="Confirm that every key is revoked; required.")
@data_option
@json_option
def replace(agreed: bool, directory: Path, as_json: bool) -> None:
    """Create a new pepper if the old one is lost or leaked. Stop the service, and every node, first.

    Every key of every organization is revoked permanently, no password or one-time code of a member holds any more, and
    every webhook endpoint signs with another secret: issue new keys, reset members, and rotate the secrets. Visitors,
    events and balances stay.
    """
    if not agreed:
        raise click.UsageError("this revokes every key of every organization, for good: say so with --revoke-all-keys")
    config, world = settings(), World.real()
    path = config.pepper_path() or directory / "pepper"
    database = database_of(config)
    if database is None:
        refuse_without_data(directory)
        with sole_process(directory, "svc pepper replace", world.now_ms, reason=_REASON):
            revoked = _replace(directory / "store", path, config, world)
        following = "start the service"
    else:
        _refuse_beside_nodes(database)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        revoked = _replace(database, path, config, world)
        following = "copy it to every node and start them"
    show({"pepper": str(path), "revoked_keys": revoked}, as_json=as_json)
    if not as_json:
        click.echo(f"\nkeep a copy of it elsewhere; {following}, issue keys, rotate the secret of each endpoint")


_REASON = "a running service would keep the old pepper and reject every key made with the new one"


def _refuse_beside_nodes(database: StoreUrl) -> None:
    """A node that starts meanwhile ends by itself (`PepperMark`)."""
    from svc.kernel.store.postgresql.cluster.nodes import living_nodes  # noqa: PLC0415  commands start faster without

    try:
        if not is_initialized(database):
            raise CommandError(f"{database} holds no store of this service")
        living = living_nodes(database)
    except EngineError as error:
        raise CommandError(f"{database} cannot be used: {error}") from error
    if living:
        raise CommandError(
            f"nodes serve {database}, and {_REASON}: stop {', '.join(living)} (a node that was killed counts for 10 s)"
        )


def _replace(location: Path | StoreUrl, path: Path, config: Config, world: World) -> int:
    """How many keys were revoked."""
    store = open_store(location, world.run_sync, map_bytes=config.map_bytes(), upgrade=False, now_ms=world.now_ms)
    try:
        revoked = _revoke_all(Opened(store, b""), world)
        put_new_pepper(store, path, world.entropy)
    except OSError as error:
        raise DirectoryError(f"cannot write {error.filename or path}: {error.strerror}") from error
    finally:
        store.close()
    return revoked


def _revoke_all(found: Opened, world: World) -> int:
    """Organization by organization, each with its record in the audit log; how many keys."""
    with found.store.read() as snapshot:
        organizations = [account.organization for account in lookups.accounts(snapshot)]
    revoked = 0
    for organization in organizations:
        job = partial(revoke_all_keys, number=organization.number, now_ms=world.now_ms())
        revoked += commit(found, world, job, lambda count, of=organization: Change(of.number, of.id) if count else None)
    return revoked
