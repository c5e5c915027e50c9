"""What the edge promises to clients and to the operator, on raw sockets.

Framing, and what happens when there is no capacity for more connections, have files of their own.
"""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from svc.http.server.listening import PlainListener, open_sockets
from svc.http.server.messages import Reply, Request
from svc.http.server.server import open_listeners
from tests.edge.world import JUMPS_S, Client, Running, get, post, running_edge, whole

HUGE = b"Content-Length: 1000000"


# 1. Recycling: a connection lives on after an answer, idles out, and does not hold up a shutdown


async def test_a_connection_serves_many_requests_in_sequence() -> None:
    async with running_edge() as world:
        client = await world.connect()
        for number in range(20):
            body = b"%d" % number
            assert (await client.ask(post("/echo", body))).body == body
        assert world.edge.statistics().connections_accepted == 1


@pytest.mark.usefixtures("jumping_clock")
async def test_an_idle_connection_is_closed_after_the_keep_alive_timeout() -> None:
    async with running_edge(keep_alive_timeout_s=0.2) as world:
        client = await world.connect()
        assert (await client.ask(get("/hello"))).status == 200
        await client.ended()
        assert world.edge.statistics().connections_closed_idle == 1


@pytest.mark.usefixtures("jumping_clock")
async def test_a_new_silent_connection_is_closed_after_the_request_timeout() -> None:
    async with running_edge(request_timeout_s=0.2) as world:
        await (await world.connect()).ended()


async def test_the_timeouts_use_the_trio_clock(mock_clock: MockClock) -> None:
    async with running_edge(hang_s=JUMPS_S) as world:
        client = await world.connect()
        assert (await client.ask(get("/hello"))).status == 200
        mock_clock.jump(59)
        assert (await client.ask(get("/hello"))).status == 200
        mock_clock.jump(61)
        await client.ended()


async def test_a_shutdown_closes_idle_connections_at_once() -> None:
    async with running_edge(drain_timeout_s=60) as world:
        silent, used = await world.connect(), await world.connect()
        assert (await used.ask(get("/hello"))).status == 200
        await world.until(lambda: world.edge.statistics().connections_open == 2)
        world.shutdown.set()
        await world.returned.wait()
        await silent.ended()
        await used.ended()


async def test_a_handler_continues_after_its_response() -> None:
    finished = trio.Event()

    async def app(_: Request, reply: Reply) -> None:
        await whole(reply, 200, b"")
        await trio.lowlevel.checkpoint()
        finished.set()

    async with running_edge(app) as world:
        client = await world.connect()
        assert (await client.ask(get("/", b"Connection: close"))).status == 200
        await finished.wait()
        await client.ended()


# 2. Early answers, slow clients


@pytest.mark.parametrize(("path", "status"), [("/unauthorized", 401), ("/echo", 413), ("/nowhere", 404)])
async def test_an_early_response_with_an_unread_body_is_the_last_one(path: str, status: int) -> None:
    async with running_edge(max_body_bytes=1_000) as world:
        client = await world.connect()
        response = await client.ask(b"POST %s HTTP/1.1\r\nHost: a\r\n%s\r\n\r\nbegun" % (path.encode(), HUGE))
        assert (response.status, response.closes) == (status, True)
        await client.ended()


async def test_an_early_response_reaches_a_client_that_sends_its_whole_body_first() -> None:
    async with running_edge(max_body_bytes=1_000) as world:
        client = await world.connect()
        response = await client.ask(post("/echo", b"x" * 1_500_000))
        assert (response.status, response.closes) == (413, True)
        await client.ended()


@pytest.mark.slow
async def test_a_client_that_never_stops_sending_is_read_for_a_bounded_time() -> None:
    async with running_edge(linger_timeout_s=0.2, linger_bytes=1 << 40) as world:
        client = await world.connect()
        response = await client.ask(b"POST /unauthorized HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n")
        assert response.status == 401
        with pytest.raises(trio.BrokenResourceError):
            await _send_without_end(client)


async def test_a_client_that_never_stops_sending_is_read_for_a_bounded_number_of_bytes() -> None:
    async with running_edge(linger_timeout_s=60, linger_bytes=100_000) as world:
        client = await world.connect()
        response = await client.ask(b"POST /unauthorized HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n")
        assert response.status == 401
        with pytest.raises(trio.BrokenResourceError):
            await _send_without_end(client)


