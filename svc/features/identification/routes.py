"""The client API: what an SDK, a proxy or a customer's server may send (interface 4.1).

Endpoint functions: typed in, typed out, no HTTP framework.
"""

from __future__ import annotations

import hashlib
from functools import partial
from uuid import UUID

import trio
from msgspec import UNSET
from msgspec.structs import replace

from svc.features.identification.pipeline.messages import Admission, Failed, Identify, PipelineResult, RateLimited
from svc.features.identification.pipeline.pipeline import Pipeline
from svc.features.rules.compiling import prepare_rules
from svc.features.rules.jobs import as_it_arrived
from svc.http.body import decode_signals
from svc.http.callers.caller import Caller
from svc.http.callers.limits import visitor_address
from svc.http.change import caller_of, change
from svc.http.openapi.json_schema import ADMITTED, FORWARDED
from svc.http.route import NOT_NOW, Call, Outcome, Route, Services
from svc.http.schema import ChallengeAnswer, DuplicateAnswer, IdentifyAnswer, IdentifyBody, identify_response
from svc.identify.attestation.challenge import CHALLENGE_BYTES, as_text
from svc.identify.identification import NONE, Duplicate, Identified, Refused, Submission, read_test_verdict
from svc.identify.keys import deferred
from svc.identify.keys.signed_verdict import signed_verdict
from svc.identify.model import Verdict
from svc.identify.recording.proofs import issue_challenge
from svc.kernel.access.jobs import touch_is_due
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.ids import ordered_digest
from svc.kernel.values.refusals import Refusal, invalid, over_rate
from svc.kernel.values.struct_fields import record_of, sent
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.mailbox import OverloadedError, Reply
from svc.kernel.work.store_watch import STALLED_S
from svc.world import visitor_id

MAX_IDEMPOTENCY_KEY = 255
REPLAY = "full"
"""The one value of `x-svc-replay`."""


async def identify(services: Services, call: Call) -> Outcome | Refusal:
    """`POST /identify`: responds once everything that it changes is durable (decisions 3.3)."""
    assert call.caller is not None
    submission = read_submission(services, call, call.caller, call.body)
    if isinstance(submission, Refusal):
        return submission
    if call.caller.organization.has_rules:
        await prepare_rules(services, submission.organization, submission.environment)
    body: IdentifyBody = call.body
    return await submit(services, call, call.caller, submission, signed=body.verdict)


async def submit(
    services: Services, call: Call, caller: Caller, submission: Submission, *, signed: bool = False
) -> Outcome:
    """Send a submission through the pipeline and return the response once all its changes are durable, with the verdict
    `signed` on request.

    Refuses with `503 service_unavailable` at once if admission is full or the store hangs, and after `STALLED_S`
    without a reply; if the identification is committed later, repeating the idempotency key finds it (decisions 17.4).
    For a development key, `Server-Timing` has the duration in milliseconds, which browsers' tools show.
    """
    began_at = trio.current_time()
    reply: Reply[PipelineResult] = Reply()
    if not services.watch.may_commit():
        return Outcome(NOT_NOW)
    try:
        limit = caller.organization.rate_limit_per_s
        services.part(Pipeline).admission.offer(Identify(submission, limit, visitor_address(caller), reply))
    except OverloadedError:
        return Outcome(Refusal("service_unavailable"))
    result = None
    with trio.move_on_after(STALLED_S):
        result = await reply.wait()
    if result is None:
        return Outcome(NOT_NOW)
    outcome = await _render(services, call, caller, result, submission if signed else None)
    if caller.key.environment != "development":
        return outcome
    took_ms = 1000 * (trio.current_time() - began_at)
    return outcome._replace(headers={**outcome.headers, "Server-Timing": f"svc;dur={took_ms:.1f}"})


