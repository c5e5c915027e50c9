"""Sessions of the console: found, begun, used and ended; and the one-use links that begin them (docs/adr/0038).

A session is found together with its key or member, in one snapshot: so it ends with those, and with its organization,
and has the role that its member has now.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.key_jobs import revoke_key
from svc.kernel.access.members import Invitation, Member, standing_key
from svc.kernel.access.sessions import MAX_LINKS, MAX_SESSIONS, ConsoleLink, Session
from svc.kernel.access.tables import CONSOLE_LINKS, INVITATIONS, KEY_IDS, MEMBERS, SESSIONS
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import find_key_of, is_removed

SIGN_IN_TABLES: tuple[Table[Any], ...] = (SESSIONS, CONSOLE_LINKS, INVITATIONS)
"""Tables of what ends by itself, or with its key or member."""

SignIn = Session | ConsoleLink | Invitation


class Holder(NamedTuple):
    """The owner of a session, a link or an invitation."""

    key: ApiKey
    """For a member, its `standing_key`."""
    member: Member | None


class FoundSession(NamedTuple):
    """A session that is valid now, and its owner."""

    session: Session
    key: ApiKey
    member: Member | None


def find_session(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> FoundSession | None:
    """Return a session of the organization by the digest of its token; `None` if there is no such session, or it is not
    valid now.
    """
    session = snapshot.get(SESSIONS, number, digest)
    held = holder(snapshot, number, session, now_ms)
    return None if session is None or held is None else FoundSession(session, *held)


def find_link(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> ConsoleLink | None:
    """Return a link of the organization by the digest of its token; `None` if there is no such link, or it may not be
    used now.
    """
    link = snapshot.get(CONSOLE_LINKS, number, digest)
    return None if holder(snapshot, number, link, now_ms) is None else link


def find_invitation(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> Member | None:
    """Return the member that an invitation, found by the digest of its token, is for; `None` if it may not
    be used now.
    """
    held = holder(snapshot, number, snapshot.get(INVITATIONS, number, digest), now_ms)
    return None if held is None else held.member


def holder(snapshot: Snapshot, number: int, signed: SignIn | None, now_ms: int) -> Holder | None:
    """Return the owner of a session, a link or an invitation; `None` if it, its key, its member or its organization has
    ended.
    """
    if signed is None or signed.has_ended(now_ms) or is_removed(snapshot, number):
        return None
    if isinstance(signed, ConsoleLink) or (isinstance(signed, Session) and signed.member_id is None):
        key = usable_key(snapshot, number, signed.key_id, now_ms)
        return None if key is None else Holder(key, None)
    member = snapshot.get(MEMBERS, number, signed.member_id)
    if member is None or member.status == "suspended" or (isinstance(signed, Session) and member.status != "active"):
        return None
    return Holder(standing_key(member, number), member)


def usable_key(snapshot: Snapshot, number: int, key_id: str, now_ms: int) -> ApiKey | None:
    """Return a management key of the organization that is neither revoked nor expired, by its id."""
    key = find_key_of(snapshot, number, key_id, ("management",))
    return key if key is not None and key.usable(now_ms) else None


def key_digest(snapshot: Snapshot, key: ApiKey) -> bytes:
    """Return the digest under which the store has a key. Raises `LookupError` for a key that it does not have."""
    found = snapshot.get(KEY_IDS, key.id)
    if found is None:
        raise LookupError(f"there is no key {key.id}")
    return found


def begin_session(transaction: Transaction, number: int, digest: bytes, session: Session) -> None:
    """Store a new session. If the organization already has `MAX_SESSIONS`, end the least recently used one."""
    sessions = [(known.last_used_at_ms, found) for (_, found), known in transaction.scan(SESSIONS, number)]
    if len(sessions) >= MAX_SESSIONS:
        _, oldest = min(sessions)
        end_session(transaction, number, oldest, session.created_at_ms)
    transaction.put(SESSIONS, (number, digest), session)


def use_link(transaction: Transaction, number: int, digest: bytes, now_ms: int) -> ConsoleLink | None:
    """Delete and return a link that may be used now, so that nobody can use it again. `None`: see `find_link`."""
    link = find_link(transaction, number, digest, now_ms)
    if link is not None:
        transaction.delete(CONSOLE_LINKS, number, digest)
    return link


def note_session_use(transaction: Transaction, number: int, digest: bytes, now_ms: int) -> None:
    """Write when a session was last used; do nothing if it is deleted, or another request wrote it meanwhile."""
    session = transaction.get(SESSIONS, number, digest)
    if session is not None and session.touch_is_due(now_ms):
        transaction.put(SESSIONS, (number, digest), msgspec.structs.replace(session, last_used_at_ms=now_ms))


def end_session(transaction: Transaction, number: int, digest: bytes, now_ms: int) -> bool:
    """End a session for good, as `end` does."""
    return end(transaction, SESSIONS, number, digest, now_ms)


def end(transaction: Transaction, table: Table[Any], number: int, digest: bytes, now_ms: int) -> bool:
    """Delete a session, or an unused link or invitation, and revoke the key that was made for it alone; return `False`
    if there is none.
    """
    ended: SignIn | None = transaction.get(table, number, digest)
    if ended is None:
        return False
    transaction.delete(table, number, digest)
    if not isinstance(ended, Invitation) and ended.owns_key:
        revoke_key(transaction, ended.key_id, now_ms)
    return True


def end_sessions_of(
    transaction: Transaction, number: int, member_id: str, *, but: bytes | None = None
) -> tuple[bytes, ...]:
    """End the sessions of a member, withdraw its invitations, and return the digests of the sessions. `but`: digest of
    a session that goes on.
    """
    for (_, digest), invitation in list(transaction.scan(INVITATIONS, number)):
        if invitation.member_id == member_id:
            transaction.delete(INVITATIONS, number, digest)
    ended = tuple(
        digest
        for (_, digest), session in transaction.scan(SESSIONS, number)
        if session.member_id == member_id and digest != but
    )
    for digest in ended:
        transaction.delete(SESSIONS, number, digest)
    return ended


def put_link(transaction: Transaction, number: int, digest: bytes, link: ConsoleLink, now_ms: int) -> None:
    """Store a new link. Delete expired links first and, if the organization still has `MAX_LINKS`, the one that
    expires first; each with the key that was made for it alone.
    """
    links = sorted((known.expires_at_ms, found) for (_, found), known in transaction.scan(CONSOLE_LINKS, number))
    for index, (expires_at_ms, found) in enumerate(links):
        if expires_at_ms <= now_ms or len(links) - index >= MAX_LINKS:
            end(transaction, CONSOLE_LINKS, number, found, now_ms)
    transaction.put(CONSOLE_LINKS, (number, digest), link)


def end_all(transaction: Transaction, now_ms: int) -> None:
    """End every session, and delete every link and invitation of every organization, each with the key that was made
    for it alone.
    """
    for table in SIGN_IN_TABLES:
        for number, digest in [key for key, _ in transaction.scan(table)]:
            end(transaction, table, number, digest, now_ms)
