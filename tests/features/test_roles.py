"""Interface 4 and 5, decisions 1.8 and 2: who may call what. Every route with every kind of caller, through HTTP.

`ACCESS` and `ORIGINS_OF` say it in full, in the terms of the interface; nothing in here asks the service's own tables
what it allows. A route without a row fails the test: its author says here who may call it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog.testing
import trio

from svc.features.lists.jobs import create_list, delete_list
from svc.features.lists.lists import StoredList
from svc.features.lists.queries import named_list
from svc.features.routes import ROUTES
from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, create_endpoint, remove_endpoint
from svc.features.webhooks.queries import endpoints_of
from svc.http.callers.limits import OPEN_READS_PER_S
from svc.http.route import Route
from svc.kernel.access.credentials import parse
from svc.kernel.store.snapshot import Transaction
from svc.world import twenty_characters
from tests.spec.console_browser import Browser
from tests.spec.people import add_member, came_in
from tests.spec.responses import nothing_stored
from tests.spec.subscriber import URL, Names
from tests.support import live as live_services
from tests.support.effort import effort
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service, report
from tests.support.receivers import Receivers

ORGANIZATION = "/management/organizations/{organization_id}"


class Access(NamedTuple):
    """Who may call a route, and what an ordinary call of it is answered."""

    kinds: tuple[str, ...] = ()
    """None = everybody, with or without a key."""
    roles: frozenset[str] = frozenset()
    """Of management keys and members that may call it."""
    status: int = 200
    """The response to a client that is let in and sends `body`."""
    body: Any = None
    to_member: int | None = None
    """That to a member's session, where it is another one."""


REPORT = {"sdk": {"platform": "web"}, "signals": report()}
READER = Access(("management",), frozenset(("admin", "developer", "analyst", "viewer")))
ANALYST = READER._replace(roles=frozenset(("admin", "developer", "analyst")))
DEVELOPER = READER._replace(roles=frozenset(("admin", "developer")))
ADMIN = READER._replace(roles=frozenset(("admin",)))
ISSUE = {"name": "x", "environment": "staging"}
WEBHOOK = {"url": URL, "environment": "test", "events": ["webhook.test"], "description": ""}
TRIED = {"request_id": "019b76da-a800-7000-8000-000000000000", "token": "x"}
"""Of the page `/try`, which is turned off."""
AN_EVENT = {"event_id": "019b76da-a800-7000-8000-000000000000"}

