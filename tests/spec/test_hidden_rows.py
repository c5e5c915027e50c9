"""Decisions 17.5: a row that a corrupt table hides is an error where what is read anyway names it, or where a new row
would take its place. What else is hidden `svc check` names (`tests/store/test_invariants.py`).

Rows of the outbox, of events, visitors and lists are removed, as a leaf page of an older commit does it, a table at a
time. Nobody else notices.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from svc.features.checks.invariants import violations
from svc.features.lists.tables import FILLED_LISTS, LIST_ENTRIES, LISTED, LISTS
from svc.features.rules.tables import RULESETS
from svc.features.webhooks.tables import ATTEMPTS, ENDPOINT_COUNTS, ENDPOINTS
from svc.identify.tables import EVENTS, VISITORS
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.schema.table import Table
from svc.kernel.store.store import Store
from tests.spec.automation import Automation
from tests.spec.console import Console
from tests.spec.responses import BROWSER, assert_error
from tests.spec.subscriber import HOOKS, URL, Subscriber, subscribing
from tests.spec.test_supplement import send

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.every_case]

UNKNOWN = "whk_00000000000000000000"
NEW = {"url": URL, "environment": "live", "events": ["identification.completed"], "description": ""}


class Shop(NamedTuple):
    """An organization that has sent a webhook, another one, and what they ask for."""

    hooks: Subscriber
    other: Automation
    endpoint: str
    event_id: str
    identified: dict[str, Any]

    def requests(self) -> dict[str, tuple[str, str, Any]]:
        one = f"{HOOKS}/{self.endpoint}"
        return {
            "list": ("GET", HOOKS, None),
            "create": ("POST", HOOKS, NEW),
            "change": ("PATCH", one, {"description": "orders"}),
            "remove": ("DELETE", one, None),
            "rotate": ("POST", f"{one}/rotate-secret", {}),
            "test": ("POST", f"{one}/test", None),
            "redeliver": ("POST", f"{one}/redeliver", {"event_id": self.event_id}),
            "log": ("GET", "/webhook-deliveries?environment=live", None),
            "whole log": ("GET", "/webhook-deliveries", None),
        }

    async def ask(self, what: str, *, stranger: bool = False) -> httpx.Response:
        return await (self.other if stranger else self.hooks)(*self.requests()[what])


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    async with subscribing(tmp_path) as hooks:
        endpoint, _ = await hooks.create()
        identified = await hooks.live.identify(hooks.production, headers=BROWSER)
        (post,) = await hooks.happen(0)
        other = Automation(hooks.live, organization=hooks.live.new_organization())
        assert (await other("POST", HOOKS, NEW)).status_code == 201
        yield Shop(hooks, other, endpoint, post.event["id"], identified.json())


@contextmanager
def hidden(store: Store, *tables: Table[Any]) -> Iterator[None]:
    """The first organization's rows of these tables are not there in the block; nothing is written meanwhile."""
    rows: list[tuple[str, bytes, bytes]] = []
    with closing(store.engine.read()) as reader:
        for table in tables:
            of_one = KeyRange(table.name, (1).to_bytes(4), (2).to_bytes(4))
            rows += [(table.name, key, value) for key, value in reader.range(of_one)]
    assert {name for name, _, _ in rows} == {table.name for table in tables}
    for name, key, _ in rows:
        store.engine.write(lambda writer, name=name, key=key: writer.delete(name, key))
    yield
    for name, key, value in rows:
        store.engine.write(lambda writer, name=name, key=key, value=value: writer.put(name, key, value))


@pytest.mark.parametrize(
    ("tables", "asked"),
    [
        ((ENDPOINT_COUNTS,), ("create",)),
        ((ENDPOINT_COUNTS, ENDPOINTS), ("create",)),
        ((ATTEMPTS,), ("log", "whole log")),
    ],
    ids=lambda value: "+".join(getattr(part, "name", part) for part in value),
)
@pytest.mark.slow(0.2)
async def test_what_a_corrupt_table_hides_of_the_outbox_is_an_error(
    shop: Shop, tables: tuple[Table[Any], ...], asked: tuple[str, ...]
):
    with hidden(shop.hooks.live.found.store, *tables):
        for what in asked:
            assert_error(await shop.ask(what), 500, "internal_error")
            theirs = await shop.ask(what, stranger=True)
            assert theirs.status_code in (200, 201, 404), (what, theirs.text)
    for what in ("list", "log", "change", "redeliver"):
        response = await shop.ask(what)
        assert response.is_success, (what, response.text)
    assert_error(await shop.hooks("DELETE", f"{HOOKS}/{UNKNOWN}"), 404, "not_found")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
async def test_a_file_of_events_of_which_one_is_hidden_names_it_and_is_counted(shop: Shop, suffix: str):
    """Decisions 17.5: the index names it."""
    live, console = shop.hooks.live, Console(shop.hooks.live)
    corrupt = live.service.services.corrupt
    with hidden(live.found.store, EVENTS):
        last = (await console.get("/events/export", format=suffix)).text.splitlines()[-1]
    assert shop.identified["request_id"] in last
    assert "unreadable" in last
    assert corrupt.found["exportConsoleEvents"] == 1
    assert shop.identified["request_id"] in (await console.get("/events/export", format=suffix)).text


