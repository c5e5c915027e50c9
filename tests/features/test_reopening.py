"""Interface 3: what a change has acknowledged is there after a kill.

Each route that changes anything is asked for it. As its response arrives, before anything else may run, the store is
opened a second time: a copy of the file as it lies there, which is what the next start after a kill finds, or the
database over another connection. It has the change, and nothing follows but webhooks, which go out meanwhile, and what
is written behind.
"""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from svc.features.routes import API
from svc.kernel.store.reading import read_only, read_only_database
from tests.features.house import OFF, House, ask, in_order
from tests.features.rows import Rows, changes, rows
from tests.spec.subscriber import Names as Hosts
from tests.support import live as live_services
from tests.support.live import live_service
from tests.support.receivers import OK, Receivers, always
from tests.support.serving_postgresql import at_rest, url_of
from tests.support.worlds import HeldThreads

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.any_store]

STORES_NOTHING = {
    "previewRules": "what rules would have done",
    "previewWeights": "what weights would have done",
    "checkConsoleRules": "whether rules could be saved",
    "readConsoleExamples": "events by their ids",
    "readConsoleStandings": "entries by their values",
    "readInvitation": "to whom and to what an invitation is",
}
"""Routes that are no `GET` and change nothing, and what they tell."""
WRITTEN_BEHIND = {"last_looks", "retention_passes", "statistics"}
"""Tables that a pass of retention writes, each minute, and what matching learns of many visits."""


class Killed:
    """What a start finds, of a service that goes on."""

    def __init__(self, house: House, directory: Path, folder: Path) -> None:
        self._house, self._directory, self._folder, self._numbers = house, directory, folder, count(1)

    def rows(self) -> Rows:
        """What is stored, by somebody who opens it now."""
        if live_services.ENGINE != "lmdb":
            with read_only_database(url_of(self._directory)) as store:
                return rows(store.engine)
        copy = self._folder / str(next(self._numbers))
        copy.mkdir()
        shutil.copyfile(self._directory / "store" / "data.mdb", copy / "data.mdb")
        with read_only(copy, live=False) as store:
            found = rows(store.engine)
        shutil.rmtree(copy)
        return found


@pytest.mark.slow
async def test_every_acknowledged_change_is_there_after_a_kill(tmp_path: Path):
    settings: dict[str, Any] = {"transport": Receivers(always(OK, 0)), "resolver": Hosts(), "run_sync": HeldThreads()}
    async with live_service(tmp_path / "data", **settings) as live:
        house = House(live, live.organization, "annaxq")
        await house.fill()
        killed, tried, lost = Killed(house, tmp_path / "data", tmp_path), Counter[str](), list[str]()
        for route in sorted(API, key=in_order):
            if route.method == "GET" or route.operation_id in OFF.keys() | STORES_NOTHING.keys():
                continue
            await at_rest()
            before = rows(live.found.store.engine)
            live.clock.advance(seconds=1)
            response = await house.send(route, ask(route, house.names, route.under[0]))
            found = killed.rows()
            assert response.is_success, (route.operation_id, response.text)
            changed = changes(before, found).keys() - {"audit"}
            lost += [] if changed else [route.operation_id]
            await at_rest()
            after = changes(found, rows(live.found.store.engine))
            follows = {name for name in after if not name.startswith("webhook")} - WRITTEN_BEHIND
            assert follows == set(), (route.operation_id, after)
            tried[route.operation_id] += 1
        assert lost == []
        assert len(tried) > 45
