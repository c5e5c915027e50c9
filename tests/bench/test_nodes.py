"""The bench of nodes: what it sends, what it delays, and one cell of it with few requests."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from contextlib import closing

import pytest

from bench.delay import Delay
from bench.nodes import FORMATS, Bench, Cell, Sizes, cells
from bench.sdk_visits import SdkVisits


def test_visits_are_complete_and_differ_in_their_nonce():
    visits = SdkVisits(3)
    make = visits.in_order(["first", "second"], seed=1)
    requests = [make() for _ in range(6)]
    heads, bodies = zip(*(request.split(b"\r\n\r\n", 1) for request in requests), strict=True)
    assert [b"X-Api-Key: second" in head for head in heads] == [False, True, False] * 2
    assert all(b"Content-Length: %d" % len(body) in head for head, body in zip(heads, bodies, strict=True))
    signals = [json.loads(gzip.decompress(body))["signals"] for body in bodies]
    assert len({one["nonce"] for one in signals}) == len(signals)
    tokens = [one["client_token"] for one in signals]
    assert tokens[:3] == tokens[3:]
    assert signals[0]["components"] == signals[3]["components"] != signals[1]["components"]


def test_the_same_seed_chooses_the_same_devices():
    visits = SdkVisits(20)

    def heads(seed: int) -> list[bytes]:
        """Without bodies, which say when they were collected."""
        make = visits.by_chance(["key"], seed)
        return [make().partition(b"\r\n\r\n")[0] for _ in range(10)]

    assert heads(1) == heads(1) != heads(2)


def _echo(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(65_536):
            connection.sendall(data)


def test_a_delayed_response_takes_the_round_trip_and_is_complete():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=[listener], daemon=True).start()
        delay = Delay(listener.getsockname()[1], 20.0)
        with closing(delay), socket.create_connection(("127.0.0.1", delay.port), timeout=20) as client:
            began = time.perf_counter()
            client.sendall(bytes(range(256)) * 1_000)
            client.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: client.recv(65_536), b""))
            assert time.perf_counter() - began >= 0.020
        assert received == bytes(range(256)) * 1_000
    assert delay.late.passed >= 4


def test_every_kind_of_cell_is_measured():
    found = cells()
    assert len(found) == len(set(found))
    pairs = {(cell.nodes, cell.organizations, cell.delay_ms) for cell in found if cell.nodes}
    assert pairs >= {(nodes, some, delay) for nodes in (1, 2, 3) for some in (1, 32) for delay in (0.0, 0.5, 2.0)}
    assert {cell.workers for cell in found if not cell.nodes} == {1, 2}


@pytest.mark.slow(12)
@pytest.mark.long
def test_a_cell_with_few_requests_reports_its_figures():
    bench = Bench(Sizes(seconds=1.0, devices=24))
    try:
        row = bench.measure(Cell(nodes=2, organizations=2, delay_ms=1.0, clients=4))
    finally:
        bench.close()
    assert row["errors"] == 0
    assert row["rate/s"] > 0
    assert 0 < row["p50 ms"] <= row["p99 ms"]
    assert 0 < row["inside"] <= 4
    assert row["node ms"] > 0
    assert row["group"] > 0
    assert row["trips"] >= 2
    assert bench.late[1.0].passed > 100
    assert all(format(row[name], form) for name, form in FORMATS.items())
