"""A disk that gives EIO: the process ends, since after a failed sync nothing is known of the store. A service that is
started again and again meanwhile sends no webhook of which it could not write down what came of it (ADR 163).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from svc.store.directory import open_directory
from svc.world import World
from tests.crash.disk import disk_library
from tests.support.acknowledged import shop
from tests.support.journal import Journal, load
from tests.support.killed import Fickle, Status, receiving, register, sending_to
from tests.support.process import ENVIRONMENT, Served, run, start
from tests.support.receivers import Request

STARTS = 3


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

    async def served(self, **settings: str) -> Served:
        return await trio.to_thread.run_sync(partial(Served, self.data, **self.settings, **settings))

    async def until_sent_again(self, before: int) -> None:
        with trio.fail_after(60):
            while self.receiver.count <= before:  # noqa: ASYNC110  another process sends it
                await trio.sleep(0.05)


@pytest.mark.slow(8)
async def test_a_service_that_is_started_again_and_again_sends_nothing(tmp_path: Path):
    broken = Broken(tmp_path)
    async with receiving(broken.receiver, tmp_path) as port:
        broken.register(port)
        server = await broken.served()
        await load(server, broken.key, Journal(), 0, 0, pause_s=0.1, kill=server.wait)
        sent = broken.receiver.count
        assert sent > 0
        for _ in range(STARTS):
            environment = {**ENVIRONMENT, **broken.settings}
            restarted = start("serve", "--data", broken.data, "--bind", "127.0.0.1:0", env=environment)
            assert await trio.to_thread.run_sync(partial(restarted.wait, 60)) != 0
        assert broken.receiver.count == sent
        broken.fail.unlink()
        server = await broken.served()
        await broken.until_sent_again(sent)
        assert await trio.to_thread.run_sync(server.terminate) == 0
    assert broken.receiver.faults == []
    run("check", "--data", str(broken.data))


@pytest.mark.slow(8)
async def test_workers_that_are_replaced_again_and_again_send_nothing(tmp_path: Path):
    broken = Broken(tmp_path)
    async with receiving(broken.receiver, tmp_path) as port:
        broken.register(port)
        server = await broken.served(SVC_WORKERS="2")
        workers = server.workers()
        try:

            def until_replaced(times: int) -> None:
                server.wait_until_said("worker died, restarting", times)

            await load(server, broken.key, Journal(), 0, 0, pause_s=0.1, kill=partial(until_replaced, 2))
            sent = broken.receiver.count
            assert sent > 0
            await trio.to_thread.run_sync(until_replaced, 2 + 2 * STARTS)
            assert broken.receiver.count == sent
            broken.fail.unlink()
            await broken.until_sent_again(sent)
            assert await trio.to_thread.run_sync(server.terminate) == 0
        finally:
            server.kill_all(workers)
    assert broken.receiver.faults == []
    run("check", "--data", str(broken.data))
