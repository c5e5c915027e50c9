"""A customer's automation for tests: requests with a management key, below its organization's path."""

from __future__ import annotations

from typing import Any

import httpx

from svc.kernel.access.credentials import ApiKey
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.queries import keys_of
from tests.support.live import Live

MANAGEMENT = "/api/v1/management"


class Automation:
    """One management key at work."""

    def __init__(
        self, live: Live, role: str = "admin", organization: Organization | None = None, region: str = "us"
    ) -> None:
        self.organization = organization or live.organization
        number = self.organization.number
        self.key, self.secret = live.issue("management", role=role, organization=number, region=region)
        self._live = live

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """`path` is below the organization's; `_` in a header's name is `-`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._live.client.request(
            method,
            f"{MANAGEMENT}/organizations/{self.organization.id}{path}",
            headers={"x-api-key": self.secret, **sent},
            **({} if body is None else {"json": body}),
        )

    async def issue(self, path: str = "/sdk-keys", **body: Any) -> tuple[dict[str, Any], str]:
        """A new key as the answer shows it, and its secret."""
        given = {"name": "shop", "environment": "development", **body}
        answer = (await self("POST", path, given)).json()
        return answer["key" if path == "/sdk-keys" else "credential"], answer["secret"]


def stored_keys(live: Live, number: int | None = None) -> dict[str, ApiKey]:
    """Every key of an organization as it lies in the store, by its id, but for when management keys were used."""
    with live.found.store.read() as snapshot:
        keys = keys_of(snapshot, live.organization.number if number is None else number)
    return {key.id: key for key in keys if key.kind != "management"}
