"""Interface 4.4 and 5: what a management key changes is in the audit log, and nothing else is (docs/audit.md)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import msgspec
import pytest
import trio.testing

from svc.features.audit.queries import AuditMatch, Sought, newest
from svc.features.erasure import visitors
from svc.features.routes import ROUTES
from svc.http.callers import limits as audit_budget
from svc.http.route import Route
from svc.kernel.access.audit import AUDIT_MS, RECORDED, WITHHELD
from svc.kernel.limits.quotas import seconds_to_midnight
from svc.kernel.store.steps import STEP_ROWS
from svc.kernel.values.fields import PLATFORMS
from svc.kernel.values.ids import DAY_MS
from tests.features.house import example_of, put
from tests.spec.automation import Automation, stored_keys
from tests.spec.people import add_member
from tests.spec.responses import assert_error, nothing_stored, visit
from tests.spec.subscriber import Subscriber
from tests.spec.test_retention import swept
from tests.support.live import Live
from tests.support.serving_postgresql import at_rest
from tests.support.worlds import EPOCH_MS

MANAGED = {
    route.operation_id: route
    for route in ROUTES
    if "management" in route.kinds and route.path.startswith("/management")
}
CHANGING = {
    operation: route
    for operation, route in MANAGED.items()
    if route.method != "GET" and operation != "previewRules"  # which tries rules
}
NOBODY = "0" * 20
UNKNOWN = {
    "key_id": "key_" + NOBODY,
    "proxy_credential_id": "key_" + NOBODY,
    "webhook_id": "whk_" + NOBODY,
    "visitor_id": NOBODY,
    "list_id": "lst_" + NOBODY,
    "proposal_id": "prop_" + NOBODY,
    "member_id": "mem_" + NOBODY,
    "account_id": NOBODY,
    "request_id": "019b76da-a800-7000-8000-000000000000",
    "review_id": "rev_" + NOBODY,
    "note_id": "note_" + NOBODY,
}
PLACE = "203.0.113.7"
"""From where the automation asks, as the trusted proxy says."""
YESTERDAY = "2025-12-31T00:00:00Z"
INVITED = {"email": "ada@shop.example", "name": "Ada", "role": "analyst"}
HOOK = {"url": "https://81.2.69.160/hidden", "environment": "test", "events": [], "description": "orders"}


class Case(NamedTuple):
    """A request to a route that changes something. `{name}` in a body stands for what is made for it."""

    body: dict[str, Any] | None = None
    refused_path: dict[str, str] = {}  # noqa: RUF012  never changed
    """What the path names instead in the request that is refused."""
    refused_body: dict[str, Any] | None = None
    """What its body says instead."""


ISSUE = {"name": "shop", "environment": "staging"}
CASES: dict[str, Case] = {
    "issueProxyKey": Case(ISSUE, refused_body=ISSUE | {"expires_at": YESTERDAY}),
    "issueSdkKey": Case(ISSUE, refused_body=ISSUE | {"kind": "secret", "allowed_origins": ["https://a.example"]}),
    "replaceSdkKeyOrigins": Case({"allowed_origins": ["https://b.example"]}, refused_path=UNKNOWN),
    "saveOrganizationRiskWeights": Case({"weights": {"tor": 7}}, refused_body={"revision": 9}),
    "restoreOrganizationRiskWeights": Case(refused_path={"platform": "tizen"}),
    "saveSdkKeyRiskWeights": Case({"suspect_threshold": 40}, refused_path=UNKNOWN),
    "createWebhook": Case(HOOK, refused_body=HOOK | {"events": ["billing.status_changed"]}),
    "updateWebhook": Case({"paused": True, "url": HOOK["url"]}, refused_path=UNKNOWN),
    "rotateWebhookSecret": Case({"previous_secret_valid_hours": 3}, refused_path=UNKNOWN),
    "redeliverWebhook": Case({"event_id": "{event_id}"}, refused_path=UNKNOWN),
    "revokeBrowserKeys": Case({"from": "2026-01-01T00:00:00Z"}, refused_body={"from": "soon"}),
    "saveRules": Case({"revision": 0, "rules": []}, refused_body={"revision": 7, "rules": []}),
    "proposeRules": Case({"revision": 0, "rules": []}, refused_body={"revision": -1, "rules": []}),
    "createList": Case({"name": "vip", "kind": "account"}, refused_body={"name": "blocked_visitors", "kind": "tag"}),
    "updateList": Case({"name": "best"}, refused_path=UNKNOWN),
    "addListEntries": Case({"entries": [{"value": "order 1"}]}, refused_path=UNKNOWN),
    "removeListEntries": Case({"values": ["order 1"]}, refused_path=UNKNOWN),
    "labelEvent": Case({"label": "fraud", "label_reason": "bot"}, refused_path=UNKNOWN),
    "openReview": Case({"request_id": "{request_id}"}, refused_body={"request_id": "x"}),
    "assignReview": Case({"assignee": "{member_id}"}, refused_body={"assignee": "mem_" + NOBODY}),
    "closeReview": Case({"label": "fraud", "label_reason": "bot"}, refused_path=UNKNOWN),
    "inviteMember": Case(INVITED, refused_body=INVITED | {"email": "nobody"}),
    "updateMember": Case({"role": "viewer"}, refused_path=UNKNOWN),
    "updateSettings": Case(
        {"decision_in_response": False, "account_thresholds": {"multi_account": 2}},
        refused_body={"account_thresholds": {"multi_account": 0}},
    ),
    "rotateVerdictKey": Case({"previous_key_valid_hours": 3}, refused_body={"previous_key_valid_hours": 169}),
}
"""What is asked of a route of the management API that changes something, and what of it is refused, where that is not
the example of its body and another one than there is in its path.
"""


def case_of(operation: str) -> Case:
    route = CHANGING[operation]
    ordinary = Case(example_of(route.body) if route.body else None, refused_path=UNKNOWN)
    assert operation in CASES or route.path.count("{") > 1, f"say in CASES how {operation} is refused"
    return CASES.get(operation, ordinary)


class Scene:
    """A customer with something of each kind that a path may name."""

    def __init__(self, hooks: Subscriber) -> None:
        self.hooks, self.live = hooks, hooks.live
        self.admin = Automation(hooks.live)
        self._make: dict[str, Callable[[], Awaitable[str]]] = {
            "key_id": self._sdk_key,
            "proxy_credential_id": self._proxy_key,
            "platform": self._platform,
            "webhook_id": self._endpoint,
            "event_id": self._event,
            "visitor_id": self._visitor,
            "list_id": self._list,
            "member_id": self._member,
            "request_id": self._request,
            "account_id": self._account,
            "review_id": self._review,
            "proposal_id": self._proposal,
            "note_id": self._note,
        }
        self._about = ""
        self._endpoint_id = ""

    async def things(self, route: Route, body: object) -> dict[str, str]:
        """What the path and the body name, made for them."""
        names = re.findall(r"\{(\w+)\}", route.path + str(body))
        made = {name: await self._make[name]() for name in names if name != "organization_id"}
        if route.operation_id == "reopenReview":
            await self.admin("POST", f"/reviews/{made['review_id']}/close", {"label": "fraud"})
        for to_take_away in [each for each in put() if (route.method, each.path) == ("DELETE", route.path)]:
            await self.ask(to_take_away, made, case_of(to_take_away.operation_id).body)
        return made

    async def ask(self, route: Route, things: dict[str, str], body: dict[str, Any] | None) -> httpx.Response:
        path = route.path.partition("{organization_id}")[2]
        for name, value in things.items():
            path = path.replace(f"{{{name}}}", value)
        filled = None if body is None else {name: _filled(value, things) for name, value in body.items()}
        response = await self.admin(route.method, path, filled, x_forwarded_for=PLACE)
        await at_rest()
        return response

    def records(self) -> list[AuditMatch]:
        return records(self.live)

    async def _sdk_key(self) -> str:
        return self.live.issue("public")[0].id

    async def _proxy_key(self) -> str:
        return self.live.issue("proxy")[0].id

    async def _platform(self) -> str:
        return PLATFORMS[0]

    async def _endpoint(self) -> str:
        self._endpoint_id, _ = await self.hooks.create()
        return self._endpoint_id

    async def _event(self) -> str:
        return (await self.hooks.do(self._endpoint_id, "test")).json()["event_id"]

    async def _visitor(self) -> str:
        _, public = self.live.issue()
        visitor_id = (await visit(self.live, public)).json()["visitor_id"]
        self._about = f"/visitors/{visitor_id}"
        return visitor_id

    async def _list(self) -> str:
        name = f"list_{len(self.records())}"
        return (await self.admin("POST", "/lists", {"name": name, "kind": "tag"})).json()["id"]

    async def _member(self) -> str:
        return add_member(self.live).id

    async def _account(self) -> str:
        _, public = self.live.issue()
        assert (await visit(self.live, public, account_id="user-8271")).is_success
        self._about = "/accounts/user-8271"
        return "user-8271"

    async def _review(self) -> str:
        """Of a visitor and account that have none."""
        _, public = self.live.issue()
        answer = (await visit(self.live, public, account_id=f"user {len(self.records())}")).json()
        opened = await self.admin("POST", "/reviews", {"request_id": answer["request_id"]})
        return opened.json()["review"]["id"]

    async def _proposal(self) -> str:
        return (await self.admin("POST", "/rule-proposals", {"revision": 0, "rules": []})).json()["id"]

    async def _note(self) -> str:
        """About whom the path names before."""
        return (await self.admin("POST", f"{self._about}/notes", {"text": "x"})).json()["id"]

    async def _request(self) -> str:
        _, public = self.live.issue()
        return (await visit(self.live, public)).json()["request_id"]


def _filled(value: Any, things: dict[str, str]) -> Any:
    return things.get(value[1:-1], value) if isinstance(value, str) else value


def records(live: Live) -> list[AuditMatch]:
    """Every record, newest first."""
    with live.found.store.read() as snapshot:
        return newest(snapshot, Sought(), 9999)


def test_every_case_is_of_a_route_that_changes_something():
    assert set(CASES) <= set(CHANGING)


@pytest.mark.slow
async def test_each_change_leaves_exactly_one_record_and_a_refused_one_none(hooks: Subscriber):
    """Who, what, when and from where, under the request's id; and what was asked for."""
    scene = Scene(hooks)
    for operation in CHANGING:
        await leaves_one_record(scene, operation, case_of(operation))


