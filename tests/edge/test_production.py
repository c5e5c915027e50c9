"""The edge in front of the production service: shapes of the other files, answered by the exchange and the pipeline.

The other files of this folder use small applications to look at one thing at a time. Here no part is another than in
production; many shapes share one service, since starting it takes longer than asking it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio

from tests.edge.test_framing import AMBIGUOUS, AMBIGUOUS_BODIES, CHUNKED, ENCLOSED, SOUND, framed
from tests.edge.world import HANG_S, Client, get
from tests.spec.responses import nothing_stored
from tests.support.live import ORIGIN, Live, live_service, report
from tests.support.worlds import HeldThreads

IDENTIFY = b"POST /api/v1/identify HTTP/1.1"
NEVER_SERVED = "getReadiness"
"""The operation behind the path that hides in other requests."""


class Production:
    """A running service, and what has reached it."""

    def __init__(self, live: Live) -> None:
        self.live = live
        _, secret = live.issue()
        self.fields = (
            b"X-Api-Key: " + secret.encode(),
            b"Origin: " + ORIGIN.encode(),
            b"Content-Type: application/json",
        )

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client, None]:
        client = Client(await trio.open_tcp_stream("127.0.0.1", self.live.port))
        try:
            yield client
        finally:
            client.close()

    def served(self) -> dict[str, int]:
        """How many requests have reached each operation."""
        counts: dict[str, int] = {}
        for finished, count in self.live.service.traffic.statistics().requests.items():
            counts[finished.operation_id] = counts.get(finished.operation_id, 0) + count
        return counts

    def here(self, request: bytes) -> bytes:
        """A request to the small application as one to the service. What is hidden in it keeps its length."""
        for there, here in (
            (b"/echo", b"/api/v1/identify"),
            (b"/hello", b"/healthz"),
            (b"/hidden", b"/readyz"),
            (b"/unauthorized", b"/api/v1/management/key"),
            (b"Content-Length: 999999\r", b"Content-Length: 9999999\r"),
        ):
            request = request.replace(there, here)
        return request

    def keyed(self, request: bytes) -> bytes:
        """The same with a valid key, so that the body is read."""
        first, _, rest = self.here(request).partition(b"\r\n")
        return b"\r\n".join((first, *self.fields, rest))

    def identify(self, body: bytes, *fields: bytes) -> bytes:
        return framed(b"Content-Length: %d" % len(body), *self.fields, *fields, body=body, first=IDENTIFY)


@pytest.fixture
async def production(tmp_path: Path) -> AsyncGenerator[Production, None]:
    with trio.fail_after(3 * HANG_S):
        async with live_service(tmp_path) as live:
            yield Production(live)


def visit(device: int) -> bytes:
    return msgspec.json.encode({"sdk": {"platform": "web"}, "signals": report(device)})


async def test_an_ambiguous_head_gets_one_400_and_nothing_is_served(production: Production) -> None:
    for name, shape in AMBIGUOUS.items():
        async with production.client() as client:
            response = await client.ask(production.here(shape), get("/readyz"))
            assert (response.status, response.error["code"], response.closes) == (400, "bad_request", True), name
            await client.ended()
        assert production.served() == {}, name


async def test_an_ambiguous_body_gets_one_400_and_nothing_of_it_is_stored(production: Production) -> None:
    with nothing_stored(production.live):
        for name, body in AMBIGUOUS_BODIES.items():
            async with production.client() as client:
                shape = framed(CHUNKED, *production.fields, body=body, first=IDENTIFY)
                response = await client.ask(production.here(shape), get("/readyz"))
                assert (response.status, response.error["code"], response.closes) == (400, "bad_request", True), name
                await client.ended()
            assert NEVER_SERVED not in production.served(), name


async def test_a_request_inside_another_is_never_served(production: Production) -> None:
    for name, (sent, responses, are_last) in ENCLOSED.items():
        before = sum(production.served().values())
        async with production.client() as client:
            last = b"" if are_last else get("/healthz", b"Connection: close")
            await client.send(production.keyed(sent), last)
            assert (await client.rest()).count(b"HTTP/1.1 ") == responses + (not are_last), name
        assert sum(production.served().values()) - before == (1 if are_last else 2), name
        assert NEVER_SERVED not in production.served(), name


@pytest.mark.parametrize("step", [1, 1_000])
async def test_a_valid_request_is_served_however_it_is_split_into_packets(production: Production, step: int) -> None:
    for name, shape in SOUND.items():
        request = production.keyed(shape).replace(b"/identify?a=http://b/", b"/identify")
        async with production.client() as client:
            for _ in range(2):
                for start in range(0, len(request), step):
                    await client.send(request[start : start + step])
                response = await client.response()
                assert (response.status, response.error["details"][0]["issue"]) == (422, "malformed_json"), name
                assert not response.closes, name


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (b"POST /api/v1/identify HTTP/1.1", 413),
        (b"POST /api/v1/attestation/challenge HTTP/1.1", 413),
        (b"POST /api/v1/events HTTP/1.1", 405),
        (b"GET /api/v1/events HTTP/1.1", 401),
        (b"POST /nowhere HTTP/1.1", 404),
    ],
)
async def test_an_early_response_with_an_unread_body_is_the_last_one(
    production: Production, first: bytes, status: int
) -> None:
    for sent in (b"begun", b"x" * 2_000_000):
        async with production.client() as client:
            head = framed(b"Content-Length: 2000000", *production.fields, first=first)
            response = await client.ask(head, sent)
            assert (response.status, response.closes) == (status, True)
            await client.ended()


async def test_pipelined_identifications_get_responses_in_order(production: Production) -> None:
    async with production.client() as client:
        await client.send(*(production.identify(visit(device)) for device in range(5)), get("/healthz"))
        responses = [await client.response() for _ in range(6)]
    assert [response.status for response in responses] == [200] * 6
    told = [msgspec.json.decode(response.body)["request_id"] for response in responses[:5]]
    assert told == [request_id for request_id, _ in production.live.events()]


async def test_the_body_is_requested_only_after_the_key_is_valid(production: Production) -> None:
    body = visit(1)
    expecting = (b"Content-Length: %d" % len(body), b"Expect: 100-continue")
    async with production.client() as client:
        assert (await client.ask(framed(*expecting, *production.fields, first=IDENTIFY))).status == 100
        assert (await client.ask(body)).status == 200
        refused = await client.ask(framed(*expecting, b"Content-Type: application/json", first=IDENTIFY))
        assert (refused.status, refused.closes) == (401, True)
        await client.ended()


async def test_a_client_that_disconnects_within_its_body_stores_nothing(production: Production) -> None:
    whole = production.identify(visit(1))
    with nothing_stored(production.live):
        async with production.client() as client:
            await client.send(whole[:-1])
            await client.stream.send_eof()  # type: ignore[union-attr]
            assert (await client.response()).status == 400
            await client.ended()


async def test_a_full_edge_evicts_a_silent_connection_and_not_a_served_one(tmp_path: Path) -> None:
    threads = HeldThreads()
    with trio.fail_after(HANG_S):
        async with live_service(tmp_path, run_sync=threads, max_connections=2) as live:
            production = Production(live)
            async with production.client() as served, production.client() as silent:
                threads.hold()
                await served.send(production.identify(visit(1)))
                while not threads.waiting:  # noqa: ASYNC110  it has no event of its own
                    await trio.sleep(0.001)
                async with production.client() as other:
                    assert (await other.ask(get("/healthz"))).status == 200
                    await silent.ended()
                    threads.release()
                    assert (await served.response()).status == 200
