"""The panel of `/docs/api` in a headless Chromium: decisions 2.8, the page that shows the API and tries it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.browser import Page, browser_page
from tests.support.live import Live, live_service


@pytest.mark.slow(4)
async def test_the_panel_identifies_and_lists_events_with_development_keys_alone(tmp_path: Path):
    """Nothing is asked of another host, and the content security policy stops nothing that the page does. Browsers send
    no `Origin` with a `GET` to where the page is from, so that the page itself must hold other keys back.
    """
    async with live_service(tmp_path / "data") as live, browser_page(tmp_path / "browser") as page:
        _, secret = live.issue("secret")
        await opened(page, live)
        await page.run(f"void reference.preauthorizeApiKey('secretKey', {json.dumps(secret)})")
        identified = json.loads(await tried(page, "identify"))
        listed = json.loads(await tried(page, "listEvents"))
        assert [row["request_id"] for row in listed["rows"]] == [identified["request_id"]]
        assert [request_id for request_id, _ in live.events()] == [identified["request_id"]]
        asked = [request["url"] for request in page.requests]
        assert all(url.startswith((live.url, "data:")) for url in asked), asked
        assert page.complaints == []

        _, secret = live.issue("secret", "production")
        page.requests.clear()
        await page.go("about:blank")
        await opened(page, live)
        await page.run(f"void reference.preauthorizeApiKey('secretKey', {json.dumps(secret)})")
        refused = json.loads(await tried(page, "listEvents"))
        assert refused["error"]["code"] == "unauthorized"
        assert await page.run("getComputedStyle(document.getElementById('refusal')).display") == "block"
        sent = [request for request in page.requests if "/events?" in request["url"]]
        assert sent
        assert secret not in json.dumps(sent)


async def opened(page: Page, live: Live) -> None:
    await page.go(f"{live.url}/docs/api")
    await page.wait_for("document.querySelectorAll('.opblock').length")


async def expand(page: Page, operation: str) -> None:
    await page.run(f"{block(operation)}.querySelector('.opblock-summary-control').click()")
    await page.wait_for(f"{block(operation)}.querySelector('.execute') !== null")
    await page.settle()


async def execute(page: Page, operation: str) -> None:
    await expand(page, operation)
    await page.run(f"{block(operation)}.querySelector('.execute').click()")


async def tried(page: Page, operation: str) -> str:
    """The body of the answer that the panel shows."""
    await execute(page, operation)
    return await page.wait_for(
        f"{block(operation)}.querySelector('.live-responses-table .highlight-code code')?.innerText"
    )


def block(operation: str) -> str:
    return f"document.querySelector('.opblock[id$=-{operation}]')"