async def leaves_one_record(scene: Scene, operation: str, case: Case) -> None:
    route, admin, clock = CHANGING[operation], scene.admin.key, scene.live.clock
    things = await scene.things(route, case.body)
    before = scene.records()
    refused = await scene.ask(route, things | case.refused_path, case.refused_body or case.body)
    assert refused.status_code in (404, 409, 422), (operation, refused.text)
    assert scene.records() == before, operation

    clock.advance(seconds=5)
    answer = await scene.ask(route, things, case.body)
    assert answer.is_success, (operation, answer.text)
    (audit_id, record), *others = scene.records()
    assert others == before, operation
    assert str(audit_id) == answer.headers["x-request-id"]
    assert (record.at_ms, record.action, record.organization) == (clock.now_ms, operation, 1)
    actor = record.actor
    assert (actor.kind, actor.id, actor.name, actor.role) == ("management_key", admin.id, admin.name, "admin")
    assert actor.place == PLACE
    named = [value for name, value in things.items() if name not in route.audited.left_out]
    assert record.subject in ((*named, *ids_in(answer)) or (scene.live.organization.id,)), operation
    assert set(record.change) >= set(case.body or {}), operation
    withheld = {name for name, value in record.change.items() if value == WITHHELD}
    assert withheld == {"text", "note"} & set(record.change), operation


