"""One client of the library for Python in several processes, threads and event loops: whose connections they use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

LIBRARY = Path(__file__).parents[2] / "clients" / "python"
FORKING = """
import json, os, sys
from svc_client import Client

client = Client(sys.argv[1], "svc_sk_key")
ports = [client.get_health()["port"]]
reading, writing = os.pipe()
if os.fork() == 0:
    found = [client.get_health()["port"] for _ in range(2)]
    client.close()
    os.write(writing, json.dumps(found).encode())
    os._exit(0)
os.wait()
ports.append(client.get_health()["port"])
print(json.dumps([ports, json.loads(os.read(reading, 100))]))
"""

LOOPS = """
import asyncio, json, sys, trio
from concurrent.futures import ThreadPoolExecutor
from svc_client import AsyncClient

client = AsyncClient(sys.argv[1], "svc_sk_key")

async def ports():
    return [(await client.get_health())["port"] for _ in range(2)]

async def at_once():
    return [port for found in await asyncio.gather(ports(), ports()) for port in found]

one_by_one = [asyncio.run(ports()), asyncio.run(ports()), trio.run(ports), trio.run(ports), asyncio.run(ports())]
with ThreadPoolExecutor(4) as threads:
    found = [threads.submit(lambda: asyncio.run(at_once())) for _ in range(8)]
    print(json.dumps([one_by_one, [len(one.result()) for one in found]]))
"""


def ran(program: str, url: str) -> Any:
    """What a program prints of the service at `url`; it ends within 30 seconds."""
    command = [sys.executable, "-c", program, url]
    environment = os.environ | {"PYTHONPATH": str(LIBRARY)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Told(BaseHTTPRequestHandler):
    """Responds with the port of the connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        content = json.dumps({"port": self.client_address[1]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(name="url")
def _url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Told) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_process_that_was_forked_has_connections_of_its_own(url: str):
    """With those of its parent it would read what the parent, or another child, asked for."""
    (before, after), of_child = ran(FORKING, url)
    assert before == after
    assert len(set(of_child)) == 1
    assert before not in of_child


@pytest.mark.slow
def test_event_loops_share_a_client(url: str):
    """As where a framework runs each request in a loop of its own."""
    one_by_one, at_once = ran(LOOPS, url)
    assert all(first == second for first, second in one_by_one)
    assert len({first for first, _ in one_by_one}) == len(one_by_one) == 5
    assert at_once == [4] * 8
