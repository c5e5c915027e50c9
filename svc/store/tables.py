"""Every table as a typed constant: the on-disk schema on one page.

`organization` in a key is the organization's number (4 bytes), so that everything of one customer lies together and
nothing of another can be reached by a range. Request ids are UUIDv7: the id is the time index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from svc.domain.billing import LedgerEntry
from svc.domain.credentials import Key as CredentialKey
from svc.domain.history import AddressHistory, Sending, VisitorHistory
from svc.domain.matching import Block, Visitor
from svc.domain.records import Document, Event, Idempotency, Organization, WeightsSnapshot
from svc.domain.weights import StoredWeights
from svc.store.codec import Key, Layout, Opaque, Record, Signed, Value

V = TypeVar("V")


@dataclass(frozen=True)
class Table(Generic[V]):
    """A named ordered map. Two tables are never merged and a name is never reused."""

    name: str
    key: Key
    value: Value[V]


META: Table[int] = Table("meta", Key("", text=True), Signed())
"""`version`, `next_organization`."""

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
"""organization, UUIDv7 (the request id for identifications); append-only"""

IDEMPOTENCY: Table[Idempotency] = Table("idempotency", Key("I16s"), Record(Idempotency))
"""organization, digest of the Idempotency-Key"""
EVENTS: Table[Event] = Table("events", Key("I16s"), Record(Event))
"""organization, request id"""
DOCUMENTS: Table[Document] = Table("documents", Key("I16s"), Record(Document))
"""organization, request id"""
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
STATISTICS: Table[bytes] = Table("statistics", Key("I"), Opaque())
"""organization -> value frequencies of matching, written behind"""

# History lies by organization and period, so that what is over is one range of keys: rows of a period before the last
# one are never read again and may be deleted, from the left, at any time.
VISITOR_HISTORY: Table[VisitorHistory] = Table("visitor_history", Key("III"), Record(VisitorHistory))
"""organization, UTC day since 1970, visitor number; the first visit of a day carries over what is left of yesterday"""
ADDRESS_HISTORY: Table[AddressHistory] = Table("address_history", Key("IIQ"), Record(AddressHistory))
"""organization, UTC day since 1970, address id; each day begins anew"""
SENDINGS: Table[Sending] = Table("sendings", Key("II16s"), Record(Sending))
"""organization, period of 30 days since 1970, digest of a nonce or of a whole report -> its first sending. Both digests
follow from the archived document, so that whoever erases a visitor finds these rows too."""

TABLES: tuple[Table[Any], ...] = (
    META,
    ORGANIZATIONS,
    ORGANIZATION_IDS,
    KEYS,
    KEY_IDS,
    ORGANIZATION_KEYS,
    BALANCES,
    LEDGER,
    IDEMPOTENCY,
    EVENTS,
    DOCUMENTS,
    WEIGHTS_SNAPSHOTS,
    WEIGHTS,
    VISITORS,
    VISITOR_COUNTS,
    VISITOR_IDS,
    BLOCKS,
    STATISTICS,
    VISITOR_HISTORY,
    ADDRESS_HISTORY,
    SENDINGS,
)
