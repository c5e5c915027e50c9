"""The one transaction of an identification: everything it changes, or nothing (decisions 3.3).

In this order: idempotency, the 402 gate, matching with visitor and blocks, history, the score with the weights in
force, then event, document, ledger and balance. Nothing is written before nothing can be refused any more.

Bounds, whatever the size of the store, which a test counts: at most 9 blocks and 20 visitors are read for matching and
its writes, 6 rows of history, 2 of weights, 6 of velocity and 12 beside them, with an account 14; where there are rules
or lists, one for the rules, one for the lists if rules or filters name any that has entries, and one for each kind of
these, of addresses one for each prefix length; 22 rows are written, with an account 23, 4 of history and 3 of velocity.
Of a signed report 3 more are read and at most 2 written, nearly always of a new browser alone (`browser_keys`). Where a
third new token of one report came to an address, 10 more are read, and of a new visitor whose very report was sent
before, 17 more. A report that names a challenge reads at most 3 more and writes 1 more; the attested key of an Apple
device takes 3 reads and 4 writes beside them. An organization without webhook endpoints has one read for them; with ten
that subscribe to everything, 12 rows are read and 42 written. Once a minute the use of a public key that a proxy
forwards is one more of both. A decision `review` reads at most 2 more and writes 5, and the webhook event of a review.
Of labels nothing is read but what rules name: two rows for a visitor and as many for an account.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from svc.features.reviews.jobs import open_review
from svc.features.rules.jobs import decide_event, facts_of
from svc.features.rules.ruleset import with_decision, with_errors
from svc.features.webhooks.jobs.deliveries import (
    NOBODY,
    Receivers,
    enqueue_identification,
    identification_receivers,
)
from svc.identify.attestation.challenge import AttestationResult
from svc.identify.detection import visitor_kind
from svc.identify.history.evidence import is_flooding
from svc.identify.identification import Assessment, Duplicate, Identified, Refused, Submission, decide
from svc.identify.matching import Recognition, Statistics, StatisticsUpdate, changes, match_visitor
from svc.identify.model import Observation, Verdict
from svc.identify.queries.events import put_event
from svc.identify.queries.velocity import KnownAccount, activity_of, is_replay, read_address
from svc.identify.queries.weights import weights_in_force
from svc.identify.recording.history import (
    Days,
    arrival_of,
    arrival_signals,
    has_unknown_token,
    replay_of,
    update_history,
)
from svc.identify.recording.idempotency import note_idempotency, repeated_request
from svc.identify.recording.proofs import Redeemed, Signed, note_proof, redeem, settle
from svc.identify.recording.velocity import activity_after, count_event, put_address
from svc.identify.recording.visitors import ANY_NUMBER, NextNumber, VisitorTables
from svc.identify.records import Document, Event, WeightsSnapshot
from svc.identify.scoring.score import Weights, score
from svc.identify.tables import DOCUMENTS, WEIGHTS_SNAPSHOTS
from svc.identify.velocity.counts import Velocity
from svc.kernel.access.jobs import keys_refusal, note_use
from svc.kernel.limits.quotas import Holding, Quota, Quotas, may_archive, may_identify, row_bytes, seconds_to_midnight
from svc.kernel.store.snapshot import Late, Transaction
from svc.kernel.tenants.billing import LedgerEntry, refused_for_money
from svc.kernel.tenants.jobs import add, ask, enter
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.queries import balance, known_balance, organization, share_in_force
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import Refusal, over_day, over_share
from svc.kernel.values.struct_fields import record_of


class Recorded(NamedTuple):
    """The outcome of an identification, and what follows once it is committed."""

    outcome: Identified | Duplicate | Refused
    statistics_update: StatisticsUpdate | None = None
    """`None` where its visitor or its address has taught enough today."""
    queues: tuple[EndpointKey, ...] = ()
    """Webhook endpoints to which something is due now."""
    quota: Quota | None = None
    """Which quota it met."""
    event: Event | None = None
    """The event that was stored; `None` where none was."""
    new_number: int | None = None
    """The new visitor's; `None` if the visitor is not new."""
    flooding: bool = False
    """Whether its address floods (`history.evidence.is_flooding`)."""


