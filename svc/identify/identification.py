"""One identification from what was sent to what is answered: the values it passes through, and the pure step between.

    Submission --assess--> Assessment --(the transaction, which decides)--> Identified | Duplicate | Refused

A `Submission` is what a caller with a valid key sent; an `Assessment` is all that can be known of it without the
store; the outcome is known only once it is on disk. A development key may ask for a verdict (`TestVerdict`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast
from uuid import UUID

import msgspec

from svc.identify.attestation.claim import Attestation, missing, read_attestation
from svc.identify.attestation.trust import Trust, published_trust
from svc.identify.detection import detect
from svc.identify.events.archive import deflate
from svc.identify.history.evidence import HistoryEvidence, history_evidence
from svc.identify.keys.proof import Subject, does_not_verify, examine
from svc.identify.matching import Features, Recognition, extract
from svc.identify.model import (
    Agent,
    Network,
    Observation,
    ProofVersion,
    Report,
    RequestFacts,
    Verdict,
    scoring_platform,
)
from svc.identify.network.facts import Ranges, read_network
from svc.identify.network.request_headers import archived_headers
from svc.identify.records import Event
from svc.identify.report import read_report
from svc.identify.scoring.score import Score, group_triggers
from svc.identify.scoring.signals import CATALOG
from svc.identify.useragent import read_agent
from svc.identify.velocity.counts import MOST
from svc.kernel.net.trace_context import TraceContext, trace_fields
from svc.kernel.tenants.billing import price_micros
from svc.kernel.values.fields import Environment, Platform
from svc.kernel.values.refusals import Issue, Refusal, invalid

FIELD = "test"
"""Field of a report. With a key of another environment it is ignored, as any unknown content is."""


class TestVerdict(msgspec.Struct, frozen=True):
    """The verdict that the report of a development key asks for."""

    __test__ = False
    signals: tuple[str, ...] = ()
    """Signals that fire."""
    account_velocity: int = 0
    """The least number of accounts of the visitor, in every window."""

    def added_to(self, observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
        """Return the observations with those that are asked for and were not made."""
        made = {observation.signal for observation in observations}
        asked = (name for name in dict.fromkeys(self.signals) if name not in made)
        return (*observations, *(Observation(name, "high", ("test_verdict",)) for name in asked))


NONE = TestVerdict()


def read_test_verdict(signals: Mapping[str, Any]) -> TestVerdict | Refusal:
    """Return what a report asks for; `422 validation_error` for another shape or an unknown signal."""
    if FIELD not in signals:
        return NONE
    asked = signals[FIELD]
    for name, issue in _faults(asked):
        return invalid(f"signals.{FIELD}{name}", issue)
    return TestVerdict(tuple(asked.get("signals", ())), asked.get("account_velocity", 0))


def _faults(asked: Any) -> Iterator[tuple[str, Issue]]:
    if not isinstance(asked, dict):
        yield "", "wrong_type"
        return
    fields = cast("dict[str, Any]", asked)
    for name in sorted(fields.keys() - {"signals", "account_velocity"}):
        yield f".{name}", "unknown_field"
    names, accounts = fields.get("signals", []), fields.get("account_velocity", 0)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[Any]", names)):
        yield ".signals", "wrong_type"
    elif any(name not in CATALOG for name in cast("list[str]", names)):
        yield ".signals", "unknown_signal"
    if type(accounts) is not int:
        yield ".account_velocity", "wrong_type"
    elif not 0 <= accounts <= MOST:
        yield ".account_velocity", "invalid_value"


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A request to identify: what was sent, by whom, from where. Its key is valid and its body was read."""

    request_id: UUID
    new_visitor_id: str
    """The id of this visitor if it turns out to be a new one."""
    at_ms: int
    """When the request arrived; the only reading of the clock."""
    organization: int
    key_id: str
    """The key whose origins, platforms and weights apply."""
    touched_key: bytes | None
    """Digest of the presented key when its `last_used_at` is due for renewal."""
    touched_public_key: bytes | None = None
    """As `touched_key`, for a public key that a proxy forwards."""
    keys: tuple[bytes, ...] = ()
    """Digests of keys that may have been revoked, or given other origins, since they were looked up."""
    environment: Environment
    sdk_platform: str | None
    sdk_version: str | None
    origin: str | None
    tag: str | None
    account_id: str | None = None
    """The customer's id of the account that the visitor acts for."""
    account_verified: bool = False
    """Whether a secret key says so."""
    action: str | None = None
    test: TestVerdict = NONE
    """What the report of a development key asks for."""
    idempotency: bytes | None
    """Digest of the `Idempotency-Key`, 16 bytes."""
    wants_original: bool = False
    """A duplicate is answered with the whole response of its original, where that may be (`x-svc-replay`)."""
    facts: RequestFacts
    signals: dict[str, Any]
    signals_json: bytes
    """The same, byte for byte as sent."""
    notify: bool = True
    """Whether webhooks are queued for it. A replay of old traffic notifies nobody."""
    proof_version: ProofVersion | None = None
    """What was found when the report first arrived, in a replay of old traffic: account, action and tag, which a proof
    of version 2 covers, may have been changed since."""
    attested: tuple[str, ...] | None = None
    """The failures of its attestation that were found when the report first arrived, in a replay of old traffic: its
    challenge was used up then. `None` = it is to be verified.
    """
    trace: TraceContext | None = None
    """With the request's own span: what its log lines and webhooks name."""

    @property
    def log_fields(self) -> dict[str, str]:
        """What log lines about it name: `request_id`, and the trace."""
        return {"request_id": str(self.request_id), **trace_fields(self.trace)}

    @property
    def platform(self) -> Platform:
        """The scoring profile: bridges count as their system, and a missing or unknown platform as `web` (decisions
        3.1); so does any that a page claims (decisions 2.7).
        """
        return scoring_platform(self.sdk_platform or "web", self.origin)


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the report, the headers and the address say, before the store is asked."""

    submission: Submission
    report: Report
    agent: Agent
    network: Network
    features: Features
    observations: tuple[Observation, ...]
    """What the report shows by itself; what history adds is decided in the transaction."""
    proof_version: ProofVersion | None
    """Of the report's proof, where it is valid."""
    proof_failed: bool = False
    """The report has a proof that does not verify."""
    history: HistoryEvidence
    attestation: Attestation | None
    """What the report attests, its challenge not looked up yet; `None` where it attests nothing."""
    scored: bool
    """`False` only when nothing could be read as a report and there is no user agent (decisions 3.9)."""
    archive: bytes
    """The signals deflated, as they are archived."""
    headers: bytes
    """The headers that the verdict depends on, as they are archived."""

    @property
    def price(self) -> int:
        """Micro-dollars that this identification costs if it is new; a duplicate is free."""
        return price_micros(
            environment=self.submission.environment,
            state=self.network.state,
            identifiable=self.features.identifiable,
        )


