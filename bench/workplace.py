"""The workplace of analysts on a large store: lists, first paint of every screen, and identify beside ten analysts.

The store is made by `bench.workplace_store` where the folder has none: half an hour for a million events. Then one
service serves it. Lists are asked over HTTP with a session of the console, one question after the other; screens are
opened in headless Chromium; a client identifies, in turn without analysts and beside ten who open a screen each second.

    python -m bench.workplace DIRECTORY [--events 1000000] [--requests 20] [--only lists,screens,identify]
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from bench.load import Client
from bench.measures import p50_p99
from bench.sdk_visits import SdkVisits
from bench.serving import ENVIRONMENT, Server, timed
from bench.usage import read_options
from bench.workplace_store import ORIGIN, Workplace
from svc.features.lists.tables import LISTS
from svc.identify.tables import EVENTS
from svc.kernel.store.reading import read_only
from svc.kernel.tenants.tables import ORGANIZATIONS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.support.chromium import browser
from tests.support.process import run_json

DAYS = 90
ROUNDS = 3
ANALYSTS = 10
WINDOW_S = 12.0
PAIRS = 2
SETTINGS = {
    "SVC_EVENT_RETENTION_DAYS": str(DAYS + 10),
    **dict.fromkeys(("SVC_READ_RATE", "SVC_MANAGEMENT_RATE", "SVC_CLIENT_RATE"), "0"),
}
PRODUCTION = {"environment": "production"}
CLICKED = (
    "events", "events of an account", "events by level and country", "visitors by last seen", "accounts by last seen",
    "search", "one event", "one visitor", "one account", "links of a visitor", "reviews, open", "reviews, closed",
    "rules with counts", "lists", "entries", "performance, 30 days", "statistics, 24 h", "audit", "members",
)  # fmt: skip
"""What analysts open, of all questions: screens as they open first, and what leads from there."""


class Some(NamedTuple):
    """What questions are about."""

    organization: str
    request_ids: list[str]
    visitors: list[str]
    accounts: list[str]
    addresses: list[str]
    list_id: str
    """Of the longest list."""


def main() -> None:
    options = read_options(__doc__)
    ENVIRONMENT.update(SETTINGS)
    if not (options.directory / "store").exists():
        Workplace(options.directory, options.events, DAYS).build()
    some = found_in(options.directory)
    public = run_json(
        *("key", "issue", some.organization, "--kind", "public", "--environment", "production", "--origin", ORIGIN),
        *("--data", str(options.directory)),
    )["secret"]
    server = Server.serving(options.directory)
    try:
        steps = {
            "lists": lambda: timed(
                server,
                questions(some, random.Random(6)),
                Session(server, signed_in(server, options.directory, some)).get,
                options.requests,
            ),
            "screens": lambda: screens(server, options.directory, some),
            "identify": lambda: beside_analysts(server, options.directory, some, public),
        }
        for name in options.only.split(","):
            steps[name]()
    finally:
        server.stop()


def found_in(directory: Path) -> Some:
    with read_only(directory / "store", live=True) as store, store.read() as snapshot:
        ((number,), organization), *_ = snapshot.scan(ORGANIZATIONS)
        events: list[tuple[str, Any]] = []
        for (_, raw_id), event in snapshot.scan_reverse(EVENTS, (number,), (number + 1,)):
            events.append((raw_id.hex(), event))
            if len(events) == 2000:
                break
        (longest,) = (found.id for _, found in snapshot.scan(LISTS, number) if found.name == "blocked_addresses")
        print(f"{snapshot.count(EVENTS):,} events of {DAYS} days\n")
    production = [(raw, event) for raw, event in events if event.environment == "production"]
    ids = [f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}" for raw, _ in production]
    return Some(
        organization=organization.id,
        request_ids=ids,
        visitors=[event.verdict.visitor_id for _, event in production],
        accounts=[event.account_id for _, event in production if event.account_id is not None],
        addresses=[event.ip_address for _, event in production],
        list_id=longest,
    )


class Session:
    """A connection of a browser that is signed in, by these headers."""

    def __init__(self, server: Server, headers: dict[str, str]) -> None:
        self._connection, self._headers = http.client.HTTPConnection("127.0.0.1", server.port), headers

    def get(self, path: str) -> tuple[int, bytes]:
        self._connection.request("GET", f"/console/api/{path}", headers=self._headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def signed_in(server: Server, directory: Path, some: Some) -> dict[str, str]:
    """Headers of a browser's requests; an address may not sign in often."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    own = {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin"}
    body = json.dumps({"token": link(server, directory, some).partition("#")[2]})
    connection.request("POST", "/console/session", body, {**own, "content-type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200, response.status
    return {**own, "cookie": response.headers["set-cookie"].partition(";")[0]}


def link(server: Server, directory: Path, some: Some) -> str:
    url = f"http://127.0.0.1:{server.port}"
    return run_json("console", "link", some.organization, "--url", url, "--data", str(directory))["url"]


def questions(some: Some, chance: random.Random) -> dict[str, Callable[[], str]]:
    """Everything that the screens list, by what it is called in the table."""
    now_ms = World.real().now_ms()

    def listed(path: str, **query: Any) -> Callable[[], str]:
        def ask() -> str:
            given = {name: value() if callable(value) else value for name, value in query.items()}
            return f"{path}?{urlencode({**PRODUCTION, 'limit': 50, **given})}"

        return ask

    def one(kind: str, ids: list[str]) -> Callable[[], str]:
        return lambda: f"{kind}/{quote(chance.choice(ids), safe='')}?{urlencode(PRODUCTION)}"

    def since(days: int) -> str:
        return timestamp(now_ms - days * DAY_MS)

    managed = f"management/organizations/{some.organization}"
    window = {"from": timestamp(now_ms - 30 * DAY_MS + 600_000), "to": timestamp(now_ms)}
    seen_visitors, seen_accounts = "seen-visitors", "seen-accounts"
    return {
        "events": listed("events"),
        "events of an account": listed("events", account_id=lambda: chance.choice(some.accounts), **window),
        "events by level and country": listed("events", level="high", country="US", **window),
        "events by label": listed("events", label="fraud", **window),
        "events by decision": listed("events", decision="review", **window),
        "events of nobody": listed("events", account_id="nobody", signal="tor", **window),
        "visitors by last seen": listed(seen_visitors),
        "visitors by score": listed(seen_visitors, sort="score"),
        "visitors by events": listed(seen_visitors, sort="events"),
        "visitors with 3 accounts": listed(seen_visitors, min_accounts=3),
        "visitors of a country": listed(seen_visitors, country="NZ"),
        "visitors at a level": listed(seen_visitors, level="high"),
        "visitors by prefix": listed(seen_visitors, q=lambda: chance.choice(some.visitors)[:4]),
        "visitors of a network": listed(
            seen_visitors, q=lambda: chance.choice(some.addresses).rpartition(".")[0] + ".0/24"
        ),
        "visitors of nobody": listed(seen_visitors, q="zzzzzz"),
        "accounts by last seen": listed(seen_accounts),
        "accounts by visitors": listed(seen_accounts, sort="visitors"),
        "accounts with 6 visitors": listed(seen_accounts, min_visitors=6),
        "accounts by prefix": listed(seen_accounts, q="user-1234"),
        "accounts of nobody": listed(seen_accounts, q="nobody"),
        "search": lambda: f"search?{urlencode({**PRODUCTION, 'q': chance.choice(some.visitors)[:6]})}",
        "one event": lambda: f"events/{chance.choice(some.request_ids)}",
        "one visitor": one("visitors", some.visitors),
        "one account": one("accounts", some.accounts),
        "links of a visitor": lambda: f"links?{urlencode({**PRODUCTION, 'visitor': chance.choice(some.visitors)})}",
        "reviews, open": lambda: f"{managed}/reviews?state=open&limit=200",
        "reviews of nobody": lambda: f"{managed}/reviews?state=open&assignee=mem_{'0' * 20}",
        "reviews, closed": lambda: f"{managed}/reviews?state=closed",
        "rules with counts": lambda: f"{managed}/rules",
        "lists": lambda: f"{managed}/lists",
        "entries": lambda: f"{managed}/lists/{some.list_id}/entries?limit=100",
        "entries by prefix": lambda: f"{managed}/lists/{some.list_id}/entries?limit=100&q=203.7",
        "performance, 30 days": lambda: f"{managed}/performance",
        "performance, 365 days": lambda: f"{managed}/performance?{urlencode({'from': since(365)})}",
        "statistics, 24 h": lambda: f"statistics?{urlencode({**PRODUCTION, 'from': since(1), 'step': 'hour'})}",
        "statistics, 30 days": lambda: f"statistics?{urlencode({**PRODUCTION, **window, 'step': 'day'})}",
        "networks, 30 days": lambda: f"networks?{urlencode({**PRODUCTION, **window})}",
        "audit": lambda: "audit?limit=50",
        "billing": lambda: "billing",
        "members": lambda: f"{managed}/members",
        "deliveries": lambda: f"{managed}/webhook-deliveries?limit=50",
    }


def screens(server: Server, directory: Path, some: Some) -> None:
    """First paint of every screen, in headless Chromium."""
    names = "live events visitors accounts reviews overview rules lists performance webhooks weights members settings"
    asked = {name: f"#/{name}" for name in (*names.split(), "audit", "billing")}
    asked |= {
        "event": f"#/events/{some.request_ids[7]}",
        "visitor": f"#/visitors/{some.visitors[7]}",
        "account": f"#/accounts/{some.accounts[7]}",
        "list": f"#/lists/{some.list_id}",
        "search": f"#/search?q={some.visitors[9][:6]}",
    }
    asked = {name: f"{place}{'&' if '?' in place else '?'}environment=production" for name, place in asked.items()}
    configuration: dict[str, Any] = {
        "service": f"http://127.0.0.1:{server.port}",
        "link": link(server, directory, some),
        "rounds": ROUNDS,
        "screens": asked,
    }
    found = json.loads(browser().run("paint.mjs", json.dumps(configuration), timeout_s=400))
    print(f"\n{'ms, medians':14}{'opened':>9}{'longest':>9}{'server':>9}{'requests':>10}{'load':>9}")
    for name, times in found.items():
        opened, server_ms, load = (sorted(times[kind]) for kind in ("opened", "server", "load"))
        middle = len(opened) // 2
        print(
            f"{name:14}{opened[middle]:9.0f}{opened[-1]:9.0f}{server_ms[middle]:9.0f}{times['requests']:10}"
            f"{load[middle]:9.0f}"
        )


def beside_analysts(server: Server, directory: Path, some: Some, public: str) -> None:
    """The p50 of identify, in turn without analysts and beside ten who open a screen each second."""
    headers = signed_in(server, directory, some)
    sessions = [Session(server, headers) for _ in range(ANALYSTS)]
    make = SdkVisits(5_000, "small", token=False).in_order([public], 1)
    found: dict[str, list[float]] = {"alone": [], "beside 10": []}
    identify(server, make, 3)
    for _ in range(PAIRS):
        found["alone"] += identify(server, make, WINDOW_S)
        with clicking(sessions, some):
            found["beside 10"] += identify(server, make, WINDOW_S)
    for name, times in found.items():
        p50, p99 = p50_p99(times)
        print(f"identify {name:10} {len(times):6} p50 {p50:6.2f} ms, p99 {p99:6.2f} ms")
    print(f"ratio of p50: {p50_p99(found['beside 10'])[0] / p50_p99(found['alone'])[0]:.2f}")


def identify(server: Server, make: Callable[[], bytes], seconds: float) -> list[float]:
    """Milliseconds of each identification, 20 a second: a new one whatever became of the last."""
    client = Client(server.port)
    times: list[float] = []
    began = time.perf_counter()
    for turn in range(round(seconds * 20)):
        time.sleep(max(0.0, began + turn / 20 - time.perf_counter()))
        sent = time.perf_counter()
        assert client.ask(make()) == 200
        times.append(1000 * (time.perf_counter() - sent))
    client.socket.close()
    return times


@contextmanager
def clicking(sessions: list[Session], some: Some) -> Generator[None]:
    """Analysts who each open something once a second, until the block ends."""
    ended = threading.Event()
    failed: list[object] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        asked = [question for name, question in questions(some, chance).items() if name in CLICKED]
        chance.shuffle(asked)
        time.sleep(number / ANALYSTS)
        for question in cycle(asked):
            began = time.perf_counter()
            status, body = sessions[number].get(question())
            if status not in (200, 429):  # one long read of an organization at a time
                failed.append((status, body[:200]))
            if ended.wait(max(0.0, 1 - (time.perf_counter() - began))):
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(ANALYSTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failed, failed[0]


if __name__ == "__main__":
    main()