def ids_in(answer: httpx.Response) -> list[str]:
    """Ids that the answer says."""
    return re.findall(r'"id":"(\w+)"', answer.text)


async def test_a_record_contains_the_requested_values(hooks: Subscriber):
    """By name, defaults included; of a receiver's address only to whom it leads."""
    admin = Automation(hooks.live)
    await admin.issue(allowed_origins=["HTTPS://Shop.Example"], expires_at="2026-02-01T00:00:00Z")
    await admin("PUT", "/risk-weights/ios", {"weights": {"tor": 7}, "vpn_weights_mode": "confidence"})
    await admin("POST", "/webhooks", HOOK)
    created, saved, issued = [found.record for found in records(hooks.live)][:3]
    assert issued.change == {
        "name": "shop",
        "environment": "development",
        "kind": "public",
        "allowed_origins": ["HTTPS://Shop.Example"],
        "expires_at": "2026-02-01T00:00:00Z",
    }
    assert (saved.subject, saved.change) == ("ios", {"weights": {"tor": 7}, "vpn_weights_mode": "confidence"})
    assert created.change == HOOK | {"url": "https://81.2.69.160/…", "format": "json"}


REMOVING: dict[str, dict[str, Any]] = {
    "updateWebhook": {"filter": None},
    "assignReview": {"assignee": None},
    "labelEvent": {"label": None},
}


@pytest.mark.slow
async def test_a_record_says_what_was_removed(hooks: Subscriber):
    """`null` removes; a field that is left out stays."""
    scene = Scene(hooks)
    for operation, body in REMOVING.items():
        things = await scene.things(CHANGING[operation], None)
        assert (await scene.ask(CHANGING[operation], things, body)).is_success
        record = scene.records()[0].record
        assert record.action == operation
        assert body.items() <= record.change.items(), operation