ACCESS: dict[tuple[str, str], Access] = {
    ("GET", "/healthz"): Access(),
    ("GET", "/readyz"): Access(),
    ("GET", "/"): Access(),
    ("GET", "/try/config.json"): Access(status=404),
    ("POST", "/console/session"): Access(status=403, body={"token": "x"}),
    ("POST", "/console/invitations"): Access(status=403, body={"token": "x", "password": "a long password"}),
    ("POST", "/console/invitations/read"): Access(status=403, body={"token": "x"}),
    ("GET", "/console/sign-in"): Access(),
    ("GET", "/console/oidc"): Access(status=404),
    ("GET", "/console/oidc/callback"): Access(status=404),
    ("GET", "/console/session"): READER._replace(status=401, to_member=200),
    ("DELETE", "/console/session"): READER._replace(status=401, to_member=204),
    ("POST", "/console/api/totp"): READER._replace(status=404, to_member=422, body={"password": "none"}),
    ("POST", "/console/api/password"): READER._replace(
        status=404, to_member=422, body={"password": "none", "new_password": "none that is right"}
    ),
    ("POST", "/console/api/totp/recovery"): READER._replace(status=404, body={"password": "none"}),
    ("POST", "/console/api/totp/confirm"): READER._replace(status=404, body={"code": "none"}),
    ("GET", "/console/api/stream"): READER,
    ("POST", "/try/event"): Access(("public",), status=404, body=TRIED),
    ("POST", "/try/forget"): Access(("public",), status=404, body=TRIED),
    ("POST", "/identify"): Access(("public", "secret", "proxy"), body=REPORT),
    ("POST", "/events/{request_id}/supplement"): Access(
        ("public", "secret", "proxy"), status=422, body=REPORT | {"token": "x"}
    ),
    ("POST", "/attestation/challenge"): Access(("public",)),
    ("GET", "/events"): Access(("secret",)),
    ("GET", "/changes"): Access(("secret",)),
    ("GET", "/events/{request_id}"): Access(("secret",), status=404),
    ("GET", "/accounts"): Access(("secret",)),
    ("GET", "/accounts/{account_id}"): Access(("secret",), status=404),
    ("GET", "/visitors"): Access(("secret",)),
    ("GET", "/visitors/{visitor_id}"): Access(("secret",)),
    ("PATCH", "/events/{request_id}"): Access(("secret",), status=404, body={"action": "log_in"}),
    ("GET", "/organizations/{organization_id}/verdict-keys"): Access(),
    ("POST", ORGANIZATION + "/verdict-keys/rotate"): ADMIN._replace(body={}),
    ("GET", "/management/key"): READER._replace(to_member=404),
    ("GET", ORGANIZATION + "/members"): ADMIN,
    ("POST", ORGANIZATION + "/members"): ADMIN._replace(status=422, body={"email": "x", "name": "x", "role": "viewer"}),
    ("PATCH", ORGANIZATION + "/members/{member_id}"): ADMIN._replace(body={"name": "x"}),
    ("DELETE", ORGANIZATION + "/members/{member_id}"): ADMIN._replace(status=204),
    ("POST", ORGANIZATION + "/members/{member_id}/invitation"): ADMIN,
    ("GET", ORGANIZATION + "/proxy-credentials"): ADMIN,
    ("POST", ORGANIZATION + "/proxy-credentials"): ADMIN._replace(status=201, body=ISSUE),
    ("POST", ORGANIZATION + "/proxy-credentials/{proxy_credential_id}/revoke"): ADMIN,
    ("GET", ORGANIZATION + "/sdk-keys"): READER,
    ("POST", ORGANIZATION + "/sdk-keys"): DEVELOPER._replace(status=201, body=ISSUE),
    ("POST", ORGANIZATION + "/sdk-keys/{key_id}/revoke"): DEVELOPER,
    ("PUT", ORGANIZATION + "/sdk-keys/{key_id}/allowed-origins"): DEVELOPER._replace(body={"allowed_origins": []}),
    ("GET", ORGANIZATION + "/risk-signals"): READER,
    ("GET", ORGANIZATION + "/risk-weights"): READER,
    ("GET", ORGANIZATION + "/browser-keys"): ADMIN,
    ("POST", ORGANIZATION + "/browser-keys/revoke"): ADMIN._replace(body={"from": "2026-01-01T00:00:00Z"}),
    ("PUT", ORGANIZATION + "/risk-weights/{platform}"): ADMIN._replace(body={}),
    ("DELETE", ORGANIZATION + "/risk-weights/{platform}"): ADMIN,
    ("GET", ORGANIZATION + "/risk-weights/{platform}/suggestion"): READER,
    ("GET", ORGANIZATION + "/settings"): READER,
    ("PATCH", ORGANIZATION + "/settings"): ADMIN._replace(body={"decision_in_response": True}),
    ("GET", ORGANIZATION + "/sdk-keys/{key_id}/risk-weights"): READER,
    ("PUT", ORGANIZATION + "/sdk-keys/{key_id}/risk-weights/{platform}"): ADMIN._replace(body={}),
    ("DELETE", ORGANIZATION + "/sdk-keys/{key_id}/risk-weights/{platform}"): ADMIN,
    ("GET", ORGANIZATION + "/webhooks"): READER,
    ("POST", ORGANIZATION + "/webhooks"): DEVELOPER._replace(status=201, body=WEBHOOK),
    ("PATCH", ORGANIZATION + "/webhooks/{webhook_id}"): DEVELOPER._replace(body={"description": "x"}),
    ("DELETE", ORGANIZATION + "/webhooks/{webhook_id}"): DEVELOPER._replace(status=204),
    ("POST", ORGANIZATION + "/webhooks/{webhook_id}/rotate-secret"): DEVELOPER._replace(body={}),
    ("POST", ORGANIZATION + "/webhooks/{webhook_id}/test"): DEVELOPER._replace(status=202),
    ("POST", ORGANIZATION + "/webhooks/{webhook_id}/redeliver"): DEVELOPER._replace(status=404, body=AN_EVENT),
    ("GET", ORGANIZATION + "/webhook-deliveries"): READER,
    ("GET", ORGANIZATION + "/rules"): READER,
    ("GET", ORGANIZATION + "/rule-proposals"): READER,
    ("POST", ORGANIZATION + "/rule-proposals"): ANALYST._replace(status=201, body={"revision": 0, "rules": []}),
    ("DELETE", ORGANIZATION + "/rule-proposals/{proposal_id}"): ANALYST._replace(status=404),
    ("PUT", ORGANIZATION + "/rules"): ANALYST._replace(status=409, body={"revision": 9, "rules": []}),
    ("POST", ORGANIZATION + "/rules/preview"): READER._replace(body={"rules": []}),
    ("GET", ORGANIZATION + "/lists"): READER,
    ("POST", ORGANIZATION + "/lists"): DEVELOPER._replace(status=409, body={"name": "blocked_visitors", "kind": "tag"}),
    ("GET", ORGANIZATION + "/lists/{list_id}"): READER,
    ("PATCH", ORGANIZATION + "/lists/{list_id}"): DEVELOPER._replace(body={}),
    ("DELETE", ORGANIZATION + "/lists/{list_id}"): DEVELOPER._replace(status=204),
    ("GET", ORGANIZATION + "/lists/{list_id}/entries"): READER,
    ("POST", ORGANIZATION + "/lists/{list_id}/entries"): ANALYST._replace(body={"entries": [{"value": "a"}]}),
    ("DELETE", ORGANIZATION + "/lists/{list_id}/entries"): ANALYST._replace(status=204, body={"values": ["a"]}),
    ("PUT", ORGANIZATION + "/events/{request_id}/label"): ANALYST._replace(status=404, body={"label": "fraud"}),
    ("GET", ORGANIZATION + "/performance"): READER,
    ("GET", ORGANIZATION + "/reviews"): READER,
    ("POST", ORGANIZATION + "/reviews"): ANALYST._replace(status=404, body={"request_id": AN_EVENT["event_id"]}),
    ("GET", ORGANIZATION + "/reviews/{review_id}"): READER._replace(status=404),
    ("PATCH", ORGANIZATION + "/reviews/{review_id}"): ANALYST._replace(status=404, body={"assignee": None}),
    ("POST", ORGANIZATION + "/reviews/{review_id}/close"): ANALYST._replace(status=404, body={"label": "fraud"}),
    ("POST", ORGANIZATION + "/reviews/{review_id}/reopen"): ANALYST._replace(status=404),
    ("GET", ORGANIZATION + "/visitors/{visitor_id}/notes"): READER,
    ("POST", ORGANIZATION + "/visitors/{visitor_id}/notes"): ANALYST._replace(status=201, body={"text": "x"}),
    ("DELETE", ORGANIZATION + "/visitors/{visitor_id}/notes/{note_id}"): ANALYST._replace(status=404),
    ("GET", ORGANIZATION + "/accounts/{account_id}/notes"): READER._replace(status=404),
    ("POST", ORGANIZATION + "/accounts/{account_id}/notes"): ANALYST._replace(status=404, body={"text": "x"}),
    ("DELETE", ORGANIZATION + "/accounts/{account_id}/notes/{note_id}"): ANALYST._replace(status=404),
    ("DELETE", ORGANIZATION + "/visitors/{visitor_id}"): ADMIN._replace(status=204),
    ("DELETE", ORGANIZATION + "/accounts/{account_id}"): ADMIN._replace(status=404),
    ("GET", "/console/api/events/{request_id}"): READER._replace(status=404),
    ("GET", "/console/api/events"): READER,
    ("GET", "/console/api/events/export"): READER,
    ("GET", "/console/api/lists/{list_id}/export"): READER,
    ("GET", "/console/api/events/{request_id}/rules"): READER._replace(status=404),
    ("GET", "/console/api/rules/history"): READER,
    ("POST", "/console/api/rules/check"): READER._replace(status=204, body={"rules": []}),
    ("POST", "/console/api/rules/examples"): READER._replace(body={"request_ids": []}),
    ("GET", "/console/api/rules/language"): READER,
    ("GET", "/console/api/standing"): READER,
    ("POST", "/console/api/standing"): READER._replace(body={"visitors": [], "accounts": ["a"]}),
    ("GET", "/console/api/seen-accounts"): READER,
    ("GET", "/console/api/seen-visitors"): READER,
    ("GET", "/console/api/accounts/{account_id}"): READER._replace(status=404),
    ("GET", "/console/api/links"): READER._replace(status=422),
    ("GET", "/console/api/search"): READER._replace(status=422),
    ("GET", "/console/api/visitors"): READER,
    ("GET", "/console/api/visitors/{visitor_id}"): READER,
    ("GET", "/console/api/statistics"): READER,
    ("GET", "/console/api/networks"): READER,
    ("GET", "/console/api/actions"): READER,
    ("GET", "/console/api/views"): READER,
    ("POST", "/console/api/views"): READER._replace(
        status=422, to_member=201, body={"name": "x", "screen": "events", "query": {}}
    ),
    ("GET", "/console/api/views/{view_id}"): READER._replace(status=404),
    ("DELETE", "/console/api/views/{view_id}"): READER._replace(status=404),
    ("GET", "/console/api/events/count"): READER,
    ("GET", "/console/api/reviews"): READER,
    ("GET", "/console/api/reviews/count"): READER,
    ("GET", "/console/api/lists/{list_id}/count"): READER,
    ("GET", "/console/api/public-keys"): READER,
    ("GET", "/console/api/people"): READER,
    ("GET", "/console/api/billing"): READER,
    ("GET", "/console/api/audit"): READER,
    ("POST", "/console/api/weights/preview"): READER._replace(body={"platform": "web"}),
}

