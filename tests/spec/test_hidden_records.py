"""Decisions 17.5: what a corrupt table hides is an error where what is read anyway names it.

As in `test_hidden_rows`, for what an organization keeps of itself and for what it counts: its rows of a table are
removed, and who asks for what they held gets 500, which is counted. Another organization notices nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import httpx
import pytest

from svc.features.labels.tables import ACCOUNT_NUMBER_COUNTS
from svc.features.reviews.tables import REVIEWS
from svc.identify.tables import EVENTS, VISITOR_COUNTS
from svc.kernel.access.tables import KEY_IDS, KEYS, MEMBERS
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.tables import META
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.tables import BALANCES
from tests.spec.automation import MANAGEMENT, Automation
from tests.spec.commands import run_beside
from tests.spec.console_browser import API, SESSION, signed_in
from tests.spec.responses import BROWSER, assert_error
from tests.support.live import ORIGIN, Live, report

ALL = {"revision": 0, "rules": [{"name": "All", "condition": "true", "action": "review"}]}
ADA = {"email": "ada@shop.example", "name": "Ada", "role": "analyst"}
NEW, OTHER = 7, 8
"""Devices that were not seen before."""


class Shop(NamedTuple):
    """An organization with an event two hours ago, and what the rows of that are named."""

    live: Live
    organization: Organization
    names: dict[str, str]
    keys: dict[str, str]
    """Kind -> secret of a key."""

    async def ask(self, what: str, body: Any = None) -> httpx.Response:
        """`METHOD PATH`, where `.../` is the organization's, and names stand in braces."""
        method, _, path = what.partition(" ")
        path = path.replace(".../", f"{MANAGEMENT}/organizations/{self.organization.id}/").format_map(self.names)
        kind = "public" if path.endswith("/identify") else "secret" if path.startswith("/api/v1/") else "management"
        kind = "management" if path.startswith(MANAGEMENT) else kind
        headers = {**BROWSER, "origin": ORIGIN} if kind == "public" else {}
        sent = {} if body is None else {"json": body}
        return await self.live.client.request(method, path, headers={**headers, "x-api-key": self.keys[kind]}, **sent)


async def a_shop(live: Live, organization: Organization) -> Shop:
    number = organization.number
    key, public = live.issue(environment="production", organization=number)
    _, secret = live.issue("secret", environment="production", organization=number)
    admin = Automation(live, organization=organization)
    shop = Shop(live, organization, {"key": key.id}, {"public": public, "secret": secret, "management": admin.secret})
    for what, body in (("PUT .../rules", ALL), ("POST .../members", ADA)):
        assert (await shop.ask(what, body)).is_success
    identified = (await shop.ask("POST /api/v1/identify", visit(1, "user-1"))).json()
    labeled = await shop.ask(f"PUT .../events/{identified['request_id']}/label", {"label": "fraud"})
    assert labeled.is_success, labeled.text
    other = (await shop.ask("POST /api/v1/identify", visit(1, "user-2"))).json()
    reviews = (await shop.ask("GET .../reviews")).json()["reviews"]
    shop.names.update(
        request=identified["request_id"], other=other["request_id"], visitor=identified["visitor_id"], account="user-1"
    )
    shop.names["review"] = reviews[-1]["id"]
    return shop


def visit(device: int, account: str) -> dict[str, Any]:
    return {"sdk": {"platform": "web", "version": "1"}, "signals": report(device), "account_id": account}


@pytest.fixture
async def shops(live: Live) -> list[Shop]:
    found = [await a_shop(live, organization) for organization in (live.organization, live.new_organization())]
    live.clock.advance(hours=2)
    return found


@contextmanager
def hidden(shop: Shop, table: Table[Any]) -> Generator[None]:
    """The rows that the table has of the organization are not there in the block."""
    engine, number = shop.live.found.store.engine, shop.organization.number.to_bytes(4)
    with shop.live.found.store.read() as snapshot:
        digest = snapshot.get(KEY_IDS, shop.names["key"])
    with closing(engine.read()) as reader:
        rows = [
            (key, value) for key, value in reader.range(KeyRange(table.name)) if table is KEYS or key.startswith(number)
        ]
    if table is KEYS:
        rows = [(key, value) for key, value in rows if key == digest]
    assert rows, table.name
    for key, _ in rows:
        engine.write(lambda writer, key=key: writer.delete(table.name, key))
    yield
    for key, value in rows:
        engine.write(lambda writer, key=key, value=value: writer.put(table.name, key, value))


