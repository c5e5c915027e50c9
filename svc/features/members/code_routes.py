"""What a member changes of how it signs in: one-time codes (TOTP, RFC 6238) and its password (decisions 15.3).

Each change is proven by the password or by a code, since anybody who finds an open screen has its session. Attempts
count as attempts to sign in with this address. A change ends the member's other sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from svc.features.members.bodies import (
    ChangePasswordBody,
    ConfirmTotpBody,
    OfferedTotpBody,
    ProofBody,
    RecoveryCodesBody,
)
from svc.features.members.jobs import MemberChange, find_member
from svc.features.members.sign_in.entering import PasswordHasher, change_ending_streams, guessable
from svc.features.members.sign_in.passwords import LONGEST_PASSWORD, is_guessable, is_password, stored_password
from svc.features.members.sign_in.second_factor import (
    RECOVERY_ENTROPY,
    code_secret,
    code_url,
    recovery_codes,
    recovery_digest,
    shown_secret,
    step_of_code,
    use_code,
)
from svc.http.callers.caller import Caller
from svc.http.change import caller_of, change
from svc.http.route import Call, Route, Services, console_route
from svc.kernel.access.audit import Audited
from svc.kernel.access.jobs import end_sessions_of
from svc.kernel.access.members import Member, email_digest
from svc.kernel.access.tables import MEMBERS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.refusals import Refusal, invalid

ISSUER = "svc"


class _Whose(NamedTuple):
    """The member who changes something, and the session in which."""

    number: int
    """Of the organization."""
    member: Member
    session: bytes | None

    def replace(self, transaction: Transaction, changed: Member) -> MemberChange:
        """Store the member, and end its other sessions."""
        ended = end_sessions_of(transaction, self.number, changed.id, but=self.session)
        transaction.put(MEMBERS, (self.number, changed.id), changed)
        return MemberChange(changed, ended)


async def offer_codes(services: Services, call: Call) -> OfferedTotpBody | Refusal:
    """`POST /console/api/totp`: a new secret for the caller's authenticator, of no effect before it is confirmed. `422`
    (`invalid_value`) for a wrong password or code, `404 not_found` for a session of a key and for a member without a
    password.
    """
    whose = _whose(caller_of(call))
    if whose is None:
        return Refusal("not_found")
    prove = await _proof(services, call, whose)
    if isinstance(prove, Refusal):
        return prove

    def offer(transaction: Transaction) -> Member | Refusal:
        proven = prove(transaction)
        if isinstance(proven, Refusal):
            return proven
        offered = msgspec.structs.replace(proven, offered_generation=proven.offered_generation + 1)
        transaction.put(MEMBERS, (whose.number, offered.id), offered)
        return offered

    key, offered = services.part(PasswordHasher).key, await change(services, call, offer)
    if isinstance(offered, Refusal):
        return offered
    secret = code_secret(key, offered.id, offered.offered_generation)
    issuer = f"{ISSUER} ({call.organization.name})".replace(":", " ")
    return OfferedTotpBody(shown_secret(secret), code_url(secret, offered.email, issuer))


async def confirm_codes(services: Services, call: Call) -> RecoveryCodesBody | Refusal:
    """`POST /console/api/totp/confirm`: the member needs codes by the offered secret from now on, and gets new recovery
    codes. `422` (`invalid_value`) for a wrong code, `404 not_found` without an offer, `429
    rate_limited` as for signing in.
    """
    body: ConfirmTotpBody = call.body
    whose = _whose(caller_of(call))
    if whose is None:
        return Refusal("not_found")
    over = services.limits.account_refusal(email_digest(whose.member.email), call.at_ms)
    if over is not None:
        return over
    code_ms = services.world.wall_time_of(call.at_ms)  # the authenticator has a clock of its own
    key, codes = services.part(PasswordHasher).key, recovery_codes(services.world.entropy(RECOVERY_ENTROPY))

    def confirm(transaction: Transaction) -> MemberChange | Refusal:
        member = find_member(transaction, whose.number, whose.member.id)
        if member is None or member.offered_generation == (member.code_generation or 0):
            return Refusal("not_found")
        secret = code_secret(key, member.id, member.offered_generation)
        step = step_of_code(secret, body.code, code_ms, member.last_code)
        if step is None:
            return invalid("code", "invalid_value")
        confirmed = msgspec.structs.replace(
            member,
            code_generation=member.offered_generation,
            last_code=step,
            recovery=tuple(recovery_digest(key, member.id, code) for code in codes),
        )
        return whose.replace(transaction, confirmed)

    confirmed = await change_ending_streams(services, call, confirm)
    return confirmed if isinstance(confirmed, Refusal) else RecoveryCodesBody(codes)


async def replace_recovery_codes(services: Services, call: Call) -> RecoveryCodesBody | Refusal:
    """`POST /console/api/totp/recovery`: ten new recovery codes in the place of all former ones. `422`
    (`invalid_value`) for a wrong password or code, `404 not_found` for a session of a key and for a member without
    codes.
    """
    whose = _whose(caller_of(call))
    if whose is None or whose.member.code_generation is None:
        return Refusal("not_found")
    prove = await _proof(services, call, whose)
    if isinstance(prove, Refusal):
        return prove
    key, codes = services.part(PasswordHasher).key, recovery_codes(services.world.entropy(RECOVERY_ENTROPY))

    def replace(transaction: Transaction) -> MemberChange | Refusal:
        proven = prove(transaction)
        if isinstance(proven, Refusal):
            return proven
        if proven.code_generation is None:
            return Refusal("not_found")
        digests = tuple(recovery_digest(key, proven.id, code) for code in codes)
        return whose.replace(transaction, msgspec.structs.replace(proven, recovery=digests))

    replaced = await change_ending_streams(services, call, replace)
    return replaced if isinstance(replaced, Refusal) else RecoveryCodesBody(codes)


async def change_password(services: Services, call: Call) -> Refusal | None:
    """`POST /console/api/password`: the member signs in with this password from now on. `422` (`invalid_value`) at
    `password` for a wrong one, at `new_password` for one that is easily guessed; `404 not_found` for a session of a key
    and for a member without a password.
    """
    body: ChangePasswordBody = call.body
    whose = _whose(caller_of(call))
    if whose is None:
        return Refusal("not_found")
    if is_guessable(body.new_password, whose.member.email, whose.member.name):
        return guessable("new_password")
    hashed = await _hashed(services, call, whose.member, body.password)
    if isinstance(hashed, Refusal):
        return hashed
    hashed_new = await services.part(PasswordHasher).hash(whose.member.email, body.new_password)
    if isinstance(hashed_new, Refusal):
        return hashed_new
    key = services.part(PasswordHasher).key

    def replace(transaction: Transaction) -> MemberChange | Refusal:
        member = find_member(transaction, whose.number, whose.member.id)
        if member is None:
            return Refusal("not_found")
        if not is_password(key, member.id, hashed, member.password):
            return invalid("password", "invalid_value")
        password = stored_password(key, member.id, hashed_new)
        return whose.replace(transaction, msgspec.structs.replace(member, password=password))

    changed = await change_ending_streams(services, call, replace)
    return changed if isinstance(changed, Refusal) else None


def _whose(caller: Caller) -> _Whose | None:
    """Return the member of the session; `None` for a key, and for a member who has no password."""
    if caller.member is None or caller.member.password is None:
        return None
    session = None if caller.session is None else caller.session.digest
    return _Whose(caller.organization.number, caller.member, session)


async def _proof(services: Services, call: Call, whose: _Whose) -> Callable[[Transaction], Member | Refusal] | Refusal:
    """Return a job that returns the member if the `ProofBody` of the call proves it: without the code that it used.
    Its refusals: `422` (`invalid_value`), `404 not_found` for a member that was removed. `422` for a body with neither
    or both, `429 rate_limited` as for signing in.
    """
    body: ProofBody = call.body
    if (body.password is UNSET) == (body.code is UNSET):
        return invalid("password", "required" if body.password is UNSET else "invalid_value")
    hashed = await _hashed(services, call, whose.member, "" if body.password is UNSET else body.password)
    if isinstance(hashed, Refusal):
        return hashed
    key, code_ms = services.part(PasswordHasher).key, services.world.wall_time_of(call.at_ms)

    def prove(transaction: Transaction) -> Member | Refusal:
        member = find_member(transaction, whose.number, whose.member.id)
        if member is None:
            return Refusal("not_found")
        if body.code is not UNSET:
            return use_code(member, key, body.code, code_ms) or invalid("code", "invalid_value")
        is_it = is_password(key, member.id, hashed, member.password)
        return member if is_it else invalid("password", "invalid_value")

    return prove


async def _hashed(services: Services, call: Call, member: Member, password: str) -> bytes | Refusal:
    """Return the hash of a password that may be the member's. `429 rate_limited` as for signing in with the address."""
    over = services.limits.account_refusal(email_digest(member.email), call.at_ms)
    return over or await services.part(PasswordHasher).hash(member.email, password[: LONGEST_PASSWORD + 1])


