"""Signals.md 2, over HTTP: reports that new ids repeat, and visitors in places where they never were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.identify.history.evidence import PLACES
from svc.identify.tables import VISITOR_PLACES
from tests.spec.responses import visit
from tests.support.live import USER_AGENT, Live, live_service, report
from tests.support.mmdb_writer import Tree

pytestmark = pytest.mark.any_store

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
    "Mobile/15E148 Safari/604.1"
)


async def seen(
    live: Live, key: str, network: int, signals: dict[str, Any], token: str | None = None, *, host: int = 9
) -> tuple[dict[str, Any], set[str]]:
    """One visit from that network; a token is new unless one is named."""
    given = {"client_token": token or f"token of the network {network:04}", "client_token_is_new": token is None}
    headers = {"x-forwarded-for": f"81.{network}.7.{host}"}
    if "iPhone" in signals["userAgent"]:
        headers["user-agent"] = IPHONE
    answer = (await visit(live, key, signals | given, headers=headers)).json()
    return answer, {trigger["signal"] for trigger in answer.get("triggers", ())}


async def test_a_report_that_new_visitors_repeat_from_elsewhere_fires(live: Live, key: str):
    """A cleared storage and another address each time: the third new id, and each one after it."""
    found: list[bool] = []
    for network in range(6):
        answer, signals = await seen(live, key, network, report())
        assert answer["visitor_is_new"]
        found.append("repeated_report" in signals)
        live.clock.advance(hours=3)
    assert found == [False, False, True, True, True, True]
    (trigger,) = answer["triggers"]
    assert trigger == {"signal": "repeated_report", "group": "replay", "weight": 15, "confidence": "medium"}


async def test_neither_a_week_ago_nor_the_same_network_counts(live: Live, key: str):
    for network in (0, 1):
        await seen(live, key, network, report())
    live.clock.advance(hours=8 * 24)
    assert "repeated_report" not in (await seen(live, key, 2, report()))[1]
    for host in (10, 11, 12):
        _, signals = await seen(live, key, 2, report(), f"another token of it {host}", host=host)
        assert "repeated_report" not in signals


async def test_devices_of_a_common_model_that_come_back_are_no_repeats(live: Live, key: str):
    """Twins: two that live beside each other explain as many new ones."""
    for network in (0, 1):
        await seen(live, key, network, report())
    live.clock.advance(hours=30)
    for network in (0, 1):
        answer, _ = await seen(live, key, network, report(), f"token of the network {network:04}")
        assert not answer["visitor_is_new"]
    for network in (2, 3, 4, 5):
        answer, signals = await seen(live, key, network, report())
        assert answer["visitor_is_new"]
        assert "repeated_report" not in signals


async def test_phones_of_one_model_are_not_judged_by_few(live: Live, key: str):
    """Of phones and Safari, which come in few models, only once 500 devices of the class are known."""
    phone = report(userAgent=IPHONE, platform="iPhone", maxTouchPoints=5, plugins=[])
    for network in range(6):
        _, signals = await seen(live, key, network, phone)
        assert "repeated_report" not in signals


# Places


def country(*codes: str) -> bytes:
    """81.0.0.0/10 is in the first one, 81.64.0.0/10 in the second, and so on."""
    tree = Tree()
    for place, code in enumerate(codes):
        first = (81 << 24) | (place << 22)
        tree.add(first, first + 0x3FFFFF, {"country_code": code})
    return tree.content("a test", 1_767_225_600)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "network"
    made.mkdir()
    (made / "country.mmdb").write_bytes(country("GB", "FR", "JP"))
    return made


HOME, ABROAD = 5, 130
"""Networks in the first and in the third country."""
TOKEN = "the token of the visitor"


async def test_a_token_from_a_country_and_network_that_the_visitor_never_had_fires_once_it_has_a_weight(
    folder: Path, directory: Path
):
    """`network_new_for_visitor` weighs 0 by default: a configuration gives it a weight."""
    async with live_service(directory, network_directory=str(folder)) as live:
        _, key = live.issue()
        _, management = live.issue("management")
        await seen(live, key, HOME, report(), TOKEN)
        answer, signals = await seen(live, key, ABROAD, report(), TOKEN)
        assert not answer["visitor_is_new"]
        assert "network_new_for_visitor" not in signals
        changed = await live.client.put(
            f"/api/v1/management/organizations/{live.organization.id}/risk-weights/web",
            headers={"x-api-key": management}, json={"weights": {"network_new_for_visitor": 7}},
        )  # fmt: skip
        assert changed.status_code == 200
        _, signals = await seen(live, key, ABROAD, report(), TOKEN)
        assert "network_new_for_visitor" not in signals, "it has been there by now"
        await seen(live, key, HOME, report(2), "the token of another")
        answer, signals = await seen(live, key, ABROAD, report(2), "the token of another")
        (trigger,) = [one for one in answer["triggers"] if one["signal"] == "network_new_for_visitor"]
        assert (trigger["group"], trigger["weight"], trigger["confidence"]) == ("velocity", 7, "low")


async def test_the_same_country_or_a_device_that_is_recognized_without_its_token_is_no_news(
    folder: Path, directory: Path
):
    async with live_service(directory, network_directory=str(folder)) as live:
        _, key = live.issue()
        _, secret = live.issue("secret")
        await seen(live, key, HOME, report(), TOKEN)
        for network in (HOME + 20, HOME):
            answer, _ = await seen(live, key, network, report(), TOKEN)
            read = await live.client.get(f"/api/v1/events/{answer['request_id']}", headers={"x-api-key": secret})
            assert "network_new_for_visitor" not in read.json()["document"]["evidence"]
        with live.found.store.read() as snapshot:
            ((_, places),) = snapshot.scan(VISITOR_PLACES)
        assert places.countries == ("GB",)
        assert len(places.networks) == 2


def test_the_constants_of_the_documentation():
    assert PLACES == 8
    assert "Chrome" in USER_AGENT
