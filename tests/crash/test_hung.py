"""Decisions 17.4, with real processes: what hangs is seen, named and, where that helps, replaced."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.crash.disk import disk_library
from tests.support.journal import post
from tests.support.live import ORIGIN, USER_AGENT, report
from tests.support.process import PRELOADED, Served, run, run_json

SETTINGS = "w.STALLED_S = c.STALLED_S = w.IDLE_S = 1.0; w.PROBE_S = w.INTERVAL_S = 0.1"
IMPORTS = "import svc.kernel.work.store_watch as w, svc.features.identification.routes as c, svc.cli"
QUICK = [PRELOADED, f"{IMPORTS}; {SETTINGS}; svc.cli.main()"]
"""The program, in which a commit of a second has stalled: nobody waits for ten."""
HOLD = """
import os, signal, sys, lmdb
environment = lmdb.open(sys.argv[1], max_dbs=64)
transaction = environment.begin(write=True)
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
transaction.abort()
"""


class Shop:
    """A data directory with an organization and its public key."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.file = self.data / "store" / "data.mdb"
        organization = run_json("org", "create", "shop", "--credit-usd", "100", "--data", str(self.data))
        where = ("--kind", "public", "--environment", "production", "--origin", ORIGIN, "--platform", "web")
        issued = run_json("key", "issue", organization["organization_id"], *where, "--data", str(self.data))
        self.key = issued["secret"]

    async def identify(self, server: Served) -> httpx.Response:
        headers = {"x-api-key": self.key, "origin": ORIGIN, "user-agent": USER_AGENT}
        body = {"signals": report(1), "sdk": {"platform": "web", "version": "1.0.0"}}
        return await post(f"http://127.0.0.1:{server.port}/api/v1/identify", body, headers, 30)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@contextmanager
def serving(shop: Shop, **settings: str) -> Iterator[Served]:
    server = Served(shop.data, program=QUICK, **settings)
    workers = server.workers() if settings.get("SVC_WORKERS") else []
    try:
        yield server
    finally:
        server.kill_all(workers)


@contextmanager
def stopped_holder(shop: Shop) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the store and is stopped; it goes on behind the block."""
    command = [sys.executable, "-c", HOLD, str(shop.data / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.send_signal(signal.SIGCONT)


@pytest.fixture
def stalling(tmp_path: Path) -> Path:
    """The library with which a process's disk stalls."""
    return disk_library(tmp_path)


async def readyz(server: Served) -> tuple[int, dict[str, Any]]:
    async with httpx.AsyncClient(timeout=30) as client:
        response = await client.get(f"http://127.0.0.1:{server.port}/readyz")
    return response.status_code, response.json()["checks"]


async def until_store_is(server: Served, state: str) -> None:
    """Until `readyz` says so of the store: `503`, or `200` where that is `ok`."""
    with trio.fail_after(30):
        while (found := await readyz(server))[1]["store"] != state:  # noqa: ASYNC110  another process says it
            await trio.sleep(0.05)
    assert found[0] == (200 if state == "ok" else 503)


@pytest.mark.slow(3)
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_stopped_process_that_holds_the_stores_lock_is_seen_without_traffic_and_named(shop: Shop, workers: str):
    with serving(shop, SVC_WORKERS=workers) as server:
        with stopped_holder(shop) as holder:
            await until_store_is(server, "stalled")
            (said, *_) = server.wait_until_said("the store is stalled: a commit has not finished")
            assert f"process {holder.pid}" in said["because"]
            refused = await shop.identify(server)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "service_unavailable")
            doctor = run("doctor", "--data", str(shop.data), SVC_BIND=f"127.0.0.1:{server.port}", status=1)
            assert "stalled" in doctor.stdout
        await until_store_is(server, "ok")
        assert (await shop.identify(server)).status_code == 200
        assert len(server.said("the store is stalled: a commit has not finished")) == int(workers), "each says it once"


@pytest.mark.slow(2)
async def test_while_the_disk_stalls_nothing_is_acknowledged(shop: Shop, tmp_path: Path, stalling: Path):
    stall = tmp_path / "stall"
    with serving(shop, LD_PRELOAD=str(stalling), STALL=str(stall)) as server:
        assert (await shop.identify(server)).status_code == 200
        stall.touch()
        waited = await shop.identify(server)
        assert waited.status_code == 503
        await until_store_is(server, "stalled")
        assert (await shop.identify(server)).status_code == 503
        assert server.runs()
        stall.unlink()
        await until_store_is(server, "ok")
        assert (await shop.identify(server)).status_code == 200
        assert server.terminate() == 0
    listed = run("events", "list", "--json", "--data", str(shop.data), shop_id(shop)).stdout
    assert listed.count('"request_id"') == 3, "the one that waited was committed and not acknowledged"


