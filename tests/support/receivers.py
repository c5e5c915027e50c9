"""Receivers of webhooks for tests and benches: what one answers, and where it listens.

Three places, each where no cheaper one shows the same: in memory, instead of the whole transport (`Receivers`); on
a port of loopback, behind the real network (`receiver`); and on the internet of a simulation (`tests.sim.internet`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import trio

from svc.features.webhooks.records import Attempted
from tests.support.serving_postgresql import at_rest
from tests.support.worlds import EPOCH_MS

OK = Attempted(200, None, 20, None)
DOWN = Attempted(503, "http_status", 20, None)


class Post(NamedTuple):
    """One webhook as a receiver in memory saw it."""

    at_ms: int
    url: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def event_id(self) -> str:
        return self.event["id"]

    def signed_with(self, *secrets: str) -> bool:
        """Whether these secrets signed it, in this order and no other (decisions 8.1)."""
        signed = self.headers["X-Svc-Timestamp"].encode() + b"." + self.body
        digests = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
        return self.headers["X-Svc-Signature"] == ",".join(f"sha256={digest}" for digest in digests)


Script = Callable[[Post], tuple[float, Attempted]]
"""What comes back, after how many seconds."""


def always(response: Attempted, after_s: float = 0.02) -> Script:
    return lambda _: (after_s, response)


WELL = always(OK)


class Receivers:
    """A transport whose far side is in memory: every URL does what `script` says, unless `scripts` says otherwise."""

    def __init__(self, script: Script = WELL) -> None:
        self.script = script
        self.scripts: dict[str, Script] = {}
        self.posts: list[Post] = []
        """As they arrived."""
        self.open: dict[str, int] = {}
        self.most_open: dict[str, int] = {}
        """The most requests that were open at once, per URL."""
        self.most_open_in_all = 0
        self._held: dict[str, trio.Event] = {}

    def respond_with(self, response: Attempted) -> None:
        """Every URL responds with this from now on, at once."""
        self.script = always(response, 0)

    def hold(self, *urls: str) -> None:
        """What arrives there is not answered before `release`."""
        self._held |= {url: trio.Event() for url in urls}

    async def release(self, *urls: str) -> None:
        """Returns when what was held has been answered and written down."""
        for url in urls:
            self._held.pop(url).set()
        await at_rest()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], organization: int) -> Attempted:
        seen = Post(EPOCH_MS + round(trio.current_time() * 1000), url, body, headers)
        self.posts.append(seen)
        self.open[url] = self.open.get(url, 0) + 1
        self.most_open[url] = max(self.most_open.get(url, 0), self.open[url])
        self.most_open_in_all = max(self.most_open_in_all, sum(self.open.values()))
        try:
            if url in self._held:
                await self._held[url].wait()
            after_s, response = self.scripts.get(url, self.script)(seen)
            await trio.sleep(after_s)
        finally:
            self.open[url] -= 1
        return response

    def to(self, url: str) -> list[Post]:
        return [post for post in self.posts if post.url == url]

    def take(self) -> list[Post]:
        """What has arrived since it was last asked."""
        taken, self.posts = self.posts, []
        return taken


# On a connection

Play = Callable[[trio.abc.Stream], Awaitable[None]]
"""What a receiver does with one accepted connection, after TLS."""


class Request:
    """One delivery as it arrived."""

    def __init__(self, head: bytes, body: bytes) -> None:
        line, *fields = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = line.split(" ")
        self.headers: Mapping[str, str] = {
            name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)
        }
        self.body = body


async def read_request(stream: trio.abc.ReceiveStream) -> Request | None:
    """The next one on the connection, or `None` at its end."""
    data = b""
    while b"\r\n\r\n" not in data:
        some = await stream.receive_some(65536)
        if not some:
            return None
        data += some
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(Request(head, b"").headers.get("content-length", "0"))
    while len(body) < length:
        some = await stream.receive_some(65536)
        if not some:
            return None
        body += some
    return Request(head, body)


def response(status: str, *fields: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


THANKS = response("200 OK", body=b"thanks")


class Responder:
    """Reads each request to its end and answers in order; the last answer is repeated. Remembers what arrived."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.connections = 0

    async def __call__(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        while (request := await read_request(stream)) is not None:
            self.requests.append(request)
            await stream.send_all(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def endless(begin: bytes, more: bytes, every_s: float | None = None) -> Play:
    """An answer that begins like this and goes on like that, with so much time in between, and has no end."""

    async def play(stream: trio.abc.Stream) -> None:
        await stream.send_all(begin)
        while True:
            await stream.send_all(more)
            if every_s is not None:
                await trio.sleep(every_s)

    return play


def once(data: bytes) -> Play:
    """An answer of these bytes, after which nothing comes."""

    async def play(stream: trio.abc.Stream) -> None:
        await stream.send_all(data)
        await trio.sleep_forever()

    return play


def dripping_headers(every_s: float) -> Play:
    return endless(b"HTTP/1.1 200 OK\r\n", b"X-Slow: 1\r\n", every_s)


def dripping_a_body(every_s: float) -> Play:
    return endless(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x", every_s)


def body_without_end(every_s: float | None = None) -> Play:
    chunk = b"1000\r\n" + b"z" * 4096 + b"\r\n"
    return endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk, every_s)


async def never_responds(_: trio.abc.Stream) -> None:
    await trio.sleep_forever()


never_reads = never_responds


def after_a_request(play: Play) -> Play:
    async def played(stream: trio.abc.Stream) -> None:
        await read_request(stream)
        await play(stream)

    return played


HOSTILE: dict[str, Play] = {
    "drips headers": after_a_request(dripping_headers(0.02)),
    "drips a body": after_a_request(dripping_a_body(0.02)),
    "a body without end": after_a_request(body_without_end()),
    "never responds": after_a_request(never_responds),
    "never reads": never_reads,
    "1 MB of headers": after_a_request(once(b"HTTP/1.1 200 OK\r\n" + b"X-Large: " + b"y" * 1_000_000)),
    "100,000 headers": after_a_request(once(b"HTTP/1.1 200 OK\r\n" + b"X-Many: y\r\n" * 100_000 + b"\r\n")),
    "interim answers for ever": after_a_request(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
}
"""What a receiver may do after TLS that is no answer."""


@asynccontextmanager
async def receiver(play: Play, tls: ssl.SSLContext | None) -> AsyncGenerator[int]:
    """Serves on a free port of loopback while the block runs; without `tls` it plays on the bare connection."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(partial(trio.serve_listeners, partial(_serve, play, tls), [listener]))
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def _serve(play: Play, tls: ssl.SSLContext | None, stream: trio.SocketStream) -> None:
    chosen = stream if tls is None else trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
    try:
        await play(chosen)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the other side hung up, which is what it should do to most of these
    finally:
        await trio.aclose_forcefully(stream)
