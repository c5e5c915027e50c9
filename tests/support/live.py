"""A whole service on loopback for a test: real edge, real pipeline, real store, a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import trio

from svc.features.keys.command import issue_key
from svc.features.organizations import jobs as organizations
from svc.features.organizations.command import create_organization
from svc.features.tables import TABLES
from svc.features.webhooks.records import Transport
from svc.features.webhooks.transport.resolver import Resolver
from svc.http.server.server import addresses, open_listeners
from svc.identify.records import Event
from svc.identify.tables import STATISTICS
from svc.kernel.access import jobs as keys
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.tables import KEYS
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import KeyRange, OpenEngine
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.schema.table import Table
from svc.kernel.store.tables import META
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import Organization
from svc.serve.service import Service
from svc.serve.serving import listen
from svc.world import RunSync, World
from tests.support import conformance
from tests.support.serving_postgresql import ROOMY_BYTES, faults, open_served, reading, url_of
from tests.support.worlds import EPOCH_MS, SettableClock, settable_world

_NO_TLS = httpx.create_ssl_context(verify=False)
"""Plain HTTP: to make one for each client, or even to read the authorities, takes longer than a request."""
ORIGIN = "https://shop.example"
PUBLIC_ADDRESS = "81.2.69.160"
SCRIPTED = {
    "accept-language": "en-GB,en",
    "sec-fetch-site": "cross-site",
    "sec-fetch-mode": "cors",
    "sec-fetch-dest": "empty",
}
"""What a browser adds to a request that a script of a page makes."""


class Live:
    """One running service and what a test wants to know of it."""

    def __init__(self, found: Opened, world: World, clock: SettableClock, service: Service, port: int) -> None:
        self.metrics_url = ""
        self.found = found
        self.world = world
        self.clock = clock
        self.service = service
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.AsyncClient(
            base_url=self.url,
            timeout=10,
            verify=_NO_TLS,
            trust_env=False,
            event_hooks={"response": [conformance.check]},
        )
        self.organization = self.new_organization()

    def new_organization(self, name: str = "shop", *, credit_usd: float = 10, rate_limit: int = 0) -> Organization:
        return create_organization(
            self.found, self.world, name, credit=round(credit_usd * 1_000_000), rate_limit=rate_limit
        )

    def issue(self, kind: str = "public", environment: str | None = "development", **fields: Any) -> tuple[ApiKey, str]:
        """A new key of the organization; a public one is for the web, from `ORIGIN`, unless told otherwise."""
        given: dict[str, Any] = {"organization": self.organization.number, "name": "test", "region": "us", **fields}
        if kind == "public":
            given = {"platforms": ("web",), "allowed_origins": (ORIGIN,)} | given
        if kind == "management":
            environment, given = None, {"role": "admin"} | given
        return issue_key(self.found, self.world, kind=kind, environment=environment, **given)

    @property
    def options(self) -> tuple[str, ...]:
        """Of a command on the same store."""
        assert self.found.directory is not None
        return options_of(self.found.directory)

    def stored_bytes(self) -> bytes:
        """What is at rest."""
        return bytes_of(self.found)

    def revoke(self, key: ApiKey) -> None:
        self.found.store.write_now([partial(keys.revoke_key, key_id=key.id, now_ms=self.clock.now_ms)])

    def set_billing_status(self, status: str) -> None:
        number, now_ms = self.organization.number, self.clock.now_ms
        author = organizations.Author(self.world.request_id(now_ms), now_ms, "operator")
        self.found.store.write_now(
            [partial(organizations.set_billing_status, number=number, status=status, author=author)]
        )

    def balance(self) -> int:
        with self.found.store.read() as snapshot:
            return lookups.balance(snapshot, self.organization.number)

    def events(self) -> list[tuple[str, Event]]:
        """(request id, event) of the organization, oldest first."""
        from uuid import UUID

        from svc.identify.tables import EVENTS

        with self.found.store.read() as snapshot:
            rows = list(snapshot.scan(EVENTS, self.organization.number))
        return [(str(UUID(bytes=raw_id)), event) for (_, raw_id), event in rows]

    def count(self, table: Table[Any]) -> int:
        """Rows of a table."""
        with self.found.store.read() as snapshot:
            return snapshot.count(table)

    def contents(self) -> dict[str, list[Any]]:
        """Every row that a request could change, for "and nothing changed"."""
        with reading(self.found.store) as snapshot:
            return {table.name: list(snapshot.scan(table)) for table in TABLES if table not in (META, STATISTICS, KEYS)}

    @contextmanager
    def corrupted(self, table: Table[Any]) -> Iterator[None]:
        """Every value of a table fails its check in the block."""
        engine = self.found.store.engine
        with closing(engine.read()) as reader:
            rows = list(reader.range(KeyRange(table.name)))
        assert rows
        engine.write(lambda writer: writer.put_many(table.name, [(key, value + b"?") for key, value in rows]))
        yield
        engine.write(lambda writer: writer.put_many(table.name, rows))

    async def raw(self, *parts: bytes, meanwhile: Callable[[], object] | None = None) -> httpx.Response:
        """Bytes on a socket of their own, and what comes back until the server closes. `meanwhile` is done between the
        first part, a head that expects `100-continue`, and the others: once the server asks for a body.
        """
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        async with stream:
            for place, part in enumerate(parts):
                if place == 1 and meanwhile is not None:
                    assert (await stream.receive_some()).startswith(b"HTTP/1.1 100")
                    meanwhile()
                await stream.send_all(part)
            answer = b"".join([received async for received in stream])
        head, _, body = answer.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        return httpx.Response(int(status.split()[1]), headers=fields, content=body)

    async def slowly(
        self, method: str, path: str, body: Any, headers: dict[str, str], meanwhile: Callable[[], object]
    ) -> httpx.Response:
        """The response to a request whose body is sent when `meanwhile` has been done, after it was authenticated."""
        content = msgspec.json.encode(body)
        fields = {
            "host": f"127.0.0.1:{self.port}",
            "connection": "close",
            "expect": "100-continue",
            "content-type": "application/json",
            "content-length": str(len(content)),
            **headers,
        }
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())])
        return await self.raw(f"{head}\r\n\r\n".encode(), content, meanwhile=meanwhile)

    async def identify(
        self,
        key: str,
        signals: Any = None,
        *,
        origin: str | None = ORIGIN,
        headers: dict[str, str] | None = None,
        sdk: Any = None,
        **body: Any,
    ) -> httpx.Response:
        """One identification as an SDK sends it; from a page, with what browsers add to it."""
        added = {} if origin is None else {"origin": origin, **SCRIPTED}
        sent = {"x-api-key": key, **added, **(headers or {})}
        content = {"sdk": {"platform": "web"} if sdk is None else sdk, "signals": signals or report(), **body}
        return await self.client.post("/api/v1/identify", json=content, headers=sent)


def repeatable(api_key: str, idempotency_key: str) -> dict[str, str]:
    """Headers of an identification by an ordinary browser that may be sent again."""
    return {
        "x-api-key": api_key,
        "origin": ORIGIN,
        "idempotency-key": idempotency_key,
        "user-agent": USER_AGENT,
        "x-forwarded-for": PUBLIC_ADDRESS,
    }


def succeeded(response: httpx.Response) -> Any:
    """What a response says that has to be `200`."""
    assert response.status_code == 200, response.text
    return response.json()


def mistyped(secret: str) -> str:
    """The text of a key with another last character, whatever that was."""
    return secret[:-1] + ("0" if secret[-1] != "0" else "1")


def report(device: int = 1, **changes: Any) -> dict[str, Any]:
    """A plain report of an ordinary browser; devices differ in what identifies them."""
    return {
        "userAgent": USER_AGENT,
        "platform": "Win32",
        "languages": ["en-GB", "en"],
        "timezone": "Europe/London",
        "screen": {"width": 1200 + device * 8, "height": 864, "colorDepth": 24, "devicePixelRatio": 1.25},
        "hardwareConcurrency": 4 + 2 * (device % 7),
        "deviceMemory": 8,
        "maxTouchPoints": 0,
        "webgl": {
            "vendor": "Google Inc. (Intel)",
            "renderer": f"ANGLE (Intel, Intel(R) UHD Graphics {600 + device} Direct3D11 vs_5_0 ps_5_0, D3D11)",
        },
        "fonts": ["Calibri", "Marlett", "Segoe UI Light", f"Font {device}"],
        "plugins": ["PDF Viewer", "Chrome PDF Viewer", "Chromium PDF Viewer"],
        "canvas": f"{device * 7919:032x}",
        "audio": "124.04347527516074",
        **changes,
    }


ENGINE = "lmdb"
"""On which stores are opened; tests/spec runs its tests with each."""

USER_AGENT = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36"
)


_CONFIG: dict[str, Any] = {
    "trusted_proxies": ("127.0.0.1/32",),
    "drain_limit_s": 2,
    # The clock stands still: what is used up would never come back.
    "client_rate": 0,
    "read_rate": 0,
    "management_rate": 0,
    "work_rate": 0,
    "store_share": 1.0,
}


def opened(
    directory: Path,
    world: World | None = None,
    map_bytes: int = ROOMY_BYTES,
    open_engine: OpenEngine = LmdbEngine.open,
) -> Opened:
    """A data directory with its store on `ENGINE`, made where there is none; the caller closes it."""
    assert ENGINE, "this test opens a store: let it take the fixture `engine`"
    world = world or World.real()
    if ENGINE == "postgresql":
        assert open_engine == LmdbEngine.open
        return open_served(directory, world, map_bytes=map_bytes)
    return open_directory(directory, world.run_sync, world.entropy, map_bytes=map_bytes, open_engine=open_engine)


def options_of(directory: Path) -> tuple[str, ...]:
    """Of a command on the store of a data directory."""
    return ("--data", str(directory), *(word for url in settings_of(directory).values() for word in ("--store", url)))


def settings_of(directory: Path) -> dict[str, str]:
    """With which a program finds the store of a data directory."""
    return {"SVC_STORE": str(url_of(directory, has_store=False))} if ENGINE == "postgresql" else {}


def bytes_of(found: Opened) -> bytes:
    """What a store has at rest: LMDB's files, or every key and value in the database."""
    if not found.store.is_shared:
        assert found.directory is not None
        return b"".join(path.read_bytes() for path in (found.directory / "store").iterdir())
    with closing(found.store.engine.read()) as reader:
        return b"".join(key + value for table in TABLES for key, value in reader.range(KeyRange(table.name)))