ENVIRONMENTS = ("production", "staging", "development")
EVERY = frozenset(ENVIRONMENTS)
HOST = "svc.example"
"""Where the requests believe the service to be."""
ORIGINS = {
    "none": None,
    "allowed": ORIGIN,
    "foreign": "https://other.example",
    "loopback": "http://localhost:3000",
    "service": f"https://{HOST}",
    "null": "null",
}
ORIGINS_OF: dict[tuple[str, str], frozenset[str | None]] = {
    ("public", "allowed"): EVERY,
    ("public", "loopback"): frozenset({"development"}),
    ("secret", "none"): EVERY,
    ("secret", "service"): frozenset({"development"}),
    **{("proxy", origin): EVERY for origin in ORIGINS},
    ("management", "none"): frozenset({None}),
}
"""Kind, `Origin` -> environments whose keys are let in; none where there is no row (interface 5, decisions 2.7-2.9)."""

REGIONS = ("us", "eu")
"""The first is the server's."""
STATES = ("active", "revoked", "expired")
PATHS = ("own", "other")
"""Whose organization the path names."""


class Caller(NamedTuple):
    """A client that presents something in `x-api-key`, or nothing."""

    kind: str
    """`none`: what it presents was never issued."""
    environment: str | None
    region: str
    state: str
    role: str | None
    secret: str | None


