"""`svc member`: the people who sign in to the console of an organization (docs/members.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from svc.command.changes import Change, commit
from svc.command.data_directory import account, opened
from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, confirmed, data_option, json_option, show, show_table, yes_option
from svc.features.members import jobs as members
from svc.features.members.console_command import base_url, console_url
from svc.features.members.jobs import MemberChange, MemberFields
from svc.features.members.queries import find_member, member_with, members_of
from svc.kernel.access.credentials import digest
from svc.kernel.access.members import INVITATION_MS, LONGEST_MEMBER_NAME, MEMBER_PREFIX, Member, canonical_email
from svc.kernel.access.roles import ROLES, Role
from svc.kernel.access.sessions import new_token
from svc.kernel.store.directory import Opened
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import named
from svc.kernel.values.timestamps import timestamp
from svc.world import World, twenty_characters

_SHOWN = ("id", "email", "name", "role", "status", "has_totp", "last_signed_in_at")
_url_option = click.option("--url", metavar="URL", help="Where browsers reach the service: https://svc.example.com.")
_role = click.Choice(ROLES)


@click.group(cls=CommandGroup)
def member() -> None:
    """Invite, list, change and remove the people who sign in to the console."""


@member.command("list", epilog=examples("svc member list ORG", "svc member list ORG --json"))
@click.argument("organization_id", metavar="ORG")
@data_option
@json_option
def list_(organization_id: str, directory: Path, as_json: bool) -> None:
    """List all members of an organization, oldest first."""
    with opened(directory) as found:
        number = account(found.store, organization_id).organization.number
        with found.store.read() as snapshot:
            rows = [_shown(each) for each in members_of(snapshot, number)]
    show_table(rows, _SHOWN, "members", as_json=as_json)


@member.command(epilog=examples("svc member invite ORG ada@shop.example --name 'Ada' --role analyst"))
@click.argument("organization_id", metavar="ORG")
@click.argument("email")
@click.option("--name", help="For people; the address when not given.")
@click.option("--role", type=_role, default="viewer", show_default=True, help="What it may do.")
@_url_option
@data_option
@json_option
def invite(
    organization_id: str, email: str, name: str | None, role: str, url: str | None, directory: Path, as_json: bool
) -> None:
    """Invite somebody: prints a link that works once within seven days. Nothing is mailed: hand the link over."""
    spelled = canonical_email(email)
    if spelled is None:
        raise CommandError(f"{email!r} is not an e-mail address")
    called = (name or spelled).strip()
    if not called or len(called) > LONGEST_MEMBER_NAME:
        raise CommandError(f"a name has 1 to {LONGEST_MEMBER_NAME} characters")
    world, base = World.real(), base_url(url, directory)
    new = Member(
        id=MEMBER_PREFIX + twenty_characters(world.entropy),
        email=spelled,
        name=called,
        role=cast("Role", role),
        status="invited",
        created_at_ms=world.now_ms(),
    )
    with opened(directory) as found:
        organization = account(found.store, organization_id).organization
        invited = _Invited(found, world, organization.id, organization.number)
        made = invited.link(partial(members.invite, member=new), {"name": called, "role": role})
    _show_link(made, base, as_json=as_json)


@member.command(epilog=examples("svc member reset ORG ada@shop.example"))
@click.argument("organization_id", metavar="ORG")
@click.argument("named_member", metavar="MEMBER")
@_url_option
@data_option
@json_option
def reset(organization_id: str, named_member: str, url: str | None, directory: Path, as_json: bool) -> None:
    """Invite a member again who has lost the link, the password or the device with the one-time codes.

    The new link takes the place of a former one. The person who uses it chooses a new password, and signs in
    without codes. MEMBER is an id or an e-mail address.
    """
    world, base = World.real(), base_url(url, directory)
    with opened(directory) as found:
        organization = account(found.store, organization_id).organization
        known = _find(found, organization.number, organization_id, named_member)
        invited = _Invited(found, world, organization.id, organization.number)
        made = invited.link(partial(members.invite_again, member_id=known.id), {})
    _show_link(made, base, as_json=as_json)


@member.command(epilog=examples("svc member role ORG ada@shop.example admin"))
@click.argument("organization_id", metavar="ORG")
@click.argument("named_member", metavar="MEMBER")
@click.argument("role", type=_role)
@data_option
@json_option
def role(organization_id: str, named_member: str, role: str, directory: Path, as_json: bool) -> None:
    """Give a member another role, from its next request on. MEMBER is an id or an e-mail address."""
    fields = MemberFields(role=cast("Role", role))
    _change(organization_id, named_member, directory, fields, {"role": role}, as_json=as_json)


@member.command(epilog=examples("svc member suspend ORG ada@shop.example"))
@click.argument("organization_id", metavar="ORG")
@click.argument("named_member", metavar="MEMBER")
@data_option
@json_option
def suspend(organization_id: str, named_member: str, directory: Path, as_json: bool) -> None:
    """Keep a member out: its sessions end, and it may not sign in. MEMBER is an id or an e-mail address."""
    fields = MemberFields(status="suspended")
    _change(organization_id, named_member, directory, fields, {"status": "suspended"}, as_json=as_json)


@member.command(epilog=examples("svc member activate ORG ada@shop.example"))
@click.argument("organization_id", metavar="ORG")
@click.argument("named_member", metavar="MEMBER")
@data_option
@json_option
def activate(organization_id: str, named_member: str, directory: Path, as_json: bool) -> None:
    """Let a suspended member in again. MEMBER is an id or an e-mail address."""
    fields = MemberFields(status="active")
    _change(organization_id, named_member, directory, fields, {"status": "active"}, as_json=as_json)


@member.command(epilog=examples("svc member remove ORG ada@shop.example"))
@click.argument("organization_id", metavar="ORG")
@click.argument("named_member", metavar="MEMBER")
@yes_option
@data_option
@json_option
def remove(organization_id: str, named_member: str, sure: bool, directory: Path, as_json: bool) -> None:
    """Remove a member for good; its sessions end. MEMBER is an id or an e-mail address."""
    with opened(directory) as found:
        number = account(found.store, organization_id).organization.number
        known = _find(found, number, organization_id, named_member)
        confirmed(f"This removes {known.email} ({known.id}) from {organization_id}, for good.", sure=sure)

        def job(transaction: Transaction) -> MemberChange:
            return _done(members.remove_member(transaction, number, known.id, by_member=False), named_member)

        commit(found, World.real(), job, lambda _: Change(number, known.id))
    show({**_shown(known), "status": "removed"}, as_json=as_json)


class _Link(NamedTuple):
    """An invitation that was made."""

    member: Member
    token: str
    expires_at_ms: int


class _Invited(NamedTuple):
    """Where somebody is invited to."""

    found: Opened
    world: World
    organization_id: str
    number: int

    def link(self, job: Callable[..., Member | Refusal], asked: dict[str, Any]) -> _Link:
        """Make an invitation by this job, and record what was asked for. Raises `CommandError`."""
        token = new_token("invitation", self.organization_id, self.world.entropy(32))
        expires_at_ms = self.world.now_ms() + INVITATION_MS

        def invite(transaction: Transaction) -> Member:
            hashed = digest(self.found.pepper, token)
            made = job(transaction, number=self.number, digest=hashed, expires_at_ms=expires_at_ms)
            return _done(made, self.organization_id)

        made = commit(self.found, self.world, invite, lambda member: Change(self.number, member.id, asked))
        return _Link(made, token, expires_at_ms)


def _show_link(made: _Link, base: str, *, as_json: bool) -> None:
    url, expires_at = console_url(base, made.token), timestamp(made.expires_at_ms)
    if as_json:
        show({**_shown(made.member), "invitation_url": url, "expires_at": expires_at}, as_json=True)
        return
    click.echo(f"{url}\n\nHand it to {made.member.email} ({made.member.id}); it works once, until {expires_at}.")


def _change(
    organization_id: str,
    named_member: str,
    directory: Path,
    fields: MemberFields,
    asked: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    with opened(directory) as found:
        number = account(found.store, organization_id).organization.number
        known = _find(found, number, organization_id, named_member)

        def job(transaction: Transaction) -> MemberChange:
            return _done(members.change_member(transaction, number, known.id, fields, by_member=False), named_member)

        changed = commit(found, World.real(), job, lambda _: Change(number, known.id, asked))
    show(_shown(changed.member), as_json=as_json)


def _find(found: Opened, number: int, organization_id: str, text: str) -> Member:
    email = canonical_email(text)
    with found.store.read() as snapshot:
        known = find_member(snapshot, number, text) if email is None else member_with(snapshot, number, email)
    if known is None:
        raise CommandError(f"{organization_id} has no member {text!r}; `svc member list {organization_id}` shows them")
    return known


def _done(outcome: Any, name: str) -> Any:
    """Return the result of a change. Raises `CommandError` where it was refused."""
    if isinstance(outcome, Refusal):
        raise CommandError(f"{name}: {outcome.message}")
    return outcome


def _shown(found: Member) -> dict[str, Any]:
    return named(found, *_SHOWN)
