"""`svc serve --workers`, with real processes: who serves, who keeps, what ends and what begins again."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.http.server.listening import inherited_sockets
from svc.workers.parent import FIRST_PAUSE_S, GOOD_AFTER_S, LONGEST_PAUSE_S, failures_after, pause_s
from svc.workers.pulse import PulseBoard
from tests.support.certificates import Files
from tests.support.process import PROGRAM, Served, finish, leader_of, run

TWO = {"SVC_WORKERS": "2"}


@contextmanager
def two_workers(data: Path, **settings: str) -> Iterator[Served]:
    """A parent and two workers that serve; the block ends them, or else they are killed behind it."""
    server = Served(data, **TWO, **settings)
    workers = server.workers()
    try:
        server.wait_until_said("serving", 2)
        yield server
    finally:
        server.kill_all(workers)


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def metrics_port(server: Served) -> int:
    return int(server.said("serving")[0]["metrics"][0].rsplit(":", 1)[1])


@pytest.mark.slow(2)
def test_two_workers_serve_one_port_and_one_of_them_serves_the_metrics(data: Path):
    with two_workers(data) as server:
        assert {line["worker"] for line in server.said("serving")} == {0, 1}
        assert len({line["addresses"][0] for line in server.said("serving")}) == 1
        assert leader_of(data) in server.workers()
        for _ in range(8):
            status, body = get(server.port, "/readyz")
            assert (status, json.loads(body)["checks"]["webhooks"]) == (200, "ok")
        assert get(metrics_port(server), "/metrics")[0] == 200
        assert server.terminate() == 0
        assert len(server.said("draining")) == len(server.said("stopped")) == 2


@pytest.mark.slow(2)
def test_a_killed_worker_is_replaced_and_the_log_gives_the_signal(data: Path):
    with two_workers(data) as server:
        victim = next(pid for pid in server.workers() if pid != leader_of(data))
        os.kill(victim, signal.SIGKILL)
        (line,) = server.wait_until_said("worker died, restarting")
        assert (line["pid"], line["signal"]) == (victim, "Killed")
        server.wait_until_said("serving", 3)
        assert victim not in server.workers()
        assert len(server.workers()) == 2
        name = f'svc_worker_restarts_total{{worker="{line["worker"]}"}} 1.0'
        assert name in get(metrics_port(server), "/metrics")[1].decode()
        assert server.terminate() == 0


@pytest.mark.slow(2)
def test_another_worker_takes_over_when_the_leader_is_killed(data: Path):
    with two_workers(data) as server:
        first = leader_of(data)
        os.kill(first, signal.SIGKILL)
        server.wait_until_said("serving", 3)
        assert get(metrics_port(server), "/metrics")[0] == 200  # waits for the next leader
        assert leader_of(data) in set(server.workers()) - {first}
        assert server.terminate() == 0


@pytest.mark.slow
def test_workers_whose_parent_was_killed_drain_and_a_new_service_waits_for_them(data: Path):
    with two_workers(data) as server:
        server.kill()
        assert len(server.said("the parent died, draining")) == 2
        assert len(server.said("stopped")) == 2
    with two_workers(data) as again:
        assert again.terminate() == 0


@pytest.mark.slow(2)
def test_signals_that_reach_the_workers_too_do_not_shorten_their_drain(data: Path):
    """As from a terminal, or from systemd with `KillMode=control-group`."""
    with two_workers(data) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")  # so that a worker has the connection
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Long: ")  # a request that the drain waits for
        workers = server.workers()
        for pid in (*workers, server.pid):
            os.kill(pid, signal.SIGINT)
        server.wait_until_said("draining", 2)
        for pid in workers:
            with suppress(ProcessLookupError):  # the worker without a connection may have ended by now
                os.kill(pid, signal.SIGTERM)
        client.sendall(b"1\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert server.wait() == 0


@pytest.mark.slow(2)
def test_a_second_signal_ends_draining_workers(data: Path):
    with two_workers(data) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        client.sendall(b"GET /healthz HTTP/1.1\r\n")
        os.kill(server.pid, signal.SIGTERM)
        server.wait_until_said("draining", 2)
        assert server.terminate() == 1
        assert server.said("worker exited with an error") != []


@pytest.mark.slow(2)
def test_a_worker_ended_by_an_operator_drains_and_is_replaced(data: Path):
    with two_workers(data) as server:
        os.kill(server.workers()[0], signal.SIGTERM)
        (line,) = server.wait_until_said("worker died, restarting")
        assert line["status"] == 0
        server.wait_until_said("serving", 3)
        assert server.terminate() == 0


@pytest.mark.slow(2)
def test_workers_that_fail_at_startup_do_not_end_the_others(data: Path, tmp_path: Path):
    """The certificate is broken after the start, so that who is born later cannot serve."""
    files = Files(tmp_path)
    tls = {"SVC_TLS_CERTFILE": str(files.certfile), "SVC_TLS_KEYFILE": str(files.keyfile)}
    with two_workers(data, **tls) as server:
        kept = files.certfile.read_bytes()
        files.certfile.write_text("no certificate")
        victim = next(pid for pid in server.workers() if pid != leader_of(data))
        os.kill(victim, signal.SIGKILL)
        deaths = server.wait_until_said("worker died, restarting", 4)
        assert [line["in_s"] for line in deaths[:4]] == [0.1, 0.2, 0.4, 0.8]
        assert [line.get("status") for line in deaths[1:4]] == [1, 1, 1]
        assert leader_of(data) in server.workers()
        files.certfile.write_bytes(kept)
        server.wait_until_said("serving", 3)
        assert server.terminate() == 0


@pytest.mark.slow(2)
def test_every_worker_loads_a_renewed_certificate(data: Path, tmp_path: Path):
    files = Files(tmp_path)
    with two_workers(data, SVC_TLS_CERTFILE=str(files.certfile), SVC_TLS_KEYFILE=str(files.keyfile)) as server:
        server.hang_up()
        assert {line["worker"] for line in server.wait_until_said("certificate reloaded", 2)} == {0, 1}
        assert server.terminate() == 0


@pytest.mark.slow(2)
@pytest.mark.parametrize("workers", ["0", "65", "some"])
def test_an_invalid_number_of_workers_is_rejected(data: Path, workers: str):
    assert "--workers" in run("serve", "--data", str(data), "--workers", workers, status=2).stderr
    assert "SVC_WORKERS" in run("serve", "--data", str(data), status=1, SVC_WORKERS=workers).stderr


@pytest.mark.slow(2)
def test_invalid_settings_end_the_program_before_workers_start(data: Path):
    done = run("serve", "--data", str(data), "--bind", ":1", status=1, SVC_ATTESTATION_ROOTS_FILE="/nowhere", **TWO)
    assert done.stderr.splitlines()[-1].startswith("svc: attestation_roots_file: cannot read /nowhere")
    assert "worker" not in done.stderr


@pytest.mark.slow
def test_auto_means_as_many_workers_as_cores():
    assert 'workers = "auto"' in run("serve", "--print-config", "--workers", "auto").stdout
    assert "workers = 3" in run("serve", "--print-config", SVC_WORKERS="3").stdout


# Sockets that are open while the service is not


PASS_ON = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.argv[2], sys.argv[2:])
"""


