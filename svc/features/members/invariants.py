"""What must be true of the members of organizations, and of what their addresses lead to."""

from __future__ import annotations

from collections.abc import Iterator

from svc.kernel.access.members import email_digest
from svc.kernel.access.tables import MEMBER_EMAILS, MEMBERS
from svc.kernel.store.snapshot import Snapshot


def member_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield what is wrong with the members of an organization, in words."""
    for (_, member_id), member in snapshot.scan(MEMBERS, number):
        if member.id != member_id:
            yield f"member {member.id} of organization {number} lies under the id {member_id}"
        if snapshot.get(MEMBER_EMAILS, email_digest(member.email), number) != member_id.encode():
            yield f"the address of member {member_id} of organization {number} does not lead to it"


def address_faults(snapshot: Snapshot) -> Iterator[str]:
    """Yield what is wrong with the addresses of members, of all organizations."""
    for (digest, number), raw_member in snapshot.scan(MEMBER_EMAILS):
        member = snapshot.get(MEMBERS, number, raw_member.decode())
        if member is None or email_digest(member.email) != digest:
            yield f"an address leads to member {raw_member.decode()} of organization {number}, which does not have it"


RULES = {"members": member_faults}
STORE_RULES = {"member_emails": address_faults}
