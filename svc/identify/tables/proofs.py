"""The tables of keys and proofs of browsers."""

from __future__ import annotations

from svc.identify.history.evidence import REPLAY_MEMORY_S
from svc.identify.keys.browser_keys import KEPT_MS, BrowserKey
from svc.kernel.store.schema.codec import Key, Record, Signed
from svc.kernel.store.schema.key_parts import (
    U32,
    U64,
    period,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    Aged,
    ErasedBy,
    LastTwoPeriods,
    Table,
)

BROWSER_KEYS = Table(
    "browser_keys",
    Key(organization=U32, browser_key=U64),
    Record(BrowserKey),
    Aged(KEPT_MS, since="written_ms"),
    ErasedBy("purge_browser_keys"),
)
"""By the hash of the public key that signs the reports of a browser (`Features.key`): the tokens that came with it."""
ORIGIN_PROOFS = Table(
    "origin_proofs",
    Key(organization=U32, period=period(1000 * REPLAY_MEMORY_S), origin=U32),
    Signed("outcomes"),
    LastTwoPeriods(),
    NOT_PERSONAL,
)
"""By the hash of an origin: which of its last signed reports were verified (`browser_keys.with_outcome`). Of a period
that has no row yet, the one before counts."""
