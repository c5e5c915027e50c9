"""A customer with webhook endpoints for tests: it registers them over HTTP, and keeps what arrives in memory.

Commits run inline and receivers answer from memory, so that when every task waits, all that was due has been sent and
written down: no test of these sleeps or polls.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import trio
import trio.testing

from svc.features.webhooks.queries import queues_with_work
from svc.features.webhooks.records import Attempted
from svc.kernel.values.partitions import EndpointKey
from tests.spec.automation import Automation
from tests.support.live import PUBLIC_ADDRESS, Live, live_service, succeeded
from tests.support.receivers import OK, Post, Receivers, always
from tests.support.serving_postgresql import at_rest
from tests.support.worlds import HeldThreads

HOOKS = "/webhooks"
URL = f"https://{PUBLIC_ADDRESS}/hook"
GONE = Attempted(410, "http_status", 12, None)
COMPLETED = "identification.completed"


class Names:
    """A resolver that knows a few hosts, and addresses by themselves. Remembers what it was asked."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, ...]] = {PUBLIC_ADDRESS: (PUBLIC_ADDRESS,)}
        self.asked: list[str] = []

    async def __call__(self, host: str, organization: int, /) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        self.asked.append(host)
        return self.known.get(host, ())


class Subscriber(Automation):
    """A developer's management key at work on webhook endpoints, and everything that is sent to them."""

    def __init__(self, live: Live, receivers: Receivers, names: Names) -> None:
        super().__init__(live, "developer")
        self.live, self.receivers, self.names = live, receivers, names
        _, self.production = live.issue(environment="production")

    async def post(self, **fields: Any) -> httpx.Response:
        """Register an endpoint for what identifications of production give rise to, but for `fields`."""
        given = {"url": URL, "environment": "live", "events": [COMPLETED], "description": "", **fields}
        return await self("POST", HOOKS, given)

    async def create(self, **fields: Any) -> tuple[str, str]:
        """Id and secret of a new endpoint."""
        response = await self.post(**fields)
        assert response.status_code == 201, response.text
        return response.json()["endpoint"]["id"], response.json()["secret"]

    async def patch(self, endpoint_id: str, **fields: Any) -> httpx.Response:
        return await self("PATCH", f"{HOOKS}/{endpoint_id}", fields)

    async def do(self, endpoint_id: str, action: str, body: Any = None) -> httpx.Response:
        """`rotate-secret`, `test` or `redeliver`; returns when all that was due has been sent and written down."""
        response = await self("POST", f"{HOOKS}/{endpoint_id}/{action}", body)
        await at_rest()
        return response

    async def listed(self) -> list[dict[str, Any]]:
        answer = succeeded(await self("GET", HOOKS))
        assert set(answer) == {"endpoints"}
        return answer["endpoints"]

    async def shown(self, endpoint_id: str) -> dict[str, Any]:
        """One endpoint as the list shows it."""
        return next(endpoint for endpoint in await self.listed() if endpoint["id"] == endpoint_id)

    async def deliveries(self, query: str = "") -> list[dict[str, Any]]:
        return succeeded(await self("GET", f"/webhook-deliveries{query}"))["deliveries"]

    async def happen(self, count: int = 1, key: str | None = None) -> list[Post]:
        """So many identifications; what arrives because of them."""
        for _ in range(count):
            assert (await self.live.identify(key or self.production)).status_code == 200
        await at_rest()
        return self.receivers.take()

    async def wait(self, *, seconds: float = 0, hours: float = 0) -> list[Post]:
        """Time passes; what arrives because of it. The outbox sleeps by the machine's clock, so it is woken."""
        self.live.clock.advance(seconds=seconds, hours=hours)
        first = EndpointKey(self.organization.number, 1)  # wakes it when there is no work, too
        self.live.service.outbox.wake([first, *(queue for queue, _ in self._queues())])
        await at_rest()
        return self.receivers.take()

    def due_in_s(self) -> float:
        """Until the next attempt of anything."""
        return (min(due_ms for _, due_ms in self._queues()) - self.live.clock.now_ms) / 1000

    def _queues(self) -> list[tuple[EndpointKey, int]]:
        with self.live.found.store.read() as snapshot:
            return queues_with_work(snapshot, EndpointKey(0, 0), 99).queues


@asynccontextmanager
async def subscribing(directory: Path, **settings: Any) -> AsyncGenerator[Subscriber]:
    receivers, names = Receivers(always(OK, 0)), Names()
    given = {"run_sync": HeldThreads(), "transport": receivers, "resolver": names, **settings}
    async with live_service(directory, **given) as live:
        yield Subscriber(live, receivers, names)
