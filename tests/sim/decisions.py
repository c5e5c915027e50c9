"""What decides: lists and rules that a customer changes, and accounts that are set and erased afterwards.

An order that is not answered is ordered again until it is, so that in the end everybody knows what is in force. In
between, each answer must be what lists and rules decide that may have been in force when it was asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import trio

from tests.sim.client import Response, request
from tests.sim.model import Asked, Timeline
from tests.sim.plan import Block, Client, EraseAccount, SaveRules, SetAccount

AGAIN_S = 5.0
"""Until who was not answered asks again."""
ACTIONS = ("review", "challenge", "allow")
BLOCKED = {"name": "Blocked", "condition": 'in_list("blocked_accounts")', "action": "block"}

Ask = Callable[[bytes, Client], Awaitable[Response | None]]


def account_id(account: int) -> str:
    return f"account {account}"


class Decisions:
    def __init__(self, asked: list[Asked], ask: Ask) -> None:
        self.broken: list[str] = []
        """Answers that break a rule."""
        self._asked = asked
        self._ask = ask
        self._turns: defaultdict[int, trio.Lock] = defaultdict(trio.Lock)
        self._blocked: defaultdict[tuple[int, int], Timeline[bool]] = defaultdict(lambda: Timeline(False))
        """(shop, account) -> whether it is blocked."""
        self._rules: defaultdict[tuple[int, bool], Timeline[int | None]] = defaultdict(lambda: Timeline(None))
        """(shop, production) -> variant of the rules in force; `None` = those of the start."""

    def judge(self, asked: Asked, account: int | None) -> None:
        """What was decided of an identification must be what may have been in force."""
        response = asked.response
        if response is None or response.status != 200 or "visitor_id" not in response.json:
            return
        if response.json.get("duplicate"):
            return  # it tells what was decided earlier
        variants = self._rules[asked.shop, asked.production].possible(asked.since, asked.until)
        blocked = [False]
        if account is not None:
            blocked = self._blocked[asked.shop, account].possible(asked.since, asked.until)
        possible = {_decided(variant, is_blocked) for variant in variants for is_blocked in blocked}
        found = response.json.get("decision", {}).get("action")
        if found not in possible:
            self.broken.append(
                f"request {asked.number} was decided {found}, and not one of {sorted(map(str, possible))}"
            )

    async def block(self, step: Block, base: str, key: str) -> None:
        """Put an account into the list of blocked ones, or take it out."""
        async with self._turns[step.org]:
            listed = (await self._manage("GET", f"{base}/lists", None, key, Client())).json["lists"]
            (list_id,) = [found["id"] for found in listed if found["name"] == "blocked_accounts"]
            change = self._blocked[step.org, step.account].change(step.on)
            value = account_id(step.account)
            method, body = ("POST", {"entries": [{"value": value}]}) if step.on else ("DELETE", {"values": [value]})
            await self._manage(method, f"{base}/lists/{list_id}/entries", body, key, step.client)
            change.settle(step.on)

    async def save(self, step: SaveRules, base: str, key: str) -> None:
        """Save other rules. Where the answer was lost, the revision tells whether they were saved."""
        async with self._turns[step.org]:
            path = f"{base}/rules?environment={'live' if step.production else 'test'}"
            revision = (await self._manage("GET", path, None, key, Client())).json["revision"]
            change = self._rules[step.org, step.production].change(step.variant)
            rule = {"name": f"Variant {step.variant}", "condition": "true", "action": ACTIONS[step.variant % 3]}
            body = {"revision": revision, "rules": [BLOCKED, rule]}
            response = await self._manage("PUT", path, body, key, step.client)
            now = (await self._manage("GET", path, None, key, Client())).json
            names = [one["name"] for one in now["rules"]]
            if response.status not in (200, 409) or (now["revision"], names[1:]) != (revision + 1, [rule["name"]]):
                self.broken.append(f"rules were saved upon revision {revision} ({response.status}), and are now {now}")
            change.settle(step.variant)

    async def erase(self, step: EraseAccount, base: str, key: str) -> None:
        """The account leaves the lists, too."""
        async with self._turns[step.org]:
            blocked = self._blocked[step.org, step.account]
            change = blocked.change(False)
            await self._manage("DELETE", f"{base}/accounts/{quote(account_id(step.account))}", None, key, step.client)
            change.settle(False)

    async def set_account(self, step: SetAccount, key: str) -> None:
        """Give the latest event that was told another account, or none."""
        told = [one for one in self._asked if (one.shop, one.production) == (step.org, step.production)]
        told = [one for one in told if one.request_id is not None]
        if not told:
            return
        body = {"account_id": None if step.account is None else account_id(step.account)}
        response = await self._manage("PATCH", f"/events/{told[-1].request_id}", body, key, step.client)
        if response.status not in (200, 404):
            self.broken.append(f"request {told[-1].request_id} got another account: {response.status}")

    async def _manage(self, method: str, path: str, body: Any, key: str, client: Client) -> Response:
        """The answer, however often it takes."""
        while True:
            response = await self._ask(request(method, path, body, x_api_key=key), client)
            client = Client()
            if response is not None and response.status < 500 and response.status not in (408, 429):
                return response
            await trio.sleep(AGAIN_S)


def _decided(variant: int | None, is_blocked: bool) -> str | None:
    if is_blocked:
        return "block"
    return None if variant is None else ACTIONS[variant % 3]
