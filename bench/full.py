"""A full map and a full disk, repeatedly: what is refused, what is still answered, and how it ends.

A real `svc serve` is filled until nothing more fits, down to the smallest write. Then it has to be up and not ready, to
answer what it has, to erase and to revoke; after that it has to be ready and to take visits again by itself. In one
round it is killed and started again while it is full; at the end somebody else fills the disk and frees it again. A
limit to what the file may grow to stands for a quota: nobody can see it before it is reached, so nothing is kept back
for deletes. What was acknowledged is looked for at the end, and every invariant checked.

    python -m bench.full [--map-mib 4.0] [--rounds 3]
    python -m bench.full [--tmpfs-mib N] [--rounds 3]       a disk of its own; needs the right to mount
    python -m bench.full [--limit-mib N]                    a limit that is raised again
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import UUID

import httpx
import trio

from bench.usage import read_options
from svc.features.checks.invariants import violations
from svc.identify.tables import EVENTS, VISITOR_IDS
from svc.kernel.store.reading import read_only
from svc.kernel.tenants.tables import LEDGER
from tests.support.live import ORIGIN, repeatable, report
from tests.support.process import Served, run_json

CLIENTS = 6
VISITS_TO_FULL = 150
"""About so many fill the place: each report has random bytes accordingly."""
REFUSALS = 12
"""So many in a row, and nothing more fits."""
GIB = 1 << 30


class Outcome(NamedTuple):
    """What the rounds came to."""

    answers: Counter[str]
    """`identify 200`, `challenge 503`, `erase 204` and so on."""
    wrong: list[str]
    """A sentence for whatever was not as it has to be."""


class Ballast:
    """Somebody who takes what is left of the disk."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def take(self, _: int) -> None:
        with self._file.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 16))

    def give_back(self, _: int) -> None:
        self._file.unlink()


