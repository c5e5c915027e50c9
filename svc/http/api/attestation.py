"""The client API's attestation challenge (interface 2.5, 4.1). An endpoint function: typed in, typed out."""

from __future__ import annotations

from functools import partial

from svc.domain.attestation.challenge import CHALLENGE_BYTES, as_text
from svc.domain.refusals import Refusal
from svc.domain.timestamps import timestamp
from svc.http.change import caller_of, change
from svc.http.route import Call, Outcome, Route, Services
from svc.http.schema import ChallengeAnswer
from svc.store.transactions.attestation import issue_challenge


async def issue(services: Services, call: Call) -> Outcome:
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
        return Outcome(issued)
    return Outcome(ChallengeAnswer(as_text(challenge), timestamp(issued.expires_at_ms)))


ROUTES: tuple[Route, ...] = (
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
        handler=issue,
        kinds=("public",),
        response=ChallengeAnswer,
        from_browsers=True,
    ),
)