def identify(
    transaction: Transaction,
    assessment: Assessment,
    statistics: Statistics,
    quotas: Quotas = Quotas(),  # noqa: B008  immutable
    capacity_bytes: int = 1 << 60,
    next_number: NextNumber = ANY_NUMBER,
) -> Late[Recorded]:
    """Record one identification, or return the refusal and write nothing.

    `statistics` is only read; `capacity_bytes` is what the whole store can hold; a new visitor gets `next_number`. Sums
    of the organization are updated and not seen, since others add to them; the outcome shows the balance it left.
    """
    submission = assessment.submission
    number = submission.organization
    known = _known_outcome(transaction, submission)
    if known is not None:
        return _late(number, known)
    owner = organization(transaction, number)
    refusal = _refusal(transaction, assessment, owner)
    if refusal is not None:
        return _late(number, partial(Refused, refusal))
    exceeded, archived = _quotas_met(transaction, assessment, quotas, capacity_bytes)
    if exceeded is not None:
        return _late(number, partial(Refused, _over(exceeded, submission.at_ms)), quota=exceeded)

    index = VisitorTables(transaction, number, next_number)
    before = read_address(transaction, number, assessment.history.address, assessment.history.at_s)
    flooding = is_flooding(before.history.on(assessment.history.day))
    replayed = replay_of(transaction, assessment)
    redeemed = None if assessment.attestation is None else redeem(transaction, submission, assessment.attestation)
    again = replayed is not None
    signed = note_proof(transaction, assessment, is_replayed=again)
    recognition = _recognized(index, statistics, assessment, redeemed, signed, flooding=flooding, replayed=again)
    has_new_token = has_unknown_token(index, assessment)
    visitor = index.apply(recognition, submission.new_visitor_id)
    is_new = recognition.number is None and visitor.number is not None
    lately = activity_of(visitor.record)
    days = Days(lately.history, before.history)
    remembered = update_history(transaction, assessment, statistics, days, replayed, recognition, visitor.number)
    observations = remembered.observations + signed.observations + _of_token(recognition, redeemed)
    is_replayed = is_replay(observations)
    arrived = None if is_replayed else visitor.number
    arrival = arrival_of(assessment, arrived, is_new=is_new, has_new_token=has_new_token)
    who = visitor.number, lately, before, arrival
    counted = count_event(transaction, assessment, owner.account_thresholds, *who, is_replayed=is_replayed)
    put_address(transaction, assessment, before, remembered.address, counted)
    index.put(visitor, activity_after(assessment, lately, remembered.visitor, counted))
    observations += counted.observations + arrival_signals(index, statistics, assessment, arrival, counted.address)
    profile = weights_in_force(transaction, number, submission.key_id, submission.platform)
    result = score(observations, profile, submission.platform) if assessment.scored else None
    verdict = decide(assessment, recognition, visitor.id, result)
    event = _event_of(assessment, verdict, counted.velocity, archived=archived)
    first_s = index.first_seen_s(visitor.number, submission.at_ms // 1000)
    event, to = _judged(transaction, owner, submission, event, profile.threshold, first_s, counted.known)
    put_event(transaction, number, submission.request_id, event)
    queues = _notify(transaction, owner, submission, event, profile.threshold, to)
    attested = None if redeemed is None else settle(transaction, submission, redeemed, visitor.id)
    length = _record_document(transaction, assessment, event, index, recognition, observations, profile, attested)
    _record_request(transaction, submission, -assessment.price)  # asks what the next line changes
    _hold(transaction, assessment, visitors=int(is_new), report_bytes=row_bytes(length))
    return _late(
        number,
        partial(Identified, event.verdict, to_renew=recognition.to_renew),
        statistics_update=remembered.lesson,
        queues=queues,
        quota=None if archived else "archive_day",
        event=event,
        new_number=visitor.number if is_new else None,
        flooding=flooding,
    )


def _of_token(recognition: Recognition, redeemed: Redeemed | None) -> tuple[Observation, ...]:
    found = () if redeemed is None else redeemed.observations
    if not recognition.token_conflict:
        return found
    return (Observation("token_conflict", "medium", ("device_contradicts_token",)), *found)


def _hold(transaction: Transaction, assessment: Assessment, *, visitors: int, report_bytes: int) -> None:
    """Add `visitors` new ones and the bytes of the report to what the organization holds."""
    submission = assessment.submission
    taken = partial(
        Holding.with_identification,
        visitors=visitors,
        report_bytes=report_bytes,
        production=submission.environment == "production",
        price=assessment.price,
    )
    add(transaction, submission.organization, submission.at_ms, taken)


def _recognized(
    index: VisitorTables,
    statistics: Statistics,
    assessment: Assessment,
    redeemed: Redeemed | None,
    signed: Signed,
    *,
    flooding: bool,
    replayed: bool,
) -> Recognition:
    """Match the report to a visitor. An attestation proves its device; a key that several have proves nothing."""
    features = assessment.features
    if redeemed is not None and redeemed.is_verified:
        features = msgspec.structs.replace(features, attested=True)
    at_ms = assessment.submission.at_ms
    found = match_visitor(index, statistics, features, at_ms, flooding=flooding, replayed=replayed)
    return found.without_proof() if signed.is_shared else found


def _judged(
    transaction: Transaction,
    owner: Organization,
    submission: Submission,
    event: Event,
    threshold: int,
    visitor_first_s: int | None,
    account: KnownAccount,
) -> tuple[Event, Receivers]:
    """Return the event with the decision of the rules, and the webhook endpoints to notify."""
    facts = facts_of(transaction, owner, event, visitor_first_s, account, event.occurred_at_ms)
    event = with_decision(event, decide_event(transaction, owner, facts))
    to = identification_receivers(transaction, owner.number, facts, threshold) if submission.notify else NOBODY
    return with_errors(event, to.failed), to


def _notify(
    transaction: Transaction,
    owner: Organization,
    submission: Submission,
    event: Event,
    threshold: int,
    to: Receivers,
) -> tuple[EndpointKey, ...]:
    """Notify webhook endpoints, and open a review if the rules decide so (decisions 14.4). Return the endpoints to
    which something is due.
    """
    queues = enqueue_identification(transaction, owner, submission, event, threshold, to.endpoints)
    decision = event.verdict.decision
    if decision is None or decision.action != "review":
        return queues
    number, raw_id = submission.organization, submission.request_id.bytes
    notify, trace = submission.notify, submission.trace
    reviewed = open_review(
        transaction, number, raw_id, event, submission.at_ms, raw_id, notify=notify, notified=queues, trace=trace
    )
    return tuple(sorted({*queues, *reviewed.queues}))


def _record_request(transaction: Transaction, submission: Submission, amount: int) -> None:
    """Store the request's idempotency key, its ledger line and the use of its keys."""
    number = submission.organization
    note_idempotency(transaction, submission)
    if submission.environment == "production":
        entry = LedgerEntry("identification", amount, submission.at_ms)
        enter(transaction, number, submission.request_id, entry)
    for digest in (submission.touched_key, submission.touched_public_key):
        if digest is not None:
            note_use(transaction, digest, submission.at_ms)


def _known_outcome(transaction: Transaction, submission: Submission) -> Callable[[int], Duplicate | Refused] | None:
    """Return the outcome, by the balance, of a key that was revoked meanwhile or no longer allows the origin, or of a
    request that was answered before.
    """
    refusal = keys_refusal(transaction, submission.keys, submission.origin, submission.at_ms)
    if refusal is not None:
        return partial(Refused, refusal)
    return repeated_request(transaction, submission)


def _late(number: int, outcome: Callable[[int], Identified | Duplicate | Refused], **rest: Any) -> Late[Recorded]:
    """Return the outcome with the balance after the commit: other identifications charge it too."""
    return Late(lambda snapshot: Recorded(outcome(balance(snapshot, number)), **rest))


def _refusal(transaction: Transaction, assessment: Assessment, owner: Organization) -> Refusal | None:
    submission = assessment.submission
    if owner.removed_at_ms is not None:
        return Refusal("unauthorized", reason="the organization was removed while the request was on its way")
    if submission.environment != "production":
        return None
    code = transaction.ask(
        BALANCES,
        (submission.organization,),
        lambda balance: refused_for_money(
            environment=submission.environment,
            status=owner.billing_status,
            balance_micros=known_balance(balance),
            credit_limit_micros=owner.credit_limit_micros,
            price=assessment.price,
        ),
    )
    return None if code is None else Refusal(code)


def _quotas_met(
    transaction: Transaction, assessment: Assessment, quotas: Quotas, capacity_bytes: int
) -> tuple[Quota | None, bool]:
    """Return (the quota that forbids the identification, whether its report may be archived)."""
    submission, length = assessment.submission, len(assessment.archive)
    production = submission.environment == "production"

    def met(quotas: Quotas) -> tuple[Quota | None, bool]:
        return ask(
            transaction,
            submission.organization,
            submission.at_ms,
            lambda held: (
                may_identify(held, quotas, capacity_bytes, production=production),
                may_archive(held, quotas, length, production=production),
            ),
        )

    found = met(quotas)
    if found[0] != "store_share":
        return found
    return met(quotas._replace(store_share=share_in_force(transaction, quotas.store_share)))


def _over(quota: Quota, at_ms: int) -> Refusal:
    if quota == "nonproduction_day":
        return over_day("its identifications outside production of today", seconds_to_midnight(at_ms))
    return over_share()


def _event_of(assessment: Assessment, verdict: Verdict, velocity: Velocity, *, archived: bool) -> Event:
    """Build the stored event. Fields with equal names are taken from the submission, the user agent and the network."""
    submission, agent, network = assessment.submission, assessment.agent, assessment.network
    return record_of(
        Event,
        submission,
        agent,
        network,
        verdict=verdict,
        occurred_at_ms=submission.at_ms,
        sdk_platform=submission.sdk_platform or "web",
        sdk_version=submission.sdk_version or "unknown",
        ip_address=submission.facts.ip,
        visitor_kind=visitor_kind(assessment.observations, agent, network),
        price_micros=assessment.price,
        has_document=archived,
        mark=None if archived or assessment.history.replay_key is None else assessment.history.replay_key.digest,
        velocity=velocity,
    )


def _record_document(
    transaction: Transaction,
    assessment: Assessment,
    event: Event,
    index: VisitorTables,
    recognition: Recognition,
    observations: tuple[Observation, ...],
    profile: Weights,
    attested: AttestationResult | None,
) -> int:
    """Record the document; return the size of its row in bytes, 0 for an event without one."""
    if not event.has_document:
        return 0
    submission = assessment.submission
    if not transaction.has(WEIGHTS_SNAPSHOTS, profile.digest):
        transaction.put(WEIGHTS_SNAPSHOTS, (profile.digest,), WeightsSnapshot(profile.weights))
    before = None if recognition.number is None else index.visitor(recognition.number)
    document = Document(
        signals=assessment.archive,
        sdk_platform=submission.sdk_platform,
        sdk_version=submission.sdk_version,
        tag=submission.tag,
        suspect_threshold=profile.threshold,
        weights_scope=profile.scope,
        weights_digest=profile.digest,
        evidence={observation.signal: observation.evidence for observation in observations},
        link_probability=round(recognition.probability, 4),
        changes=None if before is None else changes(assessment.features, before),
        headers=assessment.headers,
        attestation=attested,
        split_from=recognition.split_from,
    )
    return transaction.put(DOCUMENTS, (submission.organization, submission.request_id.bytes), document)
