"""The application behind the edge: every request is handled by the exchange, and its response is sent."""

from __future__ import annotations

from contextlib import aclosing

from svc.http.exchange import Exchange
from svc.http.handler import Stream
from svc.http.server.messages import Application, Headers, Reply, Request


def application(exchange: Exchange) -> Application:
    """Handles one request through the exchange: head and body are sent only when the whole response is there, those of
    a stream as they come.
    """

    async def respond(request: Request, reply: Reply) -> None:
        status, headers, body, stream = await exchange.respond(request)
        if stream is None:
            await reply.respond(status, headers, body)
        else:
            await _send_stream(reply, status, headers, stream)

    return respond


async def _send_stream(reply: Reply, status: int, headers: Headers, stream: Stream) -> None:
    """Send a stream to its end, or until this task is cancelled because nobody takes it any more; and close it."""
    try:
        reply.begin(status, headers, is_stream=True)
        async with aclosing(stream.parts) as parts:
            async for part in parts:
                await reply.send(part)
        await reply.end()
    finally:
        stream.close()
