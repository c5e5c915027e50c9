"""A disk that gives EIO: the process ends, since after a failed sync nothing is known of the store, and the next one is
not ready before a write was stored (decisions 17.4). Meanwhile nothing is acknowledged, and no webhook is sent of which
it could not be written down what came of it (ADR 163).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from svc.kernel.store.directory import open_directory
from svc.world import World
from tests.crash.disk import disk_library
from tests.support.acknowledged import shop
from tests.support.journal import post
from tests.support.killed import Fickle, Status, receiving, register, sending_to
from tests.support.live import ORIGIN, USER_AGENT, report
from tests.support.ports import free_port
from tests.support.process import Served, run
from tests.support.receivers import Request

WAITING = "cannot serve yet, every request gets 503"


class Breaking(Fickle):
    """A receiver that is well, and during whose first webhook the disk of the sender breaks."""

    def __init__(self, fail: Path) -> None:
        super().__init__(seed=0, failing_arrivals=0)
        self._fail = fail

    def _hear(self, request: Request, *, first: bool) -> Status:
        if not self.arrivals:
            self._fail.touch()
        return super()._hear(request, first=first)

    @property
    def count(self) -> int:
        return sum(map(len, self.arrivals.values()))


class Broken:
    """A data directory with one receiver, and the settings of a service whose disk breaks during the first webhook."""

    def __init__(self, directory: Path) -> None:
        self.data, self.fail = directory / "data", directory / "fail"
        self.key = shop(self.data)
        self.receiver = Breaking(self.fail)
        library = disk_library(directory)
        self.settings = {"LD_PRELOAD": str(library), "FAIL": str(self.fail), **sending_to(directory)}

    def register(self, port: int) -> None:
        world = World.real()
        found = open_directory(self.data, world.run_sync, world.entropy)
        register(found, self.receiver, 1, port)
        found.store.close()

    async def served(self, **settings: Any) -> Served:
        return await trio.to_thread.run_sync(partial(Served, self.data, **self.settings, **settings))

    async def until_sent_again(self, before: int) -> None:
        with trio.fail_after(60):
            while self.receiver.count <= before:  # noqa: ASYNC110  another process sends it
                await trio.sleep(0.05)


async def until_ready_is(port: int, status: int, store: str) -> None:
    with trio.fail_after(30):
        async with httpx.AsyncClient(timeout=5) as client:
            while True:
                with suppress(httpx.HTTPError):
                    response = await client.get(f"http://127.0.0.1:{port}/readyz")
                    if response.status_code == status and response.json()["checks"]["store"] == store:
                        return
                await trio.sleep(0.05)


async def identify(port: int, key: str) -> int | None:
    """The status; `None` where nobody answered."""
    headers = {"x-api-key": key, "origin": ORIGIN, "user-agent": USER_AGENT}
    body = {"signals": report(1), "sdk": {"platform": "web", "version": "1.0.0"}}
    try:
        return (await post(f"http://127.0.0.1:{port}/api/v1/identify", body, headers, 30)).status_code
    except httpx.HTTPError:
        return None


async def send(port: int, key: str) -> None:
    """Until cancelled."""
    while True:
        await identify(port, key)
        await trio.sleep(0.05)


@pytest.mark.slow(3)
@pytest.mark.one_case
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_until_a_write_is_stored_the_service_is_not_ready_and_sends_nothing(tmp_path: Path, workers: str):
    broken = Broken(tmp_path)
    async with receiving(broken.receiver, tmp_path) as port:
        broken.register(port)
        server = await broken.served(SVC_WORKERS=workers)
        children = [] if workers == "1" else server.workers()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send, server.port, broken.key)
                await trio.to_thread.run_sync(
                    server.wait if workers == "1" else partial(server.wait_until_said, WAITING, 2)
                )
                nursery.cancel_scope.cancel()
            sent = broken.receiver.count
            assert sent > 0
            if workers == "1":
                settings = {"port": free_port(), "SVC_WORKERS": workers}
                server = await broken.served(**settings)
                server.wait_until_said(WAITING)
            await until_ready_is(server.port, 503, "failing")
            assert await identify(server.port, broken.key) == 503
            assert "Input/output error" in server.said(WAITING)[0]["because"]
            assert len(server.said("worker died, restarting")) == (0 if workers == "1" else 2), "it died of it once"
            assert broken.receiver.count == sent
            broken.fail.unlink()
            await until_ready_is(server.port, 200, "ok")
            await broken.until_sent_again(sent)
            assert await trio.to_thread.run_sync(server.terminate) == 0
        finally:
            server.kill_all(children)
    assert broken.receiver.faults == []
    run("check", "--data", str(broken.data))


@pytest.mark.slow(2)
@pytest.mark.one_case
@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_ends_a_service_whose_disk_fails(tmp_path: Path, workers: str):
    broken = Broken(tmp_path)
    broken.fail.touch()
    settings = {name: value for name, value in broken.settings.items() if not name.startswith("SVC_WEBHOOK")}
    server = Served(broken.data, port=free_port(), SVC_WORKERS=workers, **settings)
    server.wait_until_said(WAITING)
    assert server.terminate() == 0
