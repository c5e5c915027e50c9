"""Keys, sessions and the audit log in transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from svc.kernel.access.audit import AuditRecord
from svc.kernel.access.credentials import ApiKey, KeyKind
from svc.kernel.access.members import Invitation, Member, standing_key
from svc.kernel.access.sessions import MAX_LINKS, MAX_SESSIONS, ConsoleLink, Session
from svc.kernel.access.tables import (
    AUDIT,
    CONSOLE_LINKS,
    INVITATIONS,
    KEY_IDS,
    KEYS,
    MEMBERS,
    ORGANIZATION_KEYS,
    SESSIONS,
)
from svc.kernel.limits.quotas import MAX_ACTIVE_KEYS, ActiveKeys, Holding, Quotas, seconds_to_midnight
from svc.kernel.net.origins import origin_allowed
from svc.kernel.store.schema.codec import CorruptionError, CorruptPageError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.jobs import holding, keep
from svc.kernel.tenants.queries import find_key, find_key_of, find_sdk_key, is_removed, keys_of, scan_keys
from svc.kernel.values.ids import MAX_LEAD_MS, is_id
from svc.kernel.values.refusals import Refusal, invalid, over_day

T = TypeVar("T")
V = TypeVar("V")


def audited(
    job: Callable[[Transaction], T], audit_id: UUID, record: Callable[[T], AuditRecord | None]
) -> Callable[[Transaction], T]:
    """Return a job that runs `job` and writes the audit record that `record` makes of its outcome, if any, in the same
    transaction. A change of several transactions has one record, of the first: later ones with its `audit_id` add
    nothing.
    """

    def recorded_job(transaction: Transaction) -> T:
        outcome = job(transaction)
        made = record(outcome)
        if made is not None and not transaction.has(AUDIT, made.organization, audit_id.bytes):
            transaction.put(AUDIT, (made.organization, audit_id.bytes), made)
        return outcome

    return recorded_job


LAST_USED_STEP_MS = 60_000
"""`last_used_at` is written at most this often per key (decisions 2.3)."""


def issue_key(
    transaction: Transaction, key: ApiKey, digest: bytes, keys_per_day: int = Quotas().keys_per_day
) -> ApiKey | Refusal:
    """Store a new key, as `store_key` does, within the limits of the organization (decisions 2.5): `409 key_limit` if
    it would have too many active keys, `429 rate_limited` until midnight UTC after `keys_per_day`.
    """
    held, active = _held(transaction, key.organization, key.created_at_ms)
    if active.count >= MAX_ACTIVE_KEYS:
        return Refusal("key_limit")
    if held.keys_issued >= keys_per_day:
        what, seconds = f"the {keys_per_day} keys that it may issue today", seconds_to_midnight(key.created_at_ms)
        return over_day(what, seconds, reason="over the day's limit of issued keys")
    return store_key(transaction, key, digest)


def store_key(transaction: Transaction, key: ApiKey, digest: bytes) -> ApiKey:
    """Store and count a new key by its secret's digest, whatever the limits: also an organization's first keys."""
    held, active = _held(transaction, key.organization, key.created_at_ms)
    active, issued = active.plus_key(key.expires_at_ms), held.keys_issued + 1
    keep(transaction, key.organization, msgspec.structs.replace(held, active_keys=active, keys_issued=issued))
    transaction.put(KEYS, (digest,), key)
    transaction.put(KEY_IDS, (key.id,), digest)
    transaction.put(ORGANIZATION_KEYS, (key.organization, key.created_at_ms, key.id), digest)
    return key


def revoke_key(
    transaction: Transaction, key_id: str, now_ms: int, by: str | None = None
) -> ApiKey | Literal["unknown", "revoked_before"]:
    """Revoke a key of any organization, irrevocably: it is refused from the next request on, since keys are not cached.
    `key_id` may be any text. `by`: the id of the member who revokes it.
    """
    digest = transaction.get(KEY_IDS, key_id) if is_id("key_", key_id) else None
    key = None if digest is None else transaction.get(KEYS, digest)
    if digest is None or key is None:
        return "unknown"
    if key.status == "revoked":
        return "revoked_before"
    _uncount(transaction, key, now_ms)
    revoked = msgspec.structs.replace(key, revoked_at_ms=now_ms, revoked_by=by)
    transaction.put(KEYS, (digest,), revoked)
    return revoked


def revoke_all_keys(transaction: Transaction, number: int, now_ms: int) -> int:
    """Revoke every active key of an organization; returns how many there were."""
    active = [key for key in keys_of(transaction, number) if key.status == "active"]
    for key in active:
        revoke_key(transaction, key.id, now_ms)
    return len(active)


def revoke_key_of(
    transaction: Transaction, number: int, kinds: Sequence[KeyKind], key_id: str, now_ms: int, by: str | None = None
) -> ApiKey | Refusal:
    """Revoke a key as `revoke_key` does, and return the refusals of the HTTP API: `404 not_found` for a key of another
    organization or kind, `409` for one that was revoked before (decisions 2.5).
    """
    key = find_key_of(transaction, number, key_id, kinds)
    if key is None:
        return Refusal("not_found")
    revoked = revoke_key(transaction, key_id, now_ms, by)
    if isinstance(revoked, ApiKey):
        return revoked
    return Refusal("proxy_key_revoked" if key.kind == "proxy" else "sdk_key_revoked")


def replace_origins(
    transaction: Transaction, number: int, key_id: str, allowed_origins: tuple[str, ...]
) -> ApiKey | Refusal:
    """Replace the origins of a public key, given in normalized form. `404 not_found` for a key of another organization,
    `422` for a secret key, `409 sdk_key_revoked` for a revoked one.
    """
    key = find_sdk_key(transaction, number, key_id)
    if key is None:
        return Refusal("not_found")
    if key.kind != "public":
        return invalid("allowed_origins", "invalid_value")
    if key.status == "revoked":
        return Refusal("sdk_key_revoked")
    replaced = msgspec.structs.replace(key, allowed_origins=allowed_origins)
    transaction.put(KEYS, (transaction.get(KEY_IDS, key_id),), replaced)
    return replaced


def purge_key(transaction: Transaction, key: ApiKey, digest: bytes, now_ms: int) -> None:
    """Delete every row of a key but its weights, and stop counting it if it is active. `digest`: of its secret."""
    if key.status == "active":
        _uncount(transaction, key, now_ms)
    transaction.delete(KEYS, digest)
    transaction.delete(KEY_IDS, key.id)
    transaction.delete(ORGANIZATION_KEYS, key.organization, key.created_at_ms, key.id)


def keys_refusal(snapshot: Snapshot, digests: Iterable[bytes], origin: str | None, now_ms: int) -> Refusal | None:
    """Return `401 unauthorized` if a key was revoked, or no longer allows the normalized `origin`, since it was
    authenticated; else `None`.
    """
    for digest in digests:
        key = find_key(snapshot, digest)
        if key is None or not key.usable(now_ms):
            return Refusal("unauthorized", reason="the key was revoked while the request was on its way")
        if key.kind == "public" and origin is not None:
            assert key.environment is not None
            if not origin_allowed(origin, key.allowed_origins, key.environment):
                reason = "the origin was taken off the key's list while the request was on its way"
                return Refusal("unauthorized", reason=reason)
    return None


def note_use(transaction: Transaction, digest: bytes, now_ms: int) -> None:
    """Set `last_used_at` of a key to now, unless it is deleted or that was set less than a minute ago."""
    key = transaction.get(KEYS, digest)
    if key is not None and touch_is_due(key, now_ms):
        transaction.put(KEYS, (digest,), msgspec.structs.replace(key, last_used_at_ms=now_ms))


def touch_is_due(key: ApiKey, now_ms: int) -> bool:
    """Return whether `last_used_at` is a minute old, not set (decisions 2.3), or by a clock that was ahead."""
    last_ms = key.last_used_at_ms
    return last_ms is None or not -MAX_LEAD_MS <= now_ms - last_ms < LAST_USED_STEP_MS


def counted_keys(snapshot: Snapshot, number: int, as_of_ms: int = 0) -> ActiveKeys:
    """Return the active keys of an organization at `as_of_ms` (Unix ms), by reading every key."""
    expiries: list[int] = []
    unlimited = 0
    for key in scan_keys(snapshot, number):
        if key.status == "revoked":
            continue
        if key.expires_at_ms is None:
            unlimited += 1
        elif key.expires_at_ms > as_of_ms:
            expiries.append(key.expires_at_ms)
    return ActiveKeys(unlimited, tuple(sorted(expiries)), as_of_ms)


def _held(transaction: Transaction, number: int, now_ms: int) -> tuple[Holding, ActiveKeys]:
    """Return what an organization holds today, and its keys that are active now."""
    held = holding(transaction, number)
    active = held.active_keys
    if active is None or active.is_ahead(now_ms):
        active = counted_keys(transaction, number)
    return held.on(now_ms), active.at(now_ms)


def _uncount(transaction: Transaction, key: ApiKey, now_ms: int) -> None:
    """Stop counting a key that is about to be revoked or deleted."""
    held, active = _held(transaction, key.organization, now_ms)
    active = active.minus_key(key.expires_at_ms)
    keep(transaction, key.organization, msgspec.structs.replace(held, active_keys=active))


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


class CorruptSessionError(CorruptionError):
    """The row of a session cannot be read: nobody knows whose it is, and it has ended."""


def find_session(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> FoundSession | None:
    """Return a valid session by the digest of its token, `None` if there is none. Raises `CorruptSessionError`."""
    try:
        session = snapshot.get(SESSIONS, number, digest)
    except CorruptPageError:
        raise
    except CorruptionError as error:
        raise CorruptSessionError(str(error)) from error
    held = holder(snapshot, number, session, now_ms)
    return None if session is None or held is None else FoundSession(session, *held)


def find_link(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> ConsoleLink | None:
    """Return a link by the digest of its token; `None` if there is no such link, or it may not be used now."""
    link = snapshot.get(CONSOLE_LINKS, number, digest)
    return None if holder(snapshot, number, link, now_ms) is None else link


def find_invitation(snapshot: Snapshot, number: int, digest: bytes, now_ms: int) -> Member | None:
    """Return whom an invitation, by the digest of its token, is for; `None` if it may not be used now."""
    held = holder(snapshot, number, snapshot.get(INVITATIONS, number, digest), now_ms)
    return None if held is None else held.member


def holder(snapshot: Snapshot, number: int, signed: SignIn | None, now_ms: int) -> Holder | None:
    """Return whose session, link or invitation it is; `None` if it or what it depends on has ended."""
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
    """Return a management key of the organization by its id; `None` if it is unknown, revoked or expired."""
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
    rows = _past_corruption(transaction, SESSIONS, number)
    sessions = [(0 if known is None else known.last_used_at_ms, found) for found, known in rows]
    if len(sessions) >= MAX_SESSIONS:
        _, oldest = min(sessions)
        end_session(transaction, number, oldest, session.created_at_ms)
    transaction.put(SESSIONS, (number, digest), session)


def _past_corruption(snapshot: Snapshot, table: Table[V], number: int) -> Iterator[tuple[bytes, V | None]]:
    """Yield (digest, row); `None` for a corrupt row, which admits nobody and must not keep others out."""
    for (_, digest), row in snapshot.scan_past_corruption(table, (number,), (number + 1,)):
        yield digest, None if isinstance(row, CorruptionError) else row


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
    """End a session, link or invitation, also a corrupt one, and the key made for it; `False` if there is none."""
    ended: SignIn | None = None
    with suppress(CorruptionError):
        ended = transaction.get(table, number, digest)
    if not transaction.delete(table, number, digest):
        return False
    if ended is not None and not isinstance(ended, Invitation) and ended.owns_key:
        revoke_key(transaction, ended.key_id, now_ms)
    return True


def end_sessions_of(
    transaction: Transaction, number: int, member_id: str, *, but: bytes | None = None
) -> tuple[bytes, ...]:
    """End a member's sessions but that of the digest `but`, withdraw its invitations; return the ended digests."""
    withdraw_invitations(transaction, number, member_id)
    ended = tuple(
        digest
        for digest, session in _past_corruption(transaction, SESSIONS, number)
        if session is not None and session.member_id == member_id and digest != but
    )
    for digest in ended:
        transaction.delete(SESSIONS, number, digest)
    return ended


