"""Proofs in the store: challenges and keys of attestation, keys of browsers and proofs of origins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from svc.identify.attestation.app_attest import failures_of, updated
from svc.identify.attestation.challenge import (
    MAX_KEYS_OF_VISITOR,
    AttestationResult,
    AttestedKey,
    Challenge,
    ChallengeFailure,
    VisitorKeys,
    period,
    periods_to_search,
    refusal,
)
from svc.identify.attestation.claim import Attestation, observe, result
from svc.identify.history.evidence import REPLAY_MEMORY_S
from svc.identify.identification import Assessment, Submission
from svc.identify.keys.browser_keys import (
    NO_OUTCOMES,
    PROOF_FAILED,
    Use,
    key_shared,
    used,
    usually_verify,
    with_outcome,
)
from svc.identify.matching import Visitor
from svc.identify.model import Observation
from svc.identify.tables import ATTESTED_KEYS, BROWSER_KEYS, CHALLENGES, ORIGIN_PROOFS, VISITOR_KEYS
from svc.kernel.store.snapshot import Snapshot, Transaction


def keep_key(
    transaction: Transaction, number: int, key_id: bytes, key: AttestedKey, before: AttestedKey | None
) -> None:
    """Write an attested key and list it under its visitor. `before`: the stored record of this key, which may belong to
    another visitor. If a visitor has too many keys, the oldest is deleted.
    """
    transaction.put(ATTESTED_KEYS, (number, key_id), key)
    if before is not None and before.visitor_id == key.visitor_id:
        return
    if before is not None:
        _unlist(transaction, number, before.visitor_id, key_id)
    listed = (key_id, *_listed(transaction, number, key.visitor_id))
    for oldest in listed[MAX_KEYS_OF_VISITOR:]:
        transaction.delete(ATTESTED_KEYS, number, oldest)
    _list(transaction, number, key.visitor_id, listed[:MAX_KEYS_OF_VISITOR])


def has_keys(snapshot: Snapshot, number: int, visitor_id: str) -> bool:
    """Return whether the visitor has any attested key."""
    return bool(_listed(snapshot, number, visitor_id))


def purge_attested_key(transaction: Transaction, number: int, key_id: bytes, key: AttestedKey) -> None:
    """Delete one attested key."""
    transaction.delete(ATTESTED_KEYS, number, key_id)
    _unlist(transaction, number, key.visitor_id, key_id)


def purge_attested_keys(transaction: Transaction, number: int, visitor_id: str) -> None:
    """Delete all attested keys of a visitor; do nothing if it has none."""
    listed = _listed(transaction, number, visitor_id)
    for key_id in listed:
        transaction.delete(ATTESTED_KEYS, number, key_id)
    if listed:
        _list(transaction, number, visitor_id, ())


def _listed(snapshot: Snapshot, number: int, visitor_id: str) -> tuple[bytes, ...]:
    found = snapshot.get(VISITOR_KEYS, number, visitor_id.encode())
    return () if found is None else found.key_ids


def _unlist(transaction: Transaction, number: int, visitor_id: str, key_id: bytes) -> None:
    left = tuple(other for other in _listed(transaction, number, visitor_id) if other != key_id)
    _list(transaction, number, visitor_id, left)


def _list(transaction: Transaction, number: int, visitor_id: str, key_ids: tuple[bytes, ...]) -> None:
    if key_ids:
        transaction.put(VISITOR_KEYS, (number, visitor_id.encode()), VisitorKeys(key_ids))
    else:
        transaction.delete(VISITOR_KEYS, number, visitor_id.encode())


def issue_challenge(transaction: Transaction, number: int, key_id: str, challenge: bytes, now_ms: int) -> Challenge:
    """Store a challenge (32 random bytes) for one use by this key; it is valid for five minutes (interface 2.5)."""
    issued = Challenge(key_id, now_ms)
    transaction.put(CHALLENGES, (number, period(now_ms), challenge), issued)
    return issued


class Redeemed(NamedTuple):
    """An attestation whose challenge is used up."""

    attestation: Attestation
    failures: tuple[str, ...]
    """Every reason for which it proves nothing."""
    before: AttestedKey | None
    """The stored record of the key of an Apple device."""

    @property
    def observations(self) -> tuple[Observation, ...]:
        """`attestation_failed` with every reason, or nothing if all is well."""
        return observe(self.failures)

    @property
    def is_verified(self) -> bool:
        """Whether hardware attests the app and the device."""
        return self.attestation.format != "none" and not self.failures


def redeem(transaction: Transaction, submission: Submission, attestation: Attestation) -> Redeemed:
    """Use up the challenge of an attested report, even if the attestation fails for another reason
    (decisions 7.5). Of a replayed report nothing is verified again, and no key is stored.
    """
    if submission.attested is not None:
        return Redeemed(msgspec.structs.replace(attestation, proof=None), submission.attested, None)
    number, proof = submission.organization, attestation.proof
    challenged = None if attestation.challenge is None else _use(transaction, submission, attestation.challenge)
    failures = (*(() if challenged is None else (challenged,)), *attestation.failures)
    before = None
    if proof is not None:
        before = transaction.get(ATTESTED_KEYS, number, proof.key_id)
        failures = (*failures, *failures_of(proof, before, submission.environment))
    return Redeemed(attestation, failures, before)


def settle(transaction: Transaction, submission: Submission, redeemed: Redeemed, visitor_id: str) -> AttestationResult:
    """If the attestation succeeded, store the key of an Apple device with its counter and the visitor to which the
    report was assigned; return what the document says of it.
    """
    proof, known = redeemed.attestation.proof, None
    if proof is not None and not redeemed.failures:
        known = updated(proof, redeemed.before, visitor_id, submission.at_ms)
        keep_key(transaction, submission.organization, proof.key_id, known, redeemed.before)
    return result(redeemed.attestation, redeemed.failures, known)


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


class Signed(NamedTuple):
    """What key and proof of a report show."""

    observations: tuple[Observation, ...] = ()
    is_shared: bool = False
    """Several have the key, so that it proves nothing."""


def note_proof(transaction: Transaction, assessment: Assessment, *, is_replayed: bool) -> Signed:
    """Record a report's key and whether its proof holds, unless it was sent before; return what that shows."""
    features = assessment.features
    if not features.key:
        return Signed(_failed(transaction, assessment, is_replayed=is_replayed))
    _with_outcome(transaction, assessment, verified=True, is_replayed=is_replayed)
    key = (assessment.submission.organization, features.key)
    before = transaction.get(BROWSER_KEYS, *key)
    if is_replayed or not features.identifiable:
        return Signed((), before is not None and before.is_shared)
    network = assessment.network
    country = None if network.anonymity_network is not None else network.country_code
    after, shared = used(before, Use(features.token, country, assessment.submission.at_ms))
    if after is not before:
        transaction.put(BROWSER_KEYS, key, after)
    return Signed(key_shared(shared), after.is_shared)