@asynccontextmanager
async def live_service(
    directory: Path,
    *,
    run_sync: RunSync | None = None,
    map_bytes: int = ROOMY_BYTES,
    now_ms: int = EPOCH_MS,
    transport: Transport | None = None,
    resolver: Resolver | None = None,
    metrics: bool = False,
    open_engine: OpenEngine = LmdbEngine.open,
    open_store: Callable[[Path, World], Opened] | None = None,
    with_check: bool = True,
    **settings: Any,
) -> AsyncGenerator[Live, None]:
    """Serve from a data directory; drained, and every invariant checked, at the end, unless it is `with_check=False`.

    `run_sync` takes the place of real threads, such as `HeldThreads()`; `map_bytes` the size of the store, `now_ms`
    the time at the start; `transport` and `resolver` take the place of the network for webhooks,
    `open_engine` that of the store's engine.
    `open_store` opens another store than one on `ENGINE`.
    With `metrics` they are served too, at `metrics_url`, and the loop is watched, which never rests.
    """
    config = msgspec.structs.replace(Config(**_CONFIG), **settings)
    clock = SettableClock(now_ms)
    world = settable_world(clock)
    if run_sync is not None:
        world = World(world.now_ms, world.entropy, run_sync, elapsed_s=world.elapsed_s)
    found = opened(directory, world, map_bytes, open_engine) if open_store is None else open_store(directory, world)
    shutdown = trio.Event()
    try:
        async with trio.open_nursery() as nursery:
            service = Service(config, world, found, transport=transport, resolver=resolver)
            at = open_listeners(listen("127.0.0.1:0")) if metrics else None
            run = partial(service.run, metrics=at)
            edge = await nursery.start(run, open_listeners(listen("127.0.0.1:0")), shutdown)
            live = Live(found, world, clock, service, edge.addresses[0][1])
            live.metrics_url = f"http://127.0.0.1:{addresses(at)[0][1]}/metrics" if at else ""
            async with live.client:
                yield live
            shutdown.set()
        wrong = await faults(found.store) if with_check else []
        assert wrong == [], wrong
    finally:
        found.store.close()
