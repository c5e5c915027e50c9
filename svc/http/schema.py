"""Request and response bodies as structs: what the interface's tables say, as types.

Unknown fields are refused in requests. A field that may be left out is `UNSET`, which is not `null`. Responses leave
out what does not apply.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.domain.event_row import EventBody, TriggerBody, VerdictBody, event_row, present, signal_rows, verdict
from svc.domain.model import State
from svc.domain.records import Document, Event
from svc.domain.redaction import redact
from svc.domain.refusals import Refusal

Name64 = Annotated[str, Meta(min_length=1, max_length=64)]
Tag = Annotated[str, Meta(max_length=1024)]


class Sdk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The collecting SDK (interface 2.1)."""

    platform: Name64 | UnsetType = UNSET
    version: Name64 | UnsetType = UNSET


class IdentifyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Interface 2.1. `signals` stays as it was sent, so that it can be archived byte for byte."""

    sdk: Sdk
    signals: msgspec.Raw
    tag: Tag | UnsetType = UNSET


class IdentifyAnswer(VerdictBody, frozen=True, kw_only=True):
    """Interface 2.2: a new identification."""

    deferred_token: str
    suspect_score: int | UnsetType = UNSET
    triggers: tuple[TriggerBody, ...] | UnsetType = UNSET


def identify_answer(event: Event, request_id: UUID, deferred_token: str) -> IdentifyAnswer:
    """A stored event as identify answers with it."""
    return IdentifyAnswer(
        **verdict(event, request_id),
        deferred_token=deferred_token,
        suspect_score=present(event.suspect_score),
        triggers=signal_rows(event) or UNSET,
    )


class DuplicateAnswer(msgspec.Struct, frozen=True):
    """Interface 2.2 and 4.1: the `Idempotency-Key` was answered before, and this is all that is said."""

    request_id: str
    duplicate: Literal[True] = True


class ListEventsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Interface 4.2. The values of window, filters and offset are judged by `svc.domain.listing`."""

    start: str | UnsetType = msgspec.field(default=UNSET, name="from")
    end: str | UnsetType = msgspec.field(default=UNSET, name="to")
    page: Annotated[int, Meta(ge=1)] = 1
    limit: Annotated[int, Meta(ge=1, le=200)] = 10
    visitor: str | UnsetType = UNSET
    level: str | UnsetType = UNSET


class EventsAnswer(msgspec.Struct, frozen=True):
    """Interface 4.2: a page, newest first; one with fewer rows than `page_size` is the last."""

    rows: tuple[EventBody, ...]
    page: int
    page_size: int


