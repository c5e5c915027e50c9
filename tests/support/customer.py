"""A customer who blocks accounts and saves rules while the service is killed, and what must be left of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import trio

from svc.features.lists.queries import find_entry, named_list
from svc.features.rules.jobs import ruleset_in_force
from svc.kernel.store.snapshot import Snapshot
from tests.support.journal import Journal, Whole, account_of
from tests.support.process import run_json

LIST = "blocked_accounts"
RULES_EVERY = 4
"""Changes of the list between two saves of rules."""
PAUSE_S = 0.1
"""After each answer: requests with management keys have a limit of their rate."""


class Customer:
    """Of the only organization of a data directory. What it was told is kept: which accounts are in the list, and the
    revision of its rules.
    """

    def __init__(self, directory: Path) -> None:
        (found,) = run_json("org", "list", "--data", str(directory))["organizations"]
        issue = ("--kind", "management", "--role", "admin", "--data", str(directory))
        self._key = run_json("key", "issue", found["organization_id"], *issue)["secret"]
        self._path = f"/api/v1/management/organizations/{found['organization_id']}"
        self._numbers = count()
        self.entries: dict[str, bool | None] = {}
        """Account -> whether it is in the list; `None` = the answer was lost."""
        self.revision = 0
        self.saves = 0
        """Those that were sent, answered or not."""

    async def change(self, client: httpx.AsyncClient, journal: Journal) -> None:
        """One change after the other until the clients are to stop, or the connection ends."""
        try:
            listed = (await self._ask(client, "GET", "/lists")).json()["lists"]
            (list_id,) = [found["id"] for found in listed if found["name"] == LIST]
            revision = (await self._ask(client, "GET", "/rules")).json()["revision"]
            while not journal.is_closed:
                number = next(self._numbers)
                if number % RULES_EVERY == 0:
                    revision = await self._save(client, revision)
                await self._block(client, list_id, account_of(number), on=number % 3 != 2)
        except httpx.TransportError:
            return

    async def _block(self, client: httpx.AsyncClient, list_id: str, value: str, *, on: bool) -> None:
        self.entries[value] = None
        body = {"entries": [{"value": value}]} if on else {"values": [value]}
        response = await self._ask(client, "POST" if on else "DELETE", f"/lists/{list_id}/entries", body)
        assert response.status_code in (200, 204), response.text
        self.entries[value] = on

    async def _save(self, client: httpx.AsyncClient, revision: int) -> int:
        self.saves += 1
        rule = {"name": f"save {self.saves}", "condition": f'in_list("{LIST}")', "action": "block"}
        response = await self._ask(client, "PUT", "/rules", {"revision": revision, "rules": [rule]})
        assert response.status_code == 200, response.text
        self.revision = response.json()["revision"]
        return self.revision

    async def _ask(self, client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> httpx.Response:
        while True:
            request = client.build_request(method, self._path + path, json=body, headers={"x-api-key": self._key})
            request.stream = Whole(request.content)
            response = await client.send(request)
            await trio.sleep(PAUSE_S)
            if response.status_code != 429:
                return response

    def faults(self, snapshot: Snapshot) -> Iterator[str]:
        """What was acknowledged and does not hold, in words. That rows fit each other is for `svc check`."""
        found = named_list(snapshot, 1, LIST)
        assert found is not None
        for value, is_in in self.entries.items():
            if is_in is not None and (find_entry(snapshot, 1, found, value, 0) is not None) != is_in:
                yield f"{value} was {'put into' if is_in else 'taken out of'} the list, and that is lost"
        in_force = ruleset_in_force(snapshot, 1, "live")
        if not self.revision <= in_force.revision <= self.saves:
            yield f"revision {self.revision} of the rules was acknowledged, {in_force.revision} is in force"
