"""The tables of identifications: events with what was sent, their index, feed and counters."""

from __future__ import annotations

from svc.identify.events.hour_counts import HourCounts
from svc.identify.events.segments import Digests, Segment
from svc.identify.records import (
    EVENT_FIELDS,
    RETENTION_MS,
    DeferredReport,
    Document,
    Event,
    Idempotency,
)
from svc.kernel.store.schema.codec import Flattened, Key, Layout, Opaque, Record, Signed
from svc.kernel.store.schema.key_parts import (
    DIGEST_16,
    MOMENT,
    U8,
    U32,
    UUID_V7,
    index_of,
    period,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    ErasedBy,
    ErasedByKey,
    KeptFor,
    NotPersonal,
    Swept,
    Table,
    With,
)
from svc.kernel.values.fields import ENVIRONMENTS
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
LATE_EVENTS = Table(
    "late_events",
    Key(organization=U32, environment=_ENVIRONMENT, feed_at=MOMENT, request_id=UUID_V7),
    Opaque(),
    With("events"),
    ErasedBy("unindex"),
    invariants=("events",),
)
"""Events whose place in the feed is not that of their arrival, which was closed when they were stored."""
FEED_CLOSED = Table(
    "feed_closed",
    Key(organization=U32, environment=_ENVIRONMENT),
    Signed("closed_to_ms"),
    WITH_ORGANIZATION,
    NOT_PERSONAL,
)
"""Up to when, included, the feed has got all its events: none takes its place there any more. It only grows; no row =
the feed was not read yet."""
HOURS = Table(
    "hours",
    Key(organization=U32, environment=_ENVIRONMENT, hour=period(HOUR_MS)),
    Layout(HourCounts.pack, HourCounts.unpack),
    With("events"),
    ErasedBy("uncount"),
    invariants=("events",),
)
"""Always what the events that arrived in that hour add up to; an hour without events has no row."""
