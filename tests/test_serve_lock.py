"""One service per data directory, with real processes: who is refused, who waits, and what ends the lock."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from svc.features.tables import TABLES
from svc.kernel.store.directory import open_directory
from svc.kernel.store.files.serve_lock import NAME, DirectoryInUseError, sole_process
from svc.kernel.values.errors import DirectoryError
from svc.world import World
from tests.support.ports import free_port
from tests.support.process import PROGRAM, Served, run

NOW_MS = 1_780_000_000_000


def held(data: Path, **options):
    return sole_process(data, "svc test", lambda: NOW_MS, reason="for a test", **options)


def everything(data: Path) -> dict[str, list[Any]]:
    world = World.real()
    store = open_directory(data, world.run_sync, world.entropy, create=False).store
    with store.read() as snapshot:
        rows = {table.name: list(snapshot.scan(table)) for table in TABLES}
    store.close()
    return rows


@pytest.mark.slow
def test_a_second_service_is_rejected_and_changes_nothing_until_the_first_is_killed(data: Path):
    first = Served(data)
    before = everything(data)
    for command in ("serve", "dev"):
        bind = f"127.0.0.1:{free_port()}"
        done = run(command, "--bind", bind, "--data", str(data), status=1, SVC_TAKEOVER_WAIT_S="0")
        assert done.stderr.startswith("svc: ")
        assert f"{data} is in use by `svc serve` (process {first.pid} on " in done.stderr
        assert "stop that first, or name another --data" in done.stderr
        assert done.stderr.count("\n") == 1
    assert everything(data) == before, "`svc dev` made no organization, and issued and revoked no key"
    first.kill()
    second = Served(data, SVC_TAKEOVER_WAIT_S="0")
    assert second.terminate() == 0


@pytest.mark.slow(2)
def test_a_new_service_waits_for_the_one_that_drains(data: Path):
    first = Served(data)
    second = subprocess.Popen(
        [*PROGRAM, "serve", "--data", str(data), "--bind", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SVC_METRICS_BIND": "", "SVC_TAKEOVER_WAIT_S": "60"},
    )
    assert second.stderr is not None
    waiting = second.stderr.readline()
    assert "waiting for another process" in waiting
    assert f"process {first.pid}" in waiting
    assert first.terminate() == 0
    lines = iter(second.stderr.readline, "")
    assert any('"serving"' in line for line in lines)
    second.send_signal(signal.SIGTERM)
    second.stderr.read()
    assert second.wait(timeout=30) == 0
    second.stderr.close()


def test_the_wait_times_out_with_an_error_that_names_the_holder(data: Path):
    told: list[str] = []
    pauses: list[float] = []
    with (
        held(data),
        pytest.raises(DirectoryInUseError, match=rf"`svc test` \(process {os.getpid()} on .*, since 2026-05-28T"),
        held(data, wait_s=0.5, on_wait=told.append, pause=pauses.append),
    ):
        pass
    assert len(told) == 1
    assert sum(pauses) == pytest.approx(0.5)


def test_a_waiting_process_continues_as_soon_as_the_lock_is_free(data: Path):
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with held(data):
            inside.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()

    def release(_: float) -> None:
        leave.set()
        holder.join()

    with held(data, wait_s=60, pause=release):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("store", "compact"), "what another process commits while the file is rewritten would be lost"),
        (("replay", "/dev/null"), "would overwrite what the other has learned about devices"),
        (("pepper", "replace", "--revoke-all-keys"), "a running service would keep the old pepper"),
    ],
    ids=("compact", "replay", "pepper"),
)
def test_a_command_that_requires_exclusive_access_gives_the_reason(data: Path, command: tuple[str, ...], reason: str):
    before = everything(data)
    with held(data):
        done = run(*command, "--data", str(data), status=1)
    assert f"{data} is in use by `svc test` (process {os.getpid()} on " in done.stderr
    assert reason in done.stderr
    assert "webhook" not in done.stderr
    assert everything(data) == before


def test_a_lock_file_that_is_a_link_is_rejected_and_its_target_not_touched(data: Path, tmp_path: Path):
    (tmp_path / "target").write_text("precious")
    (data / NAME).symlink_to(tmp_path / "target")
    with pytest.raises(DirectoryError, match=r"serve\.lock is a symbolic link"), held(data):
        pass
    assert (tmp_path / "target").read_text() == "precious"


def test_the_lock_file_is_accessible_by_its_owner_only_and_needs_no_cleanup(data: Path):
    for _ in range(2):
        with held(data):
            assert (data / NAME).stat().st_mode & 0o777 == 0o600
