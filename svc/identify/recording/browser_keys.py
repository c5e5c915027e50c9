"""Keys of browsers and proofs of origins in the store (`identify.keys.browser_keys`, decisions 18.6).

Bounds: of a signed report one row is read for its key and one or two for its origin. A key is written when it appears,
with a second and a third token, in another country, and once a month; an origin until its last 20 signed reports were
verified, and when one was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from svc.identify.history.evidence import REPLAY_MEMORY_S
from svc.identify.identification import Assessment
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
from svc.identify.tables.proofs import BROWSER_KEYS, ORIGIN_PROOFS
from svc.kernel.store.snapshot import Snapshot, Transaction


class Signed(NamedTuple):
    """What key and proof of a report show."""

    observations: tuple[Observation, ...] = ()
    is_shared: bool = False
    """Several have the key, so that it proves nothing."""


def note_proof(transaction: Transaction, assessment: Assessment, *, is_replayed: bool) -> Signed:
    """Record a report's key, and whether its proof holds; return what that shows. One that was sent before is read and
    not recorded.
    """
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
