"""Every table as a typed constant: the on-disk schema on one page.

`organization` in a key is the organization's number (4 bytes), so that everything of one customer lies together and
nothing of another can be reached by a range. Request ids are UUIDv7: the id is the time index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from zlib import crc32

from svc.domain.attestation.challenge import Challenge
from svc.domain.audit import AuditRecord
from svc.domain.billing import BillingChange, LedgerEntry, Settlement
from svc.domain.credentials import Key as CredentialKey
from svc.domain.history import AddressHistory, Sending, VisitorHistory
from svc.domain.matching import Block, Visitor
from svc.domain.operations import Following
from svc.domain.quotas import Holding
from svc.domain.records import DeferredReport, Document, Event, Idempotency, Organization, WeightsSnapshot
from svc.domain.webhooks.records import Attempt, AttemptCount, Delivery, Endpoint, Health, WebhookEvent
from svc.domain.webhooks.refused import Refusals
from svc.domain.weights import StoredWeights
from svc.store.codec import Corrupted, Key, Layout, Opaque, Record, Signed, Value

V = TypeVar("V")


@dataclass(frozen=True)
class Table(Generic[V]):
    """A named ordered map. Two tables are never merged and a name is never reused.

    What lies under a key is a CRC-32 of the table's name, the key and the value, and then the value: so every read sees
    a flipped bit in either, and a row that has come to lie under another key or in another table.
    """

    name: str
    key: Key
    value: Value[V]

    def encode(self, key: bytes, value: V) -> bytes:
        """What to store under the packed key."""
        body = self.value.encode(value)
        return crc32(body, crc32(key, self._seed)).to_bytes(4) + body

    def decode(self, key: bytes, raw: bytes) -> V:
        """The value that was stored under the packed key. Raises `Corrupted`."""
        return self.value.decode(self.vouched(key, raw))

    def vouched(self, key: bytes, raw: bytes) -> bytes:
        """The value's bytes, once they and the key are known to be what was written. Raises `Corrupted`."""
        body = raw[4:]
        if crc32(body, crc32(key, self._seed)).to_bytes(4) != raw[:4]:
            raise Corrupted(f"a row of {self.name} fails its check: {key.hex()}")
        return body

    @cached_property
    def _seed(self) -> int:
        return crc32(self.name.encode())


META: Table[int] = Table("meta", Key("", text=True), Signed())
"""`version`, `next_organization`, `pepper_mark`, `region/NAME` (`region.py`), `served_...` (`served_limits.py`)."""

ORGANIZATIONS: Table[Organization] = Table("organizations", Key("I"), Record(Organization, remembered=1024))
"""organization"""
ORGANIZATION_IDS: Table[int] = Table("organization_ids", Key("", text=True), Signed())
"""organization id -> number"""

KEYS: Table[CredentialKey] = Table("keys", Key("32s"), Record(CredentialKey, remembered=1024))
"""HMAC-SHA256(pepper, secret)"""
KEY_IDS: Table[bytes] = Table("key_ids", Key("", text=True), Opaque())
"""key id -> digest"""
ORGANIZATION_KEYS: Table[bytes] = Table("organization_keys", Key("IQ", text=True), Opaque())
"""organization, created_at_ms, key id -> digest: oldest first"""

BALANCES: Table[int] = Table("balances", Key("I"), Signed())
"""organization -> micros; always the sum of its ledger"""
LEDGER: Table[LedgerEntry] = Table("ledger", Key("I16s"), Record(LedgerEntry))
"""organization, UUIDv7 (the request id for identifications); append-only, also where the visitor is erased: a line says
when and how much, and nothing of whom"""
SETTLEMENTS: Table[Settlement] = Table("settlements", Key("II"), Record(Settlement))
"""organization, UTC day since 1970: only days with production traffic, each written once"""
BILLING_CHANGES: Table[BillingChange] = Table("billing_changes", Key("I16s"), Record(BillingChange))
"""organization, UUIDv7; append-only"""
PAST_DUE: Table[int] = Table("past_due", Key("I"), Signed())
"""organization -> since when, in ms; those that are past due now and no others"""

HOLDINGS: Table[Holding] = Table("holdings", Key("I"), Record(Holding))
"""organization -> what it holds of the store and has taken today, and its active keys; no row = nothing"""

AUDIT: Table[AuditRecord] = Table("audit", Key("I16s"), Record(AuditRecord))
"""organization, UUIDv7 (the request id for changes over HTTP); append-only, for 400 days"""

