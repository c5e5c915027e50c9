"""Decisions 11 to 14, 16: every route answers on an organization of 20,000 events, and no commit is a large one.

Rows are counted and no time is measured: of each commit those that it writes, since the writer is held for as long,
and of each request those that are read, in all and by one snapshot. Reads beyond `READS` are named with what bounds
them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
import msgspec
import pytest
import trio

from svc.features.routes import API
from svc.http.route import Route
from svc.kernel.store.postgresql import groups
from svc.kernel.work.slices import MAX_AT_ONCE
from tests.features.counting import Counting
from tests.features.house import OFF, House, Names, ask, in_order, made
from tests.features.large import large, size
from tests.features.rows import rows
from tests.features.test_isolation import OF_QUERY
from tests.spec.subscriber import Names as Hosts
from tests.support import live as live_services
from tests.support.effort import effort
from tests.support.engines import opening
from tests.support.live import live_service
from tests.support.receivers import OK, Receivers, always

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.any_store]

MAX_ROWS = 500
"""That one commit writes or deletes (ADR 188)."""
MAX_READ = 3_000
"""That one commit reads or looks for: of texts in which an erased id may stand, 2,000 at once (ADR 188)."""
AT_ONCE = 450
"""That one snapshot reads, while everybody else waits: of a list, the newest events of 256 visitors."""
LARGE = "visitors"
"""Rows that take half a millisecond each: a snapshot reads no more of them than one slice has."""
READS = 1_000
"""That one request reads, in all of its steps."""
OF_PAGES, OF_ONE = 18_000, 2_500
MORE_READS = {
    **dict.fromkeys(("listAccounts", "listVisitors", "listConsoleAccounts", "listSeenConsoleVisitors"), OF_PAGES),
    **dict.fromkeys(("getAccount", "getVisitor", "getConsoleAccount", "searchConsole"), OF_ONE),
    "getConsoleLinks": 10_000,  # 4,000 events, and where the index has those of up to 100
    # 5,000 are looked at for an assignee, each by two rows
    **dict.fromkeys(("listReviews", "listConsoleReviews"), 10_000),
    **dict.fromkeys(("countBrowserKeys", "revokeBrowserKeys"), 4_000),  # every visitor
    **dict.fromkeys(("getConsoleNetworks", "getConsoleActions"), OF_ONE),
    "getWeightsSuggestion": 20_000,  # labeled events, and who they are of
    "previewRules": 45_000,  # 10,000 events, each with its visitor and account
    "previewWeights": 12_000,
    "exportConsoleEvents": 25_000,
    "exportConsoleEntries": 6_000,
    "countConsoleEntries": 6_000,  # as many as one list has, up to 10,000
    "countConsoleReviews": 10_000,  # 5,000 of two rows each are about as much
}
"""Of those that look at many events: 10,000 for a page of whom was seen, 2,000 of one visitor or account."""
ONE_IN = effort(4, 1)
"""Of the parameters of routes that look at `OF_PAGES` rows for each, this share is tried at a commit."""
MOST_MADE = 501
"""Of one kind, by an organization: members."""
BOUNDED = {"openReview": "of a visitor and an account one is open, and they have events"}
MOST_FETCHES = 10
"""Round trips of one step that writes to a database, each of which runs the step again: many where look-ups wait for
each other."""
MAX_BYTES = 1 << 20
FILES = {"exportConsoleEvents", "exportConsoleEntries"}
UNENDING = {"streamEvents"}
VALUES = {
    "level": "high", "country": "GB", "signal": "tor", "kind": "human", "action": "sign_up", "asn": "64512",
    "decision": "review", "label": "fraud", "limit": "200", "order": "oldest", "sort": "events", "state": "open",
    "min_visitors": "2", "min_accounts": "2", "step": "day", "before": "100", "page": "2", "q": "user-",
    "from": "2026-01-02T00:00:00Z", "shadow": "true", "group": "vpn", "screen": "events",
}  # fmt: skip
"""Parameter -> a value that finds something, or has to look at much."""
OTHER_VALUES = {("getConsoleStanding", "kind"): "visitor", ("listConsoleRevisions", "limit"): "20"}


def queries(route: Route, names: Names, seed: int) -> list[dict[str, str]]:
    """What a route is asked with: nothing more than it needs, and each of its parameters by itself; of the costliest
    routes another share of them with each `seed`.
    """
    found: list[dict[str, str]] = [{}]
    if route.method != "GET" or route.query is None or route.operation_id in FILES:
        return found
    for parameter in msgspec.structs.fields(route.query):
        name = parameter.encode_name
        value = OTHER_VALUES.get((route.operation_id, name)) or VALUES.get(name)
        if value is None and name in OF_QUERY:
            value = names[OF_QUERY[name]]
        if value is not None:
            found.append({name: value, **({"rule": names["rule_id"]} if name == "shadow" else {})})
    if MORE_READS.get(route.operation_id) == OF_PAGES:
        place = seed + crc32(route.operation_id.encode())
        return found[:1] + [query for at, query in enumerate(found[1:]) if (at + place) % ONE_IN == 0]
    return found


def longest(body: Any) -> int:
    """The length of the longest list in a body."""
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return max([len(body) if isinstance(body, list) else 0, *map(longest, inner)])


@pytest.mark.slow(20)
async def test_every_route_answers_on_a_large_organization_within_its_bounds(
    tmp_path: Path, crash_seed: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(groups, "MAX_FETCHES", MOST_FETCHES)
    counted: list[Counting] = []

    def count(engine: Any) -> Counting:
        counted.append(Counting(engine))
        return counted[-1]

    settings = {"open_engine": opening(count)} if live_services.ENGINE == "lmdb" else {}
    async with large(tmp_path / "data", **settings) as house:
        engine = counted[-1] if counted else None
        wrong, asked, answers = list[Any](), Counter[str](), dict[str, httpx.Response]()
        for route in sorted(API, key=in_order):
            if route.operation_id in UNENDING | OFF.keys():
                continue
            if route.operation_id == "redeliverWebhook":
                await no_manual_delivery(house)
            for query in queries(route, house.names, crash_seed):
                if engine is not None:
                    engine.forget()
                response = await ask_one(house, route, query)
                answers[route.operation_id] = response
                asked[route.operation_id] += 1
                wrong += [(route.operation_id, query, *fault) for fault in faults(route, response)]
                if engine is not None:
                    wrong += [(route.operation_id, query, fault) for fault in rows_beyond(route, engine)]
        assert not wrong, "\n".join(map(str, wrong))
        assert asked.total() > 150, asked.total()
        assert answers["previewRules"].json()["events"] == 10_000
        suggestion = answers["getWeightsSuggestion"].json()
        assert suggestion["is_complete"]
        assert suggestion["fraud"] + suggestion["legitimate"] > size().labels


@pytest.mark.slow(5)
@pytest.mark.only_on("lmdb", "what jobs count is the same on a database")
async def test_what_an_organization_makes_by_a_post_has_a_bound(tmp_path: Path):
    async with live_service(tmp_path, transport=Receivers(always(OK, 0)), resolver=Hosts()) as live:
        house = House(live, live.organization, "annaxq")
        await house.fill()
        ends = {name: await end_of(house, make) for name, make in made().items() if make.operation_id not in BOUNDED}
        assert {name: end for name, end in ends.items() if not end.endswith("_limit")} == {}


async def end_of(house: House, make: Route) -> str:
    """What making another one ends with."""
    for at in range(MOST_MADE):
        asked = ask(make, house.names)
        own = {"name": f"made_{at}", "email": f"made{at}@shop.example"}
        body = asked.body | {field: text for field, text in own.items() if field in asked.body}
        response = await house.send(make, asked._replace(body=body))
        if response.status_code != make.status:
            return response.json().get("error", {}).get("code", str(response.status_code))
    return "no end"


async def ask_one(house: House, route: Route, query: dict[str, str]) -> httpx.Response:
    if not route.kinds:
        house.live.clock.advance(seconds=1)
    return await house.send(route, ask(route, house.names, route.under[0], **query))


async def no_manual_delivery(house: House) -> None:
    """Wait until that of before has ended: an endpoint has one at a time."""
    with trio.fail_after(60):
        while rows(house.live.found.store.engine, house.organization.number)["webhook_manual"]:  # noqa: ASYNC110  only the store knows
            await trio.sleep(0.05)


def faults(route: Route, response: httpx.Response) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    if not response.is_success:
        found.append((response.status_code, response.text[:300]))
    elif route.operation_id not in FILES and len(response.content) > MAX_BYTES:
        found.append((len(response.content), "bytes"))
    elif response.headers.get("content-type") == "application/json" and longest(response.json()) > 1000:
        found.append((longest(response.json()), "in a list"))
    return found


def rows_beyond(route: Route, engine: Counting) -> list[str]:
    """What is over the budget, in words."""
    visitors = [rows[LARGE] for rows in engine.read_at_once]
    counts = {
        "written by a commit": (max(engine.commits, key=Counter.total, default=Counter()), MAX_ROWS),
        "read by a commit": (max(engine.read_in_commits, key=Counter.total, default=Counter()), MAX_READ),
        "read at once": (max(engine.read_at_once, key=Counter.total, default=Counter()), AT_ONCE),
        "large and read at once": (Counter({LARGE: max(visitors, default=0)}), MAX_AT_ONCE),
        "read": (engine.read_rows, MORE_READS.get(route.operation_id, READS)),
    }
    return [
        f"{rows.total()} rows are {what}: {rows.most_common(4)}"
        for what, (rows, most) in counts.items()
        if rows.total() > most
    ]
