"""`svc member`: the people who sign in to the console of an organization (docs/members.md)."""

from __future__ import annotations

from typing import Any

import click

from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, confirmed, yes_option
from svc.features.members.console_command import base_url
from svc.kernel.access.members import canonical_email
from svc.kernel.access.roles import ROLES

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
