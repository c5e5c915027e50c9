"""The way a request beside identify changes anything: one job of the store's one writer, on disk before the response.

Several changes at once are each made upon what the one before left, since the store commits one group at a time; a
caller that walks away while its change is on the way to the disk leaves a whole change behind or none. What a
management key or a member changes is in the audit log by the same commit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import trio

from svc.http.callers.caller import Caller
from svc.http.callers.sessions import signed_out
from svc.http.route import NOT_NOW, Call, Services
from svc.kernel.access.audit import Actor, AuditRecord, asked
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.jobs import FoundSession, audited, find_session, keys_refusal, note_session_use, touch_is_due
from svc.kernel.access.jobs import note_use as note_key_use
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import StoreFullError
from svc.kernel.tenants.queries import find_key, is_removed
from svc.kernel.values.refusals import Refusal
from svc.kernel.work.store_watch import STALLED_S

T = TypeVar("T")

LONGEST_REST_S: Final = 0.1
"""Between two steps of what is deleted: a slow disk is no reason to wait for longer."""


async def change(
    services: Services, call: Call, job: Callable[[Transaction], T], *, may_use_reserve: bool = False
) -> T | Refusal:
    """Run a job and return its result once it is durable. A change by a management key or a member is recorded in the
    audit log with it, once per request. `may_use_reserve`: see `Store.write`; for jobs that delete. Raises what the
    job raised.

    Refusals: `401 unauthorized` or `403 insufficient_role` if the key, the session or the role has ended since the
    request was authenticated; `503 service_unavailable` if the store has no free space; `429 rate_limited` for such a
    change beyond `AuditBudget`, unless it deletes.
    """
    return await _change(services, call, partial(_by_standing, call, job), may_use_reserve=may_use_reserve)


async def _change(
    services: Services, call: Call, job: Callable[[Transaction], T], *, may_use_reserve: bool
) -> T | Refusal:
    caller = caller_of(call)
    if caller.key.kind != "management":
        return await _commit(services, call, job, may_use_reserve=may_use_reserve)
    budget = services.limits.audit
    over = None if may_use_reserve else budget.refusal(caller.organization.number, call.at_ms)
    if over is not None:
        return over
    job = audited(job, call.request_id, partial(_record, call))
    outcome = await _commit(services, call, job, may_use_reserve=may_use_reserve)
    record = _record(call, outcome)
    if record is not None:
        budget.note(record)
    return outcome


async def delete_in_steps(
    services: Services, call: Call, begin: Callable[[Transaction], Refusal | bool], go_on: Callable[[Transaction], bool]
) -> Refusal | None:
    """Run `begin` as `change` does, and `go_on` until it returns true, whatever becomes of the caller; refused
    as the first one is. After each step it rests for as long as that took: so an organization has half of the writer,
    however much it deletes at once.
    """
    ended = await _change(services, call, partial(_by_standing, call, begin), may_use_reserve=True)
    while ended is False:
        async with call.turn.page():
            began_s = trio.current_time()
            ended = await _change(services, call, go_on, may_use_reserve=True)
            await trio.sleep(min(trio.current_time() - began_s, LONGEST_REST_S))
    return ended if isinstance(ended, Refusal) else None


ROLE_CHANGED = "Your role was changed while the request was on its way. Send it again."


def _by_standing(call: Call, job: Callable[[Transaction], T], transaction: Transaction) -> T | Refusal:
    return _lost(transaction, call) or job(transaction)


def _lost(transaction: Transaction, call: Call) -> Refusal | None:
    """Return the refusal of a caller who has lost its key, session or role since the head of the request arrived: the
    body may have come long after it. Routes that take no key check in their own job who comes in.
    """
    caller = caller_of(call)
    if not call.route.kinds or caller.operator is not None:
        return None
    if caller.session is None:
        return keys_refusal(transaction, {caller.digest, caller.applied_digest}, caller.origin, call.at_ms)
    found = find_session(transaction, caller.organization.number, caller.session.digest, call.at_ms)
    if found is None:
        return signed_out("the session ended while the request was on its way")
    if found.key.role != caller.key.role and "insufficient_role" in call.route.codes:
        return Refusal("insufficient_role", explanation=ROLE_CHANGED)
    return None


async def _commit(
    services: Services, call: Call, job: Callable[[Transaction], T], *, may_use_reserve: bool = False
) -> T | Refusal:
    if services.watch.state() != "ok":
        return NOT_NOW
    number = call.organization.number

    def checked_job(transaction: Transaction) -> T | Refusal:
        if is_removed(transaction, number):
            return Refusal("unauthorized", reason="the organization was removed while the request was on its way")
        return job(transaction)

    try:
        with trio.move_on_after(STALLED_S):  # a commit that has begun is waited for to its end
            return await services.store.write_one(checked_job, number, may_use_reserve=may_use_reserve)
        return NOT_NOW  # noqa: TRY300  reached where it was not its turn in time
    except StoreFullError as error:
        services.store.outage.stopped("change", error)
        return Refusal("service_unavailable")


async def note_use(services: Services, call: Call) -> None:
    """Write `last_used_at` of the caller's key and of its session if it is due: at most one commit a minute for each
    (decisions 2.3). If the store is full or takes no writes, the request continues without it. An identification
    records the use of its key itself.
    """
    if call.caller is None or call.route.identifies:
        return
    caller, number, at_ms = call.caller, call.organization.number, call.at_ms
    used = caller.session
    is_key_due = caller.member is None and touch_is_due(caller.key, at_ms)  # a member has none
    is_session_due = used is not None and used.session.touch_is_due(at_ms)
    if not is_key_due and not is_session_due:
        return

    def job(transaction: Transaction) -> None:
        if is_removed(transaction, number):
            return
        if is_key_due:
            note_key_use(transaction, caller.digest, at_ms)
        if used is not None and is_session_due:
            note_session_use(transaction, number, used.digest, at_ms)

    await _note(services, number, job)


async def _note(services: Services, number: int, job: Callable[[Transaction], None]) -> None:
    if services.watch.state() == "ok":
        with suppress(StoreFullError, UnavailableError), trio.move_on_after(STALLED_S):
            await services.store.write_one(job, number)


async def still_holds(services: Services, caller: Caller) -> bool:
    """Return whether the caller's session or key is valid now, also for a response that takes long to send."""
    return await services.store.query(partial(_standing, caller=caller, now_ms=services.world.now_ms())) is not None


