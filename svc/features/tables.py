"""Every table as a typed constant: the on-disk schema on one page, with what becomes of each row.

A declaration says everything that is said of a table (ADR 31): the parts of its key, the form of its values, how long
rows are kept, how those of a visitor are erased, whether they stay when the organization is removed, and which rules of
`invariants` read them through. Adding a table is a declaration here, the transaction that uses it, and a migration.

`organization` in a key is the organization's number (4 bytes), so that everything of one customer lies together and
nothing of another can be reached by a range. Request ids are UUIDv7: the id is the time index.
"""

from __future__ import annotations

from svc.features.erasure.tables import *  # noqa: F403  declared with the others, below
from svc.features.feed.tables import *  # noqa: F403  declared with the others, below
from svc.features.labels.tables import *  # noqa: F403  declared with the others, below
from svc.features.members.tables import *  # noqa: F403  declared with the others, below
from svc.features.webhooks.tables import *  # noqa: F403  declared with the others, below
from svc.identify.attestation.attested_key import AttestedKey, VisitorKeys
from svc.identify.attestation.challenge import LIFETIME_MS, Challenge
from svc.identify.events.hour_counts import HOUR_MS, HourCounts
from svc.identify.history.evidence import (
    REPLAY_MEMORY_S,
    AddressHistory,
    ReportFingerprint,
    VisitorHistory,
    VisitorPlaces,
)
from svc.identify.index.segments import Digests, Segment
from svc.identify.matching import Block, Visitor
from svc.identify.model import ENVIRONMENTS, PLATFORMS
from svc.identify.records import (
    EVENT_FIELDS,
    RETENTION_MS,
    DeferredReport,
    Document,
    Event,
    Idempotency,
    LastLook,
    Organization,
    RetentionPass,
    WeightsSnapshot,
)
from svc.identify.scoring.weights import StoredWeights
from svc.identify.tables.accounts import *  # noqa: F403  declared with the others, below
from svc.identify.tables.origins import *  # noqa: F403  declared with the others, below
from svc.identify.tables.proofs import *  # noqa: F403  declared with the others, below
from svc.identify.velocity.counts import KINDS, LONGEST_S, SUBJECTS, VelocityRow
from svc.kernel.access.audit import AUDIT_MS, AuditRecord
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.sessions import ConsoleLink, Session
from svc.kernel.limits.quotas import Holding
from svc.kernel.store.schema.codec import Flattened, Key, Layout, Opaque, Record, Signed
from svc.kernel.store.schema.key_parts import (
    DAY,
    DIGEST_16,
    MOMENT,
    SECRET_32,
    TEXT,
    U8,
    U32,
    U64,
    UUID_V7,
    VISITOR_ID,
    digest,
    index_of,
    period,
)
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.schema.table import (
    FOR_EVER,
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    ErasedBy,
    ErasedByKey,
    KeptFor,
    LastTwoPeriods,
    NotPersonal,
    Swept,
    Table,
    Until,
    With,
    declared,
)
from svc.kernel.tenants.billing import BillingChange, LedgerEntry, Settlement

_ORGANIZATION = Key(organization=U32)
_OWN_ID = Key(organization=U32, id=UUID_V7)
_REQUEST = Key(organization=U32, request_id=UUID_V7)
_ENVIRONMENT = index_of(ENVIRONMENTS)
_NOT_OF_A_PERSON = NotPersonal("a line says when and how much, and nothing of whom")

META = Table("meta", Key(name=TEXT), Signed("value"), FOR_EVER, NOT_PERSONAL)
"""`version`, `next_organization`, `pepper_mark`, `region/NAME` (`kernel/store/installation.py`), `served_...`;
in the target of a move `moving_...` (`kernel/store/backup/move.py`), and no `version` before its end."""

ORGANIZATIONS = Table(
    "organizations",
    _ORGANIZATION,
    Record(Organization, remembered=1024),
    FOR_EVER,
    NOT_PERSONAL,
    stays=True,
    invariants=("organizations",),
)
ORGANIZATION_IDS = Table("organization_ids", Key(organization_id=TEXT), Signed("organization"), FOR_EVER, NOT_PERSONAL)
"""organization id -> number"""

