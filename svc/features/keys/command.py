"""`svc key`: issue, list and revoke API keys."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from svc.command.changes import Change, apply, commit
from svc.command.data_directory import opened
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, confirmed, data_option, json_option, settings, show, yes_option
from svc.kernel.access import jobs as keys
from svc.kernel.access.credentials import KEY_KINDS, LONGEST_NAME, ApiKey, KeyKind, digest, new_key, public_text
from svc.kernel.access.roles import KEY_ROLES, KeyRole
from svc.kernel.net.origins import MAX_ORIGINS, normalize_pattern
from svc.kernel.store.directory import Opened
from svc.kernel.store.installation import claim_region
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.fields import ENVIRONMENTS, PLATFORMS, Environment, Platform, is_visible
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import named
from svc.world import World, twenty_characters


@click.group(cls=OrganizationGroup)
def key() -> None:
    """Issue, list and revoke API keys. A secret is shown once and never stored."""


@key.command(
    epilog=examples(
        "svc key issue ORG --kind public --environment production --origin https://shop.example",
        "svc key issue ORG --kind secret --environment staging --name backend --json",
        "svc key issue ORG --kind management --role developer",
    )
)
@click.option("--kind", type=click.Choice(KEY_KINDS), required=True, help="What the key is for.")
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Required for all but management keys.")
@click.option("--role", type=click.Choice(KEY_ROLES), help="Of a management key; admin when not given.")
@click.option("--name", default="", help="Description.")
@click.option("--origin", "origins", multiple=True, help="Allowed origin of a public key; repeat for more.")
@click.option(
    "--platform", "platforms", type=click.Choice(PLATFORMS), multiple=True, help="Of a public key; web when not given."
)
def issue(
    operation: Operation,
    kind: str,
    environment: str | None,
    role: str | None,
    name: str,
    origins: tuple[str, ...],
    platforms: tuple[str, ...],
) -> None:
    """Issue a key. It is printed only once: store it."""
    name = check_name(name or f"{environment or ''} {kind}".strip())
    _check(kind, environment, role, origins, platforms)
    region = settings().region
    found, organization = operation.found, operation.organization
    apply(found, partial(claim_region, region=region))
    issued, secret = issue_key(
        found,
        operation.world,
        organization=organization.number,
        kind=cast("KeyKind", kind),
        name=name,
        environment=cast("Environment | None", environment),
        region=region,
        role=cast("KeyRole", role or "admin") if kind == "management" else None,
        platforms=cast("tuple[Platform, ...]", platforms or ("web",)) if kind == "public" else (),
        allowed_origins=read_origins(origins),
    )
    shown = _shown(issued, organization.id, found.pepper)
    if operation.as_json:
        operation.show({"key": shown, "secret": secret})
        return
    operation.show(shown)
    if kind == "public":
        click.echo(
            f"\nkey  {secret}\n\nPages contain it, so it is not a secret. `svc key list` and the console show it again."
        )
    else:
        click.echo(f"\nsecret  {secret}\n\nThis is the only time the secret is shown.")


def check_name(name: str) -> str:
    """Return the name of a new key. Raises `CommandError` for one that the API does not take either."""
    if not is_visible(name) or len(name) > LONGEST_NAME:
        raise CommandError(f"--name has 1 to {LONGEST_NAME} characters, and not invisible ones alone")
    return name


def issue_key(found: Opened, world: World, **fields: Any) -> tuple[ApiKey, str]:
    """Issue a key within the organization's limits and record it; returns it with its secret. `fields` as of
    `credentials.new_key`. Raises `CommandError` at a limit.
    """
    issued, secret = fresh_key(world, found.pepper, **fields)
    job = partial(store_issued, key=issued, key_digest=digest(found.pepper, secret))
    return commit(found, world, job, issued_change), secret


def key_of_secret(found: Opened, secret: str) -> ApiKey | None:
    """Return the key with this secret, also a revoked one; `None` if the store has none."""
    with found.store.read() as snapshot:
        return lookups.find_key(snapshot, digest(found.pepper, secret))


def fresh_key(world: World, pepper: bytes, **fields: Any) -> tuple[ApiKey, str]:
    """Return a new key and its secret, and store neither. `fields`: see `credentials.new_key`."""
    key_id = "key_" + twenty_characters(world.entropy)
    return new_key(key_id=key_id, entropy=world.entropy(32), now_ms=world.now_ms(), pepper=pepper, **fields)


def store_issued(transaction: Transaction, key: ApiKey, key_digest: bytes) -> ApiKey:
    """Store a new key within the organization's limits. Raises `CommandError` at a limit."""
    keys_per_day = settings().keys_per_day
    stored = keys.issue_key(transaction, key, key_digest, keys_per_day)
    if isinstance(stored, Refusal):
        if stored.code == "key_limit":
            raise CommandError(f"{stored.message} `svc key list ORG` shows them, `svc key revoke KEY_ID` revokes one.")
        raise CommandError(
            f"the organization has used up the {keys_per_day} keys that it may issue today: issue this one after "
            "midnight UTC, or raise the setting keys_per_day"
        )
    return stored