IDEMPOTENCY: Table[Idempotency] = Table("idempotency", Key("I16s"), Record(Idempotency))
"""organization, digest of the Idempotency-Key"""
EVENTS: Table[Event] = Table("events", Key("I16s"), Record(Event))
"""organization, request id"""
DOCUMENTS: Table[Document] = Table("documents", Key("I16s"), Record(Document))
"""organization, request id"""
DEFERRED_REPORTS: Table[DeferredReport] = Table("deferred_reports", Key("I16s"), Record(DeferredReport))
"""organization, request id"""

# Events by time of arrival, which a request id cannot be asked for: its own time runs ahead when the clock is set back.
# The key says it all, so that a page is counted off without reading a row that it does not show.
EVENTS_BY_LEVEL: Table[bytes] = Table("events_by_level", Key("IBBQ16s"), Opaque())
"""organization, place of the environment in `ENVIRONMENTS`, level (0 = not scored, 1 = low, 2 = medium, 3 = high),
arrival, request id -> nothing"""
EVENTS_BY_VISITOR: Table[bytes] = Table("events_by_visitor", Key("IB20sBQ16s"), Opaque())
"""organization, environment, visitor id, level, arrival, request id -> nothing"""

WEIGHTS_SNAPSHOTS: Table[WeightsSnapshot] = Table("weights_snapshots", Key("16s"), Record(WeightsSnapshot))
"""digest of the weights"""
WEIGHTS: Table[StoredWeights] = Table("weights", Key("IB", text=True), Record(StoredWeights, remembered=1024))
"""organization, place of the platform in `PLATFORMS`, key id: the key's own weights; without a key id the
organization's"""

VISITORS: Table[Visitor] = Table("visitors", Key("II"), Layout(Visitor.pack, Visitor.unpack))
"""organization, visitor number (1, 2, ... per organization)"""
VISITOR_COUNTS: Table[int] = Table("visitor_counts", Key("I"), Signed())
"""organization -> visitor numbers given so far; never given twice"""
VISITOR_IDS: Table[int] = Table("visitor_ids", Key("I20s"), Signed())
"""organization, visitor id -> visitor number"""
BLOCKS: Table[Block] = Table("blocks", Key("I9s"), Layout(Block.pack, Block.unpack))
"""organization, block key (kind and 64-bit hash): which visitors look like this"""
DEPARTED: Table[int] = Table("departed", Key("II"), Signed())
"""organization, visitor number -> since when, in ms: visitors that are gone and may still be named in blocks"""
ERASURES: Table[int] = Table("erasures", Key("I20s"), Signed())
"""organization, visitor id -> visitor number, 0 = it had none: erasures that have begun and have not ended"""
ERASED_EVENTS: Table[int] = Table("erased_events", Key("I"), Signed())
"""organization -> events erased so far: so many idempotency keys may be answered by an event that is gone"""
STATISTICS: Table[bytes] = Table("statistics", Key("IBI"), Opaque())
"""organization, scope (0 = production, 1 = all other environments), class of devices: what matching has learned, and
is written behind. Class 0 is no class, and its row is what all classes share."""

# History lies by organization and period, so that what is over is one range of keys: rows of a period before the last
# one are never read again and may be deleted, from the left, at any time.
VISITOR_HISTORY: Table[VisitorHistory] = Table("visitor_history", Key("III"), Record(VisitorHistory))
"""organization, UTC day since 1970, visitor number; the first visit of a day carries over what is left of yesterday"""
ADDRESS_HISTORY: Table[AddressHistory] = Table("address_history", Key("IIQ"), Record(AddressHistory))
"""organization, UTC day since 1970, address id; each day begins anew"""
SENDINGS: Table[Sending] = Table("sendings", Key("II16s"), Record(Sending))
"""organization, period of 30 days since 1970, digest of a nonce or of a whole report -> its first sending. Both digests
follow from the archived document, so that whoever erases a visitor finds these rows too."""

CHALLENGES: Table[Challenge] = Table("challenges", Key("II32s"), Record(Challenge))
"""organization, period of 5 minutes since 1970 in which it was issued, the challenge itself. Rows of a period before
the last one are never read again and may be deleted, from the left, at any time."""

