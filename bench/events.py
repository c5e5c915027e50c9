"""What reading events back costs in a large store, and what an event takes on disk.

The store is made in bulk, as for `bench.pages`: events of the last 30 days, a tenth as many visitors, without archived
reports. Then one client asks a server of its own, over HTTP: pages, filters, two filters together.

    python -m bench.events [--events 1000000...] [--requests 400]
"""

from __future__ import annotations

import http.client
import random
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from bench.page_visits import Visits
from bench.serving import ENVIRONMENT, Server, timed
from bench.usage import read_options
from svc.features.keys.command import issue_key
from svc.features.tables import TABLES
from svc.identify.records import Event
from svc.identify.tables import EVENTS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.timestamps import timestamp
from svc.world import World

KNOWN = 2_000
"""Events that questions are about."""


def main() -> None:
    given = read_options(__doc__)
    ENVIRONMENT["SVC_READ_RATE"] = "0"
    for count in given.events:
        with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
            measure(Path(directory), count, given.requests)


def measure(directory: Path, count: int, requests: int) -> None:
    """Fill a store with so many events, and ask it everything."""
    began, world = time.perf_counter(), World.real()
    visits = Visits(directory, max(1, count // 10), count, 0, seed=5, in_time=True, end_ms=world.now_ms() - 60_000)
    print(f"{count:,} events made in {time.perf_counter() - began:.0f} s\n")
    _, secret = issue_key(
        visits.found, world, kind="secret", environment="production", organization=1, name="bench", region="us"
    )
    with visits.found.store.read() as snapshot:
        known = list(islice(snapshot.scan_reverse(EVENTS, (1,), (2,)), KNOWN))
        print(f"{'':20}{'bytes per event':>16}")
        sizes = {table.name: snapshot.size(table) for table in TABLES if snapshot.count(table) >= count}
        for name, size in (*sizes.items(), ("file", visits.found.store.statistics().used_bytes)):
            print(f"{name:20}{size / count:16.0f}")
    visits.found.store.close()
    with Server.serving(directory) as server:
        ask(server, secret, known, requests)


def ask(server: Server, secret: str, known: list[tuple[Any, Event]], requests: int) -> None:
    """Ask each kind of question so often."""
    chance = random.Random(6)
    since = {"from": timestamp(World.real().now_ms() - 29 * DAY_MS)}
    tagged = [event for _, event in known if event.tag is not None]

    def listed(query: dict[str, Any]) -> str:
        return "/events?" + urlencode(query)

    def like(*names: str, **more: Any) -> Callable[[], str]:
        """Filters that some event fits."""

        def question() -> str:
            event = chance.choice(tagged)
            values = {"visitor": event.verdict.visitor_id, "tag": event.tag, "ip_address": event.ip_address,
                      "country": event.country_code}  # fmt: skip
            return listed(since | {name: values[name] for name in names} | more)

        return question

    questions: dict[str, Callable[[], str]] = {
        "no event (healthz)": lambda: "/healthz",
        "first page": lambda: listed({}),
        "first page of 200": lambda: listed({"limit": 200}),
        "page 50 at 200": lambda: listed(since | {"limit": 200, "page": 50}),
        "offset 10,000, 1 row": lambda: listed(since | {"limit": 1, "page": 10_001}),
        "a visitor": like("visitor"),
        "a level": like(level="medium"),
        "a visitor at a level": like("visitor", level="medium"),
        "a tag": like("tag"),
        "an address": like("ip_address"),
        "a country": like("country"),
        "a signal": like(signal="headless"),
        "a kind": like(kind="human"),
        "a kind, 200 rows": like(kind="human", limit=200),
        "country and kind": like("country", kind="human"),
        "signal and country": like("country", signal="headless"),
        "visitor and country": like("visitor", "country"),
        "never together": like(signal="headless", kind="human"),
        "one event": lambda: f"/events/{UUID(bytes=chance.choice(known)[0][1])}",
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port)

    def get(path: str) -> tuple[int, bytes]:
        connection.request("GET", "/api/v1" + path, headers={"x-api-key": secret})
        response = connection.getresponse()
        return response.status, response.read()

    timed(server, questions, get, requests)


if __name__ == "__main__":
    main()