@pytest.mark.usefixtures("jumping_clock")
async def test_a_client_that_does_not_read_its_response_is_cut_off() -> None:
    async with running_edge(write_timeout_s=0.2) as world:
        client = await world.connect()
        await client.send(get("/large"))
        await world.until(lambda: world.edge.statistics().connections_cut_writing == 1)
        await world.until(lambda: world.edge.statistics().connections_open == 0)
        with pytest.raises(trio.BrokenResourceError):
            await client.rest()


@pytest.mark.slow
@pytest.mark.usefixtures("jumping_clock")
async def test_a_slow_client_that_keeps_reading_gets_all_of_a_large_response() -> None:
    async with running_edge(write_timeout_s=0.5) as world:
        client = await world.connect()
        await client.send(get("/large"))
        began = trio.current_time()
        for _ in range(16):
            # A rest after each mebibyte, not after each read: how much a read returns is up to the kernel.
            received = 0
            while received < 1 << 20:
                received += len(await client.stream.receive_some((1 << 20) - received))
            await trio.sleep(0.2)
        assert trio.current_time() - began > 0.5, "the whole answer took longer than one write may"


@pytest.mark.usefixtures("jumping_clock")
async def test_a_client_that_never_reads_does_not_delay_a_shutdown() -> None:
    async with running_edge(write_timeout_s=60, drain_timeout_s=0.2) as world:
        client = await world.connect()
        await client.send(get("/large"))
        assert await client.stream.receive_some(1) == b"H"
        world.shutdown.set()
        await world.returned.wait()


@pytest.mark.usefixtures("jumping_clock")
@pytest.mark.slow(0.3)
async def test_a_slow_request_gets_a_408_at_its_timeout() -> None:
    async with running_edge(request_timeout_s=0.3) as world:
        client = await world.connect()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_trickle, client, get("/hello", b"X-Long: " + b"x" * 1_000))
            response = await client.response()
            nursery.cancel_scope.cancel()
        assert (response.status, response.error["code"], response.closes) == (408, "request_timeout", True)
        await client.ended()
        assert world.edge.statistics().connections_cut_reading == 1
        assert world.handlers.paths == []


