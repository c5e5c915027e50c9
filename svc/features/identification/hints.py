"""What jobs will read, said in advance, so that a group has its rows in two round trips.

A hint reads what its job will probably read, and yields where it needs what it has read. It may be wrong: what it
leaves out costs a round trip more, and what it adds a row. Results do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from svc.features.lists.lists import ListKind
from svc.features.lists.queries import AskedLists
from svc.features.lists.tables import FILLED_LISTS
from svc.features.rules.ruleset import FIRST
from svc.features.rules.tables import RULESETS
from svc.features.webhooks.queries import endpoints_of
from svc.features.webhooks.tables import ENDPOINT_COUNTS
from svc.identify.attestation.challenge import periods_to_search
from svc.identify.attestation.claim import Attestation
from svc.identify.history.evidence import REPLAY_MEMORY_S, HistoryEvidence
from svc.identify.history.origins import carries_hints
from svc.identify.identification import Assessment, Submission
from svc.identify.matching import EMPTY_BLOCK, block_keys, likely_visitors
from svc.identify.queries.weights import weights_key
from svc.identify.recording.proofs import origin_keys
from svc.identify.tables import (
    ACCOUNTS,
    ADDRESSES,
    ATTESTED_KEYS,
    BLOCKS,
    BROWSER_KEYS,
    CHALLENGES,
    EVENTS,
    FEED_CLOSED,
    HOURS,
    IDEMPOTENCY,
    ORIGIN_HISTORY,
    ORIGIN_PROOFS,
    REPORT_FINGERPRINTS,
    VISITOR_COUNTS,
    VISITOR_PLACES,
    VISITORS,
    WEIGHTS,
)
from svc.identify.velocity.counts import KINDS, LONGEST_S, account_digest, kind_of
from svc.kernel.access.tables import KEYS
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.tables import BALANCES, HOLDINGS, ORGANIZATIONS
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.ids import HOUR_MS

PLACES = 3
"""Visitors, of those that are likely, whose places are fetched too."""


def identification(snapshot: Snapshot, assessment: Assessment) -> Iterator[None]:
    """Read the rows that `transaction.identify` will probably read; yield where the next reads depend on them."""
    submission, features = assessment.submission, assessment.features
    number = submission.organization
    _account(snapshot, submission)
    _history(snapshot, number, assessment.history)
    _proof(snapshot, assessment)
    if carries_hints(assessment.report, submission.facts) is not None:
        snapshot.has(ORIGIN_HISTORY, number, features.origin)
    if assessment.attestation is not None:
        _attestation(snapshot, submission, assessment.attestation)
    if not features.identifiable:
        return
    keys = block_keys(features)
    for key in keys:
        snapshot.has(BLOCKS, number, key)
    yield
    if submission.idempotency is not None and submission.wants_original:
        earlier = snapshot.get(IDEMPOTENCY, number, submission.idempotency)
        if earlier is not None:
            snapshot.has(EVENTS, number, earlier.request_id)
    _decision(snapshot, assessment)
    visitors = likely_visitors(features, {key: snapshot.get(BLOCKS, number, key) or EMPTY_BLOCK for key in keys})
    for visitor in visitors:
        snapshot.has(VISITORS, number, visitor)
    for visitor in visitors[:PLACES]:
        snapshot.has(VISITOR_PLACES, number, visitor)


def _account(snapshot: Snapshot, submission: Submission) -> None:
    """Read rows that do not depend on the report."""
    number = submission.organization
    for table in (ORGANIZATIONS, BALANCES, HOLDINGS, VISITOR_COUNTS):
        snapshot.has(table, number)
    for digest in submission.keys:
        snapshot.has(KEYS, digest)
    for key_id in (submission.key_id, None):
        snapshot.has(WEIGHTS, *weights_key(number, key_id, submission.platform))
    if submission.idempotency is not None:
        snapshot.has(IDEMPOTENCY, number, submission.idempotency)
    if submission.account_id is not None:
        account = account_digest(number, submission.account_id)
        snapshot.has(ACCOUNTS, number, KINDS.index(kind_of(submission.environment)), account)
    snapshot.has(RULESETS, number, KINDS.index(kind_of(submission.environment)))
    snapshot.has(FILLED_LISTS, number)
    environment = ENVIRONMENTS.index(submission.environment)
    snapshot.has(HOURS, number, environment, submission.at_ms // HOUR_MS)
    snapshot.has(FEED_CLOSED, number, environment)
    if submission.notify:
        snapshot.has(ENDPOINT_COUNTS, number)


def _proof(snapshot: Snapshot, assessment: Assessment) -> None:
    if assessment.features.key or assessment.proof_failed:
        for key in origin_keys(assessment):
            snapshot.has(ORIGIN_PROOFS, *key)
    if assessment.features.key:
        snapshot.has(BROWSER_KEYS, assessment.submission.organization, assessment.features.key)


def _decision(snapshot: Snapshot, assessment: Assessment) -> None:
    """Read webhook endpoints, and what says of the values that are known which lists have them, if rules name lists
    that have entries.
    """
    submission, network = assessment.submission, assessment.network
    if submission.notify:
        endpoints_of(snapshot, submission.organization)
    organization = snapshot.get(ORGANIZATIONS, submission.organization)
    filled = snapshot.get(FILLED_LISTS, submission.organization)
    if organization is None or filled is None or filled.names != organization.filled_lists:
        return
    ruleset = snapshot.get(RULESETS, submission.organization, KINDS.index(kind_of(submission.environment))) or FIRST
    values: dict[ListKind, str | None] = {
        "account": submission.account_id,
        "address": submission.facts.ip,
        "country": network.country_code,
        "asn": network.asn,
        "origin": submission.origin,
        "tag": submission.tag,
    }
    is_listed = AskedLists(snapshot, organization, values.get, submission.at_ms)
    for name in ruleset.prepared.lists:
        is_listed(name)


def _history(snapshot: Snapshot, number: int, seen: HistoryEvidence) -> None:
    period = seen.at_s // LONGEST_S
    for of in (period, max(period - 1, 0)):
        snapshot.has(ADDRESSES, number, of, seen.address)
    if seen.replay_key is not None:
        period = seen.at_s // REPLAY_MEMORY_S
        for of in (period, max(period - 1, 0)):
            snapshot.has(REPORT_FINGERPRINTS, number, of, seen.replay_key.digest)


def _attestation(snapshot: Snapshot, submission: Submission, attestation: Attestation) -> None:
    number = submission.organization
    if attestation.challenge is not None:
        for period in periods_to_search(submission.at_ms):
            snapshot.has(CHALLENGES, number, period, attestation.challenge)
    if attestation.proof is not None:
        snapshot.has(ATTESTED_KEYS, number, attestation.proof.key_id)