@pytest.mark.slow
async def test_a_disk_that_hangs_is_seen_without_traffic(shop: Shop, tmp_path: Path, stalling: Path):
    stall = tmp_path / "stall"
    with serving(shop, LD_PRELOAD=str(stalling), STALL=str(stall)) as server:
        await until_store_is(server, "ok")
        stall.touch()
        await until_store_is(server, "stalled")
        stall.unlink()
        await until_store_is(server, "ok")
        assert server.terminate() == 0


def shop_id(shop: Shop) -> str:
    (organization,) = json.loads(run("org", "list", "--json", "--data", str(shop.data)).stdout)["organizations"]
    return organization["organization_id"]


@pytest.mark.slow
def test_a_worker_that_stands_still_is_replaced(shop: Shop):
    with serving(shop, SVC_WORKERS="2", SVC_WORKER_HANG_S="5") as server:
        server.wait_for_workers(2)
        victim = server.workers()[0]
        os.kill(victim, signal.SIGSTOP)
        (said, *_) = server.wait_until_said("worker hangs, replacing")
        assert said["pid"] == victim
        server.wait_until_said("worker died, restarting")
        server.wait_for_workers(2)
        assert victim not in server.workers()
        assert server.terminate() == 0


@pytest.mark.slow(2)
@pytest.mark.parametrize("how", ["removed", "replaced", "cut", "overwritten", "directory removed"])
async def test_a_store_file_that_is_lost_is_named_and_nothing_is_acknowledged(shop: Shop, how: str):
    with serving(shop) as server:
        assert (await shop.identify(server)).status_code == 200
        before = shop.file.read_bytes()
        assert (await shop.identify(server)).status_code == 200
        if how == "removed":
            shop.file.unlink()
        elif how == "replaced":
            shutil.copyfile(shop.file, shop.file.with_suffix(".copy"))
            shop.file.with_suffix(".copy").replace(shop.file)
        elif how == "overwritten":
            with shop.file.open("r+b") as file:
                file.write(before.ljust(shop.file.stat().st_size, b"\0"))
        elif how == "directory removed":
            shutil.rmtree(shop.data)
        else:
            os.truncate(shop.file, shop.file.stat().st_size - 4096)
        response = await shop.identify(server)
        assert (response.status_code, response.json()["error"]["code"]) == (503, "service_unavailable")
        await until_store_is(server, "lost")
        (said, *_) = server.wait_until_said("the store's file is lost: nothing is stored")
        assert str(shop.file) in said["because"]
        assert (await shop.identify(server)).status_code == 503, "nor later"
        assert not server.said("actor crashed, restarting")
        assert server.terminate() == 0


@pytest.mark.slow
async def test_a_store_that_is_cut_while_it_is_read_ends_the_process_with_a_word_about_it(shop: Shop):
    """SIGBUS: a page of the memory map is read that the file no longer has, and no exception can be raised."""
    with serving(shop) as server:
        assert (await shop.identify(server)).status_code == 200
        os.truncate(shop.file, 2 * 4096)
        with suppress(httpx.HTTPError):
            await shop.identify(server)
        with trio.fail_after(30):
            while server.runs():  # noqa: ASYNC110  it has no event of its own
                await trio.sleep(0.05)
    assert "Fatal Python error: Bus error" in "".join(server.log)
    assert "it is cut short" in run("serve", "--data", str(shop.data), status=1).stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [("serve",), ("check",), ("doctor",), ("org", "list")])
@pytest.mark.parametrize("left", ["half", "all but a page"])
def test_a_store_that_was_cut_short_is_named_by_every_command(shop: Shop, command: tuple[str, ...], left: str):
    size = shop.file.stat().st_size
    os.truncate(shop.file, size // 2 if left == "half" else size - 4096)
    done = run(*command, "--data", str(shop.data), status=1)
    assert "it is cut short" in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_service_manager_hears_when_it_serves_lives_and_ends(shop: Shop, tmp_path: Path, workers: str):
    """sd_notify(3), as of `Type=notify` with `WatchdogSec`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        with serving(shop, SVC_WORKERS=workers, NOTIFY_SOCKET=str(tmp_path / "notify")) as server:
            heard: list[str] = []
            while heard.count("WATCHDOG=1") < 3 or "READY=1" not in heard:
                heard.append(manager.recv(100).decode())
            assert server.terminate() == 0
            while heard[-1] != "STOPPING=1":
                heard.append(manager.recv(100).decode())
        assert heard.count("READY=1") == heard.count("STOPPING=1") == 1