BALANCES = Table("balances", _ORGANIZATION, Signed("micros"), FOR_EVER, NOT_PERSONAL, stays=True)
"""Always the sum of its ledger."""
LEDGER = Table("ledger", _OWN_ID, Record(LedgerEntry), FOR_EVER, _NOT_OF_A_PERSON, stays=True, invariants=("money",))
"""By the request id for identifications; append-only."""
CREDITS = Table("ledger_credits", _OWN_ID, Opaque(), FOR_EVER, NOT_PERSONAL, stays=True, invariants=("money",))
"""Which lines of the ledger are credits: they are few among many."""
LEDGER_DAYS = Table(
    "ledger_days",
    Key(organization=U32, day=DAY, id=UUID_V7),
    Opaque(),
    FOR_EVER,
    NOT_PERSONAL,
    stays=True,
    invariants=("money",),
)
"""Lines of the ledger that count for another day than that of their id, by the day that they count for."""
SETTLEMENTS = Table(
    "settlements",
    Key(organization=U32, day=DAY),
    Record(Settlement),
    FOR_EVER,
    NOT_PERSONAL,
    stays=True,
    invariants=("money",),
)
"""Only days with production traffic, each written once."""
BILLING_CHANGES = Table(
    "billing_changes", _OWN_ID, Record(BillingChange), FOR_EVER, NOT_PERSONAL, stays=True, invariants=("billing",)
)
"""Append-only."""
PAST_DUE = Table(
    "past_due",
    _ORGANIZATION,
    Signed("since_ms"),
    Until("the organization paid, or is blocked"),
    NOT_PERSONAL,
    stays=True,
)
"""Those that are past due now and no others."""

HOLDINGS = Table("holdings", _ORGANIZATION, Record(Holding), WITH_ORGANIZATION, NOT_PERSONAL)
"""What it holds of the store and has taken today, and its active keys; no row = nothing."""

AUDIT = Table(
    "audit",
    _OWN_ID,
    Record(AuditRecord),
    KeptFor(AUDIT_MS),
    NotPersonal("an erasure is on record with the id that was erased, which leads nowhere (docs/audit.md)"),
    stays=True,
    invariants=("audit",),
)
"""By the request id for changes over HTTP; append-only."""

# Credentials: keys, and sessions of the console with the links that begin them.
KEYS = Table(
    "keys",
    Key(digest=SECRET_32),
    Record(ApiKey, remembered=1024),
    Swept("400 days after it was revoked, or after it expired if it was not"),
    NOT_PERSONAL,
    fenced_by="owner",
    invariants=("keys",),
)
"""HMAC-SHA256(pepper, secret)"""
KEY_IDS = Table("key_ids", Key(key_id=TEXT), Opaque("digest"), With("keys"), NOT_PERSONAL, fenced_by="owner")
"""key id -> digest"""
ORGANIZATION_KEYS = Table(
    "organization_keys",
    Key(organization=U32, created_at=MOMENT, key_id=TEXT),
    Opaque("digest"),
    With("keys"),
    NOT_PERSONAL,
    invariants=("active_keys",),
)
"""-> digest: oldest first"""

SESSIONS = Table(
    "sessions",
    Key(organization=U32, digest=SECRET_32),
    Record(Session, remembered=1024),
    Swept("when it has ended"),
    NOT_PERSONAL,
)
"""Of the console, by HMAC-SHA256(pepper, token)."""
CONSOLE_LINKS = Table(
    "console_links",
    Key(organization=U32, digest=SECRET_32),
    Record(ConsoleLink),
    Swept("when it has expired; using it deletes it"),
    NOT_PERSONAL,
)

IDEMPOTENCY = Table(
    "idempotency",
    Key(organization=U32, digest=DIGEST_16),
    Record(Idempotency),
    Swept("24 hours after the response"),
    NotPersonal("a digest and a request id that leads nowhere once its event is erased, for a day"),
    invariants=("answered_once", "answered_by_events"),
)
"""By the digest of the Idempotency-Key."""
EVENTS = Table(
    "events",
    _REQUEST,
    Flattened(Event, EVENT_FIELDS),
    KeptFor(RETENTION_MS, setting="event_retention_days"),
    ErasedByKey("request_id"),
    invariants=("events", "holding", "velocity", "accounts", "outcomes", "labels"),
)
DOCUMENTS = Table(
    "documents", _REQUEST, Record(Document), With("events"), ErasedByKey("request_id"), invariants=("events", "holding")
)
DEFERRED_REPORTS = Table(
    "deferred_reports",
    _REQUEST,
    Record(DeferredReport),
    With("events"),
    ErasedByKey("request_id"),
    invariants=("events", "holding"),
)


