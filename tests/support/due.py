"""Stores with webhook deliveries that are due, or have failed for good, for real services to send."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import trustme

from svc.features.organizations.jobs import create_organization
from svc.features.webhooks.content.envelope import seal, secrets_key
from svc.features.webhooks.jobs.deliveries import AttemptRecord, log_attempt, open_deliveries
from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, create_endpoint
from svc.features.webhooks.queries import endpoints_of
from svc.features.webhooks.records import DeliveryKey, Endpoint
from svc.features.webhooks.retries import AttemptResult
from svc.features.webhooks.tables import ATTEMPTS, WEBHOOK_EVENTS
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.partitions import EndpointKey
from svc.world import World

T = TypeVar("T")

ORGANIZATION_ID = f"org_{'due':0>20}"
EVENT = "usage.daily_settled"
DATA = {"padding": "x" * 900}
"""About the size of `identification.completed`."""
ATTEMPTS_IN_ALL = 9
DELIVERIES_A_COMMIT = 2_000
"""To each endpoint."""


class Due:
    """A store with one organization and its endpoints, one for each URL; nothing of it is open between two calls."""

    def __init__(self, data: Path, urls: Sequence[str], database: StoreUrl | None = None) -> None:
        self.data = data
        self.database = database
        self._world = World.real()
        with self._opened() as found:
            organization = partial(
                create_organization, organization_id=ORGANIZATION_ID, name="", now_ms=0, rate_limit_per_s=0
            )
            self.organization = found.store.write_one_now(organization).number
            self.endpoints: list[tuple[EndpointKey, Endpoint]] = []
            for place, url in enumerate(urls):
                new = NewEndpoint(id=f"whk_{place}", url=url, description="", environment="live", events=(EVENT,))
                key = secrets_key(found.pepper)
                job = partial(create_endpoint, number=self.organization, new=new, secrets_key=key, now_ms=0)
                issued = found.store.write_one_now(job)
                assert isinstance(issued, Issued)
                self.endpoints.append(issued.registered)

    def fill(self, count: int, *, failed: bool = False) -> None:
        """So many deliveries to each endpoint, each of an event of its own: due now, or failed nine times."""
        now_ms = self._world.now_ms()

        def some(transaction: Transaction, many: int) -> None:
            for queue, endpoint in endpoints_of(transaction, self.organization):
                for _ in range(many):
                    event_id = self._world.request_id(now_ms)
                    event = seal(event_id, EVENT, "live", ORGANIZATION_ID, DATA, now_ms)
                    transaction.put(WEBHOOK_EVENTS, (queue.organization, event_id.bytes), event)
                    key = DeliveryKey(event_id.bytes, "auto")
                    open_deliveries(transaction, [queue], key, now_ms)
                    if failed:
                        result = AttemptResult(ATTEMPTS_IN_ALL, now_ms, now_ms, 0, 500, "http_status", None)
                        attempt_id = self._world.request_id(now_ms)
                        log_attempt(transaction, AttemptRecord(attempt_id, queue, key, endpoint, event, result))

        for begun in range(0, count, DELIVERIES_A_COMMIT):
            self.do(partial(some, many=min(DELIVERIES_A_COMMIT, count - begun)))

    def do(self, job: Callable[[Transaction], T]) -> T:
        """What the job returned."""
        with self._opened() as found:
            return found.store.write_one_now(job)

    def logged(self) -> dict[tuple[int, str], list[str]]:
        """(endpoint, event id) -> what became of each attempt, in order."""

        def all_of(snapshot: Snapshot) -> dict[tuple[int, str], list[str]]:
            found: dict[tuple[int, str], list[str]] = {}
            for _, attempt in snapshot.scan(ATTEMPTS, self.organization):
                found.setdefault((attempt.endpoint, str(UUID(bytes=attempt.event_id))), []).append(attempt.status)
            return found

        with self._opened() as found, found.store.read() as snapshot:
            return all_of(snapshot)

    @contextmanager
    def _opened(self) -> Generator[Opened]:
        world = self._world
        found = open_directory(self.data, world.run_sync, world.entropy, database=self.database)
        try:
            yield found
        finally:
            found.store.close()


def certified(folder: Path) -> tuple[ssl.SSLContext, dict[str, str]]:
    """For receivers on loopback: their TLS, and the settings of a service that may send there."""
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    return tls, {"SVC_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8", "SVC_WEBHOOK_CA_FILE": str(folder / "ca.pem")}
