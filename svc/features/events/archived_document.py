"""The archive of an event as the server API shows it: what was sent, what scored it, and how the visitor was found
(decisions 7.3).

What may live here: the step from the stored document to its body. The fields of the event itself are `EventBody`'s.
"""

from __future__ import annotations

import zlib
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from svc.http.schema import Sdk
from svc.identify.attestation.challenge import AttestationResult
from svc.identify.events.event_row import EventBody, event_row
from svc.identify.network.request_headers import read_headers
from svc.identify.records import AsSent, Document, Event
from svc.kernel.values.fields import A_REPORT, OBJECT_FORM, State, about
from svc.kernel.values.struct_fields import body_of, present
from svc.kernel.values.timestamps import timestamp


class NetworkBody(msgspec.Struct, frozen=True, kw_only=True):
    """Network facts of the address, as they were when the event was scored (decisions 7.3)."""

    state: State
    reason: str | UnsetType = UNSET
    country_code: str | UnsetType = UNSET
    country_name: str | UnsetType = UNSET
    asn: str | UnsetType = UNSET
    asn_name: str | UnsetType = UNSET
    anonymity_network: str | UnsetType = UNSET


class LinkageBody(msgspec.Struct, frozen=True, kw_only=True):
    """How the visitor was found, and how sure that is (decisions 7.3)."""

    outcome: str
    """`token`, `exact` or `match` where a known visitor was found; else why none was: `no_candidate`, `doubtful`,
    `ambiguous`, `unidentifiable` or `replayed`."""
    confidence: int
    """`visitor_confidence`."""
    probability: float | UnsetType = UNSET
    """From 0 to 1: that the device is the known visitor which it resembles most, found or not."""
    token_conflict: bool
    """The report brought the token of a visitor whose device it contradicts."""
    proof: str | UnsetType = UNSET
    """What the report's `client_proof` is worth: `valid`, or what is wrong with it (`proof.Problem`). Left out where
    the report had none."""
    split_from: str | UnsetType = UNSET
    """Id of the visitor that this device was taken for until this visit; left out where that visitor is gone."""


