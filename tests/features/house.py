"""An organization in which every route of every feature finds something, and how each route is asked.

Tests of `tests/features` go through the table of routes. A route that is added is asked with the example of its
document, in which ids are those of `Names`; what a path names is made by the `POST` to the path before it. Where that
is not enough, a route gets a line in `BODIES`, `QUERIES` or `NAMED` here, and in no test.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, get_type_hints

import httpx
import msgspec
import trio.testing

from svc.features.members.sign_in.second_factor import code_at
from svc.features.retention.jobs import end_pass
from svc.features.routes import ROUTES
from svc.http.openapi.json_schema import components, example, reference
from svc.http.route import CONSOLE_ROOT, Route
from svc.identify.indexing.indexer import index
from svc.identify.keys.proof import Subject
from svc.kernel.config import Config
from svc.kernel.tenants.organization import Organization
from tests.spec.automation import Automation
from tests.spec.console_browser import Browser
from tests.spec.people import PASSWORD, came_in, invited
from tests.spec.responses import BROWSER
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, report, succeeded
from tests.support.proofs import BrowserKey, send

BY_ID = {route.operation_id: route for route in ROUTES}


class Names(dict[str, str]):
    """What a request may name, by the variable of a path. `used` are those that were asked for."""

    def __init__(self, *given: Any, **more: str) -> None:
        super().__init__(*given, **more)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


class Asked(NamedTuple):
    """A request, but for who makes it."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


NAMED = {
    ("supplementEvent", "request_id"): "identified",
    ("deleteVisitorNote", "note_id"): "visitor_note",
    ("deleteAccountNote", "note_id"): "account_note",
}
"""(operation, variable of its path) -> what it names, where that is not called like the variable."""

ANOTHER = "another horse entirely"
RULE = {"name": "any account", "condition": 'present("account.id")', "action": "review"}
WEIGHTS = {"weights": {"automation": 50}}
BODIES: dict[str, Callable[[Names], Any]] = {
    "identify": lambda names: {"sdk": {"platform": "web"}, "signals": report(7), "account_id": names["account_id"]},
    "supplementEvent": lambda names: {
        "token": names["deferred_token"],
        "sdk": {"platform": "web"},
        "signals": {"tier": "deferred", "fonts": ["Arial"]},
    },
    "createWebhook": lambda _: {
        "url": f"https://{PUBLIC_ADDRESS}/other",
        "environment": "test",
        "events": ["webhook.test"],
        "description": "another",
    },
    "updateWebhook": lambda _: {"description": "changed"},
    "revokeBrowserKeys": lambda _: {"from": "2026-01-01T00:00:00Z"},
    "saveRules": lambda names: {"revision": int(names["revision"]), "rules": [RULE]},
    "proposeRules": lambda names: {
        "revision": 0, "rules": [RULE], "note": f"against {names['visitor_id']} and {names['account_id']}"
    },
    "readConsoleStandings": lambda names: {"visitors": [names["visitor_id"]], "accounts": [names["account_id"]]},
    "createConsoleView": lambda names: {
        "name": names["visitor_id"], "screen": "events", "query": {"account_id": names["account_id"]}, "is_shared": True
    },
    "previewRules": lambda _: {"rules": [RULE]},
    "checkConsoleRules": lambda _: {"rules": [RULE]},
    "saveOrganizationRiskWeights": lambda _: WEIGHTS,
    "saveSdkKeyRiskWeights": lambda _: WEIGHTS,
    "previewWeights": lambda names: {
        **WEIGHTS, "platform": "web", "environment": "development", "key_id": names["key_id"]
    },
    "updateList": lambda _: {"name": "renamed"},
    "addListEntries": lambda names: {"entries": [{"value": names["account_id"], "note": "seen"}]},
    "removeListEntries": lambda names: {"values": [names["account_id"]]},
    "labelEvent": lambda _: {"label": "legitimate"},
    "assignReview": lambda names: {"assignee": names["member_id"]},
    "readConsoleExamples": lambda names: {"request_ids": [names["request_id"]]},
    "updateSettings": lambda _: {"decision_in_response": False},
    "updateMember": lambda _: {"name": "Grace"},
    "signIn": lambda names: {"email": names["email"], "password": names["password"]},
    "readInvitation": lambda names: {"token": names["invitation"]},
    "acceptInvitation": lambda names: {"token": names["invitation"], "password": ANOTHER},
    "offerTotp": lambda names: {"password": names["password"]},
    "confirmTotp": lambda names: {"code": names["code"]},
    "replaceRecoveryCodes": lambda names: {"password": names["password"]},
    "changePassword": lambda names: {"password": names["password"], "new_password": ANOTHER},
}  # fmt: skip
"""Operation -> its body, where the documented example names what is not there."""