@pytest.mark.slow
async def test_a_patch_that_names_nothing_leaves_no_record(hooks: Subscriber):
    scene = Scene(hooks)
    for operation, route in CHANGING.items():
        if route.method == "PATCH":
            things = await scene.things(route, None)
            before = scene.records()
            assert (await scene.ask(route, things, {})).is_success
            assert scene.records() == before, operation


async def test_for_a_key_on_a_platform_the_key_is_the_changed_object(live: Live):
    admin, (key, _) = Automation(live), live.issue()
    assert (await admin("PUT", f"/sdk-keys/{key.id}/risk-weights/web", {"suspect_threshold": 9})).is_success
    record = records(live)[0].record
    assert (record.subject, record.change) == (key.id, {"platform": "web", "weights": {}, "suspect_threshold": 9})


def test_for_every_field_of_a_body_it_is_decided_what_is_recorded():
    """A new field of a body is named in `RECORDED`, or its value is withheld, and this fails until that is decided."""
    bodies = [route.body for route in CHANGING.values() if route.body]
    fields = {field.encode_name for body in bodies for field in msgspec.structs.fields(body)}
    assert fields - RECORDED == {"url", "text", "note", "filter"}, (
        "notes are somebody's own words about a visitor, and filters may name accounts"
    )


@pytest.mark.slow(0.2)
async def test_reading_leaves_no_record_though_it_updates_the_last_use_of_the_key(hooks: Subscriber):
    """Decisions 2.3: `last_used_at` is no change that anybody made."""
    scene = Scene(hooks)
    reading = [route for route in MANAGED.values() if route.method == "GET"]
    asked = [(route, await scene.things(route, None)) for route in reading]
    before = scene.records()
    for route, things in asked:
        hooks.live.clock.advance(seconds=61)
        if "{organization_id}" in route.path:
            answer = await scene.ask(route, things, None)
        else:
            path = route.under[0] + route.path.format(**things)
            answer = await hooks.live.client.get(path, headers={"x-api-key": scene.admin.secret})
        assert answer.is_success, answer.text
        assert last_used(hooks.live, scene.admin) == hooks.live.clock.now_ms
    assert scene.records() == before
    assert len(reading) > 6


def last_used(live: Live, automation: Automation) -> int | None:
    from svc.kernel.tenants.queries import find_key_of

    with live.found.store.read() as snapshot:
        key = find_key_of(snapshot, automation.organization.number, automation.key.id, ("management",))
    assert key is not None
    return key.last_used_at_ms


async def test_a_request_refused_by_role_or_path_leaves_no_record(live: Live):
    """Interface 5, rules 5 to 7."""
    developer, elsewhere = Automation(live, "developer"), Automation(live, organization=live.new_organization())
    elsewhere.organization = live.organization
    before = records(live)
    body = {"name": "shop", "environment": "staging"}
    assert_error(await developer("POST", "/proxy-credentials", body), 403, "insufficient_role")
    assert_error(await elsewhere("POST", "/sdk-keys", body), 404, "not_found")
    assert_error(await developer("POST", "/sdk-keys", body, origin="https://shop.example"), 401, "unauthorized")
    assert_error(await developer("POST", "/sdk-keys", body, x_api_key="svc_mk_us_x"), 401, "unauthorized")
    assert records(live) == before
    assert stored_keys(live) == {}


async def test_requests_of_sdks_and_servers_leave_no_record(live: Live):
    """An identification, a challenge and a deferred report are traffic; the log is about management."""
    _, public = live.issue(platforms=("web", "android"))
    before = records(live)
    answer = (await visit(live, public)).json()
    headers = {"x-api-key": public, "origin": "https://shop.example"}
    assert (await live.client.post("/api/v1/attestation/challenge", headers=headers)).is_success
    later = {"token": answer["deferred_token"], "sdk": {"platform": "web"}, "signals": {"tier": "deferred"}}
    path = f"/api/v1/events/{answer['request_id']}/supplement"
    assert (await live.client.post(path, json=later, headers=headers)).is_success
    assert records(live) == before


async def test_an_erasure_in_many_steps_is_one_record_with_only_the_id(live: Live, monkeypatch: pytest.MonkeyPatch):
    """Decisions 7.6: the controller can show that it was done; nothing else of the visitor is kept."""
    monkeypatch.setattr(visitors, "EVENT_ROWS", STEP_ROWS)
    admin, (_, public) = Automation(live), live.issue()
    for _ in range(3):
        visitor_id = (await visit(live, public)).json()["visitor_id"]
    before, commits = records(live), live.found.store.statistics().commits
    assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    assert live.found.store.statistics().commits >= commits + 3
    (erased, *others) = records(live)
    assert others == before
    assert (erased.record.action, erased.record.subject, erased.record.change) == ("eraseVisitor", visitor_id, {})