class Cell(NamedTuple):
    route: Route
    path: str
    """As it is served, its variables not filled in."""
    access: Access
    caller: Caller
    origin: str
    organization: str

    def faults(self) -> int:
        """The number of reasons to refuse it. With one, a single check stands between caller and answer.

        A route for everybody has no reason; a key and an `Origin` are what could become one by mistake.
        """
        access, caller = self.access, self.caller
        if not access.kinds:
            return (caller.secret is not None) + (self.origin != "none")
        return sum(
            (
                caller.kind not in access.kinds,
                caller.region != REGIONS[0],
                caller.state != STATES[0],
                caller.environment not in ORIGINS_OF.get((caller.kind, self.origin), ()),
                self.organization != "own",
                bool(access.roles) and caller.role not in access.roles,
            )
        )

    def expected(self) -> int:
        """Decisions 1.8: the key before the organization in the path, and that before the role."""
        access, caller = self.access, self.caller
        if access.kinds:
            if caller.kind not in access.kinds or (caller.region, caller.state) != (REGIONS[0], STATES[0]):
                return 401
            if caller.environment not in ORIGINS_OF.get((caller.kind, self.origin), ()):
                return 401
            if self.organization != "own":
                return 404
            if access.roles and caller.role not in access.roles:
                return 403
        return access.status

    def lets_in(self) -> bool:
        return self.expected() == self.access.status and self.organization == "own"