QUERIES: dict[str, Callable[[Names], dict[str, str]]] = {
    "getConsoleLinks": lambda names: {"visitor": names["visitor_id"]},
    "searchConsole": lambda names: {"q": names["account_id"]},
}
"""Operation -> what its query must say."""


@cache
def example_of(body: type[msgspec.Struct]) -> dict[str, Any]:
    """The example that the documents show of a body."""
    return example(components([body], []), reference(body))


def _ordinary(body: type[msgspec.Struct], names: Names) -> dict[str, Any]:
    """The example of a body, with these names for the ids in it; that of an account is a word of the caller's own."""
    ids = [field for field in example_of(body) if field.endswith("_id") and field != "account_id" and field in names]
    return example_of(body) | {field: names[field] for field in ids}


def environment(route: Route) -> dict[str, str]:
    """The parameter that says which events are meant, where a key does not: everything happens in development."""
    given = str(get_type_hints(route.query or object, include_extras=True).get("environment", ""))
    return {"environment": "test" if "live" in given else "development"} if given else {}


def ask(route: Route, names: Names, under: str | None = None, **query: str) -> Asked:
    """The ordinary request of a route, about these names."""
    path = (route.under[0] if under is None else under) + route.path
    for variable in [part[1:-1] for part in route.path.split("/") if part.startswith("{")]:
        path = path.replace(f"{{{variable}}}", names[NAMED.get((route.operation_id, variable), variable)])
    params = environment(route) | QUERIES.get(route.operation_id, lambda _: {})(names) | query
    if "account" in query:  # or a visitor
        params.pop("visitor", None)
    body = None
    if route.body is not None:
        given = BODIES.get(route.operation_id)
        body = _ordinary(route.body, names) if given is None else given(names)
    return Asked(route.method, path, params, body)


def made() -> dict[str, Route]:
    """What a path names -> the route by which a `POST` to the path before makes it."""
    makes = {route.path: route for route in ROUTES if route.method == "POST" and route.status == 201}
    ends = ((route, *route.path.rpartition("/{")[::2]) for route in ROUTES)
    named = ((route.operation_id, end.partition("}")[0], before) for route, before, end in ends if before in makes)
    return {NAMED.get((operation, variable), variable): makes[before] for operation, variable, before in named}


def put() -> list[Route]:
    """The routes that put something where a `DELETE` of the same path takes it away."""
    taken = {route.path for route in ROUTES if route.method == "DELETE"}
    return [route for route in ROUTES if route.method == "PUT" and route.path in taken]


def is_of_subject(route: Route) -> bool:
    """Whether the path names a visitor or an account."""
    return "{visitor_id}" in route.path or "{account_id}" in route.path


