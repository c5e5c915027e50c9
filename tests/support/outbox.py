"""A small world for the outbox: a real store under virtual time, endpoints in it, and receivers in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import trio

from svc.features.checks.invariants import violations
from svc.features.organizations.jobs import create_organization
from svc.features.webhooks.content.envelope import secrets_key
from svc.features.webhooks.content.payloads import EndpointTest
from svc.features.webhooks.jobs.deliveries import enqueue
from svc.features.webhooks.jobs.endpoints import (
    Issued,
    NewEndpoint,
    Queued,
    change_endpoint,
    create_endpoint,
    queue_sample,
    remove_endpoint,
)
from svc.features.webhooks.queries import Registered
from svc.features.webhooks.records import Delivery, DeliveryKey, DeliveryState, WebhookEnvironment
from svc.features.webhooks.sending.outbox import Outbox
from svc.features.webhooks.tables import ATTEMPTS, DELIVERIES, WEBHOOK_EVENTS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import Refusal
from svc.world import twenty_characters
from tests.support.receivers import Receivers, Script
from tests.support.worlds import EPOCH_MS, sim_world

T = TypeVar("T")

URL = "https://receiver.example/"
"""Where the endpoint of `OutboxWorld.subscribed` is."""
EVENT = "usage.daily_settled"
"""What the tests send where the type does not matter."""


class OutboxWorld:
    """One store, some organizations with endpoints, and the outbox over them when a test runs it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.world = sim_world(seed)
        found = open_directory(directory, self.world.run_sync, self.world.entropy, durable=False, map_bytes=1 << 30)
        self.store = found.store
        self.secrets_key = secrets_key(found.pepper)
        self.receivers = Receivers()
        self.outbox = self.new_outbox()
        self._facts = 0

    def new_outbox(self) -> Outbox:
        """As after a restart: nothing but the store is known."""
        return Outbox(self.store, self.world, self.receivers, self.secrets_key)

    @asynccontextmanager
    async def running(self, outbox: Outbox | None = None) -> AsyncGenerator[Outbox]:
        """The outbox at work until the block ends; then cut off as a crash would."""
        outbox = outbox or self.outbox
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.run)
            yield outbox
            nursery.cancel_scope.cancel()

    @property
    def now_ms(self) -> int:
        try:
            return self.world.now_ms()
        except RuntimeError:  # not in a trio loop: before virtual time begins
            return EPOCH_MS

    def do(self, job: Callable[[Transaction], T]) -> T:
        (outcome,) = self.store.write_now([job])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def read(self, query: Callable[[Snapshot], T]) -> T:
        with self.store.read() as snapshot:
            return query(snapshot)

    def organization(self) -> int:
        organization_id = "org_" + twenty_characters(self.world.entropy)
        make = partial(create_organization, organization_id=organization_id, name="x", now_ms=0, rate_limit_per_s=0)
        return self.do(make).number

    def subscribed(self, script: Script | None = None, **fields: Any) -> tuple[int, Registered]:
        """A new organization, with an endpoint at `URL`; as `endpoint`."""
        number = self.organization()
        return number, self.endpoint(number, URL, script, **fields)

    def endpoint(self, number: int, url: str, script: Script | None = None, **fields: Any) -> Registered:
        """A new endpoint that subscribes to everything; `script` says what it responds."""
        issued = self.issue(number, url, **fields)
        assert isinstance(issued, Issued)
        if script is not None:
            self.receivers.scripts[url] = script
        return issued.registered

    def issue(self, number: int, url: str, **fields: Any) -> Issued | Refusal:
        given = {"environment": "live", "events": (EVENT, "webhook.test", "identification.completed")}
        endpoint_id = "whk_" + twenty_characters(self.world.entropy)
        new = NewEndpoint(id=endpoint_id, url=url, description="", **(given | fields))
        return self.do(
            partial(create_endpoint, number=number, new=new, secrets_key=self.secrets_key, now_ms=self.now_ms)
        )

    def change(self, registered: Registered, **fields: Any) -> Registered:
        number, endpoint_id = registered.queue.organization, registered.endpoint.id
        job = partial(change_endpoint, number=number, endpoint_id=endpoint_id, fields=fields)
        changed = self.do(job)
        assert isinstance(changed, Registered)
        return changed

    def queue_test(self, registered: Registered) -> Queued | Refusal:
        number, endpoint_id = registered.queue.organization, registered.endpoint.id
        job = partial(queue_sample, number=number, endpoint_id=endpoint_id, event_type="webhook.test")
        event_id = self.world.request_id(self.now_ms)
        return self.do(partial(job, data=EndpointTest(endpoint_id), event_id=event_id, now_ms=self.now_ms))

    def remove(self, registered: Registered) -> None:
        queue = self.do(
            partial(remove_endpoint, number=registered.queue.organization, endpoint_id=registered.endpoint.id)
        )
        assert isinstance(queue, EndpointKey)
        self.outbox.removed(queue)

    def enqueue(self, number: int, environment: WebhookEnvironment = "live") -> tuple[EndpointKey, ...]:
        """One event, each another."""
        self._facts += 1
        data = {"fact": self._facts}
        return self.do(lambda txn: enqueue(txn, number, EVENT, environment, data, self.now_ms))

    def send(self, number: int, count: int = 1) -> None:
        """So many events, and the outbox told of them."""
        for _ in range(count):
            self.outbox.wake(self.enqueue(number))

    async def first_attempt(self) -> None:
        """Let the outbox that runs make its first attempt, before which it writes: to somebody else, in a second."""
        number = self.organization()
        self.endpoint(number, "https://first.example/")
        self.send(number)
        await trio.sleep(1)
        assert len(self.receivers.posts) == 1
        self.receivers.posts.clear()

    def deliveries(self, queue: EndpointKey) -> list[tuple[DeliveryKey, Delivery]]:
        kinds = ("auto", "test", "redelivery")
        rows = self.read(lambda snapshot: list(snapshot.scan(DELIVERIES, *queue)))
        return [(DeliveryKey(event_id, kinds[place]), delivery) for (_, _, event_id, place), delivery in rows]

    def states(self, queue: EndpointKey) -> list[DeliveryState]:
        return [delivery.state for _, delivery in self.deliveries(queue)]

    def attempts(self, number: int) -> list[Any]:
        return self.read(lambda snapshot: [attempt for _, attempt in snapshot.scan(ATTEMPTS, number)])

    def bodies(self, number: int) -> dict[str, bytes]:
        """Event id -> the bytes that are to be sent."""
        rows = self.read(lambda snapshot: list(snapshot.scan(WEBHOOK_EVENTS, number)))
        return {str(UUID(bytes=event_id)): event.body for (_, event_id), event in rows}

    def violations(self) -> list[str]:
        return self.read(lambda snapshot: list(violations(snapshot)))


@contextmanager
def outbox_world(directory: Path, seed: int = 1) -> Generator[OutboxWorld]:
    """Every invariant is checked at the end."""
    world = OutboxWorld(directory, seed)
    try:
        yield world
        assert world.violations() == []
    finally:
        world.store.close()