def read_submission(services: Services, call: Call, caller: Caller, body: IdentifyBody) -> Submission | Refusal:
    """Return a submission from a decoded body, or `422` for what a type cannot check: `signals`, a deferred report, and
    the `Idempotency-Key` (decisions 3.2, 7.4). What the body calls as the submission does is taken over.
    """
    signals_json = bytes(body.signals)
    signals = decode_signals(signals_json)
    if isinstance(signals, Refusal):
        return signals
    if signals.get("tier") == "deferred":
        return invalid("signals.tier", "invalid_value")
    idempotency = _idempotency(call)
    if isinstance(idempotency, Refusal):
        return idempotency
    replay = call.headers.get("x-svc-replay")
    if replay not in (None, REPLAY):
        return invalid("x-svc-replay", "invalid_value", "header")
    assert caller.key.environment is not None
    test = NONE
    if caller.key.environment == "development" and caller.key.kind in ("public", "secret"):
        found = read_test_verdict(signals)
        if isinstance(found, Refusal):
            return found
        test = found
    is_forwarded = caller.applied_digest != caller.digest
    return record_of(
        Submission,
        body,
        request_id=call.request_id,
        new_visitor_id=visitor_id(services.world.entropy, call.at_ms),
        at_ms=call.at_ms,
        organization=caller.organization.number,
        key_id=caller.applied.id,
        touched_key=caller.digest if touch_is_due(caller.key, call.at_ms) else None,
        touched_public_key=caller.applied_digest if is_forwarded and touch_is_due(caller.applied, call.at_ms) else None,
        keys=tuple(dict.fromkeys((caller.digest, caller.applied_digest))) if services.store.is_shared else (),
        environment=caller.key.environment,
        sdk_platform=call.platform,
        sdk_version=sent(body.sdk.version),
        origin=caller.origin,
        account_verified=body.account_id is not UNSET and caller.key.kind == "secret",
        test=test,
        idempotency=idempotency,
        wants_original=replay == REPLAY,
        facts=caller.facts,
        signals=signals,
        signals_json=signals_json,
        trace=call.trace,
    )


def _idempotency(call: Call) -> bytes | Refusal | None:
    """Return the digest of the `Idempotency-Key`: the store has no caller's text as a key."""
    key = call.headers.get("idempotency-key")
    if key is None:
        return None
    if not key or "idempotency-key" in call.repeated:
        return invalid("Idempotency-Key", "invalid_value", "header")
    if _characters(key) > MAX_IDEMPOTENCY_KEY:
        return Refusal("idempotency_key_too_long")
    return ordered_digest(key, hashlib.blake2b(key.encode(), digest_size=16).digest())


def _characters(header: str) -> int:
    """Return how many characters were sent: in UTF-8, else one for each byte, as headers are decoded as Latin-1."""
    try:
        return len(header.encode("latin-1").decode())
    except UnicodeDecodeError:
        return len(header)


async def _render(
    services: Services, call: Call, caller: Caller, result: PipelineResult, to_sign: Submission | None
) -> Outcome:
    admission, outcome = result
    if isinstance(outcome, Failed) and outcome.unreachable:
        return Outcome(NOT_NOW)
    is_asked_for = isinstance(outcome, RateLimited | Failed)
    headers = _headers(admission, await _balance(services, caller) if is_asked_for else outcome.balance_micros)
    match outcome:
        case Identified():
            whole = _whole(services, caller, outcome.verdict, call.request_id, call.at_ms, to_sign)
            if outcome.to_renew and caller.applied.kind == "public":
                whole = replace(whole, client_token_renew=True)
            return Outcome(whole, headers=headers)
        case Duplicate():
            body = _duplicate(services, caller, outcome, to_sign)
            return Outcome(body, headers={**headers, "X-Request-Id": body.request_id})
        case Refused():
            return Outcome(outcome.refusal, headers=headers)
        case RateLimited():
            return Outcome(over_rate(outcome.reached, outcome.retry_after_s), headers=headers)
        case Failed():
            return Outcome(Refusal(outcome.code), headers=headers)


