"""A service that is killed repeatedly under load, and what its clients were told compared with its store (R1).

What may live here: one run of it, and the comparison, which the run with webhooks makes too. How often it is killed,
the caller says.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import trio

from svc.identify.tables import EVENTS, IDEMPOTENCY
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.tables import BALANCES
from svc.world import World, elapsed_s
from tests.support.customer import Customer
from tests.support.journal import Journal, load, send_at_once, settle
from tests.support.live import ORIGIN
from tests.support.process import Served, run, run_json

CREDIT_USD = 100_000
PRICE_MICROS = 3_000


class Outcome(NamedTuple):
    """What came of a run. `faults` is what must not be, each as a sentence."""

    kills: int
    acknowledged: int
    """Idempotency keys of which a client was told."""
    cut_off: int
    """Requests that were under way at a kill, and were sent again."""
    unheard: int
    """Of these, those that were on the disk: nobody had been told, and sent again they must not be made again."""
    events: int
    back_s: list[float]
    """From each kill until all that it ended served again, in seconds."""
    faults: list[str]


VICTIMS = ("worker", "leader", "parent")


async def killed_under_load(
    directory: Path,
    seed: int,
    kills: int,
    tell: Callable[[str], None],
    *,
    workers: int = 1,
    keys: int = 0,
    at_random: bool = False,
) -> Outcome:
    """One run over a fresh data directory. With two workers a worker, the leader and the parent are killed in turn, or
    drawn by seed; in the end clients send `keys` idempotency keys to both at once. Raises when the service does not
    start, go on or end well.
    """
    chance, journal = random.Random(seed), Journal()
    api_key = shop(directory)
    customer = await trio.to_thread.run_sync(Customer, directory)
    victims, start = VICTIMS if workers > 1 else ("parent",), partial(_started, directory, workers)
    server = await trio.to_thread.run_sync(start)
    cut_off = unheard = 0
    back_s: list[float] = []
    for number in range(kills):
        victim = chance.choice(victims) if at_random else victims[number % len(victims)]
        kill = None if workers == 1 else partial(kill_one, server, directory, victim, back_s)
        seconds = chance.uniform(0.2, 0.9)
        await load(server, api_key, journal, number, seconds, kill=kill, beside=customer.change)
        cut_off += len(journal.unanswered)
        with _read(directory) as snapshot:
            left = snapshot.count(EVENTS) - len(journal.answers)
        unheard += left
        if victim == "parent":
            began = trio.current_time()
            server = await trio.to_thread.run_sync(start)
            back_s.append(trio.current_time() - began)
        tell(
            f"kill {number + 1}, the {victim}: {len(journal.answers)} acknowledged, "
            f"{left} of {len(journal.unanswered)} unheard of, back after {back_s[-1]:.2f} s"
        )
    await settle(server, api_key, journal)
    await send_at_once(server, api_key, journal, keys)
    assert await trio.to_thread.run_sync(server.terminate) == 0, "the service did not end well"
    await trio.to_thread.run_sync(partial(run, "check", "--data", str(directory)))
    with _read(directory) as snapshot:
        faults = [*lost_or_billed_twice(snapshot, journal), *customer.faults(snapshot)]
        events = snapshot.count(EVENTS)
    return Outcome(kills, len(journal.answers), cut_off, unheard, events, back_s, faults)


def _started(directory: Path, workers: int) -> Served:
    """A service of which every worker serves."""
    server = Served(directory, SVC_WORKERS=str(workers))
    if workers > 1:
        server.wait_for_workers(workers)
    return server


def kill_one(server: Served, directory: Path, victim: str, back_s: list[float]) -> None:
    """Kill one of `VICTIMS`. A dead worker is waited for, and how long it was away is added to `back_s`."""
    if victim == "parent":
        server.kill()
        return
    began = elapsed_s()
    server.kill_worker(directory, leader=victim == "leader")
    server.wait_for_workers(2)
    back_s.append(elapsed_s() - began)


@contextmanager
def _read(directory: Path) -> Generator[Snapshot]:
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy)
    try:
        with found.store.read() as snapshot:
            yield snapshot
    finally:
        found.store.close()


def shop(directory: Path, name: str = "shop", **settings: str) -> str:
    """The API key of a new organization with credit for any run, and without a limit of its rate."""
    credit = ("--credit-usd", str(CREDIT_USD), "--rate-limit", "0", "--data", str(directory))
    organization = run_json("org", "create", name, *credit, **settings)
    key = ("--kind", "public", "--environment", "production", "--origin", ORIGIN, "--data", str(directory))
    return run_json("key", "issue", organization["organization_id"], *key, **settings)["secret"]


def lost_or_billed_twice(snapshot: Snapshot, journal: Journal) -> Iterator[str]:
    """What was acknowledged and is not there, and what of the store of this journal's load was made or billed twice.

    That the balance is the sum of the ledger is for `svc check`.
    """
    stored = {str(UUID(bytes=raw_id)) for (_, raw_id), _ in snapshot.scan(EVENTS)}
    for key, request_ids in journal.answers.items():
        if len(set(request_ids)) != 1:
            yield f"the key {key} was answered by several identifications: {sorted(set(request_ids))}"
        for missing in set(request_ids) - stored:
            yield f"the request {missing}, which answered {key}, is missing"
    remembered = Counter(str(UUID(bytes=row.request_id)) for _, row in snapshot.scan(IDEMPOTENCY))
    for request_id in stored ^ remembered.keys():
        yield f"the event and the idempotency key of {request_id} are not both there"
    for request_id, keys in remembered.items():
        if keys > 1:
            yield f"{keys} idempotency keys say that {request_id} answered them"
    made = Counter(number for (number, _), _ in snapshot.scan(EVENTS))
    for (number,), balance in snapshot.scan(BALANCES):
        spent = CREDIT_USD * 1_000_000 - balance
        if spent != PRICE_MICROS * made[number]:
            yield f"{spent} micros were taken from organization {number} for {made[number]} identifications"
