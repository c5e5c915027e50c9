"""Power loss: the service's own writes, cut anywhere, with what was not yet durable kept, dropped or torn by chance.

A real `svc serve` under load, and commands beside it, run with tests/crash/write_log.c before them, which logs in one
order what goes to the store's file and what goes to clients. Then the file is built as a power loss may leave it: what
a sync covered is there; of what none did, each 512-byte sector is as any of the writes to it left it, or its first
bytes are of the one and the rest of another. Each such file is opened by the real code in a process of its own, which
checks every invariant, looks for everything that was acknowledged before the cut, and writes on.

    python -m bench.power [--states 2000] [--requests 400] [--seed 1] [--control SAFEGUARD]

A control runs the service with LMDB's `metasync` or `sync` off: it has to lose something, or this proves nothing.
"""

from __future__ import annotations

import hashlib
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import trio

from bench.apart import Apart, Ended
from bench.disk import Record, compiled, losses, read_log
from bench.usage import read_options
from svc.features.checks.invariants import violations
from svc.features.tables import TABLES
from svc.identify.tables import DEFERRED_REPORTS, DOCUMENTS, EVENTS, IDEMPOTENCY, VISITOR_IDS
from svc.kernel.access.tables import KEY_IDS
from svc.kernel.store.directory import open_directory
from svc.kernel.tenants.jobs import add_credit
from svc.kernel.tenants.tables import LEDGER, ORGANIZATION_IDS
from svc.world import World
from tests.support.live import ORIGIN, repeatable, report
from tests.support.process import PROGRAM, Served, run_json

CLIENTS = 6
UNSAFE = """
import lmdb
real = lmdb.open
lmdb.open = lambda *a, **k: real(*a, **{{**k, "{flag}": False}})
import svc.cli
svc.cli.main()
"""
"""The program with one of LMDB's safeguards off."""


class Promise(NamedTuple):
    """A row that is there, or is not, between two places of the log."""

    table: str
    key: tuple[Any, ...]
    is_there: bool
    since: int
    until: int | None


class Recording(NamedTuple):
    """A run of the service, as the disk and its clients saw it."""

    records: list[Record]
    promises: list[Promise]
    pepper: bytes
    nameless: list[str]
    """Directories whose entries were not durable when the first promise was given."""


# The run


