"""Members of an organization, as the store has them: functions of a snapshot."""

from __future__ import annotations

from svc.kernel.access.members import Member, email_digest, is_member_id
from svc.kernel.access.tables import MEMBER_EMAILS, MEMBERS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.queries import is_removed


def find_member(snapshot: Snapshot, number: int, member_id: str) -> Member | None:
    """Return a member of the organization by its id; `None` if there is none."""
    return snapshot.get(MEMBERS, number, member_id) if is_member_id(member_id) else None


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


def other_active_admins(snapshot: Snapshot, number: int, member_id: str) -> bool:
    """Return whether the organization has an active admin other than this member."""
    return any(
        member.role == "admin" and member.status == "active" and member.id != member_id
        for _, member in snapshot.scan(MEMBERS, number)
    )
