"""A browser on the page of the console, for tests: what it sends by itself, and the cookie that it keeps."""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import Any

import httpx

from svc.features.members.command import make_link
from svc.kernel.access.tables import CONSOLE_LINKS, SESSIONS
from svc.kernel.store.schema.table import Table
from tests.support.live import Live

SESSION = "/console/session"
API = "/console/api"
PROXIED = {"x-forwarded-proto": "https", "host": "svc.example"}
"""What the trusted proxy of `live_service` adds for a browser that came over HTTPS."""


class Browser:
    """A browser on the page of the console: over HTTPS by way of the proxy, or on the machine itself."""

    def __init__(self, live: Live, *, https: bool = False) -> None:
        self.live = live
        self.way = dict(PROXIED) if https else {}
        self.origin = "https://svc.example" if https else live.url
        self.name = "__Host-svc" if https else "svc-console"
        self.cookie: str | None = None

    async def __call__(
        self, method: str, path: str, body: Any = None, *, without: tuple[str, ...] = (), **changed: str
    ) -> httpx.Response:
        """A request as `fetch` of the page sends it, but for the headers in `without` and `changed` (`_` is `-`)."""
        headers = {**self.way, "sec-fetch-site": "same-origin"}
        if method not in ("GET", "HEAD"):
            headers["origin"] = self.origin
        if self.cookie is not None:
            headers["cookie"] = f"{self.name}={self.cookie}"
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        for name in without:
            headers.pop(name)
        given = {} if body is None else {"json": body}
        self.live.client.cookies.clear()
        response = await self.live.client.request(method, path, headers=headers, **given)
        self._keep(response)
        return response

    async def sign_in(self, **body: str) -> httpx.Response:
        """With `key` or `token`; by a link of the role admin without either."""
        return await self("POST", SESSION, body or {"token": link(self.live)})

    def _keep(self, response: httpx.Response) -> None:
        for header in response.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(header).items():
                if name == self.name:
                    self.cookie = morsel.value or None


def link(live: Live, role: str = "admin", minutes: int = 10) -> str:
    """The token of a new link to the console of the organization."""
    return make_link(live.found, live.world, live.organization, role, "anna", minutes, "us").token  # pyright: ignore[reportArgumentType]


async def signed_in(live: Live, role: str = "admin", *, https: bool = False) -> Browser:
    """A browser with a session, by a link."""
    browser = Browser(live, https=https)
    response = await browser.sign_in(token=link(live, role))
    assert response.status_code == 200, response.text
    return browser


def rows(live: Live, table: Table[Any]) -> list[Any]:
    """The records of a table."""
    with live.found.store.read() as snapshot:
        return [record for _, record in snapshot.scan(table)]


def sessions(live: Live) -> int:
    return len(rows(live, SESSIONS))


def links(live: Live) -> int:
    return len(rows(live, CONSOLE_LINKS))