@pytest.mark.usefixtures("jumping_clock")
@pytest.mark.slow(0.3)
async def test_an_incomplete_body_gets_a_408_from_the_edge_after_a_grace_period() -> None:
    async with running_edge(request_timeout_s=0.2, body_grace_s=0.1) as world:
        client = await world.connect()
        response = await client.ask(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        assert (response.status, response.error["code"], response.closes) == (408, "request_timeout", True)
        await client.ended()
        assert world.handlers.bodies == []


@pytest.mark.usefixtures("jumping_clock")
async def test_a_handler_that_gives_up_on_a_body_responds_before_the_edge() -> None:
    async with running_edge(request_timeout_s=0.2, body_grace_s=1) as world:
        client = await world.connect()
        response = await client.ask(b"POST /patient HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        assert (response.status, response.body, response.closes) == (408, b"told by the application", True)
        await client.ended()


@pytest.mark.usefixtures("jumping_clock")
@pytest.mark.slow(0.4)
async def test_a_handler_may_run_longer_than_the_request_timeout() -> None:
    async with running_edge(request_timeout_s=0.1, body_grace_s=0.1, keep_alive_timeout_s=0.1) as world:
        client = await world.connect()
        await client.send(post("/slow", b"whole"))
        await world.handlers.started.wait()
        with trio.move_on_after(0.4):
            await world.handlers.cancelled.wait()
        world.handlers.release.set()
        assert (await client.response()).body == b"done"


# 3. The end of the server


async def test_a_running_request_is_finished_during_the_drain() -> None:
    async with running_edge(drain_timeout_s=60) as world:
        client = await world.connect()
        await client.send(get("/slow"))
        await world.handlers.started.wait()
        world.shutdown.set()
        await _refuses_connections(world)
        world.handlers.release.set()
        response = await client.response()
        assert (response.status, response.body, response.closes) == (200, b"done", True)
        await client.ended()
        await world.returned.wait()


@pytest.mark.usefixtures("jumping_clock")
@pytest.mark.parametrize(
    ("half", "rest", "status"),
    [
        (b"GET /hello HTTP/1.1\r\nHost: ", b"a\r\n\r\n", 200),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", b"gotten", 200),
        (b"GET /hello HTTP/1.1\r\nHost: ", b"a", 408),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", b"got", 408),
    ],
)
@pytest.mark.slow(0.3)
async def test_a_request_still_arriving_has_a_short_time_in_the_drain(half: bytes, rest: bytes, status: int) -> None:
    async with running_edge(drain_timeout_s=60, drain_patience_s=0.3, body_grace_s=0) as world:
        client = await world.connect()
        await client.send(half)
        await wait_all_tasks_blocked(0.01)
        world.shutdown.set()
        await _refuses_connections(world)
        await client.send(rest)
        response = await client.response()
        assert (response.status, response.closes) == (status, True)
        await client.ended()
        await world.returned.wait()


@pytest.mark.usefixtures("jumping_clock")
async def test_the_drain_is_ended_by_force_at_its_timeout() -> None:
    async with running_edge(drain_timeout_s=0.2) as world:
        client = await world.connect()
        await client.send(get("/slow"))
        await world.handlers.started.wait()
        world.shutdown.set()
        await world.returned.wait()
        assert world.handlers.cancelled.is_set()
        await client.ended()


# 4. Clients that leave


@pytest.mark.slow
async def test_a_disconnect_cancels_the_handler_at_once() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(post("/slow", b"whole"))
        await world.handlers.started.wait()
        client.close()
        await world.handlers.cancelled.wait()
        await world.until(lambda: world.edge.statistics().connections_open == 0)


async def test_a_disconnect_within_the_body_never_gives_the_handler_a_truncated_body() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        await world.until(lambda: world.handlers.paths == ["/echo"])
        client.close()
        await world.until(lambda: world.edge.statistics().connections_open == 0)
        assert world.handlers.bodies == []


async def test_an_incomplete_request_gets_a_400_when_the_client_closes_its_sending_side() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        await client.stream.send_eof()
        assert (await client.response()).status == 400
        await client.ended()


async def test_a_started_response_is_delivered_to_a_client_that_closed_its_sending_side() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(get("/large"))
        assert await client.stream.receive_some(1) == b"H"
        await client.stream.send_eof()
        assert len(await client.rest()) > 16 << 20


# 5. Being a good HTTP/1.1 server


async def test_pipelined_requests_get_responses_in_order() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(*(post("/echo", b"%d" % number) for number in range(10)), get("/hello"))
        assert [(await client.response()).body for _ in range(11)] == [b"%d" % n for n in range(10)] + [b"hello"]


async def test_a_pipelined_request_waits_for_the_running_one() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(get("/slow"), post("/echo", b"second"))
        await world.handlers.started.wait()
        await client.send(get("/hello"))
        world.handlers.release.set()
        assert [(await client.response()).body for _ in range(3)] == [b"done", b"second", b"hello"]


async def test_the_body_is_requested_with_100_continue_when_the_handler_reads_it() -> None:
    async with running_edge() as world:
        client = await world.connect()
        head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        assert (await client.ask(head)).status == 100
        assert (await client.ask(b"body")).body == b"body"
        assert (await client.ask(get("/hello"))).status == 200


@pytest.mark.parametrize(("path", "status"), [("/unauthorized", 401), ("/echo", 413)])
async def test_the_body_of_a_request_refused_early_is_never_requested(path: str, status: int) -> None:
    async with running_edge(max_body_bytes=1_000) as world:
        client = await world.connect()
        head = b"POST %s HTTP/1.1\r\nHost: a\r\n%s\r\nExpect: 100-continue\r\n\r\n" % (path.encode(), HUGE)
        response = await client.ask(head)
        assert (response.status, response.closes) == (status, True)
        await client.ended()


@pytest.mark.parametrize("upgrade", [b"h2c", b"websocket"])
async def test_an_upgrade_offer_gets_a_plain_http_response(upgrade: bytes) -> None:
    fields = [
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: " + upgrade,
        b"HTTP2-Settings: AAMAAABkAAQAAP__",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        b"Sec-WebSocket-Version: 13",
    ]
    async with running_edge() as world:
        client = await world.connect()
        for _ in range(2):
            response = await client.ask(get("/hello", *fields))
            assert (response.status, response.body) == (200, b"hello")


async def test_http_1_0_gets_a_response_and_is_closed() -> None:
    async with running_edge() as world:
        client = await world.connect()
        response = await client.ask(b"GET /hello HTTP/1.0\r\n\r\n")
        assert (response.status, response.body, response.closes) == (200, b"hello", True)
        await client.ended()


async def test_the_client_decides_whether_the_connection_is_closed() -> None:
    async with running_edge() as world:
        client = await world.connect()
        assert (await client.ask(get("/hello", b"Connection: close"))).closes
        await client.ended()


async def test_head_gets_a_response_without_a_body() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(b"HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n")
        response = await client.response(to_head=True)
        assert (response.status, response.headers["content-length"]) == (200, "5")
        assert (await client.ask(get("/hello"))).body == b"hello"


async def test_a_large_body_arrives_complete() -> None:
    body = bytes(range(256)) * 4_000
    async with running_edge() as world:
        client = await world.connect()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, post("/echo", body))
            assert (await client.response()).body == body
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"one", b"two" * 1_000, b"three"))
        head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await client.ask(head, chunks, b"0\r\n\r\n")).body == b"one" + b"two" * 1_000 + b"three"


