"""An attempt ends within its deadline and its memory, whatever the receiver does (reliability R7)."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from svc.features.webhooks.transport.connections import MAX_BODY_BYTES, MAX_HEAD_BYTES
from tests.support.receivers import HOSTILE, THANKS, Play, Responder, after_a_request, never_reads, once, receiver
from tests.webhook_transport.loopback import HANG_S, NAME, Authority, Dialed, Names, sending

pytestmark = pytest.mark.slow

DEADLINE_S = 0.3
LARGE = b'{"padding":"' + b"p" * 8_000_000 + b'"}'
"""More than the sockets' buffers take: it is only sent when the receiver reads."""


@pytest.mark.parametrize("play", [HOSTILE["drips headers"], HOSTILE["never responds"], never_reads])
async def test_a_slow_receiver_is_cut_off_at_the_deadline(authority: Authority, play: Play):
    async with (
        receiver(play, authority.server(NAME)) as port,
        sending(authority, Names(), deadline_s=DEADLINE_S) as sender,
    ):
        with trio.fail_after(HANG_S):
            attempted = await sender.post(f"https://{NAME}:{port}/", LARGE, {}, 1)
    assert (attempted.response_code, attempted.error) == (None, "timeout")
    assert attempted.duration_ms >= DEADLINE_S * 1000 - 1


async def test_a_status_that_arrived_before_the_deadline_is_reported(authority: Authority, mock_clock: MockClock):
    """The clock stands still until the status has arrived, however busy the machine is."""
    dialed = Dialed()
    play = after_a_request(once(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nx"))

    async def reach_the_deadline() -> None:
        while not dialed.read:
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        mock_clock.jump(DEADLINE_S)

    async with (
        receiver(play, authority.server(NAME)) as port,
        sending(authority, Names(), dialed, deadline_s=DEADLINE_S) as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(reach_the_deadline)
        attempted = await sender.post(f"https://{NAME}:{port}/", LARGE, {}, 1)
    assert (attempted.response_code, attempted.error) == (200, None)
    assert attempted.duration_ms == DEADLINE_S * 1000


async def test_a_receiver_that_stalls_the_handshake_is_cut_off_at_the_deadline(authority: Authority):
    async with (
        receiver(never_reads, None) as port,
        sending(authority, Names(), deadline_s=DEADLINE_S) as sender,
    ):
        with trio.fail_after(HANG_S):
            assert (await sender.post(f"https://{NAME}:{port}/", b"{}", {}, 1)).error == "timeout"


async def test_a_receiver_that_never_accepts_is_cut_off_at_the_deadline(authority: Authority):
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=1)
    async with listener, sending(authority, Names(), deadline_s=DEADLINE_S) as sender:
        port = listener.socket.getsockname()[1]
        outcomes = []

        async def attempt() -> None:
            outcomes.append((await sender.post(f"https://{NAME}:{port}/", b"{}", {}, 1)).error)

        with trio.fail_after(HANG_S):
            async with trio.open_nursery() as nursery:
                for _ in range(6):  # the first fill the queue of the socket, the rest are not even connected
                    nursery.start_soon(attempt)
    assert outcomes == ["timeout"] * 6


async def test_a_silent_resolver_is_cut_off_at_the_deadline(authority: Authority):
    async def resolve(_host: str, _organization: int) -> tuple[str, ...]:
        await trio.sleep_forever()
        raise AssertionError

    async with sending(authority, resolve, deadline_s=DEADLINE_S) as sender:
        with trio.fail_after(HANG_S):
            assert (await sender.post(f"https://{NAME}/", b"{}", {}, 1)).error == "timeout"


@pytest.mark.parametrize("play", ["1 MB of headers", "100,000 headers", "interim answers for ever"])
async def test_oversized_headers_are_rejected_and_not_read(authority: Authority, play: str):
    backend = Dialed()
    async with receiver(HOSTILE[play], authority.server(NAME)) as port, sending(authority, Names(), backend) as sender:
        with trio.fail_after(HANG_S):
            attempted = await sender.post(f"https://{NAME}:{port}/", b"{}", {}, 1)
    assert (attempted.response_code, attempted.error) == (None, "response_too_large")
    assert backend.read == MAX_HEAD_BYTES


async def test_an_endless_body_is_cut_and_the_delivery_made(authority: Authority):
    backend = Dialed()
    async with (
        receiver(HOSTILE["a body without end"], authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        with trio.fail_after(HANG_S):
            attempted = await sender.post(f"https://{NAME}:{port}/", b"{}", {}, 1)
    assert (attempted.response_code, attempted.error) == (200, None)
    assert backend.read <= 2 * MAX_BODY_BYTES, "the head, and of the body no more than 16 KiB"


async def test_black_holes_do_not_delay_a_healthy_receiver(authority: Authority):
    """R6 as far as the transport goes: nothing is shared that a stalled attempt could keep."""
    async with (
        receiver(never_reads, None) as hole,
        receiver(Responder(THANKS), authority.server(NAME)) as healthy,
        sending(authority, Names(), deadline_s=10 * HANG_S) as sender,
        trio.open_nursery() as nursery,
    ):
        for number in range(60):
            nursery.start_soon(sender.post, f"https://{NAME}:{hole}/{number}", b"{}", {}, 1)
        with trio.fail_after(HANG_S):
            for _ in range(20):
                assert (await sender.post(f"https://{NAME}:{healthy}/", b"{}", {}, 1)).error is None
        nursery.cancel_scope.cancel()


async def test_a_cancelled_attempt_leaves_no_connection_behind(authority: Authority):
    ended = trio.Event()

    async def play(stream: trio.abc.Stream) -> None:
        while await stream.receive_some():
            pass
        ended.set()

    async with receiver(play, authority.server(NAME)) as port, sending(authority, Names()) as sender:
        with trio.move_on_after(0.1):
            await sender.post(f"https://{NAME}:{port}/", b"{}", {}, 1)
        with trio.fail_after(HANG_S):
            await ended.wait()
