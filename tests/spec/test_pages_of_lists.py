"""Every list that has pages: they follow one another whatever comes and goes, and other cursors are refused
(docs/adr/0196).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import httpx
import msgspec
import pytest

from svc.features.routes import ROUTES
from svc.http.route import Route
from svc.kernel.values import encodings as cursors
from svc.kernel.values.encodings import Cursors, cursors_key
from svc.kernel.work import slices
from tests.spec.automation import Automation
from tests.spec.console import Console
from tests.spec.responses import assert_invalid, visit
from tests.spec.subscriber import COMPLETED, URL, Subscriber
from tests.support.live import report, succeeded
from tests.support.serving_postgresql import at_rest

PEOPLE = 4
ALL = [{"name": "All", "condition": "true", "action": "review"}]
BY_ID = {route.operation_id: route for route in ROUTES}


class Paged(NamedTuple):
    """A list, as one query asks for it."""

    operation_id: str
    which: cursors.List
    rows: str
    id_of: Callable[[dict[str, Any]], str]
    query: Mapping[str, str] = MappingProxyType({})
    cursor: str = "cursor"
    """Name of the parameter."""

    @property
    def name(self) -> str:
        return self.operation_id + "".join(f" {value}" for value in self.query.values())


def by(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: row[name]


PRODUCTION = {"environment": "production"}
LISTS = (
    Paged("listEvents", "events", "rows", by("request_id")),
    Paged("listEvents", "feed", "rows", by("request_id"), {"order": "oldest"}, "after"),
    Paged("listChanges", "changes", "changes", lambda row: f"{row['type']} {row['request_id']}", cursor="after"),
    Paged("listConsoleEvents", "events", "rows", by("request_id"), PRODUCTION),
    Paged("listAccounts", "seen_accounts", "accounts", by("account_id")),
    Paged("listVisitors", "seen_visitors", "visitors", by("visitor_id")),
    Paged("listConsoleAccounts", "seen_accounts", "accounts", by("account_id"), PRODUCTION),
    Paged("listSeenConsoleVisitors", "seen_visitors", "visitors", by("visitor_id"), PRODUCTION),
    Paged("listConsoleVisitors", "visitors", "visitors", by("visitor_id")),
    Paged("listConsoleVisitors", "visitors", "visitors", by("visitor_id"), PRODUCTION),
    Paged("listConsoleVisitors", "visitors", "visitors", by("visitor_id"), {"tag": "cart"}),
    Paged("listConsoleAudit", "audit", "records", by("id")),
    Paged("listReviews", "reviews", "reviews", by("request_id")),
    Paged("listReviews", "reviews", "reviews", by("request_id"), {"state": "open"}),
    Paged("listConsoleReviews", "open_reviews", "reviews", by("request_id"), PRODUCTION),
    Paged("listListEntries", "list_entries", "entries", by("value")),
    Paged("listWebhookDeliveries", "deliveries", "deliveries", by("id")),
    Paged("listSdkKeys", "sdk_keys", "keys", by("id")),
    Paged("listProxyKeys", "proxy_keys", "credentials", by("id")),
)


class Shop:
    """An organization in whose lists rows come and go."""

    def __init__(self, hooks: Subscriber, admin: Automation) -> None:
        self.live, self.admin = hooks.live, admin
        number = admin.organization.number
        self.console = Console(self.live, organization=admin.organization)
        self.public = self.live.issue(environment="production", organization=number)[1]
        self.secret = self.live.issue("secret", "production", organization=number)[1]
        self.ids = {"organization_id": admin.organization.id}
        self.people: list[dict[str, Any]] = []
        self.came = 0

    async def open(self) -> None:
        assert (await self.admin("PUT", "/rules", {"revision": 0, "rules": ALL})).status_code == 200
        hook = {"url": URL, "environment": "live", "events": [COMPLETED], "description": ""}
        assert (await self.admin("POST", "/webhooks", hook)).status_code == 201
        lists = (await self.admin("GET", "/lists")).json()["lists"]
        self.ids["list_id"] = next(one["id"] for one in lists if one["name"] == "blocked_accounts")

    async def come(self) -> None:
        """Somebody who is new in every list."""
        self.came += 1
        self.live.clock.advance(seconds=5)
        account = f"user-{7 * self.came % 101:03}"
        answer = succeeded(await visit(self.live, self.public, report(self.came), account_id=account, tag="cart"))
        self.people.append({**answer, "account": account})
        await self.admin.issue(name=f"sdk {self.came}")
        await self.admin.issue("/proxy-credentials", name=f"proxy {self.came}")
        entries = {"entries": [{"value": account}]}
        assert (await self.admin("POST", f"/lists/{self.ids['list_id']}/entries", entries)).status_code == 200
        await at_rest()

    async def go(self, place: int) -> None:
        """One of those who came is erased."""
        gone = self.people.pop(place)
        assert (await self.admin("DELETE", f"/visitors/{gone['visitor_id']}")).status_code == 204
        values = {"values": [gone["account"]]}
        assert (await self.admin("DELETE", f"/lists/{self.ids['list_id']}/entries", values)).status_code == 204

    async def ask(self, paged: Paged, **query: Any) -> httpx.Response:
        route = BY_ID[paged.operation_id]
        key = self.secret if "secret" in route.kinds else self.admin.secret
        path = route.under[0] + route.path.format(**self.ids)
        return await self.live.client.get(path, params={**paged.query, **query}, headers={"x-api-key": key})

    async def page(self, paged: Paged, limit: int, cursor: str | None) -> tuple[list[str], str | None]:
        """Ids of a page, and the cursor of the next one."""
        response = await self.ask(paged, limit=limit, **({} if cursor is None else {paged.cursor: cursor}))
        assert response.status_code == 200, f"{paged.name}: {response.text}"
        body = response.json()
        rows = [paged.id_of(row) for row in body[paged.rows]]
        assert len(rows) <= limit
        return rows, body.get("next_cursor") if body.get("has_more", True) else None

    async def whole(self, paged: Paged) -> list[str]:
        rows, cursor = await self.page(paged, 200, None)
        assert cursor is None, paged.name
        return rows


async def filled(hooks: Subscriber, admin: Automation) -> Shop:
    shop = Shop(hooks, admin)
    await shop.open()
    for _ in range(PEOPLE):
        await shop.come()
    shop.live.clock.advance(seconds=5)
    return shop


def has_pages(route: Route) -> bool:
    names = [field.name for field in msgspec.structs.fields(route.query)] if route.query else []
    answers = msgspec.structs.fields(route.answer) if route.answer else ()
    return not {"cursor", "after"}.isdisjoint(names) and "next_cursor" in {field.name for field in answers}


def test_every_list_with_pages_is_among_those_that_are_walked_here():
    assert {route.operation_id for route in ROUTES if has_pages(route)} == {paged.operation_id for paged in LISTS}
    assert {paged.which for paged in LISTS} == set(get_args(cursors.List))


@pytest.mark.slow(3)
@pytest.mark.parametrize("at_once", [slices.MAX_AT_ONCE, 2])
async def test_pages_follow_one_another_whatever_comes_and_goes_meanwhile(
    hooks: Subscriber, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    """No row is on two pages, and none is missing that was there all the time; also where little is read at once."""
    monkeypatch.setattr(slices, "MAX_AT_ONCE", at_once)
    shop = await filled(hooks, Automation(hooks.live))
    for limit in (1, 3, PEOPLE + 3):
        at_first = [await shop.whole(paged) for paged in LISTS]
        assert all(len(rows) >= PEOPLE for rows in at_first)
        seen: list[list[str]] = [[] for _ in LISTS]
        going: dict[int, str | None] = dict.fromkeys(range(len(LISTS)))
        turn = 0
        while going:
            for place, cursor in list(going.items()):
                rows, going[place] = await shop.page(LISTS[place], limit, cursor)
                seen[place] += rows
                if going[place] is None:
                    del going[place]
            turn += 1
            if turn <= 3:
                await shop.come()
                await shop.go((0, 2, -1)[turn % 3])
        shop.live.clock.advance(seconds=5)
        for paged, before, rows in zip(LISTS, at_first, seen, strict=True):
            assert len(rows) == len(set(rows)), f"{paged.name}: one is on two pages"
            stayed = set(before) & set(await shop.whole(paged))
            assert stayed <= set(rows), f"{paged.name}: one is missing"


@pytest.mark.slow(2)
async def test_a_cursor_of_another_list_or_organization_and_a_damaged_one_are_refused(hooks: Subscriber):
    shop = await filled(hooks, Automation(hooks.live))
    other = await filled(hooks, Automation(hooks.live, organization=hooks.live.new_organization()))
    found = [(await shop.page(paged, 1, None))[1] for paged in LISTS]
    key, number = cursors_key(hooks.live.found.pepper), shop.admin.organization.number
    for paged, cursor in zip(LISTS, found, strict=True):
        assert cursor is not None, paged.name
        readable = [which for which in get_args(cursors.List) if Cursors(key, which, number).read(cursor) is not None]
        assert readable == [paged.which], paged.name
        damaged = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
        foreign = [each for one, each in zip(LISTS, found, strict=True) if one.which != paged.which]
        for wrong in (damaged, cursor[:-4], "", *foreign):
            refused = await shop.ask(paged, limit=1, **{paged.cursor: wrong})
            assert_invalid(refused, paged.cursor, "invalid_cursor", location="query")
        assert_invalid(
            await other.ask(paged, limit=1, **{paged.cursor: cursor}), paged.cursor, "invalid_cursor", location="query"
        )


@pytest.mark.slow(0.1)
async def test_a_cursor_is_bound_to_the_filters_of_its_list(hooks: Subscriber):
    shop = await filled(hooks, Automation(hooks.live))
    of = {paged.name: paged for paged in LISTS}
    for name, changed in (
        ("listEvents", {"tag": "cart"}),
        ("listConsoleEvents production", {"environment": "staging"}),
        ("listAccounts", {"min_visitors": "1"}),
        ("listConsoleAccounts production", {"environment": "staging"}),
        ("listVisitors", {"country": "GB"}),
        ("listConsoleVisitors", PRODUCTION),
        ("listReviews", {"state": "open"}),
        ("listConsoleReviews production", {"environment": "staging"}),
    ):
        cursor = (await shop.page(of[name], 1, None))[1]
        refused = await shop.ask(of[name]._replace(query={**of[name].query, **changed}), limit=1, cursor=cursor)
        assert_invalid(refused, "cursor", "invalid_cursor", location="query")
