"""A data directory under load that is followed by a backup, and what comes back of it: for the drill and its bench."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import trio

from svc.features.backup import segments
from svc.features.backup.segments import SegmentRecord
from svc.features.keys.command import issue_key
from svc.features.organizations.command import create_organization
from svc.features.webhooks.content.envelope import secrets_key
from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, create_endpoint
from svc.identify.tables import EVENTS
from svc.kernel.store import operations
from svc.kernel.store.directory import open_directory
from svc.kernel.store.reading import read_only
from svc.kernel.values.timestamps import read_timestamp
from svc.world import World
from tests.support.backup import Rows, rows_of
from tests.support.journal import Journal, load
from tests.support.live import ORIGIN
from tests.support.process import ENVIRONMENT, Served, run, run_json, start

SOME = 50
"""Answers between one step of the drill and the next."""


class TimedJournal(Journal):
    """When each key was answered, too, in Unix milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self.answered_at_ms: dict[str, int] = {}

    def note(self, key: str, request_id: str) -> None:
        super().note(key, request_id)
        self.answered_at_ms.setdefault(request_id, time.time_ns() // 1_000_000)

    async def grow(self) -> None:
        """Until some more requests were answered."""
        enough = len(self.answered_at_ms) + SOME
        with trio.fail_after(60):
            while len(self.answered_at_ms) < enough:  # noqa: ASYNC110  the answers come from another process
                await trio.sleep(0.02)

    def until(self, at_ms: int) -> set[str]:
        """The requests that were answered by then."""
        return {request_id for request_id, answered in self.answered_at_ms.items() if answered <= at_ms}


@asynccontextmanager
async def under_load(server: Served, drill: Drill, journal: Journal) -> AsyncGenerator[None]:
    """Clients that identify, each with its own keys, until the server is killed under them."""
    round_number = len(journal.answers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(load, server, drill.key, journal, round_number, math.inf, pause_s=0.02))
        yield
        await trio.to_thread.run_sync(server.kill)
        nursery.cancel_scope.cancel()


class Following:
    """A running `svc backup --follow`."""

    def __init__(self, directory: Path, folder: Path) -> None:
        command = ("backup", folder, "--follow", "--data", directory)
        self._process = start(*command, stderr=subprocess.PIPE, env=ENVIRONMENT)
        assert self._process.stderr is not None
        self.said: list[str] = []
        for line in self._process.stderr:
            self.said.append(json.loads(line)["event"])
            if self.said[-1] == "following":
                return
        raise AssertionError(f"it does not follow: {self.said}")

    def kill(self) -> None:
        """Without waiting for its end."""
        self._process.kill()

    def end(self, number: int) -> int:
        self._process.send_signal(number)
        self._process.communicate(timeout=30)
        return self._process.returncode


class Drill:
    """One data directory with a key and a webhook endpoint, and the folder that it is backed up to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data, self.folder = root / "data", root / "backup"
        world = World.real()
        found = open_directory(self.data, world.run_sync, world.entropy)
        number = create_organization(found, world, "shop", credit=10**9, rate_limit=0).number
        issue = partial(issue_key, found, world, organization=number, name="drill", region="us")
        allowed = {"platforms": ("web",), "allowed_origins": (ORIGIN,)}
        _, self.key = issue(kind="public", environment="production", **allowed)
        _, management = issue(kind="management", environment=None, role="admin")
        new = NewEndpoint(id="whk_" + "0" * 20, url="https://192.0.2.7/", description="", environment="live", events=())
        key, now_ms = secrets_key(found.pepper), world.now_ms()
        job = partial(create_endpoint, number=number, new=new, secrets_key=key, now_ms=now_ms)
        (issued,) = found.store.write_now([job])
        assert isinstance(issued, Issued), issued
        self.hidden = [self.key.encode(), management.encode(), issued.secret.encode(), found.pepper]
        found.store.close()

    def restore(self, name: str, *options: str) -> tuple[Path, dict[str, Any]]:
        """A restored directory that `svc check` finds whole."""
        directory = self.root / name
        pepper = str(self.data / "pepper")
        restored = run_json("restore", str(self.folder), "--data", str(directory), *options, SVC_PEPPER_FILE=pepper)
        run("check", "--data", str(directory), SVC_PEPPER_FILE=pepper)
        return directory, restored

    def rows(self, directory: Path) -> Rows:
        world = World.real()
        found = open_directory(directory, world.run_sync, world.entropy, pepper_file=self.data / "pepper")
        try:
            return rows_of(found.store)
        finally:
            found.store.close()

    def wait_until_copied(self) -> None:
        """Until the follower has copied every commit that there is."""
        end = time.monotonic() + 30
        while not self._is_copied():
            assert time.monotonic() < end, "the follower does not come up to the store"
            time.sleep(0.05)

    def _is_copied(self) -> bool:
        with read_only(self.data / "store", live=True) as store, store.read() as snapshot:
            position = operations.position(snapshot)
        assert position is not None
        *_, last = segments.listed(self.folder, position.timeline)
        found = [record for record in segments.records(last, last=True) if isinstance(record, SegmentRecord)]
        return bool(found) and found[-1].sequence == position.sequence


def requests_in(rows: Rows) -> set[str]:
    return {str(UUID(bytes=raw_id)) for (_, raw_id), _ in rows[EVENTS.name]}


class Loss(NamedTuple):
    """What was gone with a node, of what had been answered there."""

    answered: int
    missing: int
    """Answers that the restored directory does not know."""
    seconds: float
    """From the first of them to the end of the node."""


async def lose_the_node(drill: Drill, journal: TimedJournal, name: str, seconds: float) -> Loss:
    """Kill service and follower in one moment, so long into a load; restore from the backup alone, and compare.

    Whatever was answered by the moment that the restore names has to be there.
    """
    server = await trio.to_thread.run_sync(Served, drill.data)
    follower = await trio.to_thread.run_sync(Following, drill.data, drill.folder)
    async with under_load(server, drill, journal):
        await journal.grow()
        await trio.sleep(seconds)
        follower.kill()
    ended_ms = time.time_ns() // 1_000_000
    await trio.to_thread.run_sync(follower.end, signal.SIGKILL)
    directory, restored = await trio.to_thread.run_sync(drill.restore, name)
    found = requests_in(drill.rows(directory))
    reached = read_timestamp(restored["restored_to"])
    assert reached is not None
    assert journal.until(reached) <= found
    missing = {request_id: at for request_id, at in journal.answered_at_ms.items() if request_id not in found}
    first = min(missing.values(), default=ended_ms)
    return Loss(len(journal.answered_at_ms), len(missing), (ended_ms - first) / 1000)