class Run:
    """A data directory under load, and what its clients were told."""

    def __init__(self, directory: Path, control: str | None = None) -> None:
        self.data = directory / "data"
        self.log = directory / "writes"
        self.program = PROGRAM if control is None else [sys.executable, "-c", UNSAFE.format(flag=control)]
        self.settings = {
            "LD_PRELOAD": str(compiled(directory)),
            "WRITE_LOG": str(self.log),
            "WRITE_LOG_OF": str(self.data / "store" / "data.mdb"),
            "SVC_MAP_GIB": "0.25",
            "SVC_METRICS_BIND": "",
            "SVC_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
        }
        self._answered: dict[str, list[tuple[str, tuple[Any, ...], bool]]] = {}
        self._told: list[Promise] = []
        self._leaving: dict[str, int] = {}
        """Request id of an event -> where its erasure was asked for."""
        self._left = 0
        self._organization = ""

    def make(self, requests: int) -> Recording:
        organization = self._command("org", "create", "shop", "--credit-usd", "1000", "--rate-limit", "0")
        self._organization = organization["organization_id"]
        self._promise(ORGANIZATION_IDS.name, (self._organization,))
        public = self._key("--kind", "public", "--environment", "production", "--origin", ORIGIN)
        management = self._key("--kind", "management")
        server = Served(self.data, program=self.program, **self.settings)
        self._left = requests
        try:
            trio.run(self._load, server.port, public, management)
        finally:
            status = server.terminate()
        assert status == 0, "".join(server.log)
        records = list(read_log(self.log))
        promises = [*self._told, *self._acknowledged(records)]
        first = min(promise.since for promise in promises)
        named = {record.data.decode() for record in records if record.kind == b"D" and record.at <= first}
        needed = {str(path) for path in (self.data.parent, self.data, self.data / "store")}
        return Recording(records, promises, (self.data / "pepper").read_bytes(), sorted(needed - named))

    def _command(self, *arguments: str) -> Any:
        return run_json(*arguments, "--data", str(self.data), **self.settings)

    def _key(self, *arguments: str) -> str:
        issued = self._command("key", "issue", self._organization, *arguments)
        self._promise(KEY_IDS.name, (issued["key"]["id"],))
        return issued["secret"]

    def _promise(self, table: str, key: tuple[Any, ...]) -> None:
        self._told.append(Promise(table, key, is_there=True, since=self._here(), until=None))

    def _here(self) -> int:
        return self.log.stat().st_size

    async def _load(self, port: int, public: str, management: str) -> None:
        url = f"http://127.0.0.1:{port}/api/v1"
        async with httpx.AsyncClient(base_url=url, timeout=30, verify=False) as client:
            hook = {
                "url": "https://127.0.0.1:65009/hook",
                "description": "",
                "events": ["identification.completed"],
                "environment": "live",
            }
            path = f"/management/organizations/{self._organization}/webhooks"
            made = await client.post(path, json=hook, headers={"x-api-key": management})
            assert made.status_code == 201, made.text
            async with trio.open_nursery() as nursery:
                for number in range(CLIENTS):
                    nursery.start_soon(self._client, client, public, management, number)
                await trio.sleep(0.3)
                await trio.to_thread.run_sync(self._key, "--kind", "secret", "--environment", "production")

    async def _client(self, client: httpx.AsyncClient, public: str, management: str, name: int) -> None:
        chance = random.Random(name)
        sent = 0
        while self._left > 0:
            self._left -= 1
            sent += 1
            erased = sent % 10 == 0
            device = 1000 * (name + 1) + sent if erased else chance.randrange(60)
            key = f"{name}/{sent}"
            answer = await self._identify(client, public, device, key)
            if sent % 7 == 0:
                assert (await self._identify(client, public, device, key))["duplicate"]
            if sent % 5 == 0:
                await self._supplement(client, public, answer)
            if erased:
                await self._erase(client, management, answer)

    async def _identify(self, client: httpx.AsyncClient, public: str, device: int, key: str) -> Any:
        headers = repeatable(public, key)
        body = {"sdk": {"platform": "web"}, "signals": report(device)}
        response = await client.post("/identify", json=body, headers=headers)
        assert response.status_code == 200, response.text
        answer = response.json()
        raw_id = UUID(answer["request_id"]).bytes
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        if "duplicate" not in answer:
            self._answered[response.headers["x-request-id"]] = [
                *((table.name, (1, raw_id), True) for table in (EVENTS, DOCUMENTS, LEDGER)),
                (IDEMPOTENCY.name, (1, digest), True),
                (VISITOR_IDS.name, (1, answer["visitor_id"].encode()), True),
            ]
        return answer

    async def _supplement(self, client: httpx.AsyncClient, public: str, answer: Any) -> None:
        body = {
            "token": answer["deferred_token"],
            "sdk": {"platform": "web", "version": "1"},
            "signals": {"tier": "deferred", "more": "x" * 300},
        }
        path = f"/events/{answer['request_id']}/supplement"
        response = await client.post(path, json=body, headers={"x-api-key": public, "origin": ORIGIN})
        assert response.status_code == 202, response.text
        row = (DEFERRED_REPORTS.name, (1, UUID(answer["request_id"]).bytes), True)
        self._answered[response.headers["x-request-id"]] = [row]

    async def _erase(self, client: httpx.AsyncClient, management: str, answer: Any) -> None:
        self._leaving[answer["request_id"]] = self._leaving[answer["visitor_id"]] = self._here()
        path = f"/management/organizations/{self._organization}/visitors/{answer['visitor_id']}"
        response = await client.delete(path, headers={"x-api-key": management})
        assert response.status_code == 204, response.text
        raw_id = UUID(answer["request_id"]).bytes
        self._answered[response.headers["x-request-id"]] = [
            (VISITOR_IDS.name, (1, answer["visitor_id"].encode()), False),
            *((table.name, (1, raw_id), False) for table in (EVENTS, DOCUMENTS, DEFERRED_REPORTS)),
        ]

    def _acknowledged(self, records: Iterable[Record]) -> Iterator[Promise]:
        """What was promised to clients, from when the first byte of the answer was handed to the kernel."""
        asked = {(UUID(name).bytes if "-" in name else name.encode()): at for name, at in self._leaving.items()}
        for record in records:
            if record.kind != b"A":
                continue
            for request_id in re.findall(rb"(?i)x-request-id: ([0-9a-f-]{36})", record.data):
                for table, key, is_there in self._answered.pop(request_id.decode(), ()):
                    stays = table in (LEDGER.name, IDEMPOTENCY.name) or not is_there
                    yield Promise(table, key, is_there, record.at, None if stays else asked.get(key[1]))
        assert not self._answered, "an answer is not in the log"


# The verdict

REFUSED = "refused"


