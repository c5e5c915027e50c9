"""The tables of erasures that are under way: of visitors, of accounts, and of their ids in notes."""

from __future__ import annotations

from svc.identify.model import SUBJECTS
from svc.identify.records import (
    TextErasure,
)
from svc.kernel.store.schema.codec import Key, Record, Signed
from svc.kernel.store.schema.key_parts import (
    U32,
    U64,
    index_of,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    NotPersonal,
    Table,
    Until,
)

TEXT_ERASURES = Table(
    "text_erasures",
    Key(organization=U32, subject=index_of(SUBJECTS), id=U64),
    Record(TextErasure),
    Until("the id is in no note any more"),
    NotPersonal("an erasure under way; its last step deletes the row"),
    since=7,
)
"""By the digest of an id of which all else is erased: how far notes were read for it."""
ERASED_EVENTS = Table("erased_events", Key(organization=U32), Signed("events"), WITH_ORGANIZATION, NOT_PERSONAL)
"""Number of events erased so far: as many idempotency keys may refer to an event that is deleted."""
