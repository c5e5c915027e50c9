"""One browser, one visitor, over HTTP: decisions 3.5 and 7.3, sections 1 to 6 of the design of identity."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.identify.tables import BLOCKS, STATISTICS, VISITOR_IDS, VISITORS
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.commands import run_beside
from tests.spec.console import Console
from tests.spec.responses import visit
from tests.support.live import ORIGIN, Live, report

HOME, ELSEWHERE, FAR = "81.2.69.142", "203.0.113.9", "151.101.3.10"
OTHER_SITE = "https://forum.example"


class People:
    """Browsers that all send the same report, each with a token of its own, to one organization."""

    def __init__(self, live: Live) -> None:
        self.live = live
        _, self.public = live.issue("public", allowed_origins=(ORIGIN, OTHER_SITE))
        _, self.secret = live.issue("secret", "development")
        self._came: set[str] = set()

    async def comes(
        self, name: str | None, ip: str = HOME, *, hours: float = 24, origin: str = ORIGIN, **signals: Any
    ) -> dict[str, Any]:
        """The response to a visit so many hours after the last one."""
        self.live.clock.advance(hours=hours)
        sent = report(**signals)
        if name is not None:
            sent |= {"client_token": f"token-of-{name}".ljust(32, "0"), "client_token_is_new": name not in self._came}
            self._came.add(name)
        answer = await visit(self.live, self.public, sent, origin=origin, headers={"x-forwarded-for": ip})
        return answer.json()

    async def linkage(self, answer: dict[str, Any]) -> dict[str, Any]:
        """`document.linkage` of the single event read."""
        path = f"/api/v1/events/{answer['request_id']}"
        return (await self.live.client.get(path, headers={"x-api-key": self.secret})).json()["document"]["linkage"]


def matched_rows(live: Live) -> dict[str, list[Any]]:
    """What matching keeps, and what it learned."""
    with live.found.store.read() as snapshot:
        return {table.name: list(snapshot.scan(table)) for table in (VISITORS, VISITOR_IDS, BLOCKS, STATISTICS)}


@pytest.fixture
def people(live: Live) -> People:
    return People(live)


# 2. Two tokens that live side by side on one origin are two browsers


@pytest.mark.parametrize("hours", [0.1, 24], ids=["within an hour", "by day"])
async def test_section_2_two_equal_devices_with_a_token_each_are_two_visitors(people: People, hours: float):
    first = await people.comes("one", hours=hours)
    assert (await people.comes("other", hours=hours))["visitor_id"] == first["visitor_id"], (
        "its first visit cannot know"
    )
    assert (await people.comes("one", hours=hours))["visitor_id"] == first["visitor_id"]
    parted = await people.comes("other", hours=hours)
    assert (parted["visitor_is_new"], parted["visitor_confidence"]) == (True, 0)
    for ip in (HOME, ELSEWHERE, HOME, FAR):
        for name, owner in (("one", first), ("other", parted)):
            again = await people.comes(name, ip, hours=hours)
            assert (again["visitor_id"], again["visitor_confidence"]) == (owner["visitor_id"], 100)


async def test_section_2_one_browser_on_two_sites_of_an_organization_is_one_visitor(people: People):
    places = [("one", ORIGIN), ("other", OTHER_SITE)] * 3
    seen = [await people.comes(name, origin=origin) for name, origin in places]
    assert len({answer["visitor_id"] for answer in seen}) == 1


async def test_section_2_private_windows_leave_the_ordinary_window_its_id(people: People):
    first = await people.comes("ordinary")
    await people.comes("ordinary")
    for window in range(6):
        await people.comes(f"private-{window}", hours=3)
    assert (await people.comes("ordinary", ELSEWHERE))["visitor_id"] == first["visitor_id"]


# 3. Links on a first visit are provisional, and a split is shown (decisions 7.3)


async def parted(people: People) -> tuple[dict[str, Any], dict[str, Any]]:
    """(answer to the visitor that was first, answer to the one that was split from it)"""
    first = await people.comes("one")
    for name in ("other", "one"):
        await people.comes(name)
    return first, await people.comes("other")


async def test_decisions_7_3_an_event_names_the_visitor_that_its_device_was_split_from(people: People):
    first, other = await parted(people)
    assert (await people.linkage(other))["split_from"] == first["visitor_id"]
    for answer in (first, await people.comes("other"), await people.comes("one")):
        assert "split_from" not in await people.linkage(answer)


@pytest.mark.slow
async def test_decisions_7_3_console_command_line_and_export_show_the_split(people: People):
    live = people.live
    live.clock.now_ms = World.real().now_ms() - 7 * 86_400_000  # commands look back from the present
    first, other = await parted(people)
    shown = await Console(live).seen(f"/events/{other['request_id']}")
    assert shown["event"]["document"]["linkage"]["split_from"] == first["visitor_id"]
    organization = live.organization.id
    text = await run_beside("events", "get", organization, other["request_id"], *live.options)
    exported = await run_beside(
        "export", "events", organization, "--documents", "--environment", "development", *live.options
    )
    assert f"split     {first['visitor_id']}: until now taken for this one" in text.out
    lines = [json.loads(line) for line in exported.out.splitlines()]
    (line,) = [line for line in lines if line["request_id"] == other["request_id"]]
    assert line["document"]["linkage"]["split_from"] == first["visitor_id"]


async def test_decisions_7_6_nothing_of_an_erased_visitor_is_shown_at_the_one_split_from_it(people: People):
    first, other = await parted(people)
    erased = await Automation(people.live)("DELETE", f"/visitors/{first['visitor_id']}")
    assert erased.status_code == 204
    assert "split_from" not in await people.linkage(other)
    again = await people.comes("other", ELSEWHERE)
    assert again["visitor_id"] == other["visitor_id"]


# 5. A link at the victim's own address proves nothing elsewhere


async def test_section_5_a_copied_report_from_the_owners_address_is_not_the_owner_elsewhere(people: People):
    """He keeps his id at home and on the road; the thief's is at most provisional until he comes back."""
    owner = await people.comes("owner")
    for _ in range(2):
        await people.comes("owner")
    await people.comes("thief")
    early = await people.comes("thief", ELSEWHERE)
    assert early["visitor_id"] != owner["visitor_id"] or early["visitor_confidence"] == 85
    for ip in (HOME, FAR, HOME):
        again = await people.comes("owner", ip)
        assert (again["visitor_id"], again["visitor_confidence"]) == (owner["visitor_id"], 100)
        assert (await people.comes("thief", ELSEWHERE))["visitor_id"] != owner["visitor_id"]


