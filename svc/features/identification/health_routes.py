"""Health: is the process up, can it serve (decisions 9.1). Open to all, never cached."""

from __future__ import annotations

from functools import partial
from typing import Literal, cast

import svc
from svc.http.route import BASE, Call, Outcome, Route, Services
from svc.http.schema import HealthBody, ReadinessBody, ReadinessChecks


async def healthz(_: Services, __: Call) -> HealthBody:
    """Return `200` while the process runs; nothing is checked."""
    return HealthBody(status="ok", version=svc.__version__)


async def readyz(services: Services, _: Call) -> ReadinessBody | Outcome:
    """Return `503` while the store takes no writes, else `200`. Other checks never fail readiness."""
    state = _state_of_store(services)
    checks = ReadinessChecks(
        store=state,
        webhooks=_state_of_webhooks(services),
        network_data=cast("Literal['ok', 'missing', 'stale']", services.network_data()),
    )
    if state != "ok":
        return Outcome(ReadinessBody("unavailable", checks), status=503)
    return ReadinessBody("ready", checks)


def _state_of_store(services: Services) -> Literal["ok", "full", "unreachable", "stalled", "failing", "lost"]:
    """Return the worst of what keeps writes from being stored (decisions 17.4)."""
    if not services.is_store_answering():
        return "unreachable"
    watched = services.watch.state()
    if watched != "ok":
        return watched
    return "full" if services.store.is_full else "ok"


def _state_of_webhooks(services: Services) -> Literal["ok", "behind", "stopped"]:
    if services.watch.is_leader_silent():
        return "stopped"
    return "behind" if services.webhooks.is_behind() else "ok"


_route = partial(Route, tag="Health", under=("", BASE))
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="getHealth",
        path="/healthz",
        summary="Is the process up?",
        handler=healthz,
    ),
    _route(
        operation_id="getReadiness",
        path="/readyz",
        summary="Can it serve?",
        handler=readyz,
        other_responses=((503, ReadinessBody),),
    ),
)