def callers(live: Live) -> Iterator[Caller]:
    """Every kind of caller there is, all of one organization."""
    for kind, environment, region, state in product(("public", "secret", "proxy"), ENVIRONMENTS, REGIONS, STATES):
        yield issued(live, kind, environment, region, state, None)
    for role, region, state in product(("admin", "developer"), REGIONS, STATES):
        yield issued(live, "management", None, region, state, role)
    for kind, environment in (("public", "production"), ("secret", "staging"), ("proxy", "development")):
        yield from never_issued(live, kind, environment)
    yield from never_issued(live, "management", None)
    for nothing in (None, "", "svc_mk_us_"):
        yield Caller("none", None, REGIONS[0], STATES[0], None, nothing)


def issued(live: Live, kind: str, environment: str | None, region: str, state: str, role: str | None) -> Caller:
    fields: dict[str, Any] = {"role": role} if role else {}
    if state == "expired":
        fields["expires_at_ms"] = live.clock.now_ms
    key, secret = live.issue(kind, environment, region=region, **fields)
    if state == "revoked":
        live.revoke(key)
    return Caller(kind, environment, region, state, role, secret)


def never_issued(live: Live, kind: str, environment: str | None) -> Iterator[Caller]:
    """A valid key but for one character, once with a checksum that is wrong and once with the right one."""
    _, secret = live.issue(kind, environment)
    body = secret[:-7] + ("0" if secret[-7] != "0" else "1")
    number, check = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        check = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[digit] + check
    for presented in (body + secret[-6:], body + check):
        yield Caller("none", environment, REGIONS[0], STATES[0], None, presented)


def access_to(route: Route) -> Access:
    access = ACCESS.get((route.method, route.documented_path))
    assert access is not None, f"say in ACCESS who may call {route.method} {route.documented_path}"
    return access


def cells(everybody: list[Caller]) -> Iterator[Cell]:
    for route in ROUTES:
        access = access_to(route)
        is_of_one = bool(access.kinds) and "{organization_id}" in route.path
        organizations = PATHS if is_of_one else PATHS[:1]
        for under, caller, origin, organization in product(route.under, everybody, ORIGINS, organizations):
            yield Cell(route, under + route.path, access, caller, origin, organization)


def shown(cell: Cell) -> Any:
    """What the text of a key and the published kinds of the route say by themselves (docs/adr/0075): a client that is
    told no more than that learns of no key whether it was issued.
    """
    kinds, secret = cell.route.kinds, cell.caller.secret
    if cell.expected() != 401:
        return ""
    if not secret:
        return kinds
    credential = parse(secret)
    if credential is None:
        return "mistyped"
    if credential.kind not in kinds:
        return (credential.kind, kinds)
    return "region" if credential.region != REGIONS[0] else ""


class Resources:
    """What the variable segments of a path name: things of the organization that are there, and stay for refusals."""

    def __init__(self, live: Live, visitors: Iterator[str]) -> None:
        self._make: dict[str, Callable[[], str]] = {
            "key_id": lambda: live.issue("public")[0].id,
            "proxy_credential_id": lambda: live.issue("proxy")[0].id,
            "platform": lambda: "web",
            "asset": lambda: "reference.js",
            "page": lambda: "search.html",
            "version": lambda: "0.0.0",
            "file": lambda: "nothing.js",
            "visitor_id": lambda: next(visitors),
            "account_id": lambda: "nobody",
            "webhook_id": lambda: webhook(live),
            "list_id": lambda: tag_list(live),
            "member_id": lambda: add_member(live).id,
            "request_id": lambda: str(live.world.request_id(live.clock.now_ms)),
        }
        self._organizations = {"own": live.organization.id, "other": live.new_organization().id}
        self._lasting = {name: make() for name, make in self._make.items()}
        """What has no row is named by an id that was never given, and not found."""

    def path(self, cell: Cell) -> str:
        """Of a cell that lets in: its own things, since the call may change them."""
        own = cell.lets_in() and cell.access.kinds

        def named(variable: re.Match[str]) -> str:
            name = variable[1]
            if name == "organization_id":
                return self._organizations[cell.organization]
            if name not in self._make:
                return f"{name.removesuffix('_id')}_{'0' * 20}"
            return self._make[name]() if own else self._lasting[name]

        return re.sub(r"\{(\w+)(?:\.\.\.)?\}", named, cell.path)


async def visitor(live: Live, device: int) -> str:
    """The id of a visitor whom the organization knows, in environments of either kind."""
    for environment in ("production", "development"):
        _, secret = live.issue("secret", environment)
        answer = (await live.identify(secret, report(device), origin=None)).json()
    return answer["visitor_id"]