@pytest.mark.served(map_bytes=1 << 20)
@pytest.mark.slow
async def test_a_change_refused_by_a_full_store_leaves_no_record(live: Live):
    """`503`: neither is stored, and neither is the other without it."""
    admin, issued, refused = Automation(live), 0, 0
    before = len(records(live))
    while not refused:
        origins = [f"https://{issued}-{place}.{'a' * 60}.example" for place in range(100)]
        answer = await admin("POST", "/sdk-keys", ISSUE | {"allowed_origins": origins})
        issued, refused = issued + (answer.status_code == 201), refused + (answer.status_code == 503)
    assert len(stored_keys(live)) == len(records(live)) - before == issued > 0


@pytest.mark.slow(0.4)
async def test_records_are_kept_for_400_days_and_then_deleted(live: Live):
    """Of every organization; not a millisecond before, and the records of later changes stay."""
    admin, _ = Automation(live), Automation(live, organization=live.new_organization())
    live.clock.advance(hours=1)
    issued = await admin("POST", "/sdk-keys", ISSUE)
    before = records(live)
    assert {found.record.organization for found in before} == {1, 2}
    await swept(live, EPOCH_MS + AUDIT_MS)
    assert records(live) == before
    await swept(live, EPOCH_MS + AUDIT_MS + 1)
    assert [str(found.id) for found in records(live)] == [issued.headers["x-request-id"]]
    await swept(live, EPOCH_MS + AUDIT_MS + 3_600_001)
    assert records(live) == []


async def test_concurrent_requests_leave_a_record_each(live: Live, admin: Automation):
    """One writer: none is lost, and each id is its request's."""
    before = len(records(live))
    answers: list[httpx.Response] = []

    async def issue(place: int) -> None:
        answers.append(await admin("POST", "/sdk-keys", ISSUE | {"name": f"n{place}"}))

    async with trio.open_nursery() as nursery:
        for place in range(8):
            nursery.start_soon(issue, place)
    made = records(live)[:-before]
    assert {found.id for found in made} == {UUID(answer.headers["x-request-id"]) for answer in answers}
    named = {answer.json()["key"]["id"]: answer.json()["key"]["name"] for answer in answers}
    assert {found.record.subject: found.record.change["name"] for found in made} == named


async def test_no_secret_of_a_key_or_an_endpoint_is_in_the_log(hooks: Subscriber):
    """Interface 5, rule 4: whatever is issued or rotated."""
    admin = Automation(hooks.live)
    secrets = [(await admin.issue(path))[1] for path in ("/sdk-keys", "/proxy-credentials")]
    endpoint_id, secret = await hooks.create()
    secrets += [secret, (await hooks.do(endpoint_id, "rotate-secret")).json()["secret"], admin.secret]
    written = msgspec.json.encode([found.record for found in records(hooks.live)]).decode()
    assert len(set(secrets)) == 5
    assert [secret for secret in secrets if secret.rpartition("_")[2][:43] in written] == []


async def test_the_audit_records_of_one_organization_are_limited(live: Live, monkeypatch: pytest.MonkeyPatch):
    """A key that replaces a hundred origins twenty times a second would write 43 GB into the log in a day."""
    monkeypatch.setattr(audit_budget, "BYTES_A_DAY", 5_000)
    automation, other = Automation(live), Automation(live, organization=live.new_organization())
    key, _ = await automation.issue()
    _, public = live.issue()
    visitor = (await visit(live, public)).json()["visitor_id"]

    async def replace(number: int) -> httpx.Response:
        origins = [f"https://{place}.x{number}.example" for place in range(50)]
        return await automation("PUT", f"/sdk-keys/{key['id']}/allowed-origins", {"allowed_origins": origins})

    assert [(await replace(number)).status_code for number in range(6)] == [200] * 4 + [429] * 2
    with nothing_stored(live):
        refused = await replace(6)
        assert_error(refused, 429, "rate_limited")
        assert refused.headers["retry-after"] == str(seconds_to_midnight(live.clock.now_ms))
    assert (await other.issue())[0]["status"] == "active", "it is the organization's own budget"
    assert (await automation("GET", "/sdk-keys")).status_code == 200
    assert (await automation("DELETE", f"/visitors/{visitor}")).status_code == 204, "rights of visitors come first"
    assert (await automation("POST", f"/sdk-keys/{key['id']}/revoke")).status_code == 200, "and so does a leaked key"
    live.clock.now_ms += DAY_MS
    assert (await automation.issue())[0]["status"] == "active"
