"""The tables of weights."""

from __future__ import annotations

from svc.identify.records import (
    WeightsSnapshot,
)
from svc.identify.scoring.weights import StoredWeights
from svc.kernel.store.schema.codec import Key, Record
from svc.kernel.store.schema.key_parts import (
    DIGEST_16,
    TEXT,
    U32,
    index_of,
)
from svc.kernel.store.schema.table import (
    FOR_EVER,
    NOT_PERSONAL,
    Table,
    Until,
)
from svc.kernel.values.fields import PLATFORMS

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
