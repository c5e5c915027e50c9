"""The tables of keys, sessions, members, and of who changed what."""

from __future__ import annotations

from svc.kernel.access.audit import AUDIT_MS, AuditRecord
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.members import Invitation, Member
from svc.kernel.access.sessions import ConsoleLink, Session
from svc.kernel.store.schema.codec import Key, Opaque, Record
from svc.kernel.store.schema.key_parts import MOMENT, SECRET_32, TEXT, U32, UUID_V7, digest
from svc.kernel.store.schema.table import NOT_PERSONAL, KeptFor, NotPersonal, Swept, Table, Until, With

_OWN_ID = Key(organization=U32, id=UUID_V7)
_OF_THE_CUSTOMER = NotPersonal("the customer's own people, not visitors; a member that is removed is deleted")

AUDIT = Table(
    "audit",
    _OWN_ID,
    Record(AuditRecord),
    KeptFor(AUDIT_MS),
    NotPersonal("an erasure is on record with the id that was erased, which leads nowhere (docs/audit.md)"),
    stays=True,
    invariants=("audit",),
)
"""By the request id for changes over HTTP; append-only."""
# Credentials: keys, and sessions of the console with the links that begin them.
KEYS = Table(
    "keys",
    Key(digest=SECRET_32),
    Record(ApiKey, remembered=1024),
    Swept("400 days after it was revoked, or after it expired if it was not"),
    NOT_PERSONAL,
    fenced_by="owner",
    invariants=("keys",),
)
"""HMAC-SHA256(pepper, secret)"""
KEY_IDS = Table("key_ids", Key(key_id=TEXT), Opaque("digest"), With("keys"), NOT_PERSONAL, fenced_by="owner")
"""key id -> digest"""
ORGANIZATION_KEYS = Table(
    "organization_keys",
    Key(organization=U32, created_at=MOMENT, key_id=TEXT),
    Opaque("digest"),
    With("keys"),
    NOT_PERSONAL,
    invariants=("active_keys",),
)
"""-> digest: oldest first"""
SESSIONS = Table(
    "sessions",
    Key(organization=U32, digest=SECRET_32),
    Record(Session, remembered=1024),
    Swept("when it has ended"),
    NOT_PERSONAL,
    since=2,
)
"""Of the console, by HMAC-SHA256(pepper, token)."""
CONSOLE_LINKS = Table(
    "console_links",
    Key(organization=U32, digest=SECRET_32),
    Record(ConsoleLink),
    Swept("when it has expired; using it deletes it"),
    NOT_PERSONAL,
    since=2,
)
MEMBERS = Table(
    "members",
    Key(organization=U32, member_id=TEXT),
    Record(Member, remembered=1024),
    Until("it is removed"),
    _OF_THE_CUSTOMER,
    invariants=("members",),
    since=6,
)
MEMBER_EMAILS = Table(
    "member_emails",
    Key(email=digest(32), organization=U32),
    Opaque("bytes"),
    With("members"),
    _OF_THE_CUSTOMER,
    fenced_by="owner",
    invariants=("members", "member_emails"),
    since=6,
)
"""By the SHA-256 of an address: the id of the member who has it, in each organization."""
INVITATIONS = Table(
    "invitations",
    Key(organization=U32, digest=SECRET_32),
    Record(Invitation),
    Swept("when it has expired; using it deletes it"),
    NOT_PERSONAL,
    since=6,
)
"""By HMAC-SHA256(pepper, token)."""