class House:
    """A filled organization of a running service, and its people."""

    def __init__(self, live: Live, organization: Organization, mark: str, network: str = "81.2.69.16") -> None:
        """`mark`: a word in lower-case letters that is in everything that the organization has written itself.
        `network`: what the addresses of its visitors begin with.
        """
        self.live, self.organization, self.mark = live, organization, mark
        number = organization.number
        self.admin = Automation(live, organization=organization)
        self.public = live.issue(organization=number, name=f"{mark} public")[1]
        self.secret = live.issue("secret", organization=number, name=f"{mark} secret")[1]
        self.names = Names(organization_id=organization.id, platform="web", revision="1", code="287082")
        self.browser: Browser | None = None
        self._network = network

    async def fill(self) -> None:
        """Have something of everything: two visitors, each with two visits and an account, and what people say of
        them.
        """
        mark, names = self.mark, self.names
        names["key_id"] = (await self.do("issueSdkKey", {"name": f"{mark} shop", "environment": "development"}))["key"][
            "id"
        ]
        for _ in range(2):
            proxy = await self.do("issueProxyKey", {"name": f"{mark} proxy", "environment": "development"})
        names["proxy_credential_id"] = proxy["credential"]["id"]
        await self.come_in()
        hook = {"url": f"https://{PUBLIC_ADDRESS}/{mark}", "environment": "test", "description": mark}
        told = ["identification.completed", "webhook.test", "review.opened", "review.closed"]
        names["webhook_id"] = (await self.do("createWebhook", hook | {"events": told}))["endpoint"]["id"]
        await self.do("saveRules", {"revision": 0, "rules": [RULE | {"name": mark, "note": f"{mark} wrote this"}]})
        (rule,) = (await self.do("getRules"))["rules"]
        names["rule_id"] = rule["id"]
        for device in (1, 2, 1, 2):
            await self.visit(device)
        await self._say()
        for row in (await self.do("listReviews"))["reviews"]:
            names["review_id"] = row["id"]
        await self.make_the_rest()
        await trio.testing.wait_all_tasks_blocked()
        names["event_id"] = (await self.do("listWebhookDeliveries"))["deliveries"][0]["event_id"]
        names["revision"] = str((await self.do("getRules"))["revision"])
        # As after a minute: on a busy machine retention would write a row while a test compares rows.
        days, now_ms = Config().visitor_retention_days, self.live.clock.now_ms
        look = partial(end_pass, number=self.organization.number, began_at_ms=now_ms, visitor_days=days)
        self.live.found.store.write_now([look])

    async def _say(self) -> None:
        """Let people say something of both visitors and both accounts."""
        mark, names = self.mark, self.names
        for kind in ("visitor_id", "account", "address"):
            given = {"name": f"{mark}_{kind}", "kind": kind.removesuffix("_id")}
            names["list_id"] = (await self.do("createList", given))["id"]
            entries = [{"value": names[f"{kind}_{device}"], "note": mark} for device in (1, 2)]
            entries[0]["expires_at"] = "2099-01-01T00:00:00Z"
            await self.do("addListEntries", {"entries": entries})
            if kind == "account":
                accounts = names["list_id"]
        names["list_id"] = accounts
        for device in (1, 2):
            names |= {name: names[f"{name}_{device}"] for name in ("request_id", "visitor_id")}
            names["account_id"] = names[f"account_{device}"]
            await self.do("labelEvent", {"label": "fraud", "label_reason": "chargeback"})
            other = f"as {names[f'visitor_id_{3 - device}']} and {names[f'account_{3 - device}']}"
            own = f"{names['visitor_id']} and {names['account_id']}"
            for whose in ("Visitor", "Account"):
                note = await self.do(f"create{whose}Note", {"text": f"{mark} called: {own}, {other}"})
                names[f"{whose.lower()}_note"] = note["id"]

    async def make_the_rest(self) -> None:
        """Make whatever else a path names, of both visitors, where a route makes one and responds with its id; and put
        what may be put to what there is.
        """
        for name, make in made().items():
            for device in (1, 2) if name not in self.names else ():
                self.names[name] = (await self._make(make, device, "name"))["id"]
        for make in put():
            for device in (1, 2) if all(self.names[name] for name in re.findall(r"{(\w+)}", make.path)) else ():
                await self._make(make, device, "name", "note")

    async def _make(self, make: Route, device: int, *marked: str) -> Any:
        """The answer to a route about a visitor and its account, with the mark in these fields of its body."""
        given = {name: self.names[f"{name}_{device}"] for name in ("visitor_id", "account")}
        asked = ask(make, Names(self.names, visitor_id=given["visitor_id"], account_id=given["account"]))
        body = asked.body | {field: f"{self.mark}_{device}" for field in marked if field in asked.body}
        return await self._succeed(make, asked._replace(body=body))

    async def make_of_subjects(self) -> None:
        """Make again what is made of the visitor or the account of a path: those that the names stand for now."""
        for name, make in made().items():
            if is_of_subject(make):
                self.names[name] = (await self.do(make.operation_id))["id"]
        for make in filter(is_of_subject, put()):
            await self.do(make.operation_id)

    async def come_in(self) -> None:
        """Let a member with all rights sign in, and ask another one."""
        names, email = self.names, f"{self.mark}{self.live.clock.now_ms}@shop.example"
        fields = {"organization": self.organization, "name": self.mark}
        self.browser = await came_in(self.live, "admin", https=True, email=email, **fields)
        names["email"] = email
        names["password"] = PASSWORD
        names["member_id"] = invited(self.live, "analyst", email=f"asked-{email}", **fields)[0].id
        _, names["invitation"] = invited(self.live, "viewer", email=f"coming-{email}", **fields)

    async def visit(self, device: int) -> None:
        """An identification with everything that a browser may say, and its report of later."""
        mark, names = self.mark, self.names
        names[f"account_{device}"] = names["account_id"] = f"{mark}-account-{device}"
        names["tag"] = f"{mark}-tag-{device}"
        names["address"] = names[f"address_{device}"] = f"{self._network}{device}"
        now_ms = self.live.clock.now_ms
        signals = report(
            device,
            client_token=f"{mark}-token-{device}-0123456789",
            nonce=f"{mark}-nonce-{device}-{now_ms}",
            collected_at=now_ms,
            note=f"{mark}-note-{device}",
        )
        said = Subject(names["account_id"], "log_in", names["tag"])
        headers = {**BROWSER, "x-forwarded-for": names["address"], "idempotency-key": f"{mark}-{now_ms}-{device}"}
        signed = BrowserKey(device).signed(signals, subject=said)
        answer = succeeded(await send(self.live, self.public, signed, headers, **said._asdict()))
        self.learn("identify", answer)
        for name in ("request_id", "visitor_id"):
            names[name] = names[f"{name}_{device}"] = answer[name]
        await self.do("supplementEvent")
        self.live.clock.advance(seconds=1)

    def learn(self, operation_id: str, answer: Any) -> None:
        """Remember what an answer tells that later requests need."""
        if operation_id == "identify" and "deferred_token" in answer:
            self.names |= {"identified": answer["request_id"], "deferred_token": answer["deferred_token"]}
        if operation_id == "changePassword":
            self.names["password"] = ANOTHER
        if operation_id == "offerTotp":
            self.names["code"] = code_at(base64.b32decode(answer["secret"]), self.live.clock.now_ms)

    async def index(self) -> None:
        """Every event so far is in segments, as a few seconds later."""
        await index(self.live.found.store, self.live.clock.now_ms + 60_000)

    async def do(self, operation_id: str, body: Any = None, **query: str) -> Any:
        """The answer to the ordinary request of a route, or to one with another body; it has to be a success."""
        asked = ask(BY_ID[operation_id], self.names, **query)
        return await self._succeed(BY_ID[operation_id], asked if body is None else asked._replace(body=body))

    async def _succeed(self, route: Route, asked: Asked) -> Any:
        response = await self.send(route, asked)
        assert response.is_success, f"{route.operation_id}: {response.status_code} {response.text}"
        return response.json() if response.headers.get("content-type") == "application/json" else None

    async def send(self, route: Route, asked: Asked) -> httpx.Response:
        """What a caller of this organization that may do everything gets; whoever signs in is somebody else."""
        if asked.path.startswith(CONSOLE_ROOT) and self.browser is not None:
            browser = self.browser if route.kinds else Browser(self.live, https=True)
            path = asked.path + ("?" + str(httpx.QueryParams(asked.query)) if asked.query else "")
            response = await browser(asked.method, path, asked.body)
        else:
            json = {} if asked.body is None else {"json": asked.body}
            sent = {"headers": self.headers(route), "params": asked.query, **json}
            response = await self.live.client.request(asked.method, asked.path, **sent)
        if response.is_success:
            is_json = response.headers.get("content-type") == "application/json"
            self.learn(route.operation_id, response.json() if is_json else None)
        return response

    def headers(self, route: Route) -> dict[str, str]:
        """Those of a caller whose key the route accepts."""
        if "public" in route.kinds:
            return {**BROWSER, "x-api-key": self.public, "origin": ORIGIN}
        if "secret" in route.kinds:
            return {"x-api-key": self.secret}
        return {"x-api-key": self.admin.secret} if route.kinds else {}