# The outbox. Endpoints have numbers too, given per organization and never twice, so that what is left of a removed one
# can be nobody else's. A delivery is an event on its way to an endpoint; kinds stand by their place in
# `DELIVERY_KINDS`, environments in `WEBHOOK_ENVIRONMENTS`.
ENDPOINTS: Table[Endpoint] = Table("webhook_endpoints", Key("II"), Record(Endpoint, remembered=1024))
"""organization, endpoint number: oldest first"""
ENDPOINT_COUNTS: Table[int] = Table("webhook_endpoint_counts", Key("I"), Signed())
"""organization -> endpoint numbers given so far"""
ENDPOINT_HEALTH: Table[Health] = Table("webhook_endpoint_health", Key("II"), Record(Health))
"""organization, endpoint number; no row = nothing was tried yet"""
REMOVED_ENDPOINTS: Table[bytes] = Table("webhook_removed_endpoints", Key("II"), Opaque())
"""organization, endpoint number -> nothing: its rows are still to be swept away"""
WEBHOOK_EVENTS: Table[WebhookEvent] = Table("webhook_events", Key("I16s"), Record(WebhookEvent))
"""organization, event id"""
DELIVERIES: Table[Delivery] = Table("webhook_deliveries", Key("II16sB"), Record(Delivery))
"""organization, endpoint number, event id, kind; kept after the end, for redelivery"""
DUE: Table[bytes] = Table("webhook_due", Key("IIQ16sB"), Opaque())
"""organization, endpoint number, due_ms, event id, kind -> nothing: the schedule of each endpoint is a range, and one
that has a million rows to wait for is in nobody's way"""
MANUAL: Table[bytes] = Table("webhook_manual", Key("II"), Opaque())
"""organization, endpoint number -> event id and kind of the one test or redelivery that is queued"""
ATTEMPTS: Table[Attempt] = Table("webhook_attempts", Key("I16s"), Record(Attempt))
"""organization, attempt id"""
ATTEMPTS_BY_ENVIRONMENT: Table[bytes] = Table("webhook_attempts_by_environment", Key("IB16s"), Opaque())
"""organization, environment, attempt id -> nothing"""
ATTEMPT_COUNTS: Table[AttemptCount] = Table("webhook_attempt_counts", Key("III"), Record(AttemptCount))
"""organization, endpoint number, minute since 1970; those of the last 24 hours are kept"""
REFUSALS: Table[Refusals] = Table("webhook_refusals", Key("I", text=True), Record(Refusals))
"""organization, key id and code as `key_.../code`: refusals of the last minute"""

# The operation log (`operations`): kept only while somebody follows it, and never in itself.
FOLLOWING: Table[Following] = Table("following", Key("", text=True), Record(Following, remembered=8))
"""`log` -> who follows; no row = nobody"""
OPERATIONS: Table[bytes] = Table("operations", Key("QI"), Opaque())
"""sequence, part (0, 1, ...) -> that part of a batch. Sequences are without a gap; the first of a timeline is 0, which
is empty. What has been copied is deleted but for the last batch, so that the next number is always known."""

TABLES: tuple[Table[Any], ...] = (
    META,
    ORGANIZATIONS,
    ORGANIZATION_IDS,
    KEYS,
    KEY_IDS,
    ORGANIZATION_KEYS,
    BALANCES,
    LEDGER,
    SETTLEMENTS,
    BILLING_CHANGES,
    PAST_DUE,
    HOLDINGS,
    AUDIT,
    IDEMPOTENCY,
    EVENTS,
    DOCUMENTS,
    DEFERRED_REPORTS,
    EVENTS_BY_LEVEL,
    EVENTS_BY_VISITOR,
    WEIGHTS_SNAPSHOTS,
    WEIGHTS,
    VISITORS,
    VISITOR_COUNTS,
    VISITOR_IDS,
    BLOCKS,
    DEPARTED,
    ERASURES,
    ERASED_EVENTS,
    STATISTICS,
    VISITOR_HISTORY,
    ADDRESS_HISTORY,
    SENDINGS,
    CHALLENGES,
    ENDPOINTS,
    ENDPOINT_COUNTS,
    ENDPOINT_HEALTH,
    REMOVED_ENDPOINTS,
    WEBHOOK_EVENTS,
    DELIVERIES,
    DUE,
    MANUAL,
    ATTEMPTS,
    ATTEMPTS_BY_ENVIRONMENT,
    ATTEMPT_COUNTS,
    REFUSALS,
    FOLLOWING,
    OPERATIONS,
)
