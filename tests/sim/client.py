"""A client over one connection: it sends an HTTP/1.1 request in its manner, and reads the answer if it stays."""

from __future__ import annotations

import json
import socket
from typing import Any, NamedTuple

import trio

from tests.sim.plan import Client

PATIENCE_S = 45.0


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of the refusal."""
        return self.json["error"]["code"]


def request(method: str, path: str, body: Any = None, **headers: str) -> bytes:
    """One request; underscores in names of headers are dashes."""
    content = b"" if body is None else json.dumps(body).encode()
    fields = {"host": "svc.example", "content-length": str(len(content))} | headers
    if body is not None:
        fields["content-type"] = "application/json"
    lines = [
        f"{method} /api/v1{path} HTTP/1.1",
        *(f"{name.replace('_', '-')}: {text}" for name, text in fields.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def talk(ours: socket.socket, sent: bytes, client: Client) -> Response | None:
    """The whole answer, or `None` where there was none or the client did not stay for it."""
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    try:
        with trio.move_on_after(PATIENCE_S):
            return await _talk(stream, sent, client)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return None
    finally:
        stream.socket.close()
    return None


async def _talk(stream: trio.SocketStream, sent: bytes, client: Client) -> Response | None:
    match client.manner:
        case "drips":
            for start in range(0, len(sent), len(sent) // 4 + 1):
                await stream.send_all(sent[start : start + len(sent) // 4 + 1])
                await trio.sleep(client.after_s)
        case "leaves while it sends":
            await stream.send_all(sent[: len(sent) * 2 // 3])
            await _linger(client)
            return None
        case "leaves" | "closes half-way":
            await stream.send_all(sent)
            await _linger(client)
            if client.manner == "leaves":
                return None
            stream.socket.shutdown(socket.SHUT_WR)
        case "waits":
            await stream.send_all(sent)
    return await _read(stream)


async def _linger(client: Client) -> None:
    await trio.sleep(client.after_s)
    for _ in range(client.turns):
        await trio.lowlevel.checkpoint()


async def _read(stream: trio.SocketStream) -> Response | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := await stream.receive_some(65_536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    while len(body) < int(headers.get("content-length", "0")):
        if not (more := await stream.receive_some(65_536)):
            return None
        body += more
    return Response(int(line.split(" ")[1]), headers, body)
