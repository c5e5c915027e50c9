"""One attempt against real TLS receivers on loopback: what is sent, what counts as delivered, what is reused."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from collections.abc import Callable
from email.utils import format_datetime

import httpcore
import pytest
import trio
import trio.testing

from svc.features.webhooks.queues import ENDPOINT_SLOTS
from svc.features.webhooks.records import Attempted
from svc.features.webhooks.transport import connections
from svc.features.webhooks.transport.connections import MAX_BODY_BYTES, MAX_HEAD_BYTES
from svc.features.webhooks.transport.transport import WebhookTransport, retry_after_s
from tests.support.receivers import THANKS, Play, Responder, read_request, receiver, response
from tests.webhook_transport.loopback import HANG_S, NAME, NOW_MS, Authority, Dialed, Names, sending

HEADERS = {"Content-Type": "application/json", "X-Svc-Event-ID": "0197"}


def url(port: int, path: str = "/hooks?from=svc") -> str:
    return f"https://{NAME}:{port}{path}"


async def post(sender: WebhookTransport, to: str, body: bytes = b"{}") -> Attempted:
    with trio.fail_after(HANG_S):
        return await sender.post(to, body, HEADERS, 1)


async def one_attempt(authority: Authority, *responses: bytes) -> Attempted:
    async with receiver(Responder(*responses), authority.server(NAME)) as port, sending(authority, Names()) as sender:
        return await post(sender, url(port))


async def test_the_body_and_the_headers_arrive_unchanged(authority: Authority):
    hears = Responder(THANKS)
    body = '{"name":"Zoë"}'.encode() * 5000
    async with receiver(hears, authority.server(NAME)) as port, sending(authority, Names()) as sender:
        attempted = await post(sender, url(port), body)
    assert (attempted.response_code, attempted.error, attempted.retry_after_s) == (200, None, None)
    (request,) = hears.requests
    assert (request.method, request.target, request.body) == ("POST", "/hooks?from=svc", body)
    assert request.headers == {
        "host": f"{NAME}:{port}",
        "content-length": str(len(body)),
        "content-type": "application/json",
        "x-svc-event-id": "0197",
    }


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("200 OK", None),
        ("202 Accepted", None),
        ("204 No Content", None),
        ("299 Fine", None),
        ("301 Moved Permanently", "redirect"),
        ("307 Temporary Redirect", "redirect"),
        ("399 Elsewhere", "redirect"),
        ("400 Bad Request", "http_status"),
        ("410 Gone", "http_status"),
        ("503 Service Unavailable", "http_status"),
    ],
)
async def test_only_2xx_is_success(authority: Authority, status: str, error: str | None):
    attempted = await one_attempt(authority, response(status))
    assert (attempted.response_code, attempted.error) == (int(status[:3]), error)


async def test_a_redirect_is_not_followed(authority: Authority):
    backend = Dialed()
    hears = Responder(response("302 Found", "Location: /elsewhere"))
    async with receiver(hears, authority.server(NAME)) as port, sending(authority, Names(), backend) as sender:
        attempted = await post(sender, url(port))
    assert attempted.error == "redirect"
    assert len(hears.requests) == len(backend.dials) == 1


async def test_proxy_variables_are_ignored(authority: Authority, monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await one_attempt(authority, THANKS)).error is None


async def test_interim_responses_are_skipped(authority: Authority):
    assert (await one_attempt(authority, b"HTTP/1.1 103 Early Hints\r\n\r\n" + THANKS)).error is None


async def test_a_response_without_a_length_ends_with_the_connection(authority: Authority):
    async def play(stream: trio.abc.Stream) -> None:
        await read_request(stream)
        await stream.send_all(b"HTTP/1.0 200 OK\r\n\r\nfine")

    async with receiver(play, authority.server(NAME)) as port, sending(authority, Names()) as sender:
        assert (await post(sender, url(port))).error is None


def chunked(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def measured(body: bytes) -> bytes:
    return response("200 OK", body=body)


@pytest.mark.parametrize("written", [measured, chunked])
@pytest.mark.parametrize("length", [MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 100_000, 4_000_000])
async def test_a_large_body_is_cut_and_no_failure(authority: Authority, length: int, written: Callable[[bytes], bytes]):
    """Decisions 8.2: the head says that the receiver has the event; nine more attempts would tell it the same."""
    whole = written(b"x" * length)
    backend = Dialed()
    async with (
        receiver(Responder(whole), authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        attempted = await post(sender, url(port))
        assert (attempted.response_code, attempted.error) == (200, None)
        head = whole.index(b"\r\n\r\n") + 4
        assert backend.read - head <= MAX_BODY_BYTES
        assert (await post(sender, url(port))).error is None
    is_read = length == MAX_BODY_BYTES and written is not chunked
    assert len(backend.dials) == (1 if is_read else 2), "what was cut is not used again"


@pytest.mark.parametrize(("surplus", "error"), [(0, None), (1, "response_too_large")], ids=["64 KiB", "a byte more"])
async def test_a_head_may_have_64_kib(authority: Authority, surplus: int, error: str | None):
    """Decisions 8.3."""
    bare = response("200 OK", "X-Large: ")
    head = response("200 OK", f"X-Large: {'y' * (MAX_HEAD_BYTES - len(bare) + surplus)}")
    assert len(head) == MAX_HEAD_BYTES + surplus
    attempted = await one_attempt(authority, head)
    assert (attempted.response_code, attempted.error) == (200 if error is None else None, error)


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 9\r\n\r\nfine",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nfine",
        b"Transfer-Encoding: chunked\r\n\r\nno chunk\r\n",
    ],
)
async def test_a_body_that_ends_too_soon_or_is_no_http_is_no_failure(authority: Authority, body: bytes):
    async def play(stream: trio.abc.Stream) -> None:
        await read_request(stream)
        await stream.send_all(b"HTTP/1.1 200 OK\r\n" + body)

    async with receiver(play, authority.server(NAME)) as port, sending(authority, Names()) as sender:
        attempted = await post(sender, url(port))
    assert (attempted.response_code, attempted.error) == (200, None)


async def test_the_body_of_a_failure_is_not_awaited(authority: Authority):
    cut_short = response("500 Internal Server Error", body=b"x" * 1_000_000)[:200]
    assert (await one_attempt(authority, cut_short)).error == "http_status"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 twohundred THANKS\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_invalid_http_counts_as_a_connection_reset(authority: Authority, nonsense: bytes):
    attempted = await one_attempt(authority, nonsense)
    assert (attempted.response_code, attempted.error) == (None, "connection_reset")


async def test_a_reset_before_the_end_of_the_head_is_a_connection_reset(authority: Authority):
    def resetting(first: bytes):
        async def play(stream: trio.SSLStream[trio.SocketStream]) -> None:
            await read_request(stream)
            await stream.send_all(first)
            stream.transport_stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

        return play

    for first, code, error in (
        (b"HTTP/1.1 2", None, "connection_reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfine", 200, None),
    ):
        async with (
            receiver(resetting(first), authority.server(NAME)) as port,
            sending(authority, Names()) as sender,
        ):
            attempted = await post(sender, url(port))
        assert (attempted.response_code, attempted.error) == (code, error)


async def test_a_closed_port_is_a_connect_error(authority: Authority):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with sending(authority, Names()) as sender:
            attempted = await post(sender, url(taken.getsockname()[1]))
    assert (attempted.response_code, attempted.error) == (None, "connect_error")


async def test_a_name_without_addresses_is_a_dns_error_and_nothing_is_dialed(authority: Authority):
    backend = Dialed()
    async with sending(authority, Names(), backend) as sender:
        attempted = await post(sender, "https://nowhere.test/")
    assert (attempted.error, backend.dials) == ("dns_error", [])


async def test_the_next_address_of_a_name_is_tried_when_one_refuses(authority: Authority):
    backend = Dialed()
    async with receiver(Responder(THANKS), authority.server(NAME)) as port:
        names = Names(**{NAME: ("127.0.0.9", "127.0.0.1")})
        async with sending(authority, names, backend) as sender:
            assert (await post(sender, url(port))).error is None
    assert backend.dials == ["127.0.0.9", "127.0.0.1"]


async def test_a_silent_address_leaves_time_for_the_next(authority: Authority, monkeypatch: pytest.MonkeyPatch):
    class FirstSilent(Dialed):
        async def connect_tcp(self, host: str, port: int, *arguments, **named) -> httpcore.AsyncNetworkStream:
            if host == "127.0.0.9":
                await trio.sleep_forever()
            return await super().connect_tcp(host, port, *arguments, **named)

    monkeypatch.setattr(connections, "DIAL_LIMIT_S", 0.02)
    async with (
        receiver(Responder(THANKS), authority.server(NAME)) as port,
        sending(authority, Names(**{NAME: ("127.0.0.9", "127.0.0.1")}), FirstSilent()) as sender,
    ):
        assert (await post(sender, url(port))).error is None


async def test_the_certificate_must_be_valid_trusted_and_name_the_host(authority: Authority):
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    for served in (
        authority.server("other.test"),
        authority.server(NAME, expires=yesterday),
        Authority().server(NAME),
    ):
        hears = Responder(THANKS)
        async with receiver(hears, served) as port, sending(authority, Names()) as sender:
            attempted = await post(sender, url(port))
        assert (attempted.response_code, attempted.error) == (None, "tls_error")
        assert hears.requests == []


async def test_an_ip_address_url_needs_a_certificate_for_that_address(authority: Authority):
    names = Names(**{"127.0.0.1": ("127.0.0.1",)})
    for served, error in ((authority.server("127.0.0.1"), None), (authority.server(NAME), "tls_error")):
        async with receiver(Responder(THANKS), served) as port, sending(authority, names) as sender:
            assert (await post(sender, f"https://127.0.0.1:{port}/")).error == error


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_receiver_that_demands_a_client_certificate_is_a_tls_error(
    authority: Authority, version: ssl.TLSVersion
):
    """Under TLS 1.3 the alert comes after the client's handshake, in place of a response."""
    served = authority.server(NAME)
    served.minimum_version = served.maximum_version = version
    served.verify_mode = ssl.CERT_REQUIRED

    def refuse(connected: socket.socket) -> None:
        # Of the standard library, since trio's own server hangs up without the alert.
        connected.setblocking(True)
        with connected, pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
            served.wrap_socket(connected, server_side=True)

    async def play(stream: trio.SocketStream) -> None:
        await trio.to_thread.run_sync(refuse, socket.socket(fileno=stream.socket.detach()))

    async with receiver(play, None) as port, sending(authority, Names()) as sender:
        for body in (b"{}", b"{}" * 500_000):
            attempted = await post(sender, url(port), body)
            assert (attempted.response_code, attempted.error) == (None, "tls_error")


