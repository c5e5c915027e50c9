"""Keys that were revoked or have expired long ago."""

from __future__ import annotations

from functools import partial
from typing import Any

from svc.features.contracts.cleanup import Pass, each_row
from svc.identify.queries.weights import weights_key
from svc.identify.tables import WEIGHTS
from svc.kernel.access.jobs import purge_key
from svc.kernel.access.tables import KEYS, ORGANIZATION_KEYS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.fields import PLATFORMS
from svc.kernel.values.ids import DAY_MS

ENDED_KEY_MS = 400 * DAY_MS
"""How long a revoked key is still listed (decisions 2.5), and an expired one."""


def _delete_key(now_ms: int, transaction: Transaction, _: tuple[Any, ...], digest: bytes) -> bool:
    key = transaction.get(KEYS, digest)
    ended_at_ms = None if key is None else key.ended_at_ms
    if key is None or ended_at_ms is None or now_ms - ended_at_ms < ENDED_KEY_MS:
        return False
    purge_key(transaction, key, digest, now_ms)
    for platform in PLATFORMS:
        transaction.delete(WEIGHTS, *weights_key(key.organization, key.id, platform))
    return True


PASSES: tuple[Pass, ...] = (
    lambda sweep: each_row(ORGANIZATION_KEYS, partial(_delete_key, sweep.now_ms), sweep.number, KEYS.name),
)