async def test_a_chunked_body_over_the_limit_gets_a_413() -> None:
    async with running_edge(max_body_bytes=1_000) as world:
        client = await world.connect()
        head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        response = await client.ask(head, b"7d0\r\n%s\r\n" % (b"x" * 2_000))
        assert (response.status, response.closes) == (413, True)
        await client.ended()


async def test_the_parts_of_a_streamed_response_are_sent_as_they_come() -> None:
    async with running_edge() as world:
        client = await world.connect()
        await client.send(get("/stream"))
        begun = b""
        while b"one " not in begun:
            begun += await client.stream.receive_some()
        world.handlers.release.set()
        while not begun.endswith(b"two\r\n0\r\n\r\n"):
            begun += await client.stream.receive_some()


async def test_the_application_sees_the_peer_address() -> None:
    async with running_edge() as world:
        client = await world.connect()
        assert isinstance(client.stream, trio.SocketStream)
        address = list(client.stream.socket.getsockname())
        response = await client.ask(get("/peer", b"X-Forwarded-For: 203.0.113.9", b"Forwarded: for=203.0.113.9"))
        assert json.loads(response.body) == address


async def test_a_response_has_a_date_and_does_not_name_the_server() -> None:
    async with running_edge() as world:
        for request in (get("/hello"), b"nonsense\r\n\r\n"):
            response = await (await world.connect()).ask(request)
            assert response.fields.count("date") == 1
            assert "server" not in response.fields


# 6. Answers of the edge itself, and what is said about faults


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [(b"nonsense\r\n\r\n", 400, "bad_request"), (get("/", b"X: " + b"x" * 20_000), 431, "header_fields_too_large")],
)
async def test_the_responses_of_the_edge_have_the_error_body(request_bytes: bytes, status: int, code: str) -> None:
    async with running_edge() as world:
        client = await world.connect()
        response = await client.ask(request_bytes)
        assert response.status == status
        assert response.error == {"code": code, "message": "Mend it.", "status": status}
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-request-id"] == "the-request-id"
        assert response.closes
        await client.ended()
        assert world.edge.statistics().requests_malformed == 1


@pytest.mark.slow
async def test_client_errors_are_not_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running_edge() as world:
        for request in (b"\x16\x03\x01\x02\x00", b"nonsense\r\n\r\n", get("/hello", b"X : y")):
            client = await world.connect()
            assert (await client.ask(request)).status == 400
            await client.ended()
        leaver = await world.connect()
        await leaver.send(get("/slow"))
        await world.handlers.started.wait()
        leaver.close()
        await world.until(lambda: world.edge.statistics().connections_open == 0)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


async def test_an_application_error_is_logged_and_gets_a_response_and_the_server_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(request: Request, _: Reply) -> None:
        if request.path == b"/group":
            raise ExceptionGroup("several", [ValueError("a fault of ours")])
        if request.path == b"/nothing":
            return
        raise ValueError("a fault of ours")

    async with running_edge(app) as world:
        for path in ("/one", "/group", "/nothing"):
            client = await world.connect()
            response = await client.ask(get(path))
            assert (response.status, response.error["code"], response.closes) == (500, "internal_error", True)
            await client.ended()
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


def begin(reply: Reply, name: Any = b"content-length", value: bytes = b"2") -> None:
    reply.begin(200, [(name, value)])