async def test_a_damaged_record_in_place_of_the_response_is_a_tls_error(authority: Authority):
    async def play(stream: trio.SSLStream[trio.SocketStream]) -> None:
        await read_request(stream)
        await stream.transport_stream.send_all(b"\x17\x03\x03\x00\x20" + bytes(32))

    async with receiver(play, authority.server(NAME)) as port, sending(authority, Names()) as sender:
        attempted = await post(sender, url(port))
    assert (attempted.response_code, attempted.error) == (None, "tls_error")


async def test_plain_http_behind_an_https_url_is_a_tls_error(authority: Authority):
    async def play(stream: trio.abc.Stream) -> None:
        await stream.receive_some()
        await stream.send_all(response("400 Bad Request"))

    async with receiver(play, None) as port, sending(authority, Names()) as sender:
        assert (await post(sender, url(port))).error == "tls_error"


async def test_a_connection_is_reused_for_the_next_delivery_to_the_same_url(authority: Authority):
    backend, hears = Dialed(), Responder(THANKS)
    async with receiver(hears, authority.server(NAME)) as port, sending(authority, Names(), backend) as sender:
        for _ in range(5):
            assert (await post(sender, url(port))).error is None
        assert (await post(sender, url(port, "/other"))).error is None
    assert len(hears.requests) == 6
    assert len(backend.dials) == hears.connections == 2  # one for each URL


