"""One of several processes that write to one store: visits of organization 1, assessed and committed in groups.

    python -m tests.support.writer_process DIRECTORY NUMBER GROUPS

Says `ready` when the devices that come again are there, and goes on at a line of its input. In the end it prints how
many visits it has committed.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from pathlib import Path

import trio

from bench.reports import device_report, submitted
from svc.features.identification.pipeline.frequencies import ClassKey, Frequencies
from svc.features.identification.transaction import Recorded, identify
from svc.identify.identification import Submission, assess
from svc.identify.model import RequestFacts
from svc.identify.network_data.lookup import BuiltInRanges
from svc.identify.queries.learned import PRODUCTION
from svc.identify.recording.visitors import VisitorNumbers
from svc.kernel.store.directory import open_directory
from svc.world import World
from tests.support.writes import writes

GROUP, DEVICES, NEW = 22, 66, 0.3
"""Visits of a commit, devices that come again, and the share of visits of others."""


def visit(world: World, device: int) -> Submission:
    """Of a device with its token, from a network of its own, under a new idempotency key."""
    signals = device_report(device) | {"client_token": f"{device:032x}"}
    facts = RequestFacts(ip=f"81.{device >> 16 & 255}.{device >> 8 & 255}.{device & 255}")
    return submitted(world, signals, facts, idempotency=world.entropy(16))


async def run(directory: Path, number: int, groups: int) -> int:
    world, chance, numbers = World.real(), random.Random(number), VisitorNumbers(32)
    found = open_directory(directory, world.run_sync, world.entropy)
    frequencies = Frequencies(found.store)
    fresh = iter(range(10_000 * (1 + number), 1_000_000))

    async def commit(devices: list[int]) -> None:
        made = [assess(visit(world, each), BuiltInRanges()) for each in devices]
        keys = [ClassKey(1, PRODUCTION, one.features.family) for one in made]
        handed_out = numbers.hand_out([1] * len(made))
        jobs = [
            partial(identify, assessment=one, statistics=await frequencies.of(key), next_number=next_number)
            for one, key, next_number in zip(made, keys, handed_out, strict=True)
        ]
        outcomes = await found.store.write(writes(jobs), urgent=True)
        for key, next_number, recorded in zip(keys, handed_out, outcomes, strict=True):
            assert isinstance(recorded, Recorded), recorded
            await frequencies.learn(key, recorded)
            numbers.give_back(1, next_number, recorded.new_number)

    await commit(list(range(number, DEVICES, 2)))
    print("ready", flush=True)  # noqa: T201  it is what it is asked for
    sys.stdin.readline()
    for _ in range(groups):
        await commit([next(fresh) if chance.random() < NEW else chance.randrange(DEVICES) for _ in range(GROUP)])
    found.store.close()
    return groups * GROUP


if __name__ == "__main__":
    print(trio.run(run, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))  # noqa: T201
