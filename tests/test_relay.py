"""The relay: with several workers each thing is done by the one that does it, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import UUID

import trio

from svc.features.events.live import MAX_VIEWERS
from svc.kernel.config import Config
from svc.kernel.store.directory import open_directory
from svc.kernel.values.partitions import EndpointKey
from svc.serve.service import Service
from svc.workers.bus import announce, reach
from svc.workers.shared_memory import WorkerSlot
from svc.world import World
from tests.http.test_console_stream import EVERYTHING, an_event
from tests.workers.test_bus import REFUSED

QUEUE = EndpointKey(1, 2)


@asynccontextmanager
async def two_workers(directory: Path) -> AsyncGenerator[tuple[Service, Service]]:
    """The first is the leader. Their relays run, and nothing else."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False, map_bytes=16 << 20)
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        stack.callback(found.store.close)
        services: list[Service] = []
        for index in range(2):
            bus = stack.enter_context(reach(directory, WorkerSlot(index, 2)))
            if index == 0:
                bus.keep()
            services.append(Service(Config(), world, found, directory, slot=WorkerSlot(index, 2), bus=bus))
        for service in services:
            nursery.start_soon(service.relay.run)
        yield services[0], services[1]
        nursery.cancel_scope.cancel()


async def until(holds: Callable[[], object]) -> None:
    with trio.fail_after(60):
        while not holds():
            await trio.lowlevel.checkpoint()


async def test_messages_for_the_leader_go_only_to_the_leader(tmp_path: Path):
    async with two_workers(tmp_path) as (leader, worker):
        worker.relay.due((QUEUE,))
        worker.relay.refused(REFUSED)
        await until(lambda: leader.outbox.statistics().queues == 1 and leader.refusals._gathered)
        assert worker.outbox.statistics().queues == 0
        assert not worker.refusals._gathered


async def test_a_viewer_sees_events_of_any_worker_and_its_session_ends_everywhere(tmp_path: Path):
    async with two_workers(tmp_path) as (leader, worker):
        viewer = leader.live.watch(1, "production", EVERYTHING, b"session")
        assert viewer is not None
        await until(lambda: worker.relay.viewers_elsewhere(1) == 1)
        worker.relay.identified(1, UUID(int=7), an_event())
        with trio.fail_after(60):
            found = await viewer.next()
        assert found.request_id == UUID(int=7)
        worker.relay.ended(b"session")
        with trio.fail_after(60):
            try:
                await viewer.next()
            except trio.EndOfChannel:
                viewer.close()
        await until(lambda: worker.relay.viewers_elsewhere(1) == 0)


async def test_the_viewers_of_an_organization_are_limited_across_all_workers(tmp_path: Path):
    async with two_workers(tmp_path) as (leader, worker):
        for service in (leader, worker):
            for _ in range(MAX_VIEWERS // 2):
                assert service.live.watch(1, "production", EVERYTHING, b"") is not None
        await until(lambda: worker.relay.viewers_elsewhere(1) == MAX_VIEWERS // 2)
        assert worker.live.watch(1, "production", EVERYTHING, b"") is None
        assert worker.live.watch(2, "production", EVERYTHING, b"") is not None


async def test_a_command_ends_the_viewers_of_invalid_sessions(tmp_path: Path):
    valid = True

    async def holds() -> bool:
        return valid

    async with two_workers(tmp_path) as workers:
        viewers = [each.live.watch(1, "production", EVERYTHING, b"", holds) for each in workers]
        valid = False
        announce(tmp_path)
        for viewer in viewers:
            assert viewer is not None
            with trio.fail_after(60):
                try:
                    await viewer.next()
                except trio.EndOfChannel:
                    continue
            raise AssertionError("it was shown something")