ASKED: list[tuple[Table[Any], list[tuple[str, Any]]]] = [
    (REVIEWS, [("GET .../reviews?state=open", None)]),
    (
        EVENTS,
        [
            ("PUT .../events/{request}/label", {"label": "legitimate"}),
            ("PATCH /api/v1/events/{request}", {"label": "legitimate"}),
            ("GET /console/api/events/{request}/rules", None),
            ("GET /console/api/search?q={request}", None),
            ("GET /console/api/events/{request}", None),
        ],
    ),
    (KEYS, [("GET .../sdk-keys", None), ("POST .../sdk-keys/{key}/revoke", None)]),
    (BALANCES, [("POST /api/v1/identify", visit(1, "user-1")), ("GET /console/api/billing", None)]),
    (VISITOR_COUNTS, [("POST /api/v1/identify", visit(NEW, "user-1"))]),
    (ACCOUNT_NUMBER_COUNTS, [("PUT .../events/{other}/label", {"label": "legitimate"})]),
]


@pytest.mark.parametrize(("table", "asked"), ASKED, ids=[table.name for table, _ in ASKED])
async def test_what_a_corrupt_table_hides_is_an_error_that_counts(
    shops: list[Shop], table: Table[Any], asked: list[tuple[str, Any]]
):
    mine, theirs = shops
    corrupt = mine.live.service.services.corrupt.found
    with hidden(mine, table):
        for what, body in asked:
            before = corrupt.total()
            assert_error(await mine.ask(what, body), 500, "internal_error")
            assert corrupt.total() > before, what
            found = await theirs.ask(what, body)
            assert found.is_success, (what, found.text)
    for what, body in asked:
        found = await mine.ask(what, body)
        assert found.is_success, (what, found.text)


async def test_without_its_balance_an_organization_loses_what_is_about_money_alone(live: Live):
    """A session and the published keys read nothing of it, nor do the commands."""
    shop = await a_shop(live, live.organization)
    browser = await signed_in(live)
    with hidden(shop, BALANCES):
        assert_error(await browser("GET", f"{API}/billing"), 500, "internal_error")
        keys = f"/api/v1/organizations/{live.organization.id}/verdict-keys"
        for path in (f"{API}/events", SESSION, keys):
            assert (await browser("GET", path)).status_code == 200, path
        erased = ("visitor", "erase", live.organization.id, shop.names["visitor"], "--yes", "--json", *live.options)
        assert (await run_beside(*erased)).json["status"] == "erased"


async def test_an_address_of_a_member_that_is_hidden_is_not_invited_again(shops: list[Shop]):
    """Its row of addresses names it."""
    mine, theirs = shops
    with hidden(mine, MEMBERS):
        assert_error(await mine.ask("POST .../members", ADA), 500, "internal_error")
        assert_error(await theirs.ask("POST .../members", ADA), 409, "member_exists")
    assert_error(await mine.ask("POST .../members", ADA), 409, "member_exists")


async def test_a_number_is_not_given_twice_where_the_count_is_one_of_an_older_commit(shops: list[Shop]):
    """A new visitor would take the place of another one, and a new organization that of another one."""
    mine, _ = shops
    store = mine.live.found.store
    with store.read() as snapshot:
        given = snapshot.get(VISITOR_COUNTS, mine.organization.number)
        organizations = snapshot.get(META, "next_organization")
    store.write_now([lambda transaction: transaction.put(VISITOR_COUNTS, (mine.organization.number,), 0)])
    store.write_now([lambda transaction: transaction.put(META, ("next_organization",), 1)])
    assert_error(await mine.ask("POST /api/v1/identify", visit(OTHER, "user-1")), 500, "internal_error")
    assert (await mine.ask("POST /api/v1/identify", visit(1, "user-1"))).is_success, "known, so it needs no number"
    with pytest.raises(CorruptionError):
        mine.live.new_organization()
    assert given is not None
    assert organizations is not None
    store.write_now([lambda transaction: transaction.put(VISITOR_COUNTS, (mine.organization.number,), given)])
    store.write_now([lambda transaction: transaction.put(META, ("next_organization",), organizations)])
    assert (await mine.ask("POST /api/v1/identify", visit(OTHER, "user-1"))).is_success