# Events by time of arrival, which a request id cannot be asked for: its own time runs ahead when the clock is set back.
EVENT_TAIL = Table(
    "event_tail",
    Key(organization=U32, environment=_ENVIRONMENT, arrival=MOMENT, request_id=UUID_V7),
    Layout(Digests.pack, Digests.unpack),
    With("events"),
    ErasedBy("unindex"),
    invariants=("events",),
)
"""Events that are in no segment yet, by what they are found by (ADR 63)."""
EVENT_SEGMENTS = Table(
    "event_segments",
    Key(organization=U32, environment=_ENVIRONMENT, part=U8, arrival=MOMENT, request_id=UUID_V7),
    Layout(Segment.pack, Segment.unpack),
    With("events"),
    ErasedBy("unindex"),
    invariants=("events",),
)
"""All other events, each in one segment. The key ends with a position: a segment holds the events from there down to
the position of the segment before. Part 0 is a small segment as a whole; a large one has its slots in part 1 and its
postings in the parts from 2 on, by the first bits of the digest (`event_index`).
"""

HOURS = Table(
    "hours",
    Key(organization=U32, environment=_ENVIRONMENT, hour=period(HOUR_MS)),
    Layout(HourCounts.pack, HourCounts.unpack),
    With("events"),
    ErasedBy("uncount"),
    invariants=("events",),
)
"""Always what the events that arrived in that hour add up to; an hour without events has no row."""

WEIGHTS_SNAPSHOTS = Table(
    "weights_snapshots",
    Key(digest=DIGEST_16),
    Record(WeightsSnapshot),
    FOR_EVER,
    NOT_PERSONAL,
    fenced_by="nothing",
)
"""By the digest of the weights; a set is kept once, however often it scored."""
WEIGHTS = Table(
    "weights",
    Key(organization=U32, platform=index_of(PLATFORMS), key_id=TEXT),
    Record(StoredWeights, remembered=1024),
    Until("they are reset, or their key is purged"),
    NOT_PERSONAL,
    invariants=("weights",),
)
"""The key's own weights; without a key id the organization's."""

VISITORS = Table(
    "visitors",
    Key(organization=U32, visitor=U32),
    Layout(Visitor.pack, Visitor.unpack),
    Swept("unseen for `visitor_retention_days`, and without events"),
    ErasedByKey("visitor"),
    invariants=("visitors", "tokens", "holding"),
)
"""By the visitor's number: 1, 2, ... per organization, with gaps where workers took several at once."""
VISITOR_COUNTS = Table("visitor_counts", _ORGANIZATION, Signed("given"), WITH_ORGANIZATION, NOT_PERSONAL)
"""The highest visitor number that was taken: given to a visitor, or kept by a worker for its next ones. None is given
twice."""
LAST_LOOKS = Table(
    "last_looks",
    Key(organization=U32, first=U32),
    Record(LastLook),
    WITH_ORGANIZATION,
    NotPersonal("a time of one of up to 512 visitors, and nothing of whom"),
)
"""By the first number of 512 visitors, which is divisible by 512: what retention found there (ADR 72)."""
RETENTION_PASSES = Table("retention_passes", _ORGANIZATION, Record(RetentionPass), WITH_ORGANIZATION, NOT_PERSONAL)
VISITOR_IDS = Table(
    "visitor_ids",
    Key(organization=U32, visitor_id=VISITOR_ID),
    Signed("visitor"),
    With("visitors"),
    ErasedByKey("visitor_id"),
    invariants=("visitors",),
)
"""-> visitor number"""
BLOCKS = Table(
    "blocks",
    Key(organization=U32, block=digest(9)),
    Layout(Block.pack, Block.unpack),
    Swept("when it stands for no visitor any more"),
    ErasedBy("leave_blocks"),
    invariants=("blocks",),
)
"""By the block's kind and 64-bit hash: which visitors look like this."""
DELETED_VISITORS = Table(
    "departed",
    Key(organization=U32, visitor=U32),
    Signed("since_ms"),
    Until("a pass has taken the number out of all blocks"),
    NotPersonal("a number that leads nowhere"),
    invariants=("blocks",),
)
"""-> since when, in ms: visitors that are gone and may still be named in blocks."""
STATISTICS = Table(
    "statistics",
    Key(organization=U32, scope=index_of(("production", "other")), class_=U32),
    Opaque("bytes"),
    WITH_ORGANIZATION,
    NotPersonal("sums of which one visitor's share cannot be told"),
)
"""By scope and class of devices: what matching has learned, and is written behind. Class 0 is not a class, and its row
is what all classes share.
"""

