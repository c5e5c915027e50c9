"""The table of what is remembered of origins."""

from __future__ import annotations

from svc.identify.history.origins import OriginHistory
from svc.kernel.store.schema.codec import Key, Record
from svc.kernel.store.schema.key_parts import (
    U32,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    Table,
)

ORIGIN_HISTORY = Table(
    "origin_history",
    Key(organization=U32, origin=U32),
    Record(OriginHistory),
    WITH_ORGANIZATION,
    NOT_PERSONAL,
)
"""By the hash of an origin (`Features.origin`). Read for the first visit of a day of a visitor that came back with a
token, and where client hints are missing.
"""