async def still_holds_in_use(services: Services, caller: Caller) -> bool:
    """Return as `still_holds`, and note that a response is being sent to the session, which is use of it (decisions
    15.6): at most one commit a minute. Where there is no space for it, or the store takes nothing, it is not noted.
    """
    used, number, now_ms = caller.session, caller.organization.number, services.world.now_ms()
    found = await services.store.query(partial(_standing, caller=caller, now_ms=now_ms))
    if used is not None and isinstance(found, FoundSession) and found.session.touch_is_due(now_ms):
        await _note(services, number, partial(note_session_use, number=number, digest=used.digest, now_ms=now_ms))
    return found is not None


def _standing(snapshot: Snapshot, caller: Caller, now_ms: int) -> FoundSession | ApiKey | None:
    """Return the caller's session or key, `None` if it has ended."""
    number = caller.organization.number
    if caller.session is not None:
        return find_session(snapshot, number, caller.session.digest, now_ms)
    key = find_key(snapshot, caller.digest)
    return key if key is not None and key.usable(now_ms) and not is_removed(snapshot, number) else None


def caller_of(call: Call) -> Caller:
    """Return the caller of a route that takes a key. Raises `AssertionError` on a route that takes none."""
    assert call.caller is not None
    return call.caller


def member_of(call: Call) -> str | None:
    """Return the id of the member who made the request; `None` for a management key (interface 5, rule 8)."""
    return caller_of(call).member_id


def _named(body: msgspec.Struct) -> dict[str, Any]:
    """Return what a body names, by name. A `null` is left out where a field that is left out says the same."""
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(body)}
    values: dict[str, Any] = msgspec.to_builtins(body)
    return {name: value for name, value in values.items() if value is not None or defaults[name] is not None}


def _record(call: Call, outcome: object) -> AuditRecord | None:
    """Return the audit record of a request; `None` for one that was refused, or names nothing to change. Its subject is
    the path's first variable beside the organization.
    """
    if isinstance(outcome, Refusal):
        return None
    caller = caller_of(call)
    how, operator = call.route.audited, caller.operator
    named = {name: text for name, text in call.path.items() if name not in how.left_out}
    subject = named.pop(next(iter(named))) if named else how.made_of(outcome) or caller.organization.id
    body = {} if call.body is None else _named(call.body)
    if call.route.method == "PATCH" and not body:
        return None
    named |= body
    by_key = Actor(
        kind="management_key" if caller.member is None else "member",
        id=caller.key.id,
        name=caller.key.name,
        role=caller.key.role,
        place=caller.facts.ip,
    )
    return AuditRecord(
        at_ms=call.at_ms,
        actor=by_key if operator is None else operator.actor,
        action=call.route.operation_id if operator is None else operator.command,
        organization=caller.organization.number,
        subject=subject,
        change=asked(named if operator is None else {**operator.asked, **named}, how) | how.seen_of(outcome),
    )