class Unit:
    """As a socket unit of systemd: it listens, and starts services that inherit the socket."""

    def __init__(self, data: Path, workers: int) -> None:
        self._data, self._workers = data, workers
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._socket.getsockname()[1]

    def start(self) -> Served:
        descriptor = self._socket.fileno()
        return Served(
            self._data,
            program=[sys.executable, "-c", PASS_ON, str(descriptor), *PROGRAM],
            inherited=(descriptor,),
            SVC_WORKERS=str(self._workers),
        )

    def close(self) -> None:
        self._socket.close()


BETWEEN_VISITS_S = 0.005
"""Of one of four visitors: far less than a restart takes, and the rest of the time is the service's."""


@pytest.mark.slow(3)
@pytest.mark.one_case
@pytest.mark.parametrize("workers", [1, 2])
def test_a_restart_with_an_inherited_socket_refuses_no_connection(data: Path, workers: int):
    unit = Unit(data, workers)
    answered, refused, over = [], [], threading.Event()

    def visit() -> None:
        while not over.is_set():
            try:
                answered.append(get(unit.port, "/healthz")[0])
            except OSError as error:
                refused.append(error)
            over.wait(BETWEEN_VISITS_S)

    server = unit.start()
    visitors = [threading.Thread(target=visit) for _ in range(4)]
    try:
        for visitor in visitors:
            visitor.start()
        for _ in range(2):
            server.wait_until_said("serving", workers)
            assert server.port == unit.port
            before = len(answered)
            assert server.terminate() == 0
            server = unit.start()
            assert len(answered) >= before
        assert get(unit.port, "/healthz")[0] == 200
    finally:
        over.set()
        for visitor in visitors:
            visitor.join()
        status = server.terminate()
        unit.close()
    assert status == 0
    assert not [error for error in refused if isinstance(error, ConnectionRefusedError)]
    assert len(refused) <= 2 * len(visitors)  # accepted, and closed by the drain before their request had begun
    assert set(answered) == {200}


