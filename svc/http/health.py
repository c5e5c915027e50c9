"""Health: is the process up, can it serve (decisions 9.1). Open to all, never cached."""

from __future__ import annotations

from typing import Literal, cast

import svc
from svc.http.endpoint import Call, Outcome, Services
from svc.http.schema import HealthBody, ReadinessBody, ReadinessChecks

_NEVER_CACHED = {"Cache-Control": "no-store"}


async def healthz(_: Services, __: Call) -> Outcome:
    return Outcome(HealthBody(status="ok", version=svc.__version__), headers=_NEVER_CACHED)


async def readyz(services: Services, _: Call) -> Outcome:
    """`503` while the last write found no room; a write that fits makes it ready again."""
    full = services.store.statistics().full
    checks = ReadinessChecks(
        store="full" if full else "ok",
        webhooks="off",
        network_data=cast("Literal['ok', 'missing', 'stale']", services.network_data()),
    )
    if full:
        return Outcome(ReadinessBody("unavailable", checks), status=503, headers=_NEVER_CACHED)
    return Outcome(ReadinessBody("ready", checks), headers=_NEVER_CACHED)
