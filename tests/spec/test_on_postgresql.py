"""The service on PostgreSQL: every route once, two nodes on one database, and a database that is away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from psycopg import pq

from svc.kernel.access.jobs import replace_origins
from svc.kernel.store.directory import Opened
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql import store as serving
from svc.kernel.store.postgresql.recent import Fetched
from svc.kernel.store.postgresql.rows import Rows
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.world import World
from tests.features.test_roles import Names, Receivers, Resources, Wire, callers, cells, visitor
from tests.spec.responses import assert_error
from tests.spec.subscriber import subscribing
from tests.store.postgresql.nodes import until
from tests.support.cutting_proxy import CuttingProxy
from tests.support.live import Live, live_service, report
from tests.support.serving_postgresql import open_served, url_of

pytestmark = [pytest.mark.slow(10), pytest.mark.only_on("postgresql", "several nodes share a database")]


async def test_every_route_responds(directory: Path):
    """Each caller that it lets in gets the same status as on LMDB; at the end every invariant holds."""
    async with live_service(directory, open_store=open_served, transport=Receivers(), resolver=Names()) as live:
        resources = Resources(live, iter([await visitor(live, device) for device in range(1, 41)]))
        once = {(cell.route.operation_id, cell.path): cell for cell in cells(list(callers(live))) if cell.lets_in()}
        assert len({operation for operation, _ in once}) > 40
        wire, wrong = Wire(live.port), list[tuple[str, int, Any]]()
        for cell in once.values():
            status, answer = await wire.send(cell, resources.path(cell))
            if status != cell.access.status:
                wrong.append((cell.route.operation_id, status, answer))
        await wire.aclose()
    assert wrong == []


REFUSE = """
create function svc.refuse() returns trigger language plpgsql as $$ begin
  raise 'No space left on device' using errcode = 'disk_full';
