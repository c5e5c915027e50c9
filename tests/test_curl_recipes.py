"""The curl commands of the guides, run as they stand by a shell against a real service."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.spec.subscriber import PUBLIC_ADDRESS, Names
from tests.support.live import Live, live_service, report
from tests.support.receivers import Receivers
from tests.test_docs import DOCS, FENCED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which is not on this machine"),
]
RECEIVER = {
    "url": "https://localhost:8443/x",
    "environment": "test",
    "events": ["identification.completed"],
    "description": "x",
}


@pytest.fixture
async def live(tmp_path: Path) -> AsyncGenerator[Live]:
    settings: dict[str, Any] = {"webhook_allow_networks": ("127.0.0.0/8", "::1/128")}
    names = Names()
    names.known |= {"localhost": ("127.0.0.1",), "hooks.slack.com": (PUBLIC_ADDRESS,)}
    async with live_service(tmp_path / "data", transport=Receivers(), resolver=names, metrics=True, **settings) as live:
        yield live


async def run(live: Live, page: str, containing: str) -> list[Any]:
    """What the commands of a block of the page print: JSON values, or lines."""
    (text,) = [
        block["text"]
        for block in FENCED.finditer((DOCS / page).read_text())
        if block["kind"] in ("sh", "bash") and containing in block["text"]
    ]
    shop, (_, public) = live.organization.id, live.issue()
    _, secret = live.issue("secret")
    _, management = live.issue("management")
    seen = (await live.identify(public, report(1), account_id="user-8271")).json()
    hooks = f"/api/v1/management/organizations/{shop}/webhooks"
    made = (await live.client.post(hooks, json=RECEIVER, headers={"x-api-key": management})).json()
    begin = await live.client.get("/api/v1/events", params={"order": "oldest"}, headers={"x-api-key": secret})
    variables = {
        "ORG": shop,
        "SECRET_KEY": secret,
        "SECRET": secret,
        "SVC_SECRET_KEY": secret,
        "MANAGEMENT_KEY": management,
        "SVC": live.url,
        "SVC_URL": live.url,
        "VISITOR_ID": seen["visitor_id"],
        "REQUEST_ID": seen["request_id"],
        "CURSOR": begin.json()["next_cursor"],
        "AT": f"{live.url}/api/v1/management/organizations/{shop}",
        "KEY": management,
        "PATH": "/usr/bin:/bin:/usr/local/bin",
    }
    for shown, real in {
        "https://id.example.com": live.url,
        "https://svc.example.com": live.url,
        "AT=http://127.0.0.1:8080/api/v1/management/organizations/org_...\n": "",
        "KEY=svc_mk_us_...\n": "",
        "whk_...": made["endpoint"]["id"],
        "localhost:9464": live.metrics_url.partition("//")[2].partition("/")[0],
    }.items():
        text = text.replace(shown, real)
    script = f'set -e\ncurl() {{ command curl --silent --show-error --fail-with-body "$@"; echo; }}\n{text}'
    done = await trio.run_process(
        ["bash", "-c", script], env=variables, check=False, capture_stdout=True, stderr=subprocess.STDOUT
    )
    printed = done.stdout.decode()
    assert done.returncode == 0, printed
    lines = [line for line in printed.splitlines() if line]
    return [json.loads(line) if line.startswith(("{", "[")) else line for line in lines]


async def test_the_accounts_guide_works_as_written(live: Live):
    (changed,) = await run(live, "accounts.md", "account_thresholds")
    assert changed["account_thresholds"]["account_sharing"] == 4
    listed, account, visitor = await run(live, "accounts.md", "min_visitors")
    assert (listed["accounts"], account["account_id"]) == ([], "user-8271")
    assert [one["account_id"] for one in visitor["accounts"]] == ["user-8271"]
    assert await run(live, "accounts.md", "-X DELETE") == []
    assert await gone(live, "/api/v1/accounts/user-8271")


async def gone(live: Live, path: str) -> bool:
    _, secret = live.issue("secret")
    return (await live.client.get(path, headers={"x-api-key": secret})).status_code == 404


async def test_what_a_rule_matched_is_listed(live: Live):
    for found in await run(live, "rules.md", "shadow=true"):
        assert found["rows"] == [], "nobody is trusted yet"


async def test_the_backend_guide_works_as_written(live: Live):
    (found,) = await run(live, "backend.md", "country=GB")
    assert found["rows"] == [], "nothing automated came from there"
    (feed,) = await run(live, "backend.md", "after=$CURSOR")
    assert {"rows", "next_cursor", "has_more"} <= set(feed)


async def test_the_console_guide_works_as_written(live: Live):
    (found,) = await run(live, "console.md", "tag=order-1234")
    assert found["rows"] == [], "no event has the tag"


async def test_the_labels_guide_works_as_written(live: Live):
    (event,) = await run(live, "labels.md", "chargeback")
    assert (event["label"], event["label_reason"]) == ("fraud", "chargeback")


async def test_the_rules_guide_works_as_written(live: Live):
    before, after = await run(live, "rules.md", "Fifth account")
    assert (before["revision"], after["revision"]) == (0, 1)
    assert [rule["name"] for rule in after["rules"]] == ["Blocked", "Trusted", "Fifth account"]
    assert "warnings" not in after


async def test_the_webhooks_guide_works_as_written(live: Live):
    (made,) = await run(live, "webhooks.md", "my machine")
    assert made["secret"].startswith("svc_whsec_")
    sent, attempts, paused = await run(live, "webhooks.md", "one delivery, now")
    assert "event_id" in sent, sent
    assert "deliveries" in attempts, "the attempt may still be on its way"
    assert paused["status"] == "paused", paused
    (chat,) = await run(live, "webhooks.md", "hooks.slack.com")
    assert (chat["endpoint"]["format"], chat["endpoint"]["filter"]) == ("slack", "score >= 60")


async def test_the_sizing_page_works_as_written(live: Live):
    lines = await run(live, "sizing.md", "svc_store_")
    assert {line.partition("{")[0].partition(" ")[0] for line in lines} >= {"svc_store_used_bytes", "svc_store_rows"}
