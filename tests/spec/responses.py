"""What the tests of the contract send, and what they check in every response."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx

from svc.identify.tables import LAST_LOOKS, RETENTION_PASSES
from svc.kernel.access.tables import KEYS
from svc.kernel.tenants.tables import ORGANIZATIONS
from tests.support.live import PUBLIC_ADDRESS, SCRIPTED, USER_AGENT, Live, report, succeeded

IDENTIFY = "/api/v1/identify"
BROWSER = {**SCRIPTED, "user-agent": USER_AGENT, "x-forwarded-for": PUBLIC_ADDRESS}
"""Headers of an ordinary visitor behind the trusted proxy of `live_service`."""
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
VISITOR_ID = re.compile(r"[0-9A-Za-z]{20}")
DRIVEN = {"webdriver": True}
"""A report with this is one of a driven browser: signal `automation`, weight 40."""
PROGRAM = {**BROWSER, "user-agent": "curl/8.5.0"}
"""A visitor that calls itself a program: signal `bot_user_agent`, weight 20."""
HEADLESS = {**BROWSER, "user-agent": USER_AGENT.replace("Chrome/", "HeadlessChrome/")}
"""A visitor that calls itself headless: signal `headless`, weight 30."""
TOO_LITTLE = {"timezone": "Europe/London"}
"""A report that identifies nobody."""


async def visit(live: Live, key: str, signals: Any = None, **given: Any) -> httpx.Response:
    """One identification of an ordinary browser at a public address; `given` as of `Live.identify`."""
    headers = {**BROWSER, **given.pop("headers", {})}
    return await live.identify(key, signals, headers=headers, **given)


async def act(live: Live, key: str, account: str | None = None, device: int = 1, **given: Any) -> dict[str, Any]:
    """One identification of a browser with a token of its own, for an account; `signals` are added to its report."""
    named = {} if account is None else {"account_id": account}
    signals = report(device) | {"client_token": f"the browser {device}"} | given.pop("signals", {})
    return succeeded(await visit(live, key, signals, **named, **given))


async def forward(live: Live, key: str, headers: Mapping[str, str], **given: Any) -> httpx.Response:
    """One identification as a proxy or a customer's server sends it."""
    return await live.identify(key, given.pop("signals", None), origin=None, headers=dict(headers), **given)


async def post(live: Live, key: str | None, content: bytes, **headers: str) -> httpx.Response:
    """A body as it stands, from the allowed origin of the key; `_` in a header's name is `-`."""
    sent = {"origin": "https://shop.example", "content-type": "application/json", **BROWSER}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["x-api-key"] = key
    return await live.client.post(IDENTIFY, content=content, headers=sent)


def body_of(**members: Any) -> bytes:
    """An identify body that is right but for `members`."""
    return json.dumps({"sdk": {"platform": "web"}, "signals": report(), **members}).encode()


def assert_error(response: httpx.Response, status: int, code: str, *details: tuple[str, str, str]) -> str:
    """The error body of interface 2.12, with exactly these (field, issue, location); its message."""
    answer = response.json()
    assert (response.status_code, answer["error"]["code"]) == (status, code), response.text
    assert set(answer) == {"error", "request_id"}
    error = answer["error"]
    assert set(error) == {"code", "message", "status"} | ({"details"} if details else set())
    assert error["status"] == status
    assert error["message"]
    if details:
        names = ("field", "issue", "location")
        assert error["details"] == [dict(zip(names, detail, strict=True)) for detail in details]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"] == answer["request_id"]
    assert_request_id(answer["request_id"])
    return error["message"]


def assert_invalid(response: httpx.Response, field: str, issue: str, location: str = "body") -> None:
    """`422 validation_error` with one detail (decisions 1.5)."""
    assert_error(response, 422, "validation_error", (field, issue, location))


def assert_request_id(text: str) -> None:
    """UUIDv7 in its lower-case canonical form (decisions 1.1)."""
    assert UUID(text).version == 7
    assert str(UUID(text)) == text


IN_BACKGROUND = {LAST_LOOKS.name, RETENTION_PASSES.name}
"""Tables that retention writes, which passes some seconds after the start, whatever is asked."""


@contextmanager
def nothing_stored(live: Live) -> Generator[None]:
    """What happens inside changes no row of the store: no event, no visitor, no money, no key."""
    before = _rows(live)
    yield
    assert _rows(live) == before


def _rows(live: Live) -> dict[str, Any]:
    with live.found.store.read() as snapshot:
        more = {table.name: list(snapshot.scan(table)) for table in (KEYS, ORGANIZATIONS)}
    return {name: rows for name, rows in (live.contents() | more).items() if name not in IN_BACKGROUND}
