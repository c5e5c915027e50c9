"""The tables of identifications: events and their index, weights, visitors, accounts, attestation, proofs, origins."""

from __future__ import annotations

from svc.identify.attestation.challenge import LIFETIME_MS, AttestedKey, Challenge, VisitorKeys
from svc.identify.events.hour_counts import HourCounts
from svc.identify.events.listing import CHANGE_KINDS
from svc.identify.events.segments import Digests, Segment
from svc.identify.history.activity import AddressActivity
from svc.identify.history.evidence import REPLAY_MEMORY_S, ReportFingerprint, VisitorPlaces
from svc.identify.history.origins import OriginHistory
from svc.identify.keys.browser_keys import KEPT_MS, BrowserKey
from svc.identify.matching import Block, Visitor
from svc.identify.records import (
    EVENT_FIELDS,
    RETENTION_MS,
    DeferredReport,
    Document,
    Event,
    Idempotency,
    LastLook,
    RetentionPass,
    WeightsSnapshot,
)
from svc.identify.scoring.score import StoredWeights
from svc.identify.velocity.counts import KINDS, LONGEST_S, Recount
from svc.identify.velocity.record import AccountRecord
from svc.kernel.store.schema.codec import Flattened, Key, Layout, Opaque, Record, Signed
from svc.kernel.store.schema.key_parts import (
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
from svc.kernel.store.schema.table import (
    FOR_EVER,
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    Aged,
    ErasedBy,
    ErasedByKey,
    KeptFor,
    LastTwoPeriods,
    NotPersonal,
    Swept,
    Table,
    Until,
    With,
)
from svc.kernel.values.fields import ENVIRONMENTS, PLATFORMS
from svc.kernel.values.ids import HOUR_MS

_REQUEST = Key(organization=U32, request_id=UUID_V7)
_ENVIRONMENT = index_of(ENVIRONMENTS)

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
    invariants=("events", "holding", "velocity", "accounts", "labels"),
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
    since=3,
)
"""Events that are in no segment yet, by what they are found by (ADR 63)."""
EVENT_SEGMENTS = Table(
    "event_segments",
    Key(organization=U32, environment=_ENVIRONMENT, part=U8, arrival=MOMENT, request_id=UUID_V7),
    Layout(Segment.pack, Segment.unpack),
    With("events"),
    ErasedBy("unindex"),
    invariants=("events",),
    since=3,
)
"""All other events, each in one segment. The key ends with a position: a segment holds the events from there down to
the position of the segment before. Part 0 is a small segment as a whole; a large one has its slots in part 1 and its
postings in the parts from 2 on, by the first bits of the digest (`index/queries.py`).
"""
LATE_EVENTS = Table(
    "late_events",
    Key(organization=U32, environment=_ENVIRONMENT, feed_at=MOMENT, request_id=UUID_V7),
    Opaque(),
    With("events"),
    ErasedBy("unindex"),
    invariants=("events",),
    since=6,
)
"""Events whose place in the feed is not that of their arrival, which was closed when they were stored."""
FEED_CLOSED = Table(
    "feed_closed",
    Key(organization=U32, environment=_ENVIRONMENT),
    Signed("closed_to_ms"),
    WITH_ORGANIZATION,
    NOT_PERSONAL,
    since=6,
)
"""Up to when, included, the feed has got all its events: none takes its place there any more. It only grows; no row =
the feed was not read yet."""
EVENT_CHANGES = Table(
    "event_changes",
    Key(
        organization=U32,
        environment=_ENVIRONMENT,
        changed_at=MOMENT,
        sequence=U32,
        kind=index_of(CHANGE_KINDS),
        request_id=UUID_V7,
    ),
    Signed("at_ms"),
    Swept("when it is as old as events may be"),
    NotPersonal("that an event was changed or erased, by a request id that leads nowhere once it is erased"),
    since=9,
)
"""Updates and erasures of events, by their places in the feed; the value is when each was made (ADR 221)."""
HOURS = Table(
    "hours",
    Key(organization=U32, environment=_ENVIRONMENT, hour=period(HOUR_MS)),
    Layout(HourCounts.pack, HourCounts.unpack),
    With("events"),
    ErasedBy("uncount"),
    invariants=("events",),
    since=2,
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


_ORGANIZATION = Key(organization=U32)

VISITORS = Table(
    "visitors",
    Key(organization=U32, visitor=U32),
    Layout(Visitor.pack, Visitor.unpack),
    Swept("unseen for `visitor_retention_days`, and without events"),
    ErasedByKey("visitor"),
    invariants=("visitors", "tokens", "holding"),
)
"""By the visitor's number: 1, 2, ... per organization, with gaps where workers took several at once. With what it did
lately, which retention takes out of those unseen for 30 to 60 days.
"""
VISITOR_COUNTS = Table("visitor_counts", _ORGANIZATION, Signed("given"), WITH_ORGANIZATION, NOT_PERSONAL)
"""The highest visitor number that was given to a visitor, or kept by a worker. None is given twice."""
LAST_LOOKS = Table(
    "last_looks",
    Key(organization=U32, first=U32),
    Record(LastLook),
    WITH_ORGANIZATION,
    NotPersonal("a time of one of up to 512 visitors, and nothing of whom"),
    since=4,
)
"""By the first number of 512 visitors, which is divisible by 512: what retention found there (ADR 72)."""
RETENTION_PASSES = Table(
    "retention_passes", _ORGANIZATION, Record(RetentionPass), WITH_ORGANIZATION, NOT_PERSONAL, since=4
)
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
"""By scope and class of devices: what matching has learned, written some time after the visits. Class 0 is not a class,
and its row is what all classes share.
"""
# History lies by organization and period, so that expired rows are one range of keys: rows of a period before the last
# one are never read again and may be deleted, from the left, at any time.
VISITOR_PLACES = Table(
    "visitor_places",
    Key(organization=U32, visitor=U32),
    Record(VisitorPlaces),
    With("visitors"),
    ErasedByKey("visitor"),
    invariants=("history",),
    since=5,
)
"""Written where the visitor comes from a country or network that is not among the latest."""
ADDRESSES = Table(
    "addresses",
    Key(organization=U32, period=period(1000 * LONGEST_S), address=U64),
    Layout(AddressActivity.pack, AddressActivity.unpack),
    LastTwoPeriods(),
    ErasedBy("purge_activity"),
    since=9,
)
"""By the id of an address: its velocity and its day (ADR 216). The first event of a period of 30 days carries over what
is left of the period before, whose row counts no more from then on.
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
ERASURES = Table(
    "erasures",
    Key(organization=U32, visitor_id=VISITOR_ID),
    Signed("visitor"),
    Until("the visitor is erased"),
    NotPersonal("an erasure under way; its last step deletes the row"),
)
"""-> visitor number, 0 = it had none: erasures that have begun and have not ended."""


ACCOUNTS = Table(
    "accounts",
    Key(organization=U32, kind=index_of(KINDS), account=U64),
    Layout(AccountRecord.pack, AccountRecord.unpack),
    Swept("unseen for `visitor_retention_days`"),
    ErasedBy("leave_accounts"),
    invariants=("accounts",),
    since=7,
)
"""By the digest of an account: since when it is known, its visitors (ADR 167), and its velocity."""
RECOUNTS = Table("recounts", Key(organization=U32), Record(Recount), WITH_ORGANIZATION, NOT_PERSONAL, since=7)
"""Of an organization with events from before velocity: how far these are counted (ADR 192). It stays when all are, to
say which events no row counts.
"""
ACCOUNT_ERASURES = Table(
    "account_erasures",
    Key(organization=U32, account=U64),
    Opaque("bytes"),
    Until("the account is erased"),
    NotPersonal("an erasure under way; its last step deletes the row"),
    since=6,
)
"""By the digest of an account: its id. Erasures that have begun and have not ended."""


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
    since=2,
)
"""By the id of an Apple device's key, which is the SHA-256 of the public key."""
VISITOR_KEYS = Table(
    "visitor_keys",
    Key(organization=U32, visitor_id=VISITOR_ID),
    Record(VisitorKeys),
    With("attested_keys"),
    ErasedBy("purge_attested_keys"),
    invariants=("attested_keys",),
    since=2,
)
"""-> the attested keys of a visitor, also of one who has no number."""


ORIGIN_HISTORY = Table(
    "origin_history",
    Key(organization=U32, origin=U32),
    Record(OriginHistory),
    WITH_ORGANIZATION,
    NOT_PERSONAL,
    since=7,
)
"""By the hash of an origin (`Features.origin`). Read for the first visit of a day of a visitor that came back with a
token, and where client hints are missing.
"""


BROWSER_KEYS = Table(
    "browser_keys",
    Key(organization=U32, browser_key=U64),
    Record(BrowserKey),
    Aged(KEPT_MS, since="written_ms"),
    ErasedBy("purge_browser_keys"),
    since=7,
)
"""By the hash of the public key that signs the reports of a browser (`Features.key`): the tokens that came with it."""
ORIGIN_PROOFS = Table(
    "origin_proofs",
    Key(organization=U32, period=period(1000 * REPLAY_MEMORY_S), origin=U32),
    Signed("outcomes"),
    LastTwoPeriods(),
    NOT_PERSONAL,
    since=7,
)
"""By the hash of an origin: which of its last signed reports were verified (`browser_keys.with_outcome`). Of a period
that has no row yet, the one before counts."""
