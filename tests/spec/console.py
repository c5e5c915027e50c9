"""Somebody who looks at the console, for tests: requests under `/console/api` with a management key."""

from __future__ import annotations

from typing import Any

import httpx

from svc.kernel.tenants.organization import Organization
from tests.support.live import Live

NOBODY = "0" * 20
"""A visitor id that was never given."""
UNKNOWN = "019b76da-a800-7000-8000-000000000000"
"""A request id that was never given."""


class Console:
    """One management key at the console."""

    def __init__(self, live: Live, role: str = "developer", organization: Organization | None = None) -> None:
        self.organization = organization or live.organization
        self.key, self.secret = live.issue("management", role=role, organization=self.organization.number)
        self._live = live

    async def get(self, path: str, **query: Any) -> httpx.Response:
        """`path` is below `/console/api`; a parameter `from_` is `from`."""
        asked = {name.rstrip("_"): value for name, value in query.items()}
        return await self._live.client.get(f"/console/api{path}", params=asked, headers={"x-api-key": self.secret})

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self._live.client.post(f"/console/api{path}", json=body, headers={"x-api-key": self.secret})

    async def seen(self, path: str, **query: Any) -> Any:
        """The body of an answer with status 200, which nothing that a client sent can turn into a page."""
        response = await self.get(path, **query)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        assert response.headers["cache-control"] == "no-store"
        return response.json()