def _failed(transaction: Transaction, assessment: Assessment, *, is_replayed: bool) -> tuple[Observation, ...]:
    if not assessment.proof_failed:
        return ()
    before = _with_outcome(transaction, assessment, verified=False, is_replayed=is_replayed)
    return (PROOF_FAILED,) if usually_verify(before) else ()


def _with_outcome(transaction: Transaction, assessment: Assessment, *, verified: bool, is_replayed: bool) -> int:
    """Record whether a signed report was verified; return the outcomes of its origin before it."""
    current, last = origin_keys(assessment)
    before = transaction.get(ORIGIN_PROOFS, *current)
    outcomes = before or transaction.get(ORIGIN_PROOFS, *last) or NO_OUTCOMES
    after = outcomes if is_replayed else with_outcome(outcomes, verified=verified)
    if after != before:
        transaction.put(ORIGIN_PROOFS, current, after)
    return outcomes


def origin_keys(assessment: Assessment) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the keys of the rows of a report's origin: of this period and of the one before."""
    submission = assessment.submission
    period = submission.at_ms // 1000 // REPLAY_MEMORY_S
    origin = assessment.features.origin
    return (submission.organization, period, origin), (submission.organization, max(period - 1, 0), origin)


def keys_of(snapshot: Snapshot, number: int, visitor: Visitor) -> Iterator[tuple[Any, ...]]:
    """Yield the keys of the rows of the keys that a visitor's browsers sign with."""
    for token in visitor.tokens:
        if token.key and snapshot.has(BROWSER_KEYS, number, token.key):
            yield number, token.key


def purge_browser_keys(transaction: Transaction, number: int, visitor: Visitor) -> None:
    """Delete what is remembered of the keys of a visitor's browsers."""
    for key in list(keys_of(transaction, number, visitor)):
        transaction.delete(BROWSER_KEYS, *key)
