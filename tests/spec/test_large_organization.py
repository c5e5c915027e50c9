"""Decisions 11 to 14: everything about rules, lists, labels, weights and reviews, in an organization of 12,000 events,
or 20,000.

A read that goes on beyond its first milliseconds takes its turn among others. Small organizations never reach that.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from svc.features.labels.jobs import LabelChange, label_request
from svc.features.routes import ROUTES
from svc.http.route import CONSOLE, Route
from svc.identify.model import Label
from svc.identify.queries.events import put_event
from svc.identify.records import Event
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.holding_jobs import add
from tests.spec.automation import Automation
from tests.spec.responses import HEADLESS, visit
from tests.support.effort import effort
from tests.support.live import Live, report

pytestmark = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.only_on("lmdb", "so large an organization takes a database half a minute; routes are the same"),
]

EVENTS = effort(12_000, 20_000)
AT_ONCE = 2_000
LABELED = 120
"""Events of each label: the oldest ones, behind everything else."""
COVERED = {f"Management: {name}" for name in ("rules", "lists", "labels", "weights", "reviews", "notes")}
UNENDING = {"streamEvents", "beginOpenId", "endOpenId"}
RULES = [
    {"name": "Any account", "condition": 'present("account.id")', "action": "review", "mode": "shadow"},
    {"name": "Blocked", "condition": 'in_list("blocked_visitors")', "action": "block"},
]


class Large:
    """An organization with so many events of development, of two visitors and as many accounts."""

    def __init__(self, live: Live) -> None:
        self.live, self.admin = live, Automation(live)
        self.public, self.secret = live.issue()[1], live.issue("secret")[1]
        self.ids: dict[str, str] = {}

    async def fill(self) -> None:
        """The accounts are known for longer than counts go back, so that copies of their events need no more."""
        for _ in range(2):
            self.live.clock.advance(hours=31 * 24)
            for headers, account in ((HEADLESS, "farmed"), ({}, "user-1")):
                fields = {"account_id": account, "action": "log_in"}
                sent = await visit(self.live, self.public, report(1), headers=headers, **fields)
                assert sent.status_code == 200, sent.text
        originals = [event for _, event in self.live.events()][-2:]
        newest_ms = self.live.clock.now_ms
        ids: list[UUID] = []
        for start in range(0, EVENTS, AT_ONCE):
            some = [(newest_ms - 1000 * (1 + at), originals[at % 2]) for at in range(start, start + AT_ONCE)]
            ids += self._do(partial(self._copy, some=some))
        for at, raw_id in enumerate(ids[-2 * LABELED :]):
            label: Label = "legitimate" if at % 2 else "fraud"
            self._do(partial(self._label, raw_id=raw_id.bytes, label=label))
        self.ids |= {"request_id": str(ids[0]), "visitor_id": originals[0].verdict.visitor_id, "account_id": "farmed"}
        self.ids |= {"organization_id": self.live.organization.id, "platform": "web"}

    def _do(self, job: Any) -> Any:
        (done,) = self.live.found.store.write_now([job])
        return done

    def _copy(self, transaction: Transaction, some: list[tuple[int, Event]]) -> list[UUID]:
        made, number = list[UUID](), self.live.organization.number
        for at_ms, event in some:
            made.append(self.live.world.request_id(at_ms))
            copy = replace(event, occurred_at_ms=at_ms, has_document=False)
            put_event(transaction, number, made[-1], copy)
        add(transaction, number, self.live.clock.now_ms, lambda held: replace(held, events=held.events + len(some)))
        return made

    def _label(self, transaction: Transaction, raw_id: bytes, label: Label) -> None:
        label_request(transaction, self.live.organization.number, raw_id, LabelChange(label), self.live.clock.now_ms)

    async def ask(self, route: Route, body: Any = None, query: dict[str, str] | None = None) -> Any:
        """The body of an answer that is neither a fault nor a refusal."""
        path = route.under[0] + route.path.format(**self.ids)
        key = self.secret if "secret" in route.kinds else self.admin.secret
        params = {**_environment(route), **(query or {})}
        sent: dict[str, Any] = {"headers": {"x-api-key": key}, "params": params, "timeout": 60}
        if body is not None:
            sent["json"] = body
        answer = await self.live.client.request(route.method, path, **sent)
        assert answer.status_code < 300, f"{route.method} {path} {query}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if answer.headers.get("content-type") == "application/json" else None


def _environment(route: Route) -> dict[str, str]:
    """The parameter that says which events are meant, where a key does not."""
    given = getattr(route.query, "__annotations__", {}).get("environment", "")
    return {"environment": "test" if "live" in given else "development"} if given else {}


BY_ID = {route.operation_id: route for route in ROUTES}
BODIES: dict[str, Any] = {
    "checkConsoleRules": {"rules": RULES},
    "previewRules": {"rules": RULES},
    "previewWeights": {"platform": "web", "environment": "development", "weights": {"headless": 50}},
    "saveOrganizationRiskWeights": {"weights": {"headless": 50}},
    "saveSdkKeyRiskWeights": {"weights": {"headless": 40}},
    "updateList": {"name": "renamed"},
    "addListEntries": {"entries": [{"value": "farmed"}]},
    "labelEvent": {"label": "fraud"},
    "assignReview": {"assignee": None},
    "closeReview": {"label": "fraud"},
    "updateEvent": {"label": "fraud"},
}
"""Of those that are asked in the order of the table of routes."""
MADE_FIRST = {"createList", "openReview", "createVisitorNote", "createAccountNote", "saveRules"}
REMOVED_LAST = (
    "removeListEntries",
    "deleteList",
    "deleteVisitorNote",
    "deleteAccountNote",
    "restoreOrganizationRiskWeights",
    "restoreSdkKeyRiskWeights",
)
QUERIES: dict[str, list[dict[str, str]]] = {
    "listEvents": [
        {},
        {"label": "fraud", "limit": "200"},
        {"account_id": "farmed", "label": "legitimate"},
        {"signal": "tor"},
        {"order": "oldest"},
        {"order": "oldest", "signal": "tor"},
    ],
    "listConsoleEvents": [{}, {"label": "fraud"}, {"signal": "tor"}, {"action": "sign_up"}],
    "listConsoleAccounts": [{}, {"sort": "events"}],
    "listSeenConsoleVisitors": [{}, {"sort": "events"}],
    "getConsoleLinks": [{"account": "farmed"}],
    "searchConsole": [{"q": "farmed"}, {"q": "nobody"}],
    "getConsoleNetworks": [{}],
    "exportConsoleEvents": [{"format": "csv", "label": "fraud"}],
}


def is_covered(route: Route) -> bool:
    """What is about rules, lists, labels, weights, reviews and notes, and every read of an organization's data."""
    if route.tag in COVERED or route.operation_id in BODIES:
        return True
    is_read = route.method == "GET" and {"secret", "management"} & set(route.kinds)
    return bool(is_read) and route.operation_id not in UNENDING


