"""The tables of the people of an organization: its members, how they are found, and their invitations.

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.domain.access.members import Invitation, Member
from svc.store.schema.codec import Key, Opaque, Record
from svc.store.schema.key_parts import SECRET_32, TEXT, U32, digest
from svc.store.schema.table import NOT_PERSONAL, NotPersonal, Swept, Table, Until, With

_OF_THE_CUSTOMER = NotPersonal("the customer's own people, not visitors; a member that is removed is deleted")

MEMBERS = Table(
    "members",
    Key(organization=U32, member_id=TEXT),
    Record(Member, remembered=1024),
    Until("it is removed"),
    _OF_THE_CUSTOMER,
    invariants=("members",),
)
MEMBER_EMAILS = Table(
    "member_emails",
    Key(email=digest(32), organization=U32),
    Opaque("bytes"),
    With("members"),
    _OF_THE_CUSTOMER,
    fenced_by="owner",
    invariants=("members", "member_emails"),
)
"""By the SHA-256 of an address: the id of the member who has it, in each organization."""
INVITATIONS = Table(
    "invitations",
    Key(organization=U32, digest=SECRET_32),
    Record(Invitation),
    Swept("when it has expired; using it deletes it"),
    NOT_PERSONAL,
)
"""By HMAC-SHA256(pepper, token)."""
