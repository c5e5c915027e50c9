"""`svc pepper`: what is left to do when the pepper is lost, or known to others."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from svc.cli.changes import Change, commit
from svc.cli.examples import examples
from svc.cli.output import file_option, json_option, settings, show
from svc.config import Config
from svc.store import views
from svc.store.directory import DirectoryError, Opened, refuse_without_data
from svc.store.new_pepper import put_new_pepper
from svc.store.serve_lock import sole_process
from svc.store.store import Store
from svc.store.transactions.keys import revoke_all_keys
from svc.world import World


@click.group()
def pepper() -> None:
    """The pepper, without which no key can be checked and none be forged."""


@pepper.command(epilog=examples("svc pepper replace --revoke-all-keys --data /var/lib/svc"))
@click.option("--revoke-all-keys", "agreed", is_flag=True, help="Say that you know what it does; it needs saying.")
@file_option("move it to a file with `svc store move`, replace the pepper there, and move it back")
@json_option
def replace(agreed: bool, directory: Path, as_json: bool) -> None:
    """Make a new pepper where the old one is lost, or known to others. Stop the service before.

    Every key of every organization is revoked, for good, and every webhook endpoint signs with another secret:
    issue keys, and have the secrets rotated. Visitors, events and balances stay.
    """
    if not agreed:
        raise click.UsageError("this revokes every key of every organization, for good: say so with --revoke-all-keys")
    config, world = settings(), World.real()
    refuse_without_data(directory)
    path = Path(config.pepper_file) if config.pepper_file else directory / "pepper"
    reason = "a running service would keep the old pepper and reject every key made with the new one"
    with sole_process(directory, "svc pepper replace", world.now_ms, reason=reason):
        revoked = _replace(directory, path, config, world)
    show({"pepper": str(path), "revoked_keys": revoked}, as_json=as_json)
    if not as_json:
        click.echo("\nkeep a copy of it elsewhere; start the service, issue keys, rotate the secret of each endpoint")


def _replace(directory: Path, path: Path, config: Config, world: World) -> int:
    """How many keys were revoked."""
    store = Store.open(
        directory / "store", world.run_sync, map_bytes=config.map_bytes(), upgrade=False, now_ms=world.now_ms
    )
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
        organizations = [account.organization for account in views.accounts(snapshot)]
    revoked = 0
    for organization in organizations:
        job = partial(revoke_all_keys, number=organization.number, now_ms=world.now_ms())
        revoked += commit(found, world, job, lambda count, of=organization: Change(of.number, of.id) if count else None)
    return revoked
