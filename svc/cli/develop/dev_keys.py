"""The keys of `svc dev`, kept beside the store so that a restart changes none that a page or a script uses.

What may live here: the file of secrets, and which keys have to be made. Development keys only: the secrets of all other
keys are kept nowhere (decisions 2.2).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from svc.command.changes import Change, commit
from svc.command.local_service import KEYS_FILE, DevelopmentKeys, read_keys
from svc.command.output import CommandError
from svc.features.keys.command import issue_key, key_of_secret, read_origins, revoke_key
from svc.kernel.access import key_jobs as keys
from svc.kernel.access.credentials import ApiKey
from svc.kernel.store.directory import Opened
from svc.kernel.store.files import durable_files
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.refusals import Refusal
from svc.world import World

NAME = "svc dev {}"
"""Of the key of each kind."""
_KINDS: dict[str, dict[str, Any]] = {
    "public": {"environment": "development", "platforms": ("web",)},
    "secret": {"environment": "development"},
    "management": {"environment": None, "role": "admin"},
}


def development_keys(
    directory: Path,
    found: Opened,
    world: World,
    owner: Organization,
    region: str,
    url: str,
    origins: tuple[str, ...] = (),
) -> DevelopmentKeys:
    """Return the development keys in the file; a key that the store does not accept any more is issued again. The file
    is written where anything in it changes: programs find the service at `url` by it.

    `origins` are added to those of the public key. Raises `CommandError` for one that is not an origin.
    """
    organization = owner.number
    added = read_origins(origins)
    kept = read_keys(directory)
    secrets: dict[str, str] = {}
    for kind, fields in _KINDS.items():
        known = getattr(kept, kind)
        if not _is_usable(found, world, known, kind, organization, region):
            _revoke_lost(found, world, organization, NAME.format(kind))
            _, known = issue_key(
                found, world, organization=organization, region=region, kind=kind, name=NAME.format(kind), **fields
            )
        secrets[kind] = known
    development = DevelopmentKeys(url=url, organization_id=owner.id, **secrets)
    if development != kept:
        content = msgspec.json.format(msgspec.json.encode(development), indent=2)
        durable_files.replace(directory / KEYS_FILE, content + b"\n")
    _allow(found, world, development.public, added)
    return development


def _is_usable(found: Opened, world: World, secret: str, kind: str, organization: int, region: str) -> bool:
    key = key_of_secret(found, secret)
    return (
        key is not None
        and key.usable(world.now_ms())
        and (key.kind, key.organization, key.region) == (kind, organization, region)
    )


def _revoke_lost(found: Opened, world: World, organization: int, name: str) -> None:
    """Keys of this name whose secret is not in the file: nobody can use them, and they must not pile up."""
    with found.store.read() as snapshot:
        known = lookups.keys_of(snapshot, organization)
    for key in known:
        if key.status == "active" and key.name == name:
            revoke_key(found, world, key.id)


def _allow(found: Opened, world: World, public: str, added: tuple[str, ...]) -> None:
    key = key_of_secret(found, public)
    assert key is not None, "it was made or checked just now"
    origins = tuple(dict.fromkeys((*key.allowed_origins, *added)))
    if origins == key.allowed_origins:
        return

    def job(transaction: Transaction) -> ApiKey:
        changed = keys.replace_origins(transaction, key.organization, key.id, origins)
        if isinstance(changed, Refusal):
            raise CommandError(f"{len(origins)} origins are too many for a key")
        return changed

    commit(found, world, job, lambda changed: Change(changed.organization, changed.id, {"allowed_origins": origins}))