class AttestationBody(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the report's attestation (docs/attestation.md)."""

    format: str
    """`android-key`, `apple-app-attest`, `none`, or `unknown`."""
    verified: bool
    app_id: str | UnsetType = UNSET
    environment: str | UnsetType = UNSET
    counter: int | UnsetType = UNSET
    key_first_seen_at: str | UnsetType = UNSET
    bundle_version: str | UnsetType = UNSET
    distribution: str | UnsetType = UNSET


class ConnectionBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a trusted proxy saw of the visitor's connection, in its own words."""

    os: str | UnsetType = UNSET
    """The operating system, by the header of `connection_os_header`."""
    tls: str | UnsetType = UNSET
    """The fingerprint of the TLS handshake, by the header of `connection_tls_header`."""


class AsSentBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the request said of what a backend set later; what is left out it did not have."""

    account_id: str | UnsetType = UNSET
    """Left out of an account that was replaced or removed."""
    account_verified: bool | UnsetType = UNSET
    """Of each account."""
    action: str | UnsetType = UNSET


class DocumentBody(msgspec.Struct, frozen=True, kw_only=True):
    """The archived submission of an event, the weights that scored it, and the reasons for the verdict
    (decisions 7.3).
    """

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
    attestation: AttestationBody | UnsetType = UNSET
    """Left out where the report carried none."""
    connection: ConnectionBody | UnsetType = UNSET
    """Left out where no trusted proxy says anything of it."""
    as_sent: AsSentBody | UnsetType = UNSET
    """Left out where nothing but a label was set later. `tag` is above."""


class ShadowBody(msgspec.Struct, frozen=True):
    """A rule in shadow mode that matched (decisions 13.2)."""

    rule_id: Annotated[str, about("Id of the rule.", "rul_0qppzPLvL54VURDkQrfS")]
    rule: Annotated[str, about("Its name then.", "Fifth account of a browser")]
    action: Annotated[str, about("What it would have decided.", "block")]


class EventDetailBody(EventBody, frozen=True, kw_only=True):
    """One event with its archived detail (interface 2.3)."""

    document: Annotated[
        msgspec.Raw,  # a `DocumentBody`, or `null`
        about(
            "The archived submission and what scored it; `null` where none was kept. Its contents are not a "
            "public contract.",
            {"signals": A_REPORT},
            form={"type": ["object", "null"], "additionalProperties": True},
        ),
    ]
    shadow: Annotated[
        tuple[ShadowBody, ...] | UnsetType, about("Rules in shadow mode that matched; left out where none did.")
    ] = UNSET
    deferred_signals: Annotated[
        msgspec.Raw | UnsetType,  # byte for byte as they were sent
        about(
            "The deferred report, when one arrived. Its contents are not a public contract.",
            {"tier": "deferred"},
            form=OBJECT_FORM,
        ),
    ] = UNSET


def event_detail(
    event: Event, request_id: UUID, document: DocumentBody | None, deferred_signals: bytes | None
) -> EventDetailBody:
    """Return an event in the form of interface 2.3. `document=None` becomes `null`; without `deferred_signals` (JSON)
    the field is omitted.
    """
    row = msgspec.structs.asdict(event_row(event, request_id))
    archived = msgspec.Raw(msgspec.json.encode(document))
    deferred = UNSET if deferred_signals is None else msgspec.Raw(deferred_signals)
    shadow = tuple(ShadowBody(*msgspec.structs.astuple(match)) for match in event.shadow)
    return EventDetailBody(**row, document=archived, deferred_signals=deferred, shadow=shadow or UNSET)


def document_body(
    event: Event, document: Document, signals: bytes, weights: dict[str, int], split_from: str | None
) -> DocumentBody:
    """Return the archive of an event in the form of decisions 7.3. `signals` are inflated JSON, `weights` those that
    the document names, `split_from` the id of the visitor that it names.
    """
    return DocumentBody(
        signals=msgspec.Raw(signals),
        sdk=Sdk(platform=present(document.sdk_platform), version=present(document.sdk_version)),
        tag=present(document.tag),
        suspect_threshold=document.suspect_threshold,
        weights=weights,
        weights_scope=document.weights_scope,
        network=body_of(NetworkBody, event, event.verdict),
        evidence=_evidence(event, document),
        linkage=LinkageBody(
            outcome=event.verdict.linkage,
            confidence=event.verdict.visitor_confidence,
            probability=present(document.link_probability),
            token_conflict="token_conflict" in document.evidence,
            proof=_proof(event, signals),
            split_from=present(split_from),
        ),
        changes=present(document.changes),
        attestation=UNSET if document.attestation is None else _attestation(document.attestation),
        connection=_connection(document),
        as_sent=UNSET if event.as_sent is None else _as_sent(event, event.as_sent),
    )


def _as_sent(event: Event, said: AsSent) -> AsSentBody:
    if event.velocity is None or event.velocity.account is None:  # it named no account
        return AsSentBody(action=present(said.action))
    return AsSentBody(
        account_id=present(event.account_id) if said.is_same_account else UNSET,
        account_verified=said.account_verified,
        action=present(said.action),
    )


def _proof(event: Event, signals: bytes) -> str | UnsetType:
    if b'"client_' not in signals:
        return UNSET
    from svc.identify.keys.proof import archived_proof  # noqa: PLC0415  loads all that reads a report

    found = archived_proof(signals, event.origin, event.occurred_at_ms, event.verdict.proof_version)
    return UNSET if found is None else found.problem or "valid"


def _connection(document: Document) -> ConnectionBody | UnsetType:
    """Return facts of the connection; unset where headers are unreadable, since the rest can be shown."""
    if document.headers is None:
        return UNSET
    try:
        headers = read_headers(document.headers)
    except (zlib.error, msgspec.DecodeError):
        return UNSET
    found = ConnectionBody(present(headers.connection_os), present(headers.connection_tls))
    return UNSET if found == ConnectionBody() else found


def _attestation(found: AttestationResult) -> AttestationBody:
    first_ms = found.key_first_seen_ms
    return body_of(AttestationBody, found, key_first_seen_at=UNSET if first_ms is None else timestamp(first_ms))


def _evidence(event: Event, document: Document) -> dict[str, tuple[str, ...]]:
    """Return evidence of the signals that fired, or of all noticed where 0.1.0 did not store which ones fired."""
    if event.verdict.signals is None:
        return document.evidence
    return {fired.signal: document.evidence.get(fired.signal, ()) for fired in event.verdict.signals}
