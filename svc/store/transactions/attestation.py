"""Attestation challenges: given out, and used up by the first identification that names them (decisions 7.5).

Three reads and one write at most, and only for a report that names a challenge.
"""

from __future__ import annotations

import msgspec

from svc.domain.attestation.challenge import Challenge, ChallengeFailure, period, periods_to_search, refusal
from svc.domain.attestation.claim import Attestation, observe
from svc.domain.identification import Submission
from svc.domain.model import Observation
from svc.store.snapshot import Transaction
from svc.store.tables import CHALLENGES


def issue_challenge(transaction: Transaction, number: int, key_id: str, challenge: bytes, now_ms: int) -> Challenge:
    """Store a challenge (32 random bytes) for one use by this key; it is valid for five minutes (interface 2.5)."""
    issued = Challenge(key_id, now_ms)
    transaction.put(CHALLENGES, (number, period(now_ms), challenge), issued)
    return issued


def redeem(transaction: Transaction, submission: Submission, attestation: Attestation) -> tuple[Observation, ...]:
    """Use up the challenge of an attested report, also where something else is wrong with it. Returns
    `attestation_failed` with every reason, or nothing where all is well (decisions 7.5).
    """
    failures = attestation.failures
    if attestation.challenge is not None:
        failure = _use(transaction, submission, attestation.challenge)
        failures = failures if failure is None else (failure, *failures)
    return observe(failures)


def _use(transaction: Transaction, submission: Submission, challenge: bytes) -> ChallengeFailure | None:
    for at in periods_to_search(submission.at_ms):
        issued = transaction.get(CHALLENGES, submission.organization, at, challenge)
        if issued is not None:
            failure = refusal(issued, submission.key_id, submission.at_ms)
            if failure is None:
                used = msgspec.structs.replace(issued, used=True)
                transaction.put(CHALLENGES, (submission.organization, at, challenge), used)
            return failure
    return "challenge_unknown"