_route = partial(console_route, method="POST", needs="own", errors=("not_found", "rate_limited", "service_unavailable"))
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="offerTotp",
        path="/totp",
        summary="Begin to set up one-time codes",
        description=(
            "A new secret for the authenticator of the member whose session it is, who proves it by the password, or "
            "by a code. Nothing changes before it is confirmed."
        ),
        handler=offer_codes,
        body=ProofBody,
        example='{"password": "..."}',
    ),
    _route(
        operation_id="confirmTotp",
        path="/totp/confirm",
        summary="Confirm one-time codes",
        description=(
            "With a code of the secret that was offered last. From then on the member needs a code beside its "
            "password; each counts once, and this one has. Ten recovery codes replace former ones; the member's other "
            "sessions end."
        ),
        handler=confirm_codes,
        body=ConfirmTotpBody,
    ),
    _route(
        operation_id="replaceRecoveryCodes",
        path="/totp/recovery",
        summary="Make new recovery codes",
        description=(
            "Ten, in the place of all that the member had, who proves it by the password or by a code. Its other "
            "sessions end."
        ),
        handler=replace_recovery_codes,
        body=ProofBody,
        example='{"password": "..."}',
        audited=Audited(),
    ),
    _route(
        operation_id="changePassword",
        path="/password",
        summary="Change the own password",
        description="Of the member whose session it is. Its other sessions end.",
        handler=change_password,
        body=ChangePasswordBody,
        example='{"password": "...", "new_password": "..."}',
        audited=Audited(),
        status=204,
    ),
)
