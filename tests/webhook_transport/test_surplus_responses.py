"""An answer belongs to the request before it: what arrives beyond it answers nothing.

Else a delivery would count as made, or as failed, by words that were said before it was sent.
"""

from __future__ import annotations

import ssl

import pytest
import trio

from tests.support.receivers import THANKS, Play, Responder, read_request, receiver, response
from tests.webhook_transport.loopback import HANG_S, NAME, Authority, Dialed, Names, sending


async def three_deliveries(authority: Authority, play: Play, tls: ssl.SSLContext | None, heard: list[bytes]) -> int:
    """Each is answered 200, after it was sent; the dials."""
    backend = Dialed()
    async with receiver(play, tls) as port, sending(authority, Names(), backend) as sender:
        for number in range(3):
            with trio.fail_after(HANG_S):
                attempted = await sender.post(f"https://{NAME}:{port}/", b"%d" % number, {}, 1)
            assert (attempted.response_code, attempted.error) == (200, None)
            assert heard == [b"%d" % one for one in range(number + 1)]
    return len(backend.dials)


class Hears(Responder):
    def __init__(self, *answers: bytes) -> None:
        super().__init__(*answers)
        self.bodies: list[bytes] = []

    async def __call__(self, stream: trio.abc.Stream) -> None:
        while (request := await read_request(stream)) is not None:
            self.bodies.append(request.body)
            await stream.send_all(self.answers[0])


@pytest.mark.parametrize(
    "surplus",
    [THANKS, response("410 Gone"), b"HTTP/1.1 100 Continue\r\n\r\n", b"x"],
    ids=["200", "410", "100", "noise"],
)
async def test_data_after_a_response_is_not_used_for_a_later_delivery(authority: Authority, surplus: bytes):
    hears = Hears(THANKS + surplus)
    assert await three_deliveries(authority, hears, authority.server(NAME), hears.bodies) == 3


class Holding(trio.abc.SendStream):
    """Sends what it is given in one piece, when it is told to."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.holds = False
        self._stream = stream
        self._held = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._held += data
        if not self.holds:
            data, self._held = self._held, b""
            await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


@pytest.mark.parametrize("surplus", [THANKS, response("410 Gone"), b"x"], ids=["200", "410", "noise"])
async def test_data_in_a_separate_tls_record_is_not_used_for_a_later_delivery_either(
    authority: Authority, surplus: bytes
):
    """It is in memory then, where the socket knows nothing of it."""
    heard: list[bytes] = []
    tls = authority.server(NAME)

    async def play(stream: trio.SocketStream) -> None:
        holding = Holding(stream)
        secured = trio.SSLStream(trio.StapledStream(holding, stream), tls, server_side=True, https_compatible=True)
        while (request := await read_request(secured)) is not None:
            heard.append(request.body)
            holding.holds = True
            await secured.send_all(THANKS)
            holding.holds = False
            await secured.send_all(surplus)

    assert await three_deliveries(authority, play, None, heard) == 3


async def test_a_receiver_without_surplus_data_is_not_dialed_again(authority: Authority):
    hears = Hears(THANKS)
    assert await three_deliveries(authority, hears, authority.server(NAME), hears.bodies) == 1


async def test_a_response_that_switches_protocols_is_invalid(authority: Authority):
    """Nobody proposed it."""
    switches = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with (
        receiver(Responder(switches + THANKS), authority.server(NAME)) as port,
        sending(authority, Names()) as sender,
    ):
        with trio.fail_after(HANG_S):
            attempted = await sender.post(f"https://{NAME}:{port}/", b"{}", {}, 1)
    assert (attempted.response_code, attempted.error) == (None, "connection_reset")
