"""What the service keeps: organizations, events and their archived documents, as they stand in the store.

Every record is an `array_like` struct: fields are appended with defaults and never moved or renamed, so that a record
written by an older version still reads. Times are Unix milliseconds, amounts millionths of a US dollar.
"""

from __future__ import annotations

import msgspec

from svc.identify.attestation.challenge import AttestationResult
from svc.identify.model import Label, ShadowMatch, Verdict
from svc.identify.velocity.counts import Velocity
from svc.kernel.values.fields import Environment, Platform


class AsSent(msgspec.Struct, frozen=True, array_like=True):
    """What a request said, of what a backend may set later. Append fields with defaults, never move them."""

    is_same_account: bool
    """Whether its account is the one that the event has. Another id is not kept: its erasure would not find it."""
    account_verified: bool
    action: str | None
    tag: str | None


class Event(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One identification: its verdict, and from where and with what it came. Its key says organization and request id.

    On disk the verdict's fields stand among the others, in the order of `EVENT_FIELDS`.
    """

    verdict: Verdict
    environment: Environment
    occurred_at_ms: int
    platform: Platform
    sdk_platform: str
    sdk_version: str
    origin: str | None
    tag: str | None
    ip_address: str
    country_code: str | None
    country_name: str | None
    asn: str | None
    asn_name: str | None
    anonymity_network: str | None
    """An `AnonymityNetwork`. It and the two below are open in the interface, and so they are here: stored as text."""
    agent: str | None
    agent_version: str | None
    os: str | None
    device_kind: str | None
    """A `DeviceKind`."""
    visitor_kind: str
    """A `VisitorKind`."""
    key_id: str
    price_micros: int
    has_document: bool = True
    """`False` where the report was not archived, or is no longer (decisions 4)."""
    mark: bytes | None = None
    """Without a document: the digest of its replay key, which else follows from the archive."""
    account_id: str | None = None
    """The customer's id of the account that the visitor acted for."""
    account_verified: bool = False
    """Whether a secret key said so."""
    action: str | None = None
    velocity: Velocity | None = None
    """`None` in events stored before 0.3.0."""
    shadow: tuple[ShadowMatch, ...] = ()
    rule_errors: tuple[str, ...] = ()
    """Ids of the rules whose evaluation failed, and of the webhook endpoints whose filter did."""
    label: Label | None = None
    """What it turned out to be."""
    label_reason: str | None = None
    """A `LabelReason`; `None` without a label."""
    feed_at_ms: int | None = None
    """Its time in the feed, where that is not its arrival: it was stored when the feed was closed up to there."""
    as_sent: AsSent | None = None
    """`None` where the event has what its request said, and where an earlier version changed it."""


EVENT_FIELDS = (
    "environment", "visitor_id", "occurred_at_ms", "state", "reason", "platform", "sdk_platform", "sdk_version",
    "origin", "tag", "ip_address", "country_code", "country_name", "asn", "asn_name", "anonymity_network", "agent",
    "agent_version", "os", "device_kind", "visitor_kind", "suspect_score", "suspect_level", "triggers", "identifiable",
    "visitor_is_new", "visitor_confidence", "key_id", "price_micros", "linkage", "signals", "has_document", "mark",
    "proven", "account_id", "account_verified", "action", "velocity", "decision",
    "shadow", "rule_errors", "label", "label_reason", "feed_at_ms", "proof_version",
    "as_sent",
)  # fmt: skip
"""An event as it lies on disk: append, never move."""


class Document(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The archived submission and what scored it (decisions 7.3). The weights stand in their own table, by digest."""

    signals: bytes
    """The report byte for byte as it was sent, deflated."""
    sdk_platform: str | None
    """As sent; `None` when it was not."""
    sdk_version: str | None
    tag: str | None
    suspect_threshold: int
    weights_scope: str
    weights_digest: bytes
    evidence: dict[str, tuple[str, ...]] = {}
    """signal -> the checks that gave it away, signals without a weight included."""
    link_probability: float | None = None
    """That the device is the visitor which it resembles most, before rounding; `None` in documents of 0.1.0."""
    changes: tuple[str, ...] | None = None
    """What differs from the visitor's last report (see `matching.changes`); `None` where there is nothing to compare
    with: a new visitor, or a document stored by 0.1.0."""
    headers: bytes | None = None
    """What the request said of its browser, for `request_headers.read_headers`; `None` in documents of 0.1.0."""
    attestation: AttestationResult | None = None
    """The result of the report's attestation; `None` where it carried none, or in documents stored by 0.1.0."""
    split_from: int | None = None
    """Number of the visitor that this device was taken for until now: both have a token of one site that came back."""


class DeferredReport(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What a device sent after its identification (interface 2.4). It changes nothing else."""

    signals: bytes
    """Byte for byte as they were sent, deflated."""
    sdk_platform: str | None
    sdk_version: str | None
    digest: bytes
    """Of the canonical JSON of SDK and signals, 16 bytes: the same digest is the same report."""
    received_at_ms: int


class WeightsSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """A set of weights that scored something, stored once however many documents name it."""

    weights: dict[str, int]


class Idempotency(msgspec.Struct, frozen=True, array_like=True):
    """Which request an `Idempotency-Key` was answered with, and when (decisions 3.2)."""

    request_id: bytes
    """16 bytes."""
    at_ms: int


class TextErasure(msgspec.Struct, frozen=True, array_like=True):
    """An id that is being taken out of notes. Append fields with defaults, never move them."""

    text: str
    table: int = 0
    """Which of the tables with notes is being read (`features/erasure/texts.py`)."""
    next_key: bytes = b""
    """Packed key of the row to go on from; empty = the organization's first."""


class RetentionPass(msgspec.Struct, frozen=True, array_like=True):
    """When retention last looked at the rows of an organization whose keys do not say their age. 0 = never."""

    began_at_ms: int = 0
    blocks_at_ms: int = 0
    """When deleted visitors were last taken out of all blocks."""
    visitor_days: int = 0
    """Days without a visit after which the last pass deleted a visitor."""
    counts_from_s: int = 0
    """Velocity of events from before this time (Unix seconds) may be gone: written before a pass deletes any."""


class LastLook(msgspec.Struct, frozen=True, array_like=True):
    """What retention found when it last looked at a range of visitors."""

    seen_s: int
    """The earliest of the times at which these visitors were last seen; without any visitor, the time of the look."""
    looked_s: int
    """When it looked."""

    def is_due(self, now_s: int, unseen_s: int) -> bool:
        """Return whether a visitor of the range may have been unseen for `unseen_s` seconds now; also 30 days after the
        last look, since records may have an activity that is over, and if the clock was set back since, so that a later
        visitor may have an earlier time.
        """
        return not 0 <= now_s - self.looked_s < RETENTION_MS // 1000 or now_s - self.seen_s >= unseen_s


RETENTION_MS = 30 * 24 * 3600 * 1000
"""How long after its arrival an event is readable (interface 8) where the setting `event_retention_days` says nothing
else. After that it does not exist, deleted yet or not."""
IDEMPOTENCY_MS = 24 * 3600 * 1000
"""How long an `Idempotency-Key` is remembered (decisions 3.2)."""
REPLAYED_MS = 60 * 1000
"""How long a duplicate may be answered with the whole response of its original (decisions 3.2)."""
