"""The whole pipeline under a seed: real store, virtual time, seeded scheduling, clients that retry and walk away."""

from __future__ import annotations

import json
import random
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
import trio
import trio.testing

from svc.cli.keys import issue_key
from svc.cli.organizations import create_organization
from svc.config import Config
from svc.domain.credentials import Key
from svc.domain.model import RequestFacts
from svc.domain.records import Organization
from svc.http.authentication import Caller
from svc.http.client_api import identify
from svc.http.endpoint import Call, Services
from svc.http.schema import IdentifyBody, Sdk
from svc.service import Service
from svc.store.directory import open_directory
from svc.store.invariants import violations
from svc.store.tables import EVENTS, IDEMPOTENCY, LEDGER
from tests.support.live import report
from tests.support.worlds import sim_world

SECONDS = 60
CLIENTS = 40


@contextmanager
def seeded_scheduling(seed: int) -> Generator[None]:
    """Trio shuffles the tasks that may run, on purpose. For a simulation the shuffle comes from the seed.

    Both names are private to trio; this is the only place that knows them.
    """
    from trio._core import _run

    before = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True
    _run._r = random.Random(seed)
    try:
        yield
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r = before


def simulate(seed: int, directory: Path) -> list[str]:
    """One run; every answer with its virtual time, then every row of what it left, as lines."""
    with seeded_scheduling(seed):
        return trio.run(partial(_run, seed, directory), clock=trio.testing.MockClock(autojump_threshold=0))


async def _run(seed: int, directory: Path) -> list[str]:
    world = sim_world(seed)
    found = open_directory(directory, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)
    service = Service(Config(batch_limit=8, admission_capacity=16, stage_capacity=4), world, found)
    chance = random.Random(seed + 1)
    log: list[str] = []
    callers: list[Caller] = []
    for limit, credit_usd, environment in ((5, 1, "production"), (0, 0, "production"), (0, 0, "development")):
        organization = create_organization(found, world, "shop", credit=credit_usd * 1_000_000, rate_limit=limit)
        key, _ = issue_key(
            found,
            world,
            organization=organization.number,
            kind="secret",
            name="",
            environment=environment,
            region="us",
        )
        callers.append(_caller(key, organization))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(service.pipeline.run)
        async with trio.open_nursery() as clients:
            for number in range(CLIENTS):
                clients.start_soon(_client, number, random.Random(chance.random()), service.services, callers, log)
        service.pipeline.admission.close()
    with found.store.read() as snapshot:
        broken = list(violations(snapshot))
        for table in (EVENTS, LEDGER, IDEMPOTENCY):
            log.extend(f"{table.name} {key} {value}" for key, value in snapshot.scan(table))
    found.store.close()
    assert broken == [], f"seed {seed}: {broken}"
    return log


async def _client(
    number: int, chance: random.Random, services: Services, callers: list[Caller], log: list[str]
) -> None:
    """A device that comes a few times, sometimes changed, sometimes twice at once, sometimes gone before the answer."""
    caller = chance.choice(callers)
    for visit in range(chance.randint(1, 6)):
        await trio.sleep(chance.uniform(0, SECONDS / 4))
        changes = {"canvas": f"{visit:032x}"} if chance.random() < 0.3 else {}
        key = f"{number}/{visit}" if chance.random() < 0.8 else None
        signals = msgspec.Raw(json.dumps(report(number % 15, **changes)).encode())
        ask = partial(_ask, services, caller, key, signals, log, f"{number}/{visit}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, chance.uniform(0.001, 0.02) if chance.random() < 0.1 else 60)
            if key is not None and chance.random() < 0.3:
                nursery.start_soon(ask, 60)


async def _ask(
    services: Services,
    caller: Caller,
    key: str | None,
    signals: msgspec.Raw,
    log: list[str],
    name: str,
    patience_s: float,
) -> None:
    at_ms = services.world.now_ms()
    call = Call(
        request_id=services.world.request_id(at_ms),
        at_ms=at_ms,
        headers={} if key is None else {"idempotency-key": key},
        caller=caller,
        platform="web",
        body=IdentifyBody(sdk=Sdk(), signals=signals),
    )
    with trio.move_on_after(patience_s):
        outcome = await identify(services, call)
        log.append(f"{trio.current_time():.6f} {name} {outcome.body} {sorted(outcome.headers.items())}")
        return
    log.append(f"{trio.current_time():.6f} {name} walked away")


def _caller(key: Key, organization: Organization) -> Caller:
    return Caller(
        key=key,
        digest=b"",
        applied=key,
        organization=organization,
        origin=None,
        facts=RequestFacts(ip="81.2.69.160"),
        must_be_native=False,
    )
