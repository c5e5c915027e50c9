"""`svc serve --init`: the first organization and its keys on an empty volume (docs/containers.md).

Everything is one transaction, and the keys are shown as its last step, before it is committed. If they cannot be shown,
nothing is created. If the process dies in between, keys were shown that will never exist, and the next start creates
and shows others: so there is never an organization whose keys nobody has seen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
import structlog

from svc.command.changes import apply, recorded
from svc.command.output import CommandError
from svc.features.keys.command import fresh_key, issued_change, read_origins
from svc.features.organizations.command import Dollars, check_name, created_change, creation
from svc.kernel.access import jobs as keys
from svc.kernel.access.credentials import ApiKey, digest
from svc.kernel.config import ConfigError
from svc.kernel.limits.ratelimit import DEFAULT_LIMIT_PER_S
from svc.kernel.store.directory import Opened
from svc.kernel.store.files import durable_files
from svc.kernel.store.installation import claim_region
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.tables import META
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.errors import DirectoryError, cause
from svc.kernel.values.struct_fields import named
from svc.world import World

log = structlog.get_logger()

DEFAULT_NAME = "default"
_SHOWN = ("id", "kind", "environment", "role", "allowed_origins")
"""Of a key, beside its secret."""
_NO_ORIGIN = (
    "No public key was issued: it needs the origins of the pages that use it, and SVC_INIT_ORIGINS is not set.\n"
    "Issue one with: svc key issue {} --kind public --environment production --origin https://shop.example"
)


class First(NamedTuple):
    """The first organization and its keys, as the `SVC_INIT_*` variables describe them."""

    name: str
    origins: tuple[str, ...]
    credit_micros: int | None
    """`None` = the organization is postpaid."""
    keys_file: Path | None


def read_first(environment: Mapping[str, str]) -> First:
    """Read the `SVC_INIT_*` variables. Raises `ConfigError`, which names the variable."""
    file = environment.get("SVC_INIT_KEYS_FILE")
    origins = [part.strip() for part in environment.get("SVC_INIT_ORIGINS", "").split(",") if part.strip()]
    try:
        name = check_name(environment.get("SVC_INIT_ORGANIZATION") or DEFAULT_NAME)
    except CommandError as error:
        raise ConfigError(f"SVC_INIT_ORGANIZATION: {error}") from error
    try:
        normalized = read_origins(tuple(origins))
    except CommandError as error:
        raise ConfigError(f"SVC_INIT_ORIGINS: {error}") from error
    try:
        given = environment.get("SVC_INIT_CREDIT_USD")
        credit = Dollars().convert(given, None, None) if given else None
    except click.BadParameter as error:
        raise ConfigError(f"SVC_INIT_CREDIT_USD: {error.message}") from error
    if credit is not None and credit < 0:
        raise ConfigError("SVC_INIT_CREDIT_USD: an organization does not start with a debt")
    return First(name, normalized, credit, Path(file) if file else None)


def initialize(found: Opened, world: World, region: str, *, as_json: bool) -> None:
    """Create the first organization with its keys and show them, unless this store ever had an organization. Create
    nothing and raise `ConfigError` if an environment variable is not valid, or `DirectoryError` if the keys cannot be
    shown.
    """
    with found.store.read() as snapshot:
        if not _is_empty(snapshot):
            return
    first = read_first(os.environ)

    def job(transaction: Transaction) -> Organization | None:
        if not _is_empty(transaction):
            return None  # another process was faster
        claim_region(transaction, region)
        create = creation(world, first.name, credit=first.credit_micros, rate_limit=DEFAULT_LIMIT_PER_S)
        change = partial(created_change, credit=first.credit_micros)
        organization = recorded(world, create, change)(transaction)
        made = [fresh_key(world, found.pepper, **fields) for fields in _wanted(first, organization, region)]
        for key, secret in made:
            issue = partial(keys.store_key, key=key, digest=digest(found.pepper, secret))
            recorded(world, issue, issued_change)(transaction)
        _show(organization, made, first.keys_file, as_json=as_json)
        return organization

    organization = apply(found, job)
    if organization is not None:
        log.info("the first organization was created", organization=organization.id, name=organization.name)


def _is_empty(snapshot: Snapshot) -> bool:
    return not snapshot.has(META, "next_organization")


def _wanted(first: First, organization: Organization, region: str) -> list[dict[str, Any]]:
    """Return the fields of `new_key` for each key; a public one only if its origins are known (decisions 2.7)."""
    common: dict[str, Any] = {"organization": organization.number, "region": region}
    production = {**common, "environment": "production"}
    wanted = [
        {**common, "kind": "management", "role": "admin", "name": "management", "environment": None},
        {**production, "kind": "secret", "name": "production secret"},
    ]
    if first.origins:
        web = {"platforms": ("web",), "allowed_origins": first.origins}
        wanted.append({**production, "kind": "public", "name": "production public", **web})
    return wanted


def _show(organization: Organization, made: list[tuple[ApiKey, str]], file: Path | None, *, as_json: bool) -> None:
    """Write the keys to the file if one is named, else to standard output. Raises `DirectoryError`."""
    shown: dict[str, Any] = {
        "organization_id": organization.id,
        "name": organization.name,
        "keys": [{**named(key, *_SHOWN), "secret": secret} for key, secret in made],
    }
    try:
        if file is not None:
            durable_files.replace(file, msgspec.json.format(msgspec.json.encode(shown)) + b"\n")
            return
        click.echo(msgspec.json.encode(shown).decode() if as_json else _text(organization, made))  # flushes
    except OSError as error:
        where = "standard output" if file is None else str(file)
        if file is None:  # what is still buffered goes nowhere, or the end of the process would fail over it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise DirectoryError(
            f"the first keys cannot be written to {where}: {cause(error)}; nothing was created"
        ) from error


def _text(organization: Organization, made: list[tuple[ApiKey, str]]) -> str:
    lines = [f"Organization {organization.name!r}: {organization.id}. Its keys, shown this once:", ""]
    lines += [f"  {key.kind:<10}  {secret}  {', '.join(key.allowed_origins)}".rstrip() for key, secret in made]
    if not any(key.kind == "public" for key, _ in made):
        lines += ["", _NO_ORIGIN.format(organization.id)]
    return "\n".join(lines) + "\n"
