"""How a member signs in with e-mail address, password and one-time code (decisions 15.3, docs/adr/0122).

Every attempt costs one hash and one read of the store, no matter whom it names and what is wrong with it, and is
answered in the same words: nobody learns whether an address has a member, a password is right, or a code is missing.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from svc.features.members.bodies import PasswordFields
from svc.features.members.queries import find_member, members_with
from svc.features.members.sign_in.entering import Entry, enter, entered, former_session, refused, request_of, site_of
from svc.features.members.sign_in.hasher import PasswordHasher
from svc.features.members.sign_in.passwords import LONGEST_PASSWORD, is_password
from svc.features.members.sign_in.second_factor import use_code
from svc.http.callers.authentication import FoundKey, caller_with
from svc.http.route import Call, Outcome, Services
from svc.kernel.access.members import Member, canonical_email, email_digest, standing_key
from svc.kernel.access.sessions import new_session
from svc.kernel.access.tables import MEMBERS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import sent

MEMBER_REFUSED = (
    "The address, the password or the code is wrong. Who has set up one-time codes needs one each time, and each "
    "counts once. An admin of the organization can invite you again."
)


class Proven(NamedTuple):
    """A member whose password and code are right."""

    number: int
    """Of the organization."""
    member: Member
    code: str
    """Beside the password; of no account where the member needs none."""


async def sign_in_by_password(services: Services, call: Call, fields: PasswordFields) -> Outcome | Refusal:
    """Begin a session of the member with this address and password. `401 unauthorized`, `429 rate_limited`, `503
    service_unavailable` where too many sign in at once.
    """
    email = canonical_email(fields.email) or ""
    over = services.limits.account_refusal(email_digest(email), call.at_ms)
    if over is not None:
        return over
    hashed = await services.part(PasswordHasher).hash(email, fields.password[: LONGEST_PASSWORD + 1])
    if isinstance(hashed, Refusal):
        return hashed

    code_ms = services.world.wall_time_of(call.at_ms)  # the authenticator has a clock of its own

    def find(snapshot: Snapshot) -> tuple[Proven, Entry] | Refusal:
        proven = _proven(snapshot, services.part(PasswordHasher).key, email, hashed, fields, code_ms)
        return proven if isinstance(proven, Refusal) else (proven, entry_of(services, call, snapshot, proven[:2]))

    found = await services.store.query(find)
    if isinstance(found, Refusal):
        return found
    proven, entry = found
    job = partial(_come_in, proven=proven, key=services.part(PasswordHasher).key, now_ms=call.at_ms, code_ms=code_ms)
    came = await enter(services, call, entry, job)
    return came if isinstance(came, Refusal) else entered(services, entry, came[1])


def entry_of(services: Services, call: Call, snapshot: Snapshot, who: tuple[int, Member]) -> Entry:
    """Return a session that begins now, of this member of the organization with this number."""
    number, member = who
    request = request_of(services, call, snapshot)
    caller = caller_with(request, FoundKey(standing_key(member, number), b""), member=member)
    session = new_session(call.at_ms, secure=site_of(call).transport == "https", member_id=member.id)
    return Entry(caller, session, former_session(request, call))


def _proven(
    snapshot: Snapshot, key: bytes, email: str, hashed: bytes, fields: PasswordFields, now_ms: int
) -> Proven | Refusal:
    """Of several organizations with the same address and password, the one that was signed in to last."""
    wanted = sent(fields.organization_id)
    account = None if wanted is None else lookups.find_account(snapshot, wanted)
    matching = [
        (number, member)
        for number, member in members_with(snapshot, email)
        if is_password(key, member.id, hashed, member.password)
        and member.status == "active"
        and (wanted is None or (account is not None and account.organization.number == number))
    ]
    if not matching:
        return refused(MEMBER_REFUSED, "no active member with this address and password")
    number, member = max(matching, key=lambda found: found[1].last_signed_in_at_ms or 0)
    code = fields.totp if fields.totp is not UNSET else ""
    if member.code_generation is not None and use_code(member, key, code, now_ms) is None:
        return refused(MEMBER_REFUSED, f"the password of {member.id} is right, and the code is not")
    return Proven(number, member, code)


def _come_in(transaction: Transaction, proven: Proven, key: bytes, now_ms: int, code_ms: int) -> Member | Refusal:
    """Record that the member has signed in and its code as used, if both are still as they were read."""
    number, before, code = proven
    member = find_member(transaction, number, before.id)
    if member is None or member.status != "active" or _ways_in(member) != _ways_in(before):
        return refused(MEMBER_REFUSED, "the member was changed meanwhile")
    used = member if member.code_generation is None else use_code(member, key, code, code_ms)
    if used is None:
        return refused(MEMBER_REFUSED, "the code was used meanwhile")
    came = msgspec.structs.replace(used, last_signed_in_at_ms=now_ms)
    transaction.put(MEMBERS, (number, member.id), came)
    return came


def _ways_in(member: Member) -> tuple[bytes | None, int | None]:
    return member.password, member.code_generation
