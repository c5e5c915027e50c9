"""Members of an organization in the store: found, invited, changed and removed (decisions 15); and the deletion of
sessions, links and invitations that have expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from svc.features.contracts.cleanup import CleanupTask, Sweep, each_row
from svc.kernel.access.jobs import (
    SIGN_IN_TABLES,
    SignIn,
    end,
    end_sessions_of,
    find_invitation,
    holder,
    withdraw_invitations,
)
from svc.kernel.access.members import (
    MAX_MEMBERS,
    MEMBER_PREFIX,
    Invitation,
    Member,
    email_digest,
)
from svc.kernel.access.tables import INVITATIONS, MEMBER_EMAILS, MEMBERS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import is_removed
from svc.kernel.values.ids import is_id
from svc.kernel.values.refusals import Refusal


def find_member(snapshot: Snapshot, number: int, member_id: str) -> Member | None:
    """Return a member of the organization by its id; `None` if there is none."""
    return snapshot.get(MEMBERS, number, member_id) if is_id(MEMBER_PREFIX, member_id) else None


def members_of(snapshot: Snapshot, number: int) -> list[Member]:
    """Return all members of an organization, oldest first."""
    return sorted((member for _, member in snapshot.scan(MEMBERS, number)), key=lambda member: member.created_at_ms)


def member_with(snapshot: Snapshot, number: int, email: str) -> Member | None:
    """Return the member of an organization with this e-mail address, which must be canonical; `None` if there is none.
    Raises `CorruptionError` if the index names a missing member.
    """
    raw_id = snapshot.get(MEMBER_EMAILS, email_digest(email), number)
    member = None if raw_id is None else snapshot.get(MEMBERS, number, raw_id.decode())
    if member is None and raw_id is not None:
        raise CorruptionError(f"member {raw_id.decode()} of organization {number} is missing, but an index has it")
    return member


def members_with(snapshot: Snapshot, email: str) -> list[tuple[int, Member]]:
    """Return (number of the organization, member) of every member with this e-mail address, which must be canonical.
    Removed organizations are left out.
    """
    rows = list(snapshot.scan(MEMBER_EMAILS, email_digest(email)))
    found = [(number, snapshot.get(MEMBERS, number, raw_id.decode())) for (_, number), raw_id in rows]
    return [(number, member) for number, member in found if member is not None and not is_removed(snapshot, number)]


def member_of_subject(snapshot: Snapshot, number: int, subject: str) -> Member | None:
    """Return the member whom the OpenID provider knows by this subject (`Member.subject`); `None` if there is none."""
    return next((member for _, member in snapshot.scan(MEMBERS, number) if member.subject == subject), None)


class MemberChange(NamedTuple):
    """A member after a change, and the sessions that the change ended."""

    member: Member
    ended_sessions: tuple[bytes, ...] = ()
    """Digests of their tokens."""


def add_member(transaction: Transaction, number: int, member: Member) -> Member | Refusal:
    """Store a new member. `409 member_exists` for an address that is taken, `409 member_limit` beyond `MAX_MEMBERS`."""
    if member_with(transaction, number, member.email) is not None:
        return Refusal("member_exists")
    if len(members_of(transaction, number)) >= MAX_MEMBERS:
        return Refusal("member_limit")
    transaction.put(MEMBERS, (number, member.id), member)
    transaction.put(MEMBER_EMAILS, (email_digest(member.email), number), member.id.encode())
    return member


def invite(
    transaction: Transaction, number: int, member: Member, digest: bytes, expires_at_ms: int
) -> Member | Refusal:
    """Store a new member and the invitation with which it first signs in. Refusals: see `add_member`."""
    added = add_member(transaction, number, member)
    if isinstance(added, Member):
        transaction.put(INVITATIONS, (number, digest), Invitation(member_id=member.id, expires_at_ms=expires_at_ms))
    return added


def invite_again(
    transaction: Transaction, number: int, member_id: str, digest: bytes, expires_at_ms: int
) -> Member | Refusal:
    """Store another invitation for a member, in place of earlier ones: with it the member chooses a new password, and
    until then the old one stays valid. Refusals: `404 not_found`, `409 member_suspended`.
    """
    member = find_member(transaction, number, member_id)
    if member is None:
        return Refusal("not_found")
    if member.status == "suspended":
        return Refusal("member_suspended")
    withdraw_invitations(transaction, number, member_id)
    transaction.put(INVITATIONS, (number, digest), Invitation(member_id=member_id, expires_at_ms=expires_at_ms))
    return member


def accept_invitation(
    transaction: Transaction, number: int, digest: bytes, password: bytes, now_ms: int
) -> MemberChange | None:
    """Use up an invitation: set the member's stored password, remove its one-time codes, and end its sessions. Return
    `None` if the invitation may not be used now.
    """
    member = find_invitation(transaction, number, digest, now_ms)
    if member is None:
        return None
    ended = end_sessions_of(transaction, number, member.id)
    accepted = msgspec.structs.replace(
        member, status="active", password=password, code_generation=None, recovery=(), last_signed_in_at_ms=now_ms
    )
    transaction.put(MEMBERS, (number, member.id), accepted)
    return MemberChange(accepted, ended)


def change_member(
    transaction: Transaction, number: int, member_id: str, fields: Mapping[str, str], *, by_member: bool
) -> MemberChange | Refusal:
    """Set `name`, `role` and `status` (`active` or `suspended`) of a member, those that are given. Its sessions have
    the new role from the next request on; they end if it is suspended. Refusals: `404 not_found`; `409 member_invited`
    for the status of a member that has not signed in yet; `409 last_admin` if the organization would be left without an
    active admin.
    """
    member = find_member(transaction, number, member_id)
    if member is None:
        return Refusal("not_found")
    if member.status == "invited" and "status" in fields:
        return Refusal("member_invited")
    changed = msgspec.structs.replace(member, **fields)
    if by_member and not _is_admin(changed) and is_last_admin(transaction, number, member):
        return Refusal("last_admin")
    if changed == member:
        return MemberChange(member)
    transaction.put(MEMBERS, (number, member_id), changed)
    ended = end_sessions_of(transaction, number, member_id) if changed.status == "suspended" else ()
    return MemberChange(changed, ended)


def remove_member(transaction: Transaction, number: int, member_id: str, *, by_member: bool) -> MemberChange | Refusal:
    """Delete a member with its sessions and invitations. `404 not_found`, `409 last_admin` as in `change_member`."""
    member = find_member(transaction, number, member_id)
    if member is None:
        return Refusal("not_found")
    if by_member and is_last_admin(transaction, number, member):
        return Refusal("last_admin")
    ended = end_sessions_of(transaction, number, member_id)
    unlist_member(transaction, number, member_id)
    transaction.delete(MEMBERS, number, member_id)
    return MemberChange(member, ended)


def unlist_member(transaction: Transaction, number: int, member_id: str) -> None:
    """Delete the index row that leads from an e-mail address to a member that is about to be deleted."""
    member = transaction.get(MEMBERS, number, member_id)
    if member is not None:
        transaction.delete(MEMBER_EMAILS, email_digest(member.email), number)


def _is_admin(member: Member) -> bool:
    return member.role == "admin" and member.status == "active"


def is_last_admin(snapshot: Snapshot, number: int, member: Member) -> bool:
    """Return whether a member is the only active admin of its organization."""
    others = (other for _, other in snapshot.scan(MEMBERS, number) if other.id != member.id)
    return _is_admin(member) and not any(map(_is_admin, others))


def _delete_sign_in(
    table: Table[Any], now_ms: int, transaction: Transaction, key: tuple[int, bytes], signed: SignIn
) -> bool:
    return holder(transaction, key[0], signed, now_ms) is None and end(transaction, table, *key, now_ms)


def _ended_sign_ins(table: Table[Any], sweep: Sweep) -> CleanupTask:
    return each_row(table, partial(_delete_sign_in, table, sweep.now_ms), sweep.number)


PASSES = tuple(partial(_ended_sign_ins, table) for table in SIGN_IN_TABLES)