def webhook(live: Live) -> str:
    """The id of a new endpoint. It takes the place of all but the first, since an organization has ten at most."""
    number = live.organization.number
    new = NewEndpoint(id="whk_" + twenty_characters(live.world.entropy), **WEBHOOK)

    def make(transaction: Transaction) -> str:
        for found in endpoints_of(transaction, number)[1:]:
            remove_endpoint(transaction, number, found.endpoint.id)
        issued = create_endpoint(transaction, number, new, b"", live.clock.now_ms)
        assert isinstance(issued, Issued)
        return issued.registered.endpoint.id

    (made,) = live.found.store.write_now([make])
    assert isinstance(made, str)
    return made


def tag_list(live: Live) -> str:
    """The id of a new list. It takes the place of all but the first, since an organization has a hundred at most."""
    number, list_id = live.organization.number, "lst_" + twenty_characters(live.world.entropy)

    def make(transaction: Transaction) -> str:
        former = named_list(transaction, number, "another")
        if former is not None:
            delete_list(transaction, number, former.id)
        name = "another" if named_list(transaction, number, "first") else "first"
        created = create_list(transaction, number, list_id, name, "tag", live.clock.now_ms)
        assert isinstance(created, StoredList)
        return created.id

    (made,) = live.found.store.write_now([make])
    assert isinstance(made, str)
    return made


