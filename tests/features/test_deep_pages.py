"""Every list with pages, on an organization of 20,000 events: a page far down reads what the first one does.

Rows are counted and no time is measured (docs/adr/0213).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.features.routes import API
from svc.http.route import Route
from svc.identify.indexing import indexer
from svc.identify.tables import EVENT_SEGMENTS
from tests.features.counting import Counting
from tests.features.house import House, ask
from tests.features.large import large
from tests.spec.test_pages_of_lists import has_pages
from tests.support.engines import opening

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.only_on("lmdb", "rows are counted there")]

LIMIT = 30
PAGES = 10
MORE_THAN_THE_FIRST = 1.3
"""How many times the rows of the first page a later one may read, and `ROWS_BESIDE` more."""
ROWS_BESIDE = 100
"""Of the index: 63 small segments at most, three large ones, and where a look begins again."""
COUNTING = "listConsoleVisitors"
"""Has the events of each visitor: on a page of older ones each row of the index since they were first seen, once."""
FROM = {"from": "2026-01-02T00:00:00Z"}
BEHIND = [{}, {"kind": "human"}, {"signal": "tor"}, {"action": "log_in"}, {"kind": "human", "action": "log_in"}]
"""Filters that all events, none and some of them have, beside a page number."""


async def read(house: House, engine: Counting, route: Route, **query: str) -> tuple[int, dict[str, Any]]:
    """How many rows a page reads, and the page."""
    engine.forget()
    response = await house.send(route, ask(route, house.names, route.under[0], **query))
    assert response.is_success, (route.operation_id, response.text)
    return engine.read_rows.total(), response.json()


@pytest.mark.slow(8)
async def test_a_page_far_down_reads_what_the_first_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(indexer, "SHORTEST_REST_S", 3600.0)  # or its rows are counted, too; nothing is left to index
    counted: list[Counting] = []

    def count(engine: Any) -> Counting:
        counted.append(Counting(engine))
        return counted[-1]

    too_many: list[tuple[Any, ...]] = []
    async with large(tmp_path / "data", open_engine=opening(count), with_check=False) as house:  # nothing is changed
        (engine,) = counted
        listing = [route for route in API if route.query is not None and has_pages(route)]
        of_index = house.live.count(EVENT_SEGMENTS)
        walked = dict[str, int]()
        for route in listing:
            first, page = await read(house, engine, route, limit=str(LIMIT))
            allowed = MORE_THAN_THE_FIRST * first + (of_index if route.operation_id == COUNTING else ROWS_BESIDE)
            number = 1
            while number < PAGES and "next_cursor" in page:
                number += 1
                query = {"after" if route.operation_id == "listChanges" else "cursor": page["next_cursor"]}
                rows, page = await read(house, engine, route, limit=str(LIMIT), **query)
                if rows > allowed:
                    too_many.append((route.operation_id, number, first, rows, engine.read_rows.most_common(3)))
            walked[route.operation_id] = number
        for route in [route for route in listing if route.operation_id in ("listEvents", "listConsoleEvents")]:
            for filters in BEHIND:
                first, _ = await read(house, engine, route, limit="10", page="1", **FROM, **filters)
                for deep in ({"limit": "10", "page": "50"}, {"limit": "10", "page": "1001"}):
                    rows, _ = await read(house, engine, route, **deep, **FROM, **filters)
                    if rows > first + ROWS_BESIDE:
                        too_many.append((route.operation_id, deep, filters, first, rows))
    assert not too_many, "\n".join(map(str, too_many))
    assert sum(number == PAGES for number in walked.values()) >= 8, walked
