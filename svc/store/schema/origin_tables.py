"""The table of what is remembered of origins.

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.domain.history.origins import OriginHistory as _OriginHistory
from svc.store.schema.codec import Key, Record
from svc.store.schema.key_parts import U32, U64
from svc.store.schema.table import NOT_PERSONAL, WITH_ORGANIZATION, Table

ORIGIN_HISTORY = Table(
    "origin_history",
    Key(organization=U32, origin=U64),
    Record(_OriginHistory),
    WITH_ORGANIZATION,
    NOT_PERSONAL,
)
"""Read for the first visit of a day of a visitor that came back with a token, and where client hints are missing."""