# History lies by organization and period, so that expired rows are one range of keys: rows of a period before the last
# one are never read again and may be deleted, from the left, at any time.
VISITOR_HISTORY = Table(
    "visitor_history",
    Key(organization=U32, day=DAY, visitor=U32),
    Record(VisitorHistory),
    LastTwoPeriods(),
    ErasedByKey("visitor"),
    invariants=("history",),
)
"""The first visit of a day carries over what is left of yesterday."""
VISITOR_PLACES = Table(
    "visitor_places",
    Key(organization=U32, visitor=U32),
    Record(VisitorPlaces),
    With("visitors"),
    ErasedByKey("visitor"),
    invariants=("history",),
)
"""Written where the visitor comes from a country or network that is not among the latest."""
ADDRESS_HISTORY = Table(
    "address_history",
    Key(organization=U32, day=DAY, address=U64),
    Record(AddressHistory),
    LastTwoPeriods(),
    ErasedBy("purge_report"),
)
"""Each day begins again."""
VELOCITY = Table(
    "velocity",
    Key(organization=U32, period=period(1000 * LONGEST_S), kind=index_of(KINDS), subject=index_of(SUBJECTS), id=U64),
    Layout(VelocityRow.pack, VelocityRow.unpack),
    LastTwoPeriods(),
    ErasedBy("purge_velocity"),
)
"""By subject: a visitor's number, the digest of an account or the id of an address. The first event of a period of 30
days carries over what is left of the period before, whose row counts no more from then on.
"""
REPORT_FINGERPRINTS = Table(
    "sendings",
    Key(organization=U32, period=period(1000 * REPLAY_MEMORY_S), digest=DIGEST_16),
    Record(ReportFingerprint),
    LastTwoPeriods(),
    ErasedBy("purge_report"),
)
"""By the digest of a nonce or of a whole report: its first sending. Both digests follow from the archived document, so
that the erasure of a visitor finds these rows too."""

# Attestation: challenges that were given out, and the keys of Apple devices.
CHALLENGES = Table(
    "challenges",
    Key(organization=U32, period=period(LIFETIME_MS), challenge=SECRET_32),
    Record(Challenge),
    LastTwoPeriods(),
    NOT_PERSONAL,
)
"""By the period of 5 minutes in which it was issued, and the challenge itself."""
ATTESTED_KEYS = Table(
    "attested_keys",
    Key(organization=U32, attested_key=digest(32)),
    Record(AttestedKey),
    Swept("unused for `visitor_retention_days`; sooner with its visitor"),
    ErasedBy("purge_attested_keys"),
    invariants=("attested_keys",),
)
"""By the id of an Apple device's key, which is the SHA-256 of the public key."""
VISITOR_KEYS = Table(
    "visitor_keys",
    Key(organization=U32, visitor_id=VISITOR_ID),
    Record(VisitorKeys),
    With("attested_keys"),
    ErasedBy("purge_attested_keys"),
    invariants=("attested_keys",),
)
"""-> the attested keys of a visitor, also of one who has no number."""

# The operation log (`operations`): kept only while somebody follows it, and never in itself.
FOLLOWING = Table("following", Key(name=TEXT), Record(Following, remembered=8), Until("nobody follows"), NOT_PERSONAL)
"""`log` -> who follows; no row = nobody"""
OPERATIONS = Table(
    "operations",
    Key(sequence=U64, part=U32),
    Opaque("batch"),
    Until("it is copied"),
    NotPersonal("what commits changed, until it is copied; copies age as backups do (docs/backup.md)"),
    invariants=("operations",),
)
"""Part 0, 1, ... of a batch. Sequences are without a gap; the first of a timeline is 0, which is empty. What has been
copied is deleted but for the last batch, so that the next number is always known."""

TABLES = declared(globals())
"""All of them, in this order."""