LAST = (
    "changePassword", "offerTotp", "confirmTotp", "replaceRecoveryCodes", "closeReview", "reopenReview",
    "removeListEntries", "deleteList", "deleteVisitorNote", "deleteAccountNote", "restoreOrganizationRiskWeights",
    "restoreSdkKeyRiskWeights", "revokeSdkKey", "revokeProxyKey", "deleteWebhook", "eraseVisitor", "eraseAccount",
    "removeMember", "signOut",
)  # fmt: skip
"""Operations after which others would find nothing, in an order in which each finds what it needs."""


def in_order(route: Route) -> tuple[int, int]:
    """Where a route stands among others that are asked one after the other: reads, changes, removals, and `LAST`."""
    if route.operation_id in LAST:
        return 3, LAST.index(route.operation_id)
    if route.method == "DELETE":
        return 2, 0
    return int(route.method != "GET"), int(route.operation_id == "supplementEvent")


SERVED = [(route, under) for route in ROUTES for under in route.under]
"""Every route, as often as it is served."""
OFF = {
    "getTryConfig": "the page is turned off",
    "explainTry": "the page is turned off",
    "forgetTry": "the page is turned off",
    "beginOpenId": "there is no provider",
    "endOpenId": "there is no provider",
}
"""Routes that answer 404 in a service of the tests, and why."""