def issued_change(key: ApiKey) -> Change:
    """Return the audit record of a new key: everything that was asked for, and no secret."""
    lists = {"platforms": key.platforms or None, "allowed_origins": key.allowed_origins or None}
    return Change(key.organization, key.id, {**named(key, "kind", "name", "environment", "role"), **lists})


def read_origins(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the allowed origins in their normal form, without duplicates (decisions 2.6). Raises `CommandError` if a
    text is not an origin, or there are too many.
    """
    if len(texts) > MAX_ORIGINS:
        raise CommandError(f"a key has at most {MAX_ORIGINS} origins")
    origins: list[str] = []
    for text in texts:
        origin = normalize_pattern(text)
        if origin is None:
            hint = "; an origin has no slash or path at its end" if text.count("/") > 2 else ""
            raise CommandError(
                f"{text!r} is not an origin such as https://shop.example or https://*.shop.example{hint}"
            )
        if origin not in origins:
            origins.append(origin)
    return tuple(origins)


@key.command("list", epilog=examples("svc key list ORG"))
def list_(operation: Operation) -> None:
    """List all keys of an organization, oldest first, revoked included."""
    number, of, pepper = operation.number, operation.organization_id, operation.found.pepper
    with operation.store.read() as snapshot:
        rows = [_shown(known, of, pepper) for known in lookups.keys_of(snapshot, number)]
    operation.show_rows(
        rows, "keys", ("id", "kind", "environment", "name", "prefix", "last4", "status", "last_used_at")
    )


@key.command(cls=click.Command, epilog=examples("svc key revoke KEY_ID", "svc key revoke KEY_ID --yes"))
@click.argument("key_id")
@yes_option
@data_option
@json_option
def revoke(key_id: str, sure: bool, directory: Path, as_json: bool) -> None:
    """Revoke a key permanently; it is refused from the next request on."""
    with opened(directory) as found:
        with found.store.read() as snapshot:
            known = lookups.find_key_by_id(snapshot, key_id)
        if known is not None and known.status == "active":
            confirmed(f"This revokes {key_id} ({known.name}) for good: requests with it are refused.", sure=sure)
        revoked = revoke_key(found, World.real(), key_id)
        with found.store.read() as snapshot:
            organization_id = lookups.organization(snapshot, revoked.organization).id
    show(_shown(revoked, organization_id, found.pepper), as_json=as_json)


def revoke_key(found: Opened, world: World, key_id: str) -> ApiKey:
    """Revoke a key and record it; returns it as it is now. Raises `CommandError` for an unknown or revoked key."""
    now_ms = world.now_ms()

    def job(transaction: Transaction) -> ApiKey:
        revoked = keys.revoke_key(transaction, key_id, now_ms)
        if revoked == "unknown" and key_id.startswith("svc_"):
            raise CommandError("a key is revoked by its id (key_...), not by its secret; `svc key list ORG` shows it")
        if revoked == "unknown":
            raise CommandError(f"there is no key {key_id!r}; `svc key list ORG` shows them")
        if revoked == "revoked_before":
            raise CommandError(f"{key_id} was revoked before")
        return revoked

    return commit(found, world, job, lambda revoked: Change(revoked.organization, revoked.id))


def _check(
    kind: str, environment: str | None, role: str | None, origins: tuple[str, ...], platforms: tuple[str, ...]
) -> None:
    if kind == "management" and environment is not None:
        raise click.UsageError("management keys have no --environment")
    if kind != "management" and environment is None:
        raise click.UsageError(f"a {kind} key needs --environment")
    if kind != "management" and role is not None:
        raise click.UsageError("only management keys have a --role")
    if kind != "public" and (origins or platforms):
        raise click.UsageError("only public keys have --origin and --platform")
    if kind == "public" and environment != "development" and not origins and not set(platforms) - {"web"}:
        raise CommandError(
            f"a public {environment} key needs an origin or a native platform: add --origin "
            "https://shop.example for pages, or --platform ios, --platform android for apps"
        )


_SHOWN = (
    "name", "kind", "environment", "region", "role", "platforms", "allowed_origins", "prefix", "last4",
    "status", "last_used_at", "expires_at", "created_at", "revoked_at",
)  # fmt: skip
_IRRELEVANT: dict[KeyKind, tuple[str, ...]] = {
    "public": ("role",),
    "secret": ("role", "platforms", "allowed_origins"),
    "proxy": ("role", "platforms", "allowed_origins"),
    "management": ("environment", "platforms", "allowed_origins"),
}


def _shown(known: ApiKey, organization_id: str, pepper: bytes) -> dict[str, Any]:
    names = [name for name in _SHOWN if name not in _IRRELEVANT[known.kind]]
    whole = {"public_key": public_text(known, pepper)} if known.kind == "public" else {}
    return {"id": known.id, "organization_id": organization_id, **named(known, *names), **whole}
