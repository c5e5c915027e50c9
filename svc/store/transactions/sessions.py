"""Sessions of the console: found, begun, used and ended; and the one-use links that begin them (docs/adr/0038).

A session is found together with its key, in one snapshot: so it ends with its key, and with its organization.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from svc.domain.access.credentials import ApiKey
from svc.domain.access.sessions import MOST_LINKS, MOST_SESSIONS, ConsoleLink, Session
from svc.store.schema.tables import CONSOLE_LINKS, KEY_IDS, SESSIONS, Table
from svc.store.snapshot import Snapshot, Transaction
from svc.store.transactions.keys import revoke_key
from svc.store.views.lookups import find_key_of, is_removed

SIGN_IN_TABLES: tuple[Table[Any], ...] = (SESSIONS, CONSOLE_LINKS)
"""Of `Session` and of `ConsoleLink`, which end alike."""


class FoundSession(NamedTuple):
    """A session that holds now, and its key."""

    session: Session
    key: ApiKey


def find_session(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> FoundSession | None:
    """A session of the organization by the digest of its token; `None` where there is none that holds now."""
    session = snapshot.get(SESSIONS, number, digest)
    key = key_that_holds(snapshot, number, session, now_ms)
    return None if session is None or key is None else FoundSession(session, key)


def find_link(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> ConsoleLink | None:
    """A link of the organization by the digest of its token; `None` where there is none that may be used now."""
    link = snapshot.get(CONSOLE_LINKS, number, digest)
    return None if key_that_holds(snapshot, number, link, now_ms) is None else link


def key_that_holds(snapshot: Snapshot, number: int, signed: Session | ConsoleLink | None, now_ms: int) -> ApiKey | None:
    """The key of a session or link, if that holds now: neither it, nor its key, nor its organization has ended."""
    if signed is None or signed.has_ended(now_ms) or is_removed(snapshot, number):
        return None
    return usable_key(snapshot, number, signed.key_id, now_ms)


def usable_key(snapshot: Snapshot, number: int, key_id: str, now_ms: int) -> ApiKey | None:
    """A management key of the organization that is neither revoked nor expired, by its id."""
    key = find_key_of(snapshot, number, key_id, ("management",))
    return key if key is not None and key.usable(now_ms) else None


def key_digest(snapshot: Snapshot, key: ApiKey) -> bytes:
    """The digest under which the store has a key. Raises `LookupError` for a key that it does not have."""
    found = snapshot.get(KEY_IDS, key.id)
    if found is None:
        raise LookupError(f"there is no key {key.id}")
    return found


def begin_session(transaction: Transaction, number: int, digest: bytes, session: Session) -> None:
    """Store a new session. Where the organization has `MOST_SESSIONS`, the least recently used one ends."""
    sessions = [(known.last_used_at_ms, found) for (_, found), known in transaction.scan(SESSIONS, number)]
    if len(sessions) >= MOST_SESSIONS:
        _, oldest = min(sessions)
        end_session(transaction, number, oldest, session.created_at_ms)
    transaction.put(SESSIONS, (number, digest), session)


def use_link(transaction: Transaction, number: int, digest: bytes, now_ms: int) -> ConsoleLink | None:
    """Take a link that may be used now: it is gone, and nobody can use it again. `None` as of `find_link`."""
    link = find_link(transaction, number, digest, now_ms)
    if link is not None:
        transaction.delete(CONSOLE_LINKS, number, digest)
    return link


def note_session_use(transaction: Transaction, number: int, digest: bytes, now_ms: int) -> None:
    """Write the last use of a session; nothing where it is gone, or was written by another request meanwhile."""
    session = transaction.get(SESSIONS, number, digest)
    if session is not None and session.touch_is_due(now_ms):
        transaction.put(SESSIONS, (number, digest), msgspec.structs.replace(session, last_used_at_ms=now_ms))


def end_session(transaction: Transaction, number: int, digest: bytes, now_ms: int) -> bool:
    """As `end`, of a session."""
    return end(transaction, SESSIONS, number, digest, now_ms)


def end(transaction: Transaction, table: Table[Any], number: int, digest: bytes, now_ms: int) -> bool:
    """End a session, or a link that was not used, for good, with the key that was made for it alone; `False` where
    there is none.
    """
    ended: Session | ConsoleLink | None = transaction.get(table, number, digest)
    if ended is None:
        return False
    transaction.delete(table, number, digest)
    if ended.owns_key:
        revoke_key(transaction, ended.key_id, now_ms)
    return True


def put_link(transaction: Transaction, number: int, digest: bytes, link: ConsoleLink, now_ms: int) -> None:
    """Store a new link. Those that have expired are deleted first, and where the organization still has `MOST_LINKS`,
    the one that expires first: each with the key that was made for it alone.
    """
    links = sorted((known.expires_at_ms, found) for (_, found), known in transaction.scan(CONSOLE_LINKS, number))
    for index, (expires_at_ms, found) in enumerate(links):
        if expires_at_ms <= now_ms or len(links) - index >= MOST_LINKS:
            end(transaction, CONSOLE_LINKS, number, found, now_ms)
    transaction.put(CONSOLE_LINKS, (number, digest), link)


def end_all(transaction: Transaction, now_ms: int) -> None:
    """End every session and delete every link of every organization, each with the key that was made for it alone."""
    for table in SIGN_IN_TABLES:
        for number, digest in [key for key, _ in transaction.scan(table)]:
            end(transaction, table, number, digest, now_ms)
