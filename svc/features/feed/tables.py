"""The tables of the feed: how far it was given out, and the events that come in it later than they arrived (ADR 130).

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.identify.model import ENVIRONMENTS as _ENVIRONMENTS
from svc.kernel.store.schema.codec import Key, Opaque, Signed
from svc.kernel.store.schema.key_parts import MOMENT, U32, UUID_V7, index_of
from svc.kernel.store.schema.table import NOT_PERSONAL, WITH_ORGANIZATION, ErasedBy, Table, With

_ENVIRONMENT = index_of(_ENVIRONMENTS)

FEED_CLOSED = Table(
    "feed_closed",
    Key(organization=U32, environment=_ENVIRONMENT),
    Signed("closed_to_ms"),
    WITH_ORGANIZATION,
    NOT_PERSONAL,
)
"""Up to when, included, the feed has got all its events: none takes its place there any more. It only grows; no row =
the feed was not read yet."""
LATE_EVENTS = Table(
    "late_events",
    Key(organization=U32, environment=_ENVIRONMENT, feed_at=MOMENT, request_id=UUID_V7),
    Opaque(),
    With("events"),
    ErasedBy("unindex"),
    invariants=("events",),
)
"""Events whose place in the feed is not that of their arrival, which was closed when they were stored."""
