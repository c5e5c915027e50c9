"""One-time codes of a member (TOTP, RFC 6238): `POST /console/api/totp` and `/confirm` (decisions 15.3)."""

from __future__ import annotations

from functools import partial

import msgspec

from svc.domain.access.members import Member
from svc.domain.access.one_time_codes import code_secret, code_url, shown_secret, step_of_code
from svc.domain.refusals import Refusal, invalid
from svc.http.change import caller_of, change
from svc.http.members.schema import ConfirmTotpBody, OfferedTotpBody
from svc.http.route import Call, Route, Services, console_route
from svc.store.schema.tables import MEMBERS
from svc.store.snapshot import Transaction
from svc.store.views.members import find_member

ISSUER = "svc"


async def offer_codes(services: Services, call: Call) -> OfferedTotpBody | Refusal:
    """`POST /console/api/totp`: a new secret for the caller's authenticator, of no effect before it is confirmed. `404
    not_found` for a session of a key.
    """
    caller = caller_of(call)
    if caller.member is None:
        return Refusal("not_found")
    offer = partial(_offer, number=caller.organization.number, member_id=caller.member.id)
    offered = await change(services, call, offer)
    if isinstance(offered, Refusal):
        return offered
    secret = code_secret(services.passwords.key, offered.id, offered.offered_generation)
    issuer = f"{ISSUER} ({caller.organization.name})".replace(":", " ")
    return OfferedTotpBody(shown_secret(secret), code_url(secret, offered.email, issuer))


async def confirm_codes(services: Services, call: Call) -> Refusal | None:
    """`POST /console/api/totp/confirm`: the member needs codes by the offered secret from now on. `422`
    (`invalid_value`) for a wrong code, `404 not_found` without an offer.
    """
    body: ConfirmTotpBody = call.body
    caller = caller_of(call)
    if caller.member is None:
        return Refusal("not_found")
    confirm = partial(
        _confirm,
        number=caller.organization.number,
        member_id=caller.member.id,
        key=services.passwords.key,
        code=body.code,
        now_ms=call.at_ms,
    )
    confirmed = await change(services, call, confirm)
    return confirmed if isinstance(confirmed, Refusal) else None


def _offer(transaction: Transaction, number: int, member_id: str) -> Member | Refusal:
    member = find_member(transaction, number, member_id)
    if member is None:
        return Refusal("not_found")
    offered = msgspec.structs.replace(member, offered_generation=member.offered_generation + 1)
    transaction.put(MEMBERS, (number, member_id), offered)
    return offered


def _confirm(
    transaction: Transaction, number: int, member_id: str, key: bytes, code: str, now_ms: int
) -> Member | Refusal:
    member = find_member(transaction, number, member_id)
    if member is None or member.offered_generation == (member.code_generation or 0):
        return Refusal("not_found")
    step = step_of_code(code_secret(key, member_id, member.offered_generation), code, now_ms, member.last_code)
    if step is None:
        return invalid("code", "invalid_value")
    confirmed = msgspec.structs.replace(member, code_generation=member.offered_generation, last_code=step)
    transaction.put(MEMBERS, (number, member_id), confirmed)
    return confirmed


_route = partial(console_route, method="POST", needs="own", errors=("not_found",))
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="offerTotp",
        path="/totp",
        summary="Begin to set up one-time codes",
        description=(
            "A new secret for the authenticator of the member whose session it is. Nothing changes before it is "
            "confirmed."
        ),
        handler=offer_codes,
        response=OfferedTotpBody,
    ),
    _route(
        operation_id="confirmTotp",
        path="/totp/confirm",
        summary="Confirm one-time codes",
        description=(
            "With a code of the secret that was offered last. From then on the member needs a code beside its "
            "password; each counts once, and this one has."
        ),
        handler=confirm_codes,
        body=ConfirmTotpBody,
        status=204,
    ),
)