def _duplicate(
    services: Services, caller: Caller, outcome: Duplicate, to_sign: Submission | None
) -> IdentifyAnswer | DuplicateAnswer:
    """Return the id of the original or, where it may be shown, the original's response, made again."""
    event = outcome.original
    if event is None:
        return DuplicateAnswer(str(outcome.request_id))
    if to_sign is not None:  # all that the two requests may say differently is signed as the original said it
        said = as_it_arrived(event)
        to_sign = replace(
            to_sign,
            request_id=outcome.request_id,
            at_ms=event.occurred_at_ms,
            sdk_platform=event.sdk_platform,
            tag=said.tag,
            account_id=said.account_id or None,  # one that was replaced is not known
            action=said.action,
            facts=replace(to_sign.facts, ip=event.ip_address),
        )
    whole = _whole(services, caller, event.verdict, outcome.request_id, event.occurred_at_ms, to_sign)
    return replace(whole, duplicate=True)


def _whole(
    services: Services, caller: Caller, verdict: Verdict, request_id: UUID, at_ms: int, to_sign: Submission | None
) -> IdentifyAnswer:
    if caller.applied.kind == "public" and not caller.organization.decision_in_response:
        verdict = replace(verdict, decision=None)
    token = deferred.issue_token(services.deferred_key, request_id, caller.applied.id, caller.origin, at_ms)
    if to_sign is None:
        return identify_response(verdict, request_id, token)
    issued_ms = services.world.wall_time_of(to_sign.at_ms)
    signed = signed_verdict(services.verdict_key, caller.organization, verdict, to_sign, issued_ms)
    return identify_response(verdict, request_id, token, signed)


def _headers(admission: Admission, balance_micros: int) -> dict[str, str]:
    """Return the headers of interface 2.2, for all responses from admission on (decisions 3.10)."""
    balance = {"Svc-Balance-Micros": str(balance_micros)}
    if not admission.limit_per_s:
        return balance
    limit, remaining = str(admission.limit_per_s), str(admission.remaining)
    return {"RateLimit-Limit": limit, "RateLimit-Remaining": remaining, **balance}


async def _balance(services: Services, caller: Caller) -> int:
    return await services.store.query(partial(lookups.balance, number=caller.organization.number))


async def issue_attestation_challenge(services: Services, call: Call) -> ChallengeAnswer | Refusal:
    """`POST /attestation/challenge`: `200` once the challenge is durable, so that a crash loses none (interface
    2.5).
    """
    caller = caller_of(call)
    challenge = services.world.entropy(CHALLENGE_BYTES)
    job = partial(
        issue_challenge,
        number=caller.organization.number,
        key_id=caller.applied.id,
        challenge=challenge,
        now_ms=call.at_ms,
    )
    issued = await change(services, call, job)
    if isinstance(issued, Refusal):
        return issued
    return ChallengeAnswer(as_text(challenge), timestamp(issued.expires_at_ms))


IDENTIFY = Route(
    operation_id="identify",
    identifies=True,
    method="POST",
    path="/identify",
    tag="Client API",
    summary="Identify a visitor",
    description=(
        "The response is sent once everything that it changes is stored. Retry with the same `Idempotency-Key`: "
        "what was stored is not identified or charged again. A body may be compressed (`Content-Encoding: "
        "gzip`), up to 1 MiB after decompression. Proxy keys go into `x-api-key` as the others do."
    ),
    request_headers=("Idempotency-Key", "x-svc-replay", *FORWARDED),
    response_headers=(*ADMITTED, "Server-Timing"),
    handler=identify,
    kinds=("public", "secret", "proxy"),
    body=IdentifyBody,
    response=IdentifyAnswer,
    other_responses=((200, DuplicateAnswer),),
    from_browsers=True,
    errors=("billing_blocked", "no_credit", "idempotency_key_too_long", "invalid_visitor_metadata"),
)
ROUTES: tuple[Route, ...] = (
    IDENTIFY,
    Route(
        operation_id="issueAttestationChallenge",
        method="POST",
        path="/attestation/challenge",
        tag="Client API",
        summary="Issue an attestation challenge",
        description=(
            "For an app that proves its device: the challenge goes into the next report, within five minutes, once."
        ),
        request_headers=("x-svc-sdk-platform",),
        handler=issue_attestation_challenge,
        kinds=("public",),
        from_browsers=True,
    ),
)