end $$;
create trigger refuse before update on svc.webhook_deliveries for each row execute function svc.refuse()
"""
TAKE = "drop trigger refuse on svc.webhook_deliveries; drop function svc.refuse()"


async def test_a_webhook_whose_outcome_the_database_does_not_take_is_sent_once(directory: Path):
    """ADR 163: the process keeps what came of it, and tries to write it down each second."""
    async with subscribing(directory, open_store=open_served) as hooks:
        await hooks.create()
        connection = pq.PGconn.connect(url_of(directory).conninfo())
        try:
            done = connection.exec_(REFUSE.encode())
            assert done.status == pq.ExecStatus.COMMAND_OK, done.error_message
            try:
                assert len(await hooks.happen()) == 1
                assert await hooks.wait(seconds=60) == []
            finally:
                assert connection.exec_(TAKE.encode()).status == pq.ExecStatus.COMMAND_OK
        finally:
            connection.finish()
        await until(lambda: hooks.live.service.outbox.statistics().attempts["delivered"] == 1)
        assert hooks.receivers.take() == []


async def test_an_idempotency_key_is_charged_once_by_two_nodes(directory: Path):
    """Each key is sent to both at once, twice: one of the answers is the first."""
    async with AsyncExitStack() as stack:
        first: Live = await stack.enter_async_context(live_service(directory, open_store=open_served))
        second: Live = await stack.enter_async_context(live_service(directory, open_store=open_served))
        _, secret = first.issue("secret", "production")
        before, answers = first.balance(), list[tuple[int, dict[str, Any]]]()

        async def send(live: Live, number: int) -> None:
            headers = {"Idempotency-Key": f"order-{number}", "x-svc-visitor-ip": "81.2.69.160"}
            response = await live.identify(secret, report(1 + number % 4), origin=None, headers=headers)
            answers.append((number, response.json()))

        async with trio.open_nursery() as nursery:
            for number in range(15):
                for live in (first, second, first, second):
                    nursery.start_soon(send, live, number)
        firsts = Counter(number for number, answer in answers if "visitor_id" in answer)
        assert firsts == Counter(range(15))
        ids = {(number, answer["request_id"]) for number, answer in answers}
        assert len(ids) == 15, "every answer names the request that was first"
        assert len(first.events()) == 15
        assert (before - first.balance()) % 15 == 0
        assert before - first.balance() == sum(event.price_micros for _, event in first.events())


async def test_a_key_revoked_by_another_node_is_refused_at_once(directory: Path):
    """Though this node still has its row of a moment ago."""
    async with live_service(directory, open_store=partial(open_served, recent_s=60.0)) as live:
        key, secret = live.issue("secret")
        for _ in range(2):  # the first writes when the key was used, and so does not keep its row
            assert (await live.identify(secret, origin=None)).status_code == 200
        live.revoke(key)  # past the serving store, as another node or a command would
        assert_error(await live.identify(secret, origin=None), 401, "unauthorized")
        assert len(live.events()) == 2


async def test_requests_that_arrive_together_look_a_key_up_once(directory: Path, monkeypatch: pytest.MonkeyPatch):
    """One round trip for its row, and one that has the organization that the row names as well (ADR 214)."""
    asked, fetch = list[bytes](), PostgresqlStore._fetch  # pyright: ignore[reportPrivateUsage]  to count what it sends

    def fetch_noted(store: PostgresqlStore, rows: Rows, limit: trio.CancelScope) -> Awaitable[Fetched]:
        asked.extend(statement.sql for statement in rows.fetches())
        return fetch(store, rows, limit)

    async with live_service(directory, open_store=partial(open_served, recent_s=60.0)) as live:
        _, secret = live.issue("secret", "production")
        statuses = list[int]()

        async def send(device: int) -> None:
            statuses.append((await live.identify(secret, report(device), origin=None)).status_code)

        monkeypatch.setattr(PostgresqlStore, "_fetch", fetch_noted)
        async with trio.open_nursery() as nursery:
            for device in range(1, 25):
                nursery.start_soon(send, device)
        assert statuses == [200] * 24
        assert 2 <= asked.count(statements.fetch("keys")) <= 4, "who is late may come after the key was marked as used"


async def test_origins_replaced_by_another_node_are_in_force_at_once(directory: Path):
    """Decisions 2.7: whichever node is asked, though this one still has the row with the origins before."""
    async with live_service(directory, open_store=partial(open_served, recent_s=60.0)) as live:
        key, secret = live.issue(environment="production")
        number, added = live.organization.number, "https://added.example"
        for _ in range(2):
            assert (await live.identify(secret)).status_code == 200
        job = partial(replace_origins, number=number, key_id=key.id, allowed_origins=(added,))
        live.found.store.write_now([job])  # past the serving store, as another node or a command would
        assert_error(await live.identify(secret), 401, "unauthorized")
        assert len(live.events()) == 2
        assert (await live.identify(secret, origin=added)).status_code == 200
        assert_error(await live.identify(secret), 401, "unauthorized")


@pytest.mark.usefixtures("engine")
async def test_during_a_database_outage_clients_are_asked_to_retry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is half done, and what was sent again is charged once."""
    monkeypatch.setattr(serving, "GIVE_UP_S", 0.3)
    direct = url_of(tmp_path)
    with CuttingProxy(int(direct.parameters["port"])) as proxy:

        def through_proxy(directory: Path, world: World) -> Opened:
            return open_served(directory, world, serve=url_of(directory, proxy.port))

        async with live_service(tmp_path, open_store=through_proxy) as live:
            _, secret = live.issue("secret", "production")
            headers = {"Idempotency-Key": "one", "x-svc-visitor-ip": "81.2.69.160"}
            send = partial(live.identify, secret, origin=None, headers=headers)
            proxy.cut()
            proxy.cut_after("sent", 0)
            for response in (await send(), await live.client.get("/api/v1/events", headers={"x-api-key": secret})):
                assert_error(response, 503, "service_unavailable")
                assert response.headers["Retry-After"] == "1"
            assert live.events() == []
            proxy.mend()
            assert (await send()).status_code == 200
            again: httpx.Response = await send()
            assert again.json() == {"request_id": live.events()[0][0], "duplicate": True}