class NetworkBody(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of the address when the event was scored."""

    state: State
    reason: str | UnsetType = UNSET
    country_code: str | UnsetType = UNSET
    country_name: str | UnsetType = UNSET
    asn: str | UnsetType = UNSET
    asn_name: str | UnsetType = UNSET
    anonymity_network: str | UnsetType = UNSET


class LinkageBody(msgspec.Struct, frozen=True, kw_only=True):
    """How the visitor was found, and how sure that is."""

    outcome: str
    """`token`, `exact` or `match` where a known visitor was found; else why none was: `no_candidate`, `doubtful`,
    `ambiguous` or `unidentifiable`."""
    confidence: int
    """`visitor_confidence`."""
    probability: float | UnsetType = UNSET
    """From 0 to 1: that the device is the known visitor which it resembles most, found or not."""
    token_conflict: bool
    """The report brought the token of a visitor whose device it contradicts."""


class DocumentBody(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions 7.3: the submission, what scored it, and why the verdict is what it is."""

    signals: msgspec.Raw
    """Byte for byte as it was sent."""
    sdk: Sdk
    tag: str | UnsetType = UNSET
    suspect_threshold: int
    weights: dict[str, int]
    """Signal -> the weight in force then."""
    weights_scope: str
    """Whose weights they were: `key`, `organization` or `default`."""
    network: NetworkBody
    """What was known of the address."""
    evidence: dict[str, tuple[str, ...]]
    """Signal that fired -> names of the checks that gave it away."""
    linkage: LinkageBody
    changes: tuple[str, ...] | UnsetType = UNSET
    """What differs from the visitor's last report; left out for a new visitor."""


class EventDetailBody(EventBody, frozen=True, kw_only=True):
    """Interface 2.3: an event with its archived detail."""

    document: msgspec.Raw | None
    """A `DocumentBody`, which is no public contract; `null` when the archive could not be read."""
    deferred_signals: msgspec.Raw | UnsetType = UNSET
    """Byte for byte as they were sent, which is no public contract either."""


def event_detail(
    event: Event, request_id: UUID, document: DocumentBody | None, deferred_signals: bytes | None
) -> EventDetailBody:
    """A stored event as it is read alone."""
    row = msgspec.structs.asdict(event_row(event, request_id))
    archived = None if document is None else msgspec.Raw(msgspec.json.encode(document))
    deferred = UNSET if deferred_signals is None else msgspec.Raw(deferred_signals)
    return EventDetailBody(**row, document=archived, deferred_signals=deferred)


def document_body(event: Event, document: Document, signals: bytes, weights: dict[str, int]) -> DocumentBody:
    """The archive of an event: its signals inflated, its weights looked up."""
    return DocumentBody(
        signals=msgspec.Raw(signals),
        sdk=Sdk(platform=present(document.sdk_platform), version=present(document.sdk_version)),
        tag=present(document.tag),
        suspect_threshold=document.suspect_threshold,
        weights=weights,
        weights_scope=document.weights_scope,
        network=NetworkBody(
            state=event.state,
            reason=present(event.reason),
            country_code=present(event.country_code),
            country_name=present(event.country_name),
            asn=present(event.asn),
            asn_name=present(event.asn_name),
            anonymity_network=present(event.anonymity_network),
        ),
        evidence=_evidence(event, document),
        linkage=LinkageBody(
            outcome=event.linkage,
            confidence=event.visitor_confidence,
            probability=present(document.link_probability),
            token_conflict="token_conflict" in document.evidence,
        ),
        changes=present(document.changes),
    )


def _evidence(event: Event, document: Document) -> dict[str, tuple[str, ...]]:
    """Of the signals that fired; of all that were noticed where 0.1.0 did not store which of them fired."""
    if event.signals is None:
        return document.evidence
    return {fired.signal: document.evidence.get(fired.signal, ()) for fired in event.signals}


class SupplementBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Interface 2.4. `signals` stays as it was sent, as in identify."""

    token: str
    sdk: Sdk
    signals: msgspec.Raw


class SupplementAnswer(msgspec.Struct, frozen=True):
    """Interface 4.1."""

    request_id: str
    duplicate: Literal[True] | UnsetType = UNSET


class HealthBody(msgspec.Struct, frozen=True):
    status: Literal["ok"]
    version: str


class ReadinessChecks(msgspec.Struct, frozen=True):
    store: Literal["ok", "full"]
    webhooks: Literal["ok", "behind"]
    network_data: Literal["ok", "missing", "stale"]


class ReadinessBody(msgspec.Struct, frozen=True):
    """Decisions 9.1. Only `store` fails readiness."""

    status: Literal["ready", "unavailable"]
    checks: ReadinessChecks


class DetailBody(msgspec.Struct, frozen=True):
    field: str
    issue: str
    location: str


class Fault(msgspec.Struct, frozen=True):
    code: str
    message: str
    status: int
    details: tuple[DetailBody, ...] | UnsetType = UNSET


class ErrorBody(msgspec.Struct, frozen=True):
    """Interface 2.12."""

    error: Fault
    request_id: str


def error_body(refusal: Refusal, request_id: str) -> ErrorBody:
    """A field's name is the caller's own text, and answers end up in logs: what has the form of a key is taken out."""
    details = tuple(DetailBody(redact(detail.field), detail.issue, detail.location) for detail in refusal.details)
    return ErrorBody(Fault(refusal.code, refusal.message, refusal.status, details or UNSET), request_id)


class ChallengeAnswer(msgspec.Struct, frozen=True):
    """Interface 2.5."""

    challenge: str
    expires_at: str