class Outcome(NamedTuple):
    """What many power losses came to."""

    states: int
    whole: int
    refused: int
    """Found unusable, in so many words, before anything had been promised."""
    wrong: list[str]
    """A sentence for each state that is neither."""
    promises: int
    """Rows that were looked for."""
    ended: Counter[str]


def judge(recording: Recording, count: int, seed: int, scratch: Path, *, until: str | None = None) -> Outcome:
    """Open the files that so many power losses leave; `until`: only up to the first of which this is said."""
    ended: Counter[str] = Counter()
    wrong: list[str] = []
    whole = refused = looked_for = 0
    with Apart("bench.power") as apart:
        for number, loss in enumerate(losses(recording.records, count, seed)):
            due = [promise for promise in recording.promises if _is_due(promise, loss.at)]
            with TemporaryDirectory(dir=scratch) as name:
                (Path(name) / "store").mkdir()
                (Path(name) / "pepper").write_bytes(recording.pepper)
                (Path(name) / "store" / "data.mdb").write_bytes(loss.image)
                end = apart.call("examine", name, [tuple(promise) for promise in due])
            said = _verdict(end, due)
            ended[end.how] += 1
            looked_for += len(due)
            whole += said is None
            refused += said == REFUSED
            if said not in (None, REFUSED):
                wrong.append(f"state {number}, cut after record {loss.cut}: {said}")
                if until is not None and until in str(said):
                    break
    return Outcome(ended.total(), whole, refused, wrong, looked_for, ended)


def _is_due(promise: Promise, at: int) -> bool:
    return promise.since <= at and (promise.until is None or at <= promise.until)


def _verdict(end: Ended, due: list[Promise]) -> str | None:
    if end.how == "returned":
        return "; ".join(end.value) or None
    if end.how in ("CorruptionError", "DirectoryError") and not due:
        return REFUSED
    return f"{end.how}: {end.value}"


def examine(directory: str, rows: list[tuple[Any, ...]]) -> list[str]:
    """What is wrong with a store, in sentences: broken invariants, promises not kept, and so again after a write."""
    due = [Promise(*row) for row in rows]
    world = World.real()
    found = open_directory(
        Path(directory), world.run_sync, world.entropy, create=False, durable=False, map_bytes=1 << 28
    )
    tables = {table.name: table for table in TABLES}
    with found.store.read() as snapshot:
        wrong = list(islice(violations(snapshot), 3))
        wrong.extend(
            f"{promise.table} {promise.key}: acknowledged, and {'lost' if promise.is_there else 'back'}"
            for promise in due
            if snapshot.has(tables[promise.table], *promise.key) != promise.is_there
        )
        there = snapshot.has(ORGANIZATION_IDS, *_organization(due)) if due else False
    if there:
        entry = world.request_id(world.now_ms())
        outcomes = found.store.write_now(
            [partial(add_credit, number=1, entry_id=entry, micros=1, now_ms=world.now_ms(), note="after the loss")]
        )
        wrong.extend(str(outcome) for outcome in outcomes if isinstance(outcome, Exception))
        with found.store.read() as snapshot:
            wrong.extend(f"after a write: {said}" for said in islice(violations(snapshot), 3))
    found.store.close()
    return wrong[:5]


def _organization(due: list[Promise]) -> tuple[Any, ...]:
    return next(promise.key for promise in due if promise.table == ORGANIZATION_IDS.name)


def main() -> None:
    options = read_options(__doc__)
    with TemporaryDirectory(prefix="svc-bench-") as directory:
        recording = Run(Path(directory), options.control).make(options.requests)
        kinds = Counter(record.kind for record in recording.records)
        written = sum(len(record.data) for record in recording.records if record.kind == b"W")
        print(
            f"logged {kinds[b'W']} writes of {written / 1e6:.1f} MB, {kinds[b'S']} syncs, {kinds[b'A']} pieces of "
            f"answers; {len(recording.promises)} rows promised"
        )
        began = time.perf_counter()
        outcome = judge(recording, options.states, options.seed, Path(directory))
        print(
            f"{outcome.states} power losses: {outcome.whole} whole, {outcome.refused} refused before anything was "
            f"promised, {len(outcome.wrong)} wrong; {outcome.promises} promised rows looked for; "
            f"{time.perf_counter() - began:.0f} s; {dict(outcome.ended)}"
        )
        for sentence in outcome.wrong[:10]:
            print(sentence[:300])
        print(f"directories whose entries may be lost: {', '.join(recording.nameless) or 'none'}")
    if bool(outcome.wrong or recording.nameless) != (options.control is not None):
        sys.exit(1)


if __name__ == "__main__":
    main()