async def responded_at_once(authority: Authority, count: int) -> tuple[int, int]:
    """Twice so many deliveries that are answered together: (arrived, dials)."""
    backend, arrived = Dialed(), []

    async def responds_all_at_once(stream: trio.abc.Stream) -> None:
        while (request := await read_request(stream)) is not None:
            arrived.append(request)
            awaited = count if len(arrived) <= count else 2 * count
            while len(arrived) < awaited:  # noqa: ASYNC110  only until the others were read, on this same loop
                await trio.sleep(0.001)
            await stream.send_all(THANKS)

    async with (
        receiver(responds_all_at_once, authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(count):
                    nursery.start_soon(post, sender, url(port))
    return len(arrived), len(backend.dials)


async def test_at_most_as_many_connections_are_kept_per_url_as_it_has_deliveries_in_flight(
    authority: Authority,
):
    assert await responded_at_once(authority, ENDPOINT_SLOTS) == (2 * ENDPOINT_SLOTS, ENDPOINT_SLOTS)
    assert await responded_at_once(authority, ENDPOINT_SLOTS + 3) == (2 * ENDPOINT_SLOTS + 6, ENDPOINT_SLOTS + 6)


async def test_headers_and_body_are_sent_in_one_write(authority: Authority):
    backend = Dialed()
    async with (
        receiver(Responder(THANKS), authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        for _ in range(3):
            assert (await post(sender, url(port), b"x" * 4000)).error is None
    assert backend.writes == 3


async def test_an_idle_connection_is_not_kept_past_its_timeout(authority: Authority, monkeypatch: pytest.MonkeyPatch):
    backend = Dialed()
    async with (
        receiver(Responder(THANKS), authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        await post(sender, url(port))
        monkeypatch.setattr(connections, "IDLE_LIMIT_S", 0)
        await post(sender, url(port))
    assert len(backend.dials) == 2


async def test_a_persistent_connection_is_not_used_for_another_address_of_the_name(authority: Authority):
    backend = Dialed()
    names = Names(**{NAME: [("127.0.0.1",), ("127.0.0.2",), ("127.0.0.1",)]})
    async with receiver(Responder(THANKS), authority.server(NAME)) as port:
        backend = Dialed(leading_to=port)
        async with sending(authority, names, backend) as sender:
            for _ in range(3):
                assert (await post(sender, url(port))).error is None
    assert backend.dials == ["127.0.0.1", "127.0.0.2"]


async def responds_once(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    await stream.send_all(THANKS)


async def responds_once_and_hangs_up_on_the_next(stream: trio.abc.Stream) -> None:
    await responds_once(stream)
    await read_request(stream)


async def responds_once_and_then_unasked(stream: trio.abc.Stream) -> None:
    await responds_once(stream)
    await stream.send_all(response("408 Request Timeout", "Connection: close"))


@pytest.mark.parametrize(
    "play", [responds_once, responds_once_and_hangs_up_on_the_next, responds_once_and_then_unasked]
)
async def test_a_dead_persistent_connection_is_replaced_within_the_attempt(authority: Authority, play: Play):
    backend = Dialed()
    async with (
        receiver(play, authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        for _ in range(3):
            attempted = await post(sender, url(port))
            assert (attempted.response_code, attempted.error) == (200, None)
            await trio.testing.wait_all_tasks_blocked()
    assert len(backend.dials) == 3


async def test_a_persistent_connection_that_dies_within_the_response_is_a_failure(authority: Authority):
    async def breaks_the_second(stream: trio.abc.Stream) -> None:
        await read_request(stream)
        await stream.send_all(THANKS)
        await read_request(stream)
        await stream.send_all(b"HTTP/1.1 200")

    backend = Dialed()
    async with (
        receiver(breaks_the_second, authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        assert [(await post(sender, url(port))).error for _ in range(2)] == [None, "connection_reset"]
    assert len(backend.dials) == 1


async def test_a_receiver_that_sends_connection_close_is_dialed_again(authority: Authority):
    backend = Dialed()
    async with (
        receiver(Responder(response("200 OK", "Connection: close")), authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        assert [(await post(sender, url(port))).error for _ in range(2)] == [None, None]
    assert len(backend.dials) == 2


async def test_retry_after_is_passed_on_with_a_failure(authority: Authority):
    attempted = await one_attempt(authority, response("429 Too Many Requests", "retry-after: 120"))
    assert (attempted.error, attempted.retry_after_s) == ("http_status", 120)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 7 ", 7),
        (format_datetime(dt.datetime(2026, 1, 1, 0, 2, tzinfo=dt.UTC), usegmt=True), 120),
        ("Thu, 01 Jan 2026 00:00:30 -0000", 30),
        ("Thursday, 01-Jan-26 00:01:00 GMT", 60),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("99999999999999999999", None),
        ("Thu, 01 Jan 99999999999 00:00:00 GMT", None),
        ("٣", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(value: str, seconds: int | None):
    assert retry_after_s([(b"Server", b"x"), (b"Retry-After", value.encode())], NOW_MS) == seconds


def test_without_the_header_there_is_no_retry_delay():
    assert retry_after_s([(b"Server", b"x")], NOW_MS) is None