def test_sockets_for_another_process_are_not_used():
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "OTHER": "kept"}
    assert inherited_sockets(environment) == ([], [])
    assert environment == {"OTHER": "kept"}


@pytest.mark.slow(2)
def test_a_descriptor_that_does_not_listen_is_rejected(data: Path):
    script = 'exec 3</dev/null && export LISTEN_PID=$$ LISTEN_FDS=1 && exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *PROGRAM, "serve", "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("svc: the inherited descriptor 3 is not a TCP socket that listens")


# As pid 1 of a container


def _may_unshare() -> bool:
    try:
        done = subprocess.run(["unshare", "-r", "-p", "-f", "true"], capture_output=True, timeout=10, check=False)
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.slow(2)
def test_as_the_first_process_of_a_container_the_parent_drains_and_reaps(data: Path):
    if not _may_unshare():
        pytest.skip("this machine lets nobody make a process namespace")
    orphan = ["/bin/sh", "-c", 'true & exec "$@"', "sh"]  # what becomes pid 1 inherits a child that it never made
    server = Served(data, program=["unshare", "-r", "-p", "-f", *orphan, *PROGRAM], **TWO)
    server.wait_until_said("serving", 2)
    (first,) = server.workers()
    children = Path(f"/proc/{first}/task/{first}/children")
    os.kill(int(children.read_text().split()[-1]), signal.SIGKILL)
    server.wait_until_said("serving", 3)
    assert len(children.read_text().split()) == 2
    os.kill(first, signal.SIGTERM)
    assert server.wait() == 0
    assert len(server.said("stopped")) == 2


@pytest.mark.slow(2)
def test_a_command_of_another_container_says_where_to_run_it(data: Path):
    """LMDB knows a reader by its process id, and both are 1."""
    if not _may_unshare():
        pytest.skip("this machine lets nobody make a process namespace")
    in_container = ["unshare", "-r", "-p", "-f", *PROGRAM]
    server = Served(data, program=in_container)
    server.wait_until_said("serving", 1)
    for command in ("check", "org list"):
        done = finish(*command.split(), "--data", data, program=in_container)
        assert done.returncode == 1
        assert "has the number of this one there (1): run the command in that container" in done.stderr
    (first,) = server.workers()
    os.kill(first, signal.SIGTERM)
    assert server.wait() == 0
    assert finish("check", "--data", data, program=in_container).returncode == 0


# What the parent decides


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.booleans())
def test_restart_delays_grow_while_workers_die_at_once_and_stay_within_limits(lives: list[float], was_killed: bool):
    failures = 0
    for served_s in lives:
        failures = failures_after(failures, served_s, was_killed=was_killed)
        assert FIRST_PAUSE_S <= pause_s(failures) <= LONGEST_PAUSE_S
    if all(served_s < 1 for served_s in lives):
        assert failures == len(lives)
    assert failures_after(failures, failures * GOOD_AFTER_S, was_killed=was_killed) == 1


def test_a_worker_whose_disk_fails_after_some_seconds_each_time_starts_ever_more_seldom():
    """Each start sends again what could not be recorded."""
    failures, at_s, starts = 0, 0.0, 0
    while at_s < 60:
        failures, starts = failures_after(failures, 1.5, was_killed=False), starts + 1
        at_s += 1.5 + pause_s(failures)
    assert starts <= 9


def test_the_board_reports_how_long_a_worker_served():
    board = PulseBoard(2)
    assert board.note_death(1, 5.0, replaced=True) == 0.0
    board.mark_serving(0, 7.0)
    assert board.note_death(0, 10.5, replaced=False) == 3.5
    assert board.restarts() == [0, 1]


def test_the_board_reports_the_silence_of_workers_and_the_oldest_commit():
    board = PulseBoard(3)
    assert not board.are_all_serving()
    for index in range(3):
        board.mark_serving(index, 10.0 + index)
    assert board.are_all_serving()
    board.beat(0, 20.0, None)
    board.beat(1, 15.0, 14.0)
    board.beat(2, 20.0, 19.0)
    assert board.silences_s(21.0) == [1.0, 6.0, 1.0]
    assert board.oldest_commit_s(21.0) == 7.0
    assert board.oldest_commit_s(22.0) == 3.0, "of one that died while its parent was suspended, nobody tells the end"
    assert board.leader_silent_s(21.0) == 0.0, "there is none"
    board.mark_leader(1, 20.0)
    assert board.leader_silent_s(21.0) == 6.0
    board.mark_leader(2, 20.0)
    assert board.leader_silent_s(21.0) == 1.0
    board.note_death(1, 21.0, replaced=True)
    assert board.silences_s(21.0) == [1.0, 0.0, 1.0]
    assert board.oldest_commit_s(21.0) == 2.0
