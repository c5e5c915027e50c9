"""How webhook endpoints stand, over all organizations: for metrics, read some at a time."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from svc.domain.webhooks.queues import is_failing
from svc.domain.webhooks.records import EndpointKey, EndpointStatus
from svc.store.snapshot import Snapshot
from svc.store.tables import DUE, ENDPOINTS
from svc.store.webhook_views import health


class EndpointOverview(NamedTuple):
    """The state of one endpoint, for metrics."""

    queue: EndpointKey
    status: EndpointStatus
    sent_to_as: EndpointStatus
    """`failing` also where it fails often enough to be sent to as one that does."""
    due_ms: int | None
    """Since when its oldest delivery is due; `None` where nothing is due."""


def standings(snapshot: Snapshot, after: EndpointKey, limit: int, now_ms: int) -> list[EndpointOverview]:
    """The next `limit` endpoints of all organizations, after `after` in key order: one row each, one seek for what is
    due, and one more row where something is.
    """
    found: list[EndpointOverview] = []
    start = (after.organization, after.endpoint + 1)
    for key, endpoint in islice(snapshot.scan(ENDPOINTS, start=start), limit):
        queue = EndpointKey(*key)
        first_ms = next((first_ms for (_, _, first_ms, *_), _ in snapshot.scan(DUE, *queue)), None)
        due_ms = None if first_ms is None or first_ms > now_ms else first_ms
        failing = due_ms is not None and endpoint.status == "active" and is_failing(endpoint, health(snapshot, queue))
        found.append(EndpointOverview(queue, endpoint.status, "failing" if failing else endpoint.status, due_ms))
    return found