def withdraw_invitations(transaction: Transaction, number: int, member_id: str) -> None:
    """Delete the invitations of a member that are not used yet."""
    for digest, invitation in list(_past_corruption(transaction, INVITATIONS, number)):
        if invitation is not None and invitation.member_id == member_id:
            transaction.delete(INVITATIONS, number, digest)


def put_link(transaction: Transaction, number: int, digest: bytes, link: ConsoleLink, now_ms: int) -> None:
    """Store a link. End expired ones first and, where there still are `MAX_LINKS`, the one that expires first."""
    rows = _past_corruption(transaction, CONSOLE_LINKS, number)
    links = sorted((0 if known is None else known.expires_at_ms, found) for found, known in rows)
    for index, (expires_at_ms, found) in enumerate(links):
        if expires_at_ms <= now_ms or len(links) - index >= MAX_LINKS:
            end(transaction, CONSOLE_LINKS, number, found, now_ms)
    transaction.put(CONSOLE_LINKS, (number, digest), link)


def end_all(transaction: Transaction, now_ms: int) -> None:
    """End all sessions, links and invitations, each with the key that was made for it alone."""
    for table in SIGN_IN_TABLES:
        for number, digest in [key for key, _ in transaction.scan(table)]:
            end(transaction, table, number, digest, now_ms)
