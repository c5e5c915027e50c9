"""The tables of visitors: who they are, what matching looks them up by, and their history."""

from __future__ import annotations

from svc.identify.history.evidence import (
    REPLAY_MEMORY_S,
    AddressHistory,
    ReportFingerprint,
    VisitorHistory,
    VisitorPlaces,
)
from svc.identify.matching import Block, Visitor
from svc.identify.records import (
    LastLook,
    RetentionPass,
)
from svc.kernel.store.schema.codec import Key, Layout, Opaque, Record, Signed
from svc.kernel.store.schema.key_parts import (
    DAY,
    DIGEST_16,
    U32,
    U64,
    VISITOR_ID,
    digest,
    index_of,
    period,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    ErasedBy,
    ErasedByKey,
    LastTwoPeriods,
    NotPersonal,
    Swept,
    Table,
    Until,
    With,
)

_ORGANIZATION = Key(organization=U32)

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