async def test_section_5_who_cleared_the_storage_is_known_at_home_and_after_some_days_on_the_road(people: People):
    owner = await people.comes("before")
    for _ in range(2):
        await people.comes("before")
    for _ in range(4):
        assert (await people.comes("after"))["visitor_id"] == owner["visitor_id"]
    away = await people.comes("after", ELSEWHERE)
    assert (away["visitor_id"], away["visitor_confidence"]) == (owner["visitor_id"], 100)


# 6. A report that fires `replayed` teaches nothing


NONCE: dict[str, Any] = {"nonce": "3f1c9a0e5b7d42aa"}


@pytest.mark.parametrize("ip", [HOME, ELSEWHERE])
@pytest.mark.parametrize("name", ["owner", "thief", None])
async def test_section_6_a_replayed_report_changes_nothing_that_matching_keeps(
    people: People, name: str | None, ip: str
):
    first = await people.comes("owner", **NONCE)
    await people.comes("owner")
    before = matched_rows(people.live)
    replayed = await people.comes(name, ip, **NONCE)
    assert "replayed" in {fired["signal"] for fired in replayed["triggers"]}
    assert matched_rows(people.live) == before
    for place in (HOME, FAR):
        again = await people.comes("owner", place)
        assert (again["visitor_id"], again["visitor_confidence"]) == (first["visitor_id"], 100)


async def test_section_6_a_replay_that_resembles_nobody_gets_an_id_that_is_not_kept(live: Live):
    """Of a class of devices that the service never learned of, either: it goes on, and the store is whole."""
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    people = People(live)
    await people.comes("owner", **NONCE)
    strange = report(9, userAgent=firefox, platform="Linux x86_64")
    seen = [await people.comes(None, ELSEWHERE, hours=1, **strange, **NONCE) for _ in range(2)]
    assert [answer["visitor_is_new"] for answer in seen] == [True, True]
    assert len({answer["visitor_id"] for answer in seen}) == 2
    assert (await people.linkage(seen[0]))["outcome"] == "replayed"
