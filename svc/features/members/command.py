"""`svc member`: the people who sign in to the console of an organization (docs/members.md); `svc console`: links that
sign in to it (docs/console.md).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from svc.command.changes import Change, apply, commit
from svc.command.help import examples
from svc.command.local_service import local_url
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, confirmed, settings, yes_option
from svc.features.keys.command import check_name, fresh_key, key_of_secret, store_issued
from svc.kernel.access.credentials import ApiKey, digest
from svc.kernel.access.jobs import put_link
from svc.kernel.access.members import canonical_email
from svc.kernel.access.roles import KEY_ROLES, ROLES, KeyRole
from svc.kernel.access.sessions import LONGEST_LINK_MINUTES, SESSION_MS, ConsoleLink, console_url, new_token
from svc.kernel.net.origins import is_loopback, normalize_origin
from svc.kernel.store.directory import Opened
from svc.kernel.store.installation import claim_region
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.timestamps import timestamp
from svc.world import World

_SHOWN = ("id", "email", "name", "role", "status", "has_totp", "last_signed_in_at")
_url_option = click.option("--url", metavar="URL", help="Where browsers reach the service: https://svc.example.com.")
_role = click.Choice(ROLES)


@click.group(cls=OrganizationGroup)
def member() -> None:
    """Invite, list, change and remove the people who sign in to the console."""


@member.command("list", reads=True, epilog=examples("svc member list ORG", "svc member list ORG --json"))
def list_(operation: Operation) -> None:
    """List all members of an organization, oldest first."""
    operation.show_rows([_shown(row) for row in _all(operation)], "members", _SHOWN)


@member.command(epilog=examples("svc member invite ORG ada@shop.example --name 'Ada' --role analyst"))
@click.argument("email")
@click.option("--name", help="For people; the address when not given.")
@click.option("--role", type=_role, default="viewer", show_default=True, help="What it may do.")
@_url_option
def invite(operation: Operation, email: str, name: str | None, role: str, url: str | None) -> None:
    """Invite somebody: prints a link that works once within seven days. Nothing is mailed: hand the link over."""
    body = {"email": email, "name": name or canonical_email(email) or email, "role": role}
    _invite(operation, "inviteMember", url, body=body, about=email)


@member.command(epilog=examples("svc member reset ORG ada@shop.example"))
@click.argument("named", metavar="MEMBER")
@_url_option
def reset(operation: Operation, named: str, url: str | None) -> None:
    """Invite a member again who has lost the link, the password or the device with the one-time codes.

    The new link takes the place of a former one. The person who uses it chooses a new password, and signs in
    without codes. MEMBER is an id or an e-mail address.
    """
    _invite(operation, "inviteMemberAgain", url, member_id=_find(operation, named)["id"], about=named)


@member.command(epilog=examples("svc member role ORG ada@shop.example admin"))
@click.argument("named", metavar="MEMBER")
@click.argument("role", type=_role)
def role(operation: Operation, named: str, role: str) -> None:
    """Give a member another role, from its next request on. MEMBER is an id or an e-mail address."""
    _update(operation, named, role=role)


@member.command(epilog=examples("svc member suspend ORG ada@shop.example"))
@click.argument("named", metavar="MEMBER")
def suspend(operation: Operation, named: str) -> None:
    """Keep a member out: its sessions end, and it may not sign in. MEMBER is an id or an e-mail address."""
    _update(operation, named, status="suspended")


@member.command(epilog=examples("svc member activate ORG ada@shop.example"))
@click.argument("named", metavar="MEMBER")
def activate(operation: Operation, named: str) -> None:
    """Let a suspended member in again. MEMBER is an id or an e-mail address."""
    _update(operation, named, status="active")


@member.command(epilog=examples("svc member remove ORG ada@shop.example"))
@click.argument("named", metavar="MEMBER")
@yes_option
def remove(operation: Operation, named: str, sure: bool) -> None:
    """Remove a member for good; its sessions end. MEMBER is an id or an e-mail address."""
    known = _find(operation, named)
    confirmed(f"This removes {known['email']} ({known['id']}) from {operation.organization_id}, for good.", sure=sure)
    operation.call("members.routes.removeMember", member_id=known["id"], about=named)
    operation.show({**_shown(known), "status": "removed"})


def _invite(operation: Operation, operation_id: str, url: str | None, **asked: Any) -> None:
    base = base_url(url, operation.directory)
    made = operation.call(f"members.routes.{operation_id}", public_url=base, **asked)
    member, link, expires_at = made["member"], made["invitation_url"], made["expires_at"]
    if operation.as_json:
        operation.show({**_shown(member), "invitation_url": link, "expires_at": expires_at})
        return
    click.echo(f"{link}\n\nHand it to {member['email']} ({member['id']}); it works once, until {expires_at}.")


def _update(operation: Operation, named: str, **fields: str) -> None:
    member_id = _find(operation, named)["id"]
    changed = operation.call("members.routes.updateMember", member_id=member_id, body=fields, about=named)
    operation.show(_shown(changed))


def _all(operation: Operation) -> list[dict[str, Any]]:
    return operation.call("members.routes.listMembers")["members"]


def _find(operation: Operation, named: str) -> dict[str, Any]:
    wanted = canonical_email(named) or named
    for row in _all(operation):
        if wanted in (row["id"], row["email"]):
            return row
    of = operation.organization_id
    raise CommandError(f"{of} has no member {named!r}; `svc member list {of}` shows them")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _SHOWN}


MINUTE_MS = 60_000


class IssuedLink(NamedTuple):
    """A new link: its token, which is shown once, and its stored record."""

    token: str
    key: ApiKey
    expires_at_ms: int


@click.group(cls=OrganizationGroup)
def console() -> None:
    """Create links that sign in to the console."""


@console.command(
    epilog=examples(
        "svc console link ORG --url https://svc.example.com",
        "svc console link ORG --role developer --name 'Ada' --minutes 60",
    )
)
@click.option("--role", type=click.Choice(KEY_ROLES), default="admin", show_default=True, help="What it may do.")
@click.option(
    "--minutes",
    type=click.IntRange(1, LONGEST_LINK_MINUTES),
    default=10,
    show_default=True,
    help="How long the link may be used.",
)
@click.option("--name", default="console link", show_default=True, help="Who signs in: the name of the link's key.")
@click.option("--url", metavar="URL", help="Where browsers reach the service, such as https://svc.example.com.")
def link(operation: Operation, role: str, minutes: int, name: str, url: str | None) -> None:
    """Make a link that signs in to the console of an organization, once.

    Signing in begins a session of 12 hours at most. The link has its own management key with a discarded secret:
    the audit log names it, and `svc key revoke` ends the session. A link that is not used in
    time is deleted with its key when the next one is made, or by the service within hours.
    """
    name, base = check_name(name), base_url(url, operation.directory)
    region, organization = settings().region, operation.organization
    apply(operation.found, partial(claim_region, region=region))
    made = make_link(operation.found, operation.world, organization, cast("KeyRole", role), name, minutes, region)
    shown = {
        "url": console_url(base, made.token),
        "expires_at": timestamp(made.expires_at_ms),
        "key_id": made.key.id,
        "role": role,
    }
    if operation.as_json:
        operation.show(shown)
        return
    click.echo(f"{shown['url']}\n\nOpen it in a browser within {minutes} minutes; it works once.")
    click.echo(f"Sign its user out again: svc key revoke {made.key.id}")


def make_link(
    found: Opened, world: World, organization: Organization, role: KeyRole, name: str, minutes: int, region: str
) -> IssuedLink:
    """Make a link with a management key of its own, and record it. The key expires when the last session that the link
    can begin has ended. Raises `CommandError` at a limit of keys.
    """
    number, now_ms = organization.number, world.now_ms()
    expires_at_ms = now_ms + minutes * MINUTE_MS
    key, secret = fresh_key(
        world,
        found.pepper,
        organization=number,
        kind="management",
        name=name,
        environment=None,
        region=region,
        role=role,
        expires_at_ms=expires_at_ms + SESSION_MS,
    )
    token = new_token("link", organization.id, world.entropy(32))
    kept = ConsoleLink(key_id=key.id, expires_at_ms=expires_at_ms, owns_key=True)

    def job(transaction: Transaction) -> ApiKey:
        put_link(transaction, number, digest(found.pepper, token), kept, now_ms)  # makes room, also for the key
        return store_issued(transaction, key, digest(found.pepper, secret))

    def change(stored: ApiKey) -> Change:
        return Change(number, stored.id, {"name": name, "role": role, "expires_at": timestamp(expires_at_ms)})

    commit(found, world, job, change)
    return IssuedLink(token, key, expires_at_ms)


def link_for(found: Opened, world: World, organization: Organization, secret: str, minutes: int) -> str:
    """Return the token of a new link for `svc dev`: it can be used once within a few minutes, and signs in with the
    key of this management secret, which must be in the store. Nothing is added to the audit log.
    """
    key = key_of_secret(found, secret)
    assert key is not None, "its secret was checked just now"
    now_ms = world.now_ms()
    token = new_token("link", organization.id, world.entropy(32))
    kept = ConsoleLink(key_id=key.id, expires_at_ms=now_ms + minutes * MINUTE_MS, owns_key=False)
    apply(
        found,
        partial(put_link, number=organization.number, digest=digest(found.pepper, token), link=kept, now_ms=now_ms),
    )
    return token


def base_url(url: str | None, directory: Path) -> str:
    """Return where browsers reach the service, without a slash at the end: the URL that was given, else the setting
    `public_url`, else this machine. Raises `CommandError` for a URL from which nobody could sign in.
    """
    config = settings()
    url = url or config.console_at()
    if url is None:
        return local_url(config, directory)
    origin = normalize_origin(url.rstrip("/"))
    scheme = "" if origin is None else origin.partition("://")[0]
    if origin is None or scheme not in ("http", "https"):
        raise CommandError(f"{url!r} is not where a service can be: write --url https://svc.example.com")
    if scheme == "http" and not is_loopback(origin):
        raise CommandError(f"nobody can sign in at {url}: signing in needs https, or plain HTTP on localhost")
    return origin