class Identified(msgspec.Struct, frozen=True):
    """A new identification. It is durable by the time that a caller gets this."""

    verdict: Verdict
    """As it is stored."""
    balance_micros: int
    to_renew: bool = False
    """The browser is to renew its token and key (decisions 18.2)."""


class Duplicate(msgspec.Struct, frozen=True):
    """The `Idempotency-Key` was answered before with `request_id` (decisions 3.2)."""

    request_id: UUID
    balance_micros: int
    original: Event | None = None
    """What was stored then, where the duplicate asks for it and may have it (`recording.idempotency`)."""


class Refused(msgspec.Struct, frozen=True):
    """A refusal inside the transaction, which wrote nothing. `balance_micros` is the balance as it stays."""

    refusal: Refusal
    balance_micros: int


def assess(submission: Submission, ranges: Ranges | None, trust: Trust | None = None) -> Assessment:
    """Read a submission: adapters, user agent, network, proof, features, signals, attestation. No input makes it raise.

    Attestations are measured against `trust`; without it, against the published roots alone.
    """
    report = read_report(submission.signals, submission.facts)
    agent = _verifiable(read_agent(submission.facts, report), ranges)
    network = read_network(submission.facts.ip, ranges)
    platform = submission.platform
    proof = examine(
        report,
        submission.signals_json,
        submission.origin,
        submission.at_ms,
        Subject(submission.account_id, submission.action, submission.tag),
        submission.proof_version,
    )
    key = None if proof is None else proof.key
    before = None if proof is None else proof.key_before
    features = extract(
        report,
        agent,
        submission.facts,
        network,
        origin=submission.origin,
        key=key,
        key_before=before,
        app=platform != "web",
    )
    ip, signals_json = submission.facts.ip, submission.signals_json
    return Assessment(
        submission=submission,
        report=report,
        agent=agent,
        network=network,
        features=features,
        observations=submission.test.added_to(
            detect(report, submission.facts, agent, network, platform, submission.at_ms, submission.sdk_version)
            + missing(submission.signals, platform)
        ),
        proof_version=None if proof is None else proof.version,
        proof_failed=proof is not None and does_not_verify(report, proof),
        history=history_evidence(report, network, ip, signals_json, submission.at_ms, features.wide_network),
        attestation=read_attestation(submission.signals, platform, trust or published_trust(), submission.at_ms),
        scored=bool(report.collectors or submission.facts.user_agent or report.claims.user_agent),
        archive=deflate(submission.signals_json),
        headers=archived_headers(submission.facts),
    )


def _verifiable(agent: Agent, ranges: Ranges | None) -> Agent:
    """Drop a crawler's operator if no addresses of it are known here: a genuine crawler would count as spoofed."""
    if agent.operator is None or ranges is None or ranges.publishes(agent.operator):
        return agent
    return msgspec.structs.replace(agent, operator=None)


def decide(assessment: Assessment, recognition: Recognition, visitor_id: str, result: Score | None) -> Verdict:
    """Return the verdict, after matching has decided which visitor the report belongs to. `result`: the score, `None`
    if it was not scored (decisions 3.9).
    """
    fired = () if result is None else result.triggers
    return Verdict(
        visitor_id=visitor_id,
        state=assessment.network.state,
        reason=assessment.network.reason,
        suspect_score=None if result is None else result.score,
        suspect_level=None if result is None else result.level,
        triggers=group_triggers(fired),
        identifiable=assessment.features.identifiable,
        visitor_is_new=recognition.number is None,
        visitor_confidence=recognition.confidence,
        linkage=recognition.outcome,
        signals=fired,
        proven=recognition.proven,
        proof_version=assessment.proof_version,
    )