async def test_a_deferred_report_of_an_event_that_a_corrupt_table_hides_is_an_error(shop: Shop):
    """It is not refused as one whose event was erased: an SDK would throw it away."""
    live = shop.hooks.live
    one = (live, shop.hooks.production, shop.identified["request_id"], shop.identified["deferred_token"])
    with hidden(live.found.store, EVENTS):
        assert_error(await send(*one), 500, "internal_error")
    assert (await send(*one)).status_code == 202


async def test_a_label_of_an_event_that_a_corrupt_table_hides_is_an_error(shop: Shop):
    """It is not stored as that of an event which is gone."""
    live, path = shop.hooks.live, f"/api/v1/events/{shop.identified['request_id']}"
    _, secret = live.issue("secret", "production")
    for label in ("fraud", "legitimate"):
        change = {"json": {"label": label}, "headers": {"x-api-key": secret}}
        with hidden(live.found.store, EVENTS):
            assert_error(await live.client.patch(path, **change), 500, "internal_error")
        assert (await live.client.patch(path, **change)).json()["label"] == label


async def test_a_visitor_that_a_corrupt_table_hides_does_not_get_another_id(shop: Shop):
    live = shop.hooks.live
    _, theirs = live.issue(environment="production", organization=shop.other.organization.number)
    with hidden(live.found.store, VISITORS):
        assert_error(await live.identify(shop.hooks.production, headers=BROWSER), 500, "internal_error")
        assert (await live.identify(theirs, headers=BROWSER)).status_code == 200
    again = await live.identify(shop.hooks.production, headers=BROWSER)
    assert again.json()["visitor_id"] == shop.identified["visitor_id"]


@pytest.mark.parametrize(
    "table", [LIST_ENTRIES, LISTED, LISTS, FILLED_LISTS, RULESETS], ids=lambda of: getattr(of, "name", "")
)
async def test_what_a_corrupt_table_hides_of_lists_and_rules_is_found_by_the_check(shop: Shop, table: Table[Any]):
    """Serving reads no second row for it (ADR 197). Other organizations notice nothing."""
    store, hooks = shop.hooks.live.found.store, Automation(shop.hooks.live)
    await add(hooks, "blocked_accounts")
    rule = {"name": "mine", "condition": 'in_list("blocked_accounts")', "action": "review"}
    assert (await hooks("PUT", "/rules", {"revision": 0, "rules": [rule]})).is_success
    with store.read() as snapshot:
        assert list(violations(snapshot)) == []
    with hidden(store, table):
        with store.read() as snapshot:
            assert list(violations(snapshot))
        assert (await shop.other("GET", "/lists")).status_code == 200


async def test_a_list_that_is_missing_and_that_a_rule_names_fails_the_identification(shop: Shop):
    """Its organization says that it has entries."""
    live, hooks = shop.hooks.live, Automation(shop.hooks.live)
    await add(hooks, "mine", create=True)
    rule = {"name": "mine", "condition": 'in_list("mine")', "action": "review"}
    assert (await hooks("PUT", "/rules", {"revision": 0, "rules": [rule]})).is_success
    with hidden(live.found.store, FILLED_LISTS):
        failed = await live.identify(shop.hooks.production, headers=BROWSER, account_id="listed")
        assert_error(failed, 500, "internal_error")
    found = await live.identify(shop.hooks.production, headers=BROWSER, account_id="listed")
    assert found.json()["decision"]["action"] == "review"


async def add(admin: Automation, name: str, *, create: bool = False) -> str:
    """An account is in a list, whose id is returned."""
    if create:
        assert (await admin("POST", "/lists", {"name": name, "kind": "account"})).status_code == 201
    (found,) = [each["id"] for each in (await admin("GET", "/lists")).json()["lists"] if each["name"] == name]
    added = await admin("POST", f"/lists/{found}/entries", {"entries": [{"value": "listed"}]})
    assert added.status_code == 200, added.text
    return found


async def test_a_row_of_a_list_that_cannot_be_read_fails_the_identification(shop: Shop):
    """And no rule passes over it: a rule whose evaluation fails does not match."""
    live, hooks = shop.hooks.live, shop.hooks
    await add(hooks, "blocked_accounts")
    engine = live.found.store.engine
    with closing(engine.read()) as reader:
        ((key, value),) = reader.range(KeyRange(LISTED.name))
    engine.write(lambda writer: writer.put(LISTED.name, key, value[:-1] + bytes([value[-1] ^ 1])))
    assert_error(await live.identify(hooks.production, headers=BROWSER, account_id="listed"), 500, "internal_error")
    engine.write(lambda writer: writer.put(LISTED.name, key, value))
    found = await live.identify(hooks.production, headers=BROWSER, account_id="listed")
    assert found.json()["decision"]["action"] == "block"