class Limit:
    """A limit to the size of any file that a process writes: so many bytes more than the store has now."""

    def __init__(self, store: Path, more: int) -> None:
        self._store = store
        self._more = more

    def take(self, process: int) -> None:
        most = (self._store / "data.mdb").stat().st_size + self._more
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def give_back(self, process: int) -> None:
        resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Full:
    """A service in a small place."""

    def __init__(
        self, data: Path, *, size: int, map_bytes: int | None = None, somebody: Ballast | Limit | None = None
    ) -> None:
        """`size` is that of the map, the disk or the limit, in bytes; `somebody` takes what is left at the end."""
        self._data = data
        self._noise_bytes = min(size // VISITS_TO_FULL, 200_000)
        self._somebody = somebody
        unlimited = dict.fromkeys(("SVC_CLIENT_RATE", "SVC_READ_RATE", "SVC_MANAGEMENT_RATE"), "0")
        self._settings = {"SVC_METRICS_BIND": "", "SVC_STORE_SHARE": "1", **unlimited}
        if map_bytes is not None:
            self._settings["SVC_MAP_GIB"] = str(map_bytes / GIB)
        self._answers: Counter[str] = Counter()
        self._wrong: list[str] = []
        self._told: dict[str, str] = {}
        """Request id of what was answered with 200 -> visitor id."""
        self._erased: set[str] = set()
        self._sent = 0
        self._chance = random.Random(1)

    def run(self, rounds: int) -> Outcome:
        self._organization = run_json(
            *("org", "create", "shop", "--credit-usd", "1000", "--rate-limit", "0", "--data", str(self._data)),
            **self._settings,
        )["organization_id"]
        self._public = self._key("--kind", "public", "--environment", "production", "--origin", ORIGIN)
        self._secret = self._key("--kind", "secret", "--environment", "production")
        self._management = self._key("--kind", "management")
        server = Served(self._data, **self._settings)
        try:
            for number in range(rounds):
                spare = run_json(*self._issue("--kind", "proxy", "--environment", "production"), **self._settings)
                trio.run(self._fill, server.port)
                if number == 1:
                    server.kill()
                    server = Served(self._data, **self._settings)
                trio.run(self._empty, server.port, spare["key"]["id"])
            if self._somebody is not None:
                trio.run(self._crowd_out, server, self._somebody)
        except Exception as failed:
            failed.add_note(f"{'it runs' if server.runs() else 'it has ended'}; its log: {''.join(server.log[-20:])}")
            raise
        finally:
            status = server.terminate()
        self._expect(status == 0, f"the server ended with {status}")
        self._expect(not any('"error"' in line for line in server.log), "the log has errors")
        self._compare()
        return Outcome(self._answers, self._wrong)

    def _issue(self, *arguments: str) -> tuple[str, ...]:
        return ("key", "issue", self._organization, *arguments, "--data", str(self._data))

    def _key(self, *arguments: str) -> str:
        return run_json(*self._issue(*arguments), **self._settings)["secret"]

    def _expect(self, holds: bool, sentence: str) -> None:
        if not holds:
            self._wrong.append(sentence)

    def _client(self, port: int) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=30, verify=False)

    async def _fill(self, port: int) -> None:
        """Until nothing fits, first with visits and then with the least that can be written."""
        async with self._client(port) as client:
            await self._until_refused("identify", client)
            await self._until_refused("challenge", client)
            await self._expect_full(client)

    async def _until_refused(self, what: str, client: httpx.AsyncClient) -> None:
        refused = 0

        async def send() -> None:
            nonlocal refused
            while refused < REFUSALS:
                status = await (self._identify(client) if what == "identify" else self._challenge(client))
                self._expect(status in (200, 503), f"{what} was answered with {status}")
                refused = refused + 1 if status == 503 else 0

        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS if what == "identify" else 1):
                nursery.start_soon(send)

    async def _identify(self, client: httpx.AsyncClient) -> int:
        self._sent += 1
        sent = self._sent
        headers = repeatable(self._public, str(sent))
        signals = report(sent, noise=self._chance.randbytes(self._noise_bytes).hex())
        response = await client.post("/identify", json={"sdk": {}, "signals": signals}, headers=headers)
        if response.status_code == 200:
            answer = response.json()
            self._told[answer["request_id"]] = answer["visitor_id"]
        return self._count("identify", response)

    async def _challenge(self, client: httpx.AsyncClient) -> int:
        headers = {"x-api-key": self._public, "x-svc-sdk-platform": "web", "origin": ORIGIN}
        return self._count("challenge", await client.post("/attestation/challenge", headers=headers))

    def _count(self, what: str, response: httpx.Response) -> int:
        self._answers[f"{what} {response.status_code}"] += 1
        return response.status_code

    async def _expect_full(self, client: httpx.AsyncClient) -> None:
        ready, up = await client.get("/readyz"), await client.get("/healthz")
        self._expect(ready.status_code == 503, f"full, and ready: {ready.text}")
        self._expect(ready.json()["checks"]["store"] == "full", f"full, and says {ready.text}")
        self._expect(up.status_code == 200, f"full, and healthz says {up.status_code}")
        kept = [request_id for request_id, visitor_id in self._told.items() if visitor_id not in self._erased]
        for request_id in self._chance.sample(kept, min(20, len(kept))):
            response = await client.get(f"/events/{request_id}", headers={"x-api-key": self._secret})
            self._expect(self._count("read", response) == 200, f"full, and an event reads as {response.status_code}")

    async def _empty(self, port: int, spare_key: str) -> None:
        """What has to be deleted can be deleted; then there is space."""
        async with self._client(port) as client:
            await self._expect_full(client)
            path = f"/management/organizations/{self._organization}"
            headers = {"x-api-key": self._management}
            revoked = await client.post(f"{path}/proxy-credentials/{spare_key}/revoke", headers=headers)
            self._expect(self._count("revoke", revoked) == 200, f"full, and a key is not revoked: {revoked.text}")
            kept = sorted(set(self._told.values()) - self._erased)
            for visitor_id in self._chance.sample(kept, len(kept) * 2 // 3):
                response = await client.delete(f"{path}/visitors/{visitor_id}", headers=headers)
                if self._count("erase", response) == 204:
                    self._erased.add(visitor_id)
                else:
                    self._wrong.append(f"full, and a visitor is not erased: {response.text}")
            await self._expect_healed(client)

    async def _expect_healed(self, client: httpx.AsyncClient) -> None:
        ready = [await self._identify(client) for _ in range(5)]
        self._expect(ready == [200] * 5, f"there is room again, and visits are answered with {ready}")
        response = await client.get("/readyz")
        self._expect(response.status_code == 200, f"there is room again, and readyz says {response.text}")

    async def _crowd_out(self, server: Served, somebody: Ballast | Limit) -> None:
        """Somebody takes the rest, and gives it back."""
        async with self._client(server.port) as client:
            somebody.take(server.pid)
            await self._until_refused("identify", client)
            await self._expect_full(client)
            somebody.give_back(server.pid)
            await self._expect_healed(client)

    def _compare(self) -> None:
        with read_only(self._data / "store", live=True) as store, store.read() as snapshot:
            self._wrong.extend(list(violations(snapshot))[:5])
            for request_id, visitor_id in self._told.items():
                raw_id, is_erased = UUID(request_id).bytes, visitor_id in self._erased
                self._expect(snapshot.has(LEDGER, 1, raw_id), f"request {request_id} is not on the ledger")
                self._expect(snapshot.has(EVENTS, 1, raw_id) != is_erased, f"request {request_id} is lost or back")
                known = snapshot.has(VISITOR_IDS, 1, visitor_id.encode())
                self._expect(known != is_erased, f"visitor {visitor_id} is lost or back")
            stored = snapshot.count(LEDGER) - 1
        self._expect(stored >= len(self._told), f"{len(self._told)} answered, {stored} on the ledger")


@contextmanager
def small_disk(size_mib: int) -> Generator[Path]:
    """A disk of this size, in memory. Raises `PermissionError` where mounting is not allowed."""
    with TemporaryDirectory(prefix="svc-bench-") as directory:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "none", directory]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            raise PermissionError("needs the right to mount a file system in memory")
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", "--lazy", directory], check=True)


def main() -> None:
    options = read_options(__doc__)
    if options.tmpfs_mib is not None:
        with small_disk(options.tmpfs_mib) as disk:
            size = options.tmpfs_mib << 20
            outcome = Full(disk / "data", size=size, somebody=Ballast(disk / "ballast")).run(options.rounds)
    else:
        with TemporaryDirectory(prefix="svc-bench-") as directory:
            data = Path(directory) / "data"
            if options.limit_mib is not None:
                size = options.limit_mib << 20
                outcome = Full(data, size=size, somebody=Limit(data / "store", size)).run(rounds=0)
            else:
                size = int(options.map_mib * (1 << 20))
                outcome = Full(data, size=size, map_bytes=size).run(options.rounds)
    for what, count in sorted(outcome.answers.items()):
        print(f"{count:7}  {what}")
    print(f"{len(outcome.wrong)} wrong")
    for sentence in outcome.wrong[:20]:
        print(sentence[:300])
    if outcome.wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
