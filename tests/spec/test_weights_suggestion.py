"""Decisions 14.1 and 14.3: labels from a file, and the weights that labels suggest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svc.features.labels import routes as over_http
from svc.identify.tables import WEIGHTS
from tests.spec.automation import Automation
from tests.spec.commands import Ran, run_beside
from tests.spec.responses import HEADLESS, PROGRAM, act, assert_error
from tests.spec.test_accounts import event_of
from tests.spec.test_labels import after, faults
from tests.support.live import Live, succeeded

HEADER = "request_id,label,label_reason\n"


class Shop:
    """An organization with keys of production, and commands on its store."""

    def __init__(self, live: Live) -> None:
        self.live, self.admin = live, Automation(live)
        self.public, self.secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        self.devices = 0

    async def visits(self, count: int, headers: dict[str, str] | None = None) -> list[str]:
        """Request ids of so many identifications, each from another address."""
        found: list[str] = []
        for _ in range(count):
            self.devices += 1
            sent = {**(headers or {}), "x-forwarded-for": f"81.2.69.{self.devices}"}
            found.append((await act(self.live, self.public, device=self.devices, headers=sent))["request_id"])
        return found

    def file(self, content: str | bytes) -> Path:
        assert self.live.found.directory is not None
        path = self.live.found.directory.parent / "labels.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    async def import_(self, file: Path, *options: str) -> Ran:
        return await run_beside("label", "import", self.live.organization.id, str(file), *options, *self.live.options)

    async def suggest(self, *options: str) -> Ran:
        return await run_beside("weights", "suggest", self.live.organization.id, *options, *self.live.options)

    async def label(self, **labels: list[str]) -> None:
        lines = [f"{request_id},{label},\n" for label, some in labels.items() for request_id in some]
        ran = await self.import_(self.file(HEADER + "".join(lines)))
        assert ran.status == 0, ran.err


async def judged(shop: Shop) -> None:
    """54 events of fraud and 60 legitimate ones; half of the fraud is headless, and so are a few of the others."""
    await shop.label(
        fraud=[*await shop.visits(30, HEADLESS), *await shop.visits(24)],
        legitimate=[*await shop.visits(3, HEADLESS), *await shop.visits(12, PROGRAM), *await shop.visits(45)],
    )


@pytest.fixture
async def shop(live: Live) -> Shop:
    return Shop(live)


# 14.1: svc label import


@pytest.mark.slow(1.1)
async def test_a_file_of_labels_is_imported_also_for_events_that_are_gone(shop: Shop):
    old, new = await shop.visits(1), await shop.visits(2)
    await after(shop.live, 29)
    recent = (await shop.visits(1))[0]
    await after(shop.live, 2)
    lines = f"{old[0]},fraud,chargeback\r\n{new[0]},legitimate,\n\n{recent},fraud,\n{new[0]},legitimate,\n"
    ran = await shop.import_(shop.file("\ufeff" + HEADER + lines), "--json")
    assert ran.json == {"organization_id": shop.live.organization.id, "labeled": 3, "fraud": 2, "legitimate": 1}
    event = await event_of(shop.live, shop.secret, {"request_id": recent})
    assert event["label"] == "fraud"
    assert "label_reason" not in event
    total = (await shop.admin("GET", "/performance?from=2026-01-01T00:00:00Z")).json()["total"]
    assert (total["fraud"], total["legitimate"]) == (2, 1)
    assert faults(shop.live) == []
    record = next(record for (_, _), record in reversed(shop.live.contents()["audit"]) if "label" in record.action)
    assert (record.action, record.change) == ("svc label import", {"labels": 3})


@pytest.mark.slow
async def test_a_bad_line_refuses_the_whole_file_with_its_number(shop: Shop):
    first, other = await shop.visits(2)
    before = shop.live.contents()
    for second, says in (
        ("{id},bad,", "line 3: 'bad' is not a label"),
        ("{id},,", "line 3: '' is not a label"),
        ("{id},fraud,because", "line 3: 'because' is not a reason"),
        ("x,fraud,", "line 3: 'x' is not a request id"),
        ("{id},fraud,spam,x", "line 3: 4 columns"),
        ("019b76da-a800-7000-8000-000000000000,fraud,", "line 3: the organization has no event"),
        ('"{id},fraud', "line 3: "),
        ("{first},legitimate,", "line 3: line 2 labels the same event otherwise"),
        ("{first},fraud,bot", "line 3: line 2 labels the same event otherwise"),
    ):
        content = f"{HEADER}{first},fraud,spam\n{second.format(id=other, first=first)}\n"
        (await shop.import_(shop.file(content))).assert_refused(says, "nothing was labeled")
        assert shop.live.contents() == before


@pytest.mark.slow
async def test_a_file_without_its_header_or_not_in_utf_8_is_refused(shop: Shop):
    (request_id,) = await shop.visits(1)
    for content in (f"{request_id},fraud,\n", "", "\n"):
        (await shop.import_(shop.file(content))).assert_refused("line 1: the header is not request_id,label")
    for header, fault in (
        ("request_id,verdict", "'verdict' is not a column"),
        ("label", "the column request_id is missing"),
    ):
        refused = await shop.import_(shop.file(f"{header}\n{request_id},fraud\n"))
        refused.assert_refused(f"line 1: it looks like a header, and {fault}", "request_id,label,label_reason")
    (await shop.import_(shop.file(b"\xff\xfe"))).assert_refused("nothing was labeled")


# 14.3: svc weights suggest, and the console


@pytest.mark.slow
async def test_fewer_than_50_of_either_label_are_refused_with_both_counts(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    await shop.label(fraud=await shop.visits(2), legitimate=await shop.visits(1))
    (await shop.suggest()).assert_refused("2 events labeled as fraud and 1 as legitimate", "50 of each")
    path = "/risk-weights/web/suggestion"
    counted = {"platform": "web", "fraud": 2, "legitimate": 1, "suspect_threshold": 30, "needed": 50, "weights": []}
    assert (await shop.admin("GET", path)).json() == counted | {"is_complete": True}
    monkeypatch.setattr(over_http, "BOUNDS", over_http.Bounds(events=2))
    assert (await shop.admin("GET", path)).json() == counted | {"is_complete": False}, "there may be a third"
    other = (await shop.admin("GET", f"{path}?environment=test")).json()
    assert (other["fraud"], other["legitimate"]) == (0, 0)
    assert_error(await shop.admin("GET", "/risk-weights/tizen/suggestion"), 404, "not_found")


@pytest.mark.slow(10)
async def test_weights_are_suggested_beside_todays_and_nothing_is_changed(shop: Shop, tmp_path: Path):
    await judged(shop)
    output = tmp_path / "weights.json"
    found = (await shop.suggest("--json", "--output", str(output))).json
    assert (found["fraud"], found["legitimate"], found["suspect_threshold"]) == (54, 60, 30)
    suggested = {row["signal"]: row for row in found["weights"]}
    assert suggested["headless"] == {"signal": "headless", "before": 30, "after": 30, "events": 33, "fraud": 30}
    assert suggested["bot_user_agent"]["after"] == 0, "it fired in legitimate events alone"
    assert all(row["events"] >= 10 and 0 <= row["after"] <= 100 for row in found["weights"])
    for quality in (found["before"], found["after"]):
        assert 0.8 < quality["precision"] <= 1
        assert 0.4 < quality["recall"] < 0.7
    assert found["after"]["precision"] >= found["before"]["precision"]
    answer = succeeded(await shop.admin("GET", "/risk-weights/web/suggestion"))
    assert answer == found | {"needed": 50, "is_complete": True}
    assert shop.live.contents()[WEIGHTS.name] == []
    body = json.loads(output.read_text())["web"]
    assert {name: body["weights"][name] for name in ("headless", "bot_user_agent", "tor")} == {
        "headless": 30, "bot_user_agent": 0, "tor": 25,
    }  # fmt: skip
    await after(shop.live, 31)
    once_gone = await shop.admin("GET", "/risk-weights/web/suggestion")
    assert once_gone.json() == answer, "labels of events that are gone count too"
    assert "54 fraud, 60 legitimate" in (await shop.suggest()).out
    assert (await shop.admin("PUT", "/risk-weights/web", body)).status_code == 200