async def ends_with(reply: Reply, body: bytes) -> None:
    begin(reply)
    await reply.end(body)


async def two_heads(reply: Reply) -> None:
    begin(reply)
    begin(reply)


async def two_lines(reply: Reply) -> None:
    begin(reply, b"x", b"a\r\nb: c")


BAD_APPLICATIONS: dict[str, tuple[Callable[[Reply], Awaitable[None]], int | None]] = {
    # name: what it does, the status that the client sees
    "a body before its head": (lambda reply: reply.send(b"ok"), 500),
    "a field in two lines": (two_lines, 500),
    "two heads": (two_heads, None),
    "more than it says": (lambda reply: ends_with(reply, b"okay"), None),
    "less than it says": (lambda reply: ends_with(reply, b"o"), None),
}


@pytest.mark.parametrize(("respond", "status"), BAD_APPLICATIONS.values(), ids=BAD_APPLICATIONS.keys())
async def test_an_application_that_responds_wrongly_is_logged_and_its_connection_closed(
    caplog: pytest.LogCaptureFixture, respond: Callable[[Reply], Awaitable[None]], status: int | None
) -> None:
    async def app(_: Request, reply: Reply) -> None:
        await respond(reply)

    async with running_edge(app) as world:
        client = await world.connect()
        await client.send(get("/"))
        if status is not None:
            assert (await client.response()).status == status
        await client.ended()
    assert ["ResponseError" in (record.exc_text or "") for record in caplog.records] == [True]


@pytest.mark.parametrize("rest", [b"nonsense\r\n", None])
async def test_a_handler_with_a_started_response_is_notified_of_a_truncated_body(
    rest: bytes | None,
) -> None:
    async def app(request: Request, reply: Reply) -> None:
        reply.begin(200, [(b"content-length", b"3")])
        await reply.send(b"on")
        while await request.body.receive() is not None:
            pass
        await reply.end(b"e")

    async with running_edge(app) as world:
        client = await world.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        while (await client.stream.receive_some())[-2:] != b"on":
            pass
        if rest is None:
            assert isinstance(client.stream, trio.SocketStream)
            await client.stream.send_eof()
        else:
            await client.send(rest)
        assert await client.rest() == b"e"


# 7. Listening


async def test_tls_speaks_http_1_1_only(tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server_context, client_context = tls_contexts
    client_context.set_alpn_protocols(["h2", "http/1.1"])
    async with running_edge(ssl_context=server_context) as world:
        client = await world.connect(client_context)
        assert (await client.ask(get("/hello"))).body == b"hello"
        assert isinstance(client.stream, trio.SSLStream)
        assert client.stream.selected_alpn_protocol() == "http/1.1"
        early = b"POST /unauthorized HTTP/1.1\r\nHost: a\r\n%s\r\n\r\nbegun" % HUGE
        assert (await client.ask(early)).status == 401
        await client.ended()


@pytest.mark.usefixtures("jumping_clock")
async def test_a_missing_tls_handshake_times_out(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with running_edge(ssl_context=tls_contexts[0], request_timeout_s=0.2) as world:
        await (await world.connect()).ended()
        assert world.edge.statistics().connections_cut_reading == 1


@pytest.mark.parametrize("bind", ["localhost", "127.0.0.1:", "::1:80", "127.0.0.1:http", "127.0.0.1:65536", "[]:80"])
def test_a_malformed_bind_address_is_rejected_with_an_example(bind: str) -> None:
    with pytest.raises(ValueError, match="Write for example"):
        open_sockets(bind, 1)


@pytest.mark.parametrize("bind", ["127.0.0.1:0", "localhost:0", "[::1]:0", ":0"])
async def test_listeners_are_opened_on_host_and_port(bind: str) -> None:
    for listener in open_listeners(open_sockets(bind, 1)):
        assert isinstance(listener, PlainListener)
        assert listener.socket.getsockname()[1] > 0
        await listener.aclose()


async def _trickle(client: Client, request: bytes) -> None:
    for position in range(len(request)):
        await client.send(request[position : position + 1])
        await trio.sleep(0.1)


async def _send_without_end(client: Client) -> None:
    while True:
        await client.send(b"x" * 1_000)


async def _refuses_connections(world: Running) -> None:
    while True:
        try:
            (await world.connect()).close()
        except OSError:
            return
        await trio.sleep(0.005)