class Wire:
    """A client that does little: thousands of requests, one after the other, on one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stream: trio.SocketStream | None = None
        self._rest = b""

    async def send(self, cell: Cell, path: str, browser: Browser | None = None) -> tuple[int, Any]:
        """Status and body of the answer; with the session of a `browser` instead of a key."""
        headers = [f"x-svc-visitor-ip: {PUBLIC_ADDRESS}"]
        if browser is not None:
            headers += [
                f"cookie: {browser.name}={browser.cookie}",
                f"origin: {browser.origin}",
                "x-forwarded-proto: https",
                "sec-fetch-site: same-origin",
            ]
        if cell.caller.secret is not None:
            headers.append(f"x-api-key: {cell.caller.secret}")
        if ORIGINS[cell.origin] is not None:
            headers.append(f"origin: {ORIGINS[cell.origin]}")
        body = b""
        if cell.access.body is not None:
            body = json.dumps(cell.access.body).encode()
            headers += ["content-type: application/json", f"content-length: {len(body)}"]
        head = "\r\n".join([f"{cell.route.method} {path} HTTP/1.1", f"host: {HOST}", *headers, "", ""])
        if self._stream is None:
            self._stream, self._rest = await trio.open_tcp_stream("127.0.0.1", self._port), b""
        await self._stream.send_all(head.encode() + body)
        return await self._response(self._stream)

    async def _response(self, stream: trio.SocketStream) -> tuple[int, Any]:
        received = self._rest
        while b"\r\n\r\n" not in received:
            received += await self._more(stream)
        head, _, received = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", b"0"))
        while len(received) < length:
            received += await self._more(stream)
        self._rest = received[length:]
        if fields.get(b"connection") == b"close" or b"transfer-encoding" in fields:  # which is a stream
            await self.aclose()
        return int(head[9:12]), json.loads(received[:length]) if fields.get(
            b"content-type"
        ) == b"application/json" else None

    @staticmethod
    async def _more(stream: trio.SocketStream) -> bytes:
        received = await stream.receive_some()
        assert received, "the server closed in the middle of an answer"
        return bytes(received)

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None


ONE_IN = effort(24, 1)
"""Of so many cells with several faults one is tried; which, differs from commit to commit."""
ONE_IN_ON_ANOTHER_ENGINE = effort(5, 1)
"""And of those with one fault, on PostgreSQL: who may do what follows from the record of a key, wherever that is."""


@pytest.mark.slow(10)
@pytest.mark.any_store
async def test_every_route_admits_exactly_the_allowed_callers(directory: Path, crash_seed: int):
    """A request per cell of route x kind x environment x region x state x role x organization x `Origin`.

    Every cell without a reason to refuse it or with one (a share of the latter on PostgreSQL); of those with several,
    a share.
    """
    async with live_service(directory, transport=Receivers(), resolver=Names()) as live:
        everybody = list(callers(live))
        assert len(everybody) == 3 * 3 * 2 * 3 + 2 * 2 * 3 + 4 * 2 + 3
        whole, wire = list(cells(everybody)), Wire(live.port)
        shares = (1, 1 if live_services.ENGINE == "lmdb" else ONE_IN_ON_ANOTHER_ENGINE, ONE_IN)
        matrix = [cell for at, cell in enumerate(whole) if (at + crash_seed) % shares[min(2, cell.faults())] == 0]
        resources = Resources(live, iter([await visitor(live, device) for device in range(1, 41)]))
        let_in = [cell for cell in matrix if cell.lets_in()]
        refused = [cell for cell in matrix if not cell.lets_in()]
        wrong: list[tuple[Any, ...]] = []
        heard: dict[tuple[int, Any], set[str]] = {}
        explained: set[tuple[str | None, str, str]] = set()
        with structlog.testing.capture_logs() as logged:
            with nothing_stored(live):
                for cell in refused:
                    status, answer = await wire.send(cell, resources.path(cell))
                    if status != cell.expected():
                        wrong.append((cell.route.operation_id, cell.caller, cell.origin, cell.organization, status))
                    elif cell.path.startswith("/console/") and cell.caller.secret is None:
                        assert answer["error"]["message"].startswith("You are not signed in")
                    elif answer["error"]["message"].startswith("This development key was refused"):
                        explained.add((cell.caller.environment, cell.caller.region, cell.caller.state))
                    else:
                        heard.setdefault((status, shown(cell)), set()).add(json.dumps(answer["error"]))
            for cell in let_in:
                if cell.route.reads_for_all:
                    live.clock.advance(seconds=1 / OPEN_READS_PER_S)
                status, answer = await wire.send(cell, resources.path(cell))
                if status != cell.access.status:
                    wrong.append((cell.route.operation_id, cell.caller, cell.origin, status, answer))
        await wire.aclose()
    assert wrong[:20] == []
    assert {said: errors for said, errors in heard.items() if len(errors) > 1} == {}, (
        "it tells what only the store knows"
    )
    assert {(401, ""), (401, "mistyped"), (401, "region"), (403, ""), (404, "")} <= set(heard)
    assert explained == {("development", "us", "active")}  # decisions 2.7
    reasons = [entry["reason"] for entry in logged if entry.get("code") == "unauthorized"]
    assert all(reasons)
    assert len(reasons) == sum(cell.expected() == 401 for cell in matrix)
    spoken = json.dumps(logged, default=str)
    secrets = {cell.caller.secret for cell in matrix if cell.caller.state == "active" and cell.caller.kind != "none"}
    assert not [secret for secret in secrets if str(secret) in spoken]
    assert len(whole) > 10_000
    assert {cell.route.operation_id for cell in matrix} == {route.operation_id for route in ROUTES}
    print(f"{len(matrix)} of {len(whole)} cells: {len(let_in)} let in, {len(refused)} refused")  # noqa: T201  shown by `pytest -rP`


@pytest.mark.slow(2)
@pytest.mark.any_store
async def test_every_role_of_members_is_admitted_exactly_where_it_may(directory: Path):
    """Each route that a session opens, by a member of each role; nobody signs out before the others are through."""
    async with live_service(directory, transport=Receivers(), resolver=Names()) as live:
        resources = Resources(live, iter([await visitor(live, device) for device in range(1, 40)]))
        wire, wrong, tried = Wire(live.port), list[tuple[Any, ...]](), 0
        opened = [(route, under) for route in ROUTES for under in route.under if "management" in route.kinds]
        opened = [(route, under) for route, under in opened if (under + route.path).startswith("/console/")]
        for role in ("admin", "developer", "analyst", "viewer"):
            browser = await came_in(live, role, https=True)
            for route, under in sorted(opened, key=lambda found: found[0].operation_id == "signOut"):
                access = access_to(route)
                status = access.status if access.to_member is None else access.to_member
                cell = Cell(route, under + route.path, access, MEMBER._replace(role=role), "none", "own")
                answer = await wire.send(cell, resources.path(cell), browser)
                tried += 1
                if answer[0] != (status if role in access.roles else 403):
                    wrong.append((role, route.operation_id, answer))
        await wire.aclose()
    assert wrong == []
    assert tried > 200


MEMBER = Caller("management", None, REGIONS[0], STATES[0], None, None)
"""Of a role; it has a session and no key."""
