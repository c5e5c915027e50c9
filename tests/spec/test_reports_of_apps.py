"""Decisions 18.5: where reports of apps count as such, and what a device id is worth without attestation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.kernel.values.fields import Platform
from tests.spec.test_app_devices import ELSEWHERE, HOME, OFFICE, ids, token
from tests.spec.test_apps import App, app_report
from tests.spec.test_attestation import android_key, proof, root_file
from tests.support.live import Live, live_service, report

PLATFORMS = pytest.mark.parametrize("platform", ["android", "ios"])
DEVICE: dict[Platform, str] = {"android": "android_id", "ios": "identifier_for_vendor"}


async def from_page(live: Live, signals: Any, ip: str, sdk: str = "web") -> dict[str, Any]:
    """The answer to what a page sends with a key of the web."""
    key = live.issue()[1]
    response = await live.identify(key, signals, headers={"x-forwarded-for": ip}, sdk={"platform": sdk})
    assert response.status_code == 200, response.text
    return response.json()


def of_stranger(platform: Platform, number: int = 1) -> dict[str, Any]:
    """The phone's device id, with a token of somebody's own."""
    return ids(platform, number) | {"client_token": token(700)}


@PLATFORMS
async def test_a_device_id_from_another_network_is_answered_at_89_at_most(live: Live, platform: Platform):
    app = App(live, platform)
    owner = await app.identify(HOME, **ids(platform, 1))
    assert (await app.identify(HOME, **ids(platform, 1)))["visitor_confidence"] == 100
    stranger = await app.identify(ELSEWHERE, **of_stranger(platform))
    assert (stranger["visitor_id"], stranger["visitor_confidence"]) == (owner["visitor_id"], 89)


@PLATFORMS
async def test_a_stranger_with_a_device_id_gets_no_surer_by_coming_back(live: Live, platform: Platform):
    """Neither his token nor his network becomes one of the phone's."""
    app = App(live, platform)
    await app.identify(HOME, **ids(platform, 1))
    for _ in range(6):
        live.clock.advance(hours=24)
        assert (await app.identify(HOME, **ids(platform, 1)))["visitor_confidence"] >= 90
        stranger = await app.identify(ELSEWHERE, **of_stranger(platform))
        assert stranger["visitor_confidence"] <= 89


@PLATFORMS
async def test_a_phone_with_token_and_device_id_is_sure_from_everywhere(live: Live, platform: Platform):
    app = App(live, platform)
    for address in (HOME, HOME, ELSEWHERE, OFFICE):
        answer = await app.identify(address, **ids(platform, 1))
        live.clock.advance(hours=24)
        assert answer["visitor_is_new"] or answer["visitor_confidence"] >= 90


async def test_a_reinstalled_phone_is_sure_again_once_it_was_home_on_three_days(live: Live):
    app = App(live, "android")
    await app.identify(HOME, **ids("android", 1))
    again = ids("android", 1) | {"client_token": token(700)}
    assert (await app.identify(ELSEWHERE, **again))["visitor_confidence"] == 89
    for _ in range(6):
        live.clock.advance(hours=24)
        await app.identify(HOME, **again)
    assert (await app.identify(ELSEWHERE, **again))["visitor_confidence"] >= 90


@PLATFORMS
@pytest.mark.parametrize("where", [HOME, ELSEWHERE])
@pytest.mark.parametrize("stolen", ["both", "device", "token"])
async def test_an_apps_report_from_a_page_is_nothing_of_the_app(
    live: Live, platform: Platform, where: str, stolen: str
):
    """Whatever the platform says, with the whole report, also at the address of the phone."""
    app = App(live, platform)
    owner = await app.identify(HOME, **ids(platform, 1))
    had = ids(platform, 1)
    if stolen == "device":
        had["client_token"] = token(700)
    elif stolen == "token":
        had[DEVICE[platform]] = token(701)[:16]
    for sdk in ("web", platform):
        page = await from_page(live, app_report(platform, **had), where, sdk)
        assert page["visitor_id"] != owner["visitor_id"]
    live.clock.advance(hours=24)
    again = await app.identify(ELSEWHERE, **ids(platform, 1))
    assert (again["visitor_id"], again["visitor_confidence"]) == (owner["visitor_id"], 100)


async def test_a_pages_report_with_an_apps_token_is_nothing_of_the_app(live: Live):
    app = App(live, "android")
    owner = await app.identify(HOME, **ids("android", 1))
    page = await from_page(live, report(client_token=ids("android", 1)["client_token"]), HOME)
    assert page["visitor_is_new"]
    again = await app.identify(HOME, **ids("android", 1))
    assert (again["visitor_id"], again["visitor_confidence"]) == (owner["visitor_id"], 100)


async def test_a_page_that_sends_apps_reports_knows_its_own_again(live: Live):
    """An app whose web view has an origin of the web: its reports are compared with each other."""
    first = await from_page(live, app_report("android", **ids("android", 1)), HOME)
    live.clock.advance(hours=24)
    again = await from_page(live, app_report("android", **ids("android", 1)), HOME)
    assert again["visitor_id"] == first["visitor_id"]


async def test_the_origin_of_an_app_is_one_of_an_app(live: Live):
    app = App(live, "ios")
    owner = await app.identify(HOME, **ids("ios", 1))
    origin = "capacitor://localhost"
    key = live.issue(platforms=("ios",), allowed_origins=(origin,))[1]
    headers = {"x-forwarded-for": HOME}
    response = await live.identify(
        key, app_report("ios", **ids("ios", 1)), origin=origin, headers=headers, sdk={"platform": "ios"}
    )
    assert response.json()["visitor_id"] == owner["visitor_id"]


@pytest.mark.usefixtures("engine")
async def test_a_device_id_that_hardware_attests_is_sure_from_everywhere(tmp_path: Path):
    async with live_service(tmp_path / "data", attestation_roots_file=root_file(tmp_path)) as live:
        key = android_key(live)

        async def answer(ip: str, attestation: dict[str, Any], **had: str) -> dict[str, Any]:
            signals = app_report("android", **had) | {"attestation": attestation}
            headers = {"x-forwarded-for": ip}
            response = await live.identify(key, signals, origin=None, sdk={"platform": "android"}, headers=headers)
            return response.json()

        owner = await answer(HOME, await proof(live, key), **ids("android", 1))
        again = await answer(ELSEWHERE, sent := await proof(live, key), **of_stranger("android"))
        assert (again["visitor_id"], again["visitor_confidence"] >= 90) == (owner["visitor_id"], True)
        copied = await answer(OFFICE, sent, **ids("android", 1) | {"client_token": token(702)})
        assert copied["visitor_confidence"] <= 89, "a challenge counts once"