@pytest.mark.slow(12)
async def test_every_route_about_rules_lists_labels_and_weights_answers_in_a_large_organization(live: Live):
    large = Large(live)
    await large.fill()
    asked = {route.operation_id for route in ROUTES if is_covered(route)}
    made = await large.ask(BY_ID["createList"], {"name": "farmed", "kind": "account"})
    large.ids |= {"list_id": made["id"], "key_id": (await large.admin.issue())[0]["id"]}
    in_force = await large.ask(BY_ID["getRules"])
    await large.ask(BY_ID["saveRules"], {"revision": in_force["revision"], "rules": RULES})
    opened = await large.ask(BY_ID["openReview"], {"request_id": large.ids["request_id"]})
    large.ids["review_id"] = opened["review"]["id"]
    notes = [await large.ask(BY_ID[f"create{whose}Note"], {"text": "called"}) for whose in ("Visitor", "Account")]
    answered: dict[str, Any] = {}
    for operation_id in sorted(asked - MADE_FIRST - set(REMOVED_LAST)):
        route = BY_ID[operation_id]
        if operation_id == "getWeightsSuggestion" and find_spec("sklearn") is None:
            continue
        if operation_id in ("readSession", "getManagementKey") or (CONSOLE in route.under and "totp" in route.path):
            continue
        for query in QUERIES.get(operation_id, [{}]):
            answered[operation_id] = await large.ask(route, BODIES.get(operation_id), query)
    for operation_id in REMOVED_LAST:
        of_notes = {"deleteVisitorNote": notes[0], "deleteAccountNote": notes[1]}
        large.ids["note_id"] = of_notes.get(operation_id, {"id": ""})["id"]
        body = {"values": ["farmed"]} if operation_id == "removeListEntries" else None
        await large.ask(BY_ID[operation_id], body)
    assert answered["previewRules"]["events"] == 10_000
    if "getWeightsSuggestion" in answered:
        suggestion = answered["getWeightsSuggestion"]
        assert (suggestion["fraud"], suggestion["legitimate"]) == (LABELED + 1, LABELED)
        assert suggestion["is_complete"]
        assert [row["signal"] for row in suggestion["weights"]] == ["headless"]
