"""Stores that `bench.pages` visits, and the visits: devices that return, and such as come for the first time.

What may live here: how a store is made, and the jobs that the pipeline would commit. What is measured of them is in
`pages`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import lmdb

from bench.page_events import Rows
from bench.page_fill import EPOCH_MS, Countries, Filler, Plan
from bench.reports import device_report, identified, sdk_report, submitted
from svc.features.identification.transaction import identify
from svc.features.organizations.jobs import create_organization
from svc.identify.identification import Submission, assess
from svc.identify.index.queries import Scope
from svc.identify.indexing.jobs import step
from svc.identify.matching import Features, Statistics
from svc.identify.model import RequestFacts
from svc.identify.tables import VISITOR_COUNTS
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import Writer
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.jobs import add_credit
from svc.kernel.values.ids import DAY_MS, ordered_digest
from svc.world import World

ORGANIZATION_ID = f"org_{'bench':0>20}"
GIB = 1 << 30
MODELS = 10_000
"""Devices at most that other visitors are made after."""
FIRST_MODEL, FIRST_NEW = 10**9, 10**6
"""Numbers of devices: from 0 on those that return, each once."""
TAGGED = 0.5


class Visits:
    """Visits of one organization to a store of a given size, of which `devices` may be returns."""

    def __init__(
        self,
        directory: Path,
        visitors: int,
        events: int,
        devices: int,
        *,
        seed: int,
        in_time: bool,
        web_sdk: bool = False,
        accounts: bool = False,
    ) -> None:
        self.chance = random.Random(seed)
        """Of what is in the store."""
        self._visiting = random.Random(seed)
        """The same draws for a store of any size."""
        self._in_time = in_time
        self._web_sdk, self._accounts = web_sdk, accounts
        self._world = World(lambda: EPOCH_MS, self.chance.randbytes, World.real().run_sync)
        self._directory = directory
        self._statistics = Statistics()
        self._devices = list(range(devices))
        self._next_device = FIRST_NEW
        self._at_ms = EPOCH_MS
        self.found = self._open(durable=False)
        self._do(_prepare)
        self._fill(max(visitors, devices), events)
        self._engine.sync()
        self.found.store.close()
        self.found = self._open(durable=True)
        self._visiting.shuffle(self._devices)

    def _open(self, *, durable: bool) -> Opened:
        world = self._world
        return open_directory(self._directory, world.run_sync, world.entropy, durable=durable, map_bytes=32 * GIB)

    def _fill(self, visitors: int, events: int) -> None:
        devices = len(self._devices)
        stride = max(1, visitors // max(1, devices))
        taken = range(1, 1 + stride * devices, stride)
        for device, number in zip(self._devices, taken, strict=True):  # apart from each other on the disk
            self._take_numbers(number - 1)
            visit = assess(self.submission(device, EPOCH_MS - 5 * DAY_MS), Countries())
            self._do(partial(identify, assessment=visit, statistics=Statistics()))
        self._take_numbers(visitors)
        if visitors > devices:
            models = [self._features(FIRST_MODEL + number) for number in range(min(MODELS, visitors))]
            filler = Filler(self.chance, Plan(visitors, taken, events, TAGGED, self._accounts, self._in_time, models))
            began = time.perf_counter()
            for number, rows in enumerate(filler.chunks(), 1):
                self.put(rows)
                if number % 5 == 0 or number < 10:
                    print(f"  {number} chunks of rows in {time.perf_counter() - began:.0f} s", flush=True)
            self._do(filler.finish)
        self.index()

    def _take_numbers(self, highest: int) -> None:
        self._do(partial(Transaction.put, table=VISITOR_COUNTS, key=(1,), value=highest))

    def _features(self, device: int) -> Features:
        return assess(self.submission(device, EPOCH_MS), Countries()).features

    @property
    def _engine(self) -> LmdbEngine:
        engine = self.found.store.engine
        assert isinstance(engine, LmdbEngine)
        return engine

    @property
    def environment(self) -> lmdb.Environment:
        """LMDB's, which this is about."""
        return self._engine.environment

    def put(self, rows: Rows) -> None:
        """Table by table, in the order of keys."""
        self._engine.write(partial(_put_sorted, rows=rows))

    def group(self, size: int, returning: float) -> list[Submission]:
        """The next visits, some milliseconds after the last ones."""
        made: list[Submission] = []
        for _ in range(size):
            self._at_ms += 1
            if self._devices and self._visiting.random() < returning:
                made.append(self.submission(self._devices.pop(), self._at_ms))
            else:
                made.append(self.submission(self._next_device, self._at_ms))
                self._next_device += 1
        return made

    def commit(self, made: Sequence[Submission], learned: Statistics | None = None) -> None:
        """As the pipeline does: one group, and then what was learned from it."""
        identified(self.found.store, made, Countries(), learned or self._statistics)

    def index(self) -> None:
        """As the indexer does, without its waiting for late events."""
        while self._do(partial(step, scope=Scope(1, 0), before_ms=self._at_ms + DAY_MS)):
            pass

    def submission(self, device: int, at_ms: int) -> Submission:
        """A visit of a device: the same report and address each time."""
        chance = random.Random(device)
        signals = {
            **(sdk_report(device)[0] if self._web_sdk else device_report(device)),
            "client_token": f"{device:032x}",
            "nonce": self._id_text(at_ms),
            "collected_at": at_ms,
        }
        key = self._id_text(at_ms)
        return submitted(
            self._world,
            signals,
            at_ms=at_ms,
            key_id="key_0123456789abcdefGHIJ",
            sdk_version="0.2.0",
            origin="https://shop.example",
            account_id=f"user {device}" if self._accounts else None,
            tag=f"account {device}" if chance.random() < TAGGED else None,
            idempotency=ordered_digest(key, blake2b(key.encode(), digest_size=16).digest()),
            facts=RequestFacts(ip=f"81.{chance.randrange(64)}.{chance.randrange(256)}.{chance.randrange(256)}"),
        )

    def _id_text(self, at_ms: int) -> str:
        return str(self._world.request_id(at_ms)) if self._in_time else self.chance.randbytes(16).hex()

    def _do(self, job: Callable[[Transaction], Any]) -> Any:
        return self.found.store.write_one_now(job)


def _prepare(transaction: Transaction) -> None:
    create_organization(transaction, organization_id=ORGANIZATION_ID, name="x", now_ms=EPOCH_MS, rate_limit_per_s=0)
    add_credit(transaction, 1, entry_id=World.real().request_id(0), micros=10**12, now_ms=EPOCH_MS, note="")


def _put_sorted(writer: Writer, rows: Rows) -> None:
    for name, pairs in rows.items():
        pairs.sort()
        writer.put_many(name, pairs)
