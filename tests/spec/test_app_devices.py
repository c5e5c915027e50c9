"""Which phone an app's report is from: token and device id, both keys (section 1 of the design of the mobile SDKs)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.kernel.values.fields import Platform
from tests.spec.test_apps import App, fired
from tests.support.live import Live
from tests.test_docs import block

HOME, OFFICE, ELSEWHERE = "81.2.69.142", "91.3.4.5", "185.5.6.7"
THREE_SETTINGS: dict[str, Any] = {"languages": ["es-ES", "en-GB"], "font_scale": 1.3, "settings": {"night_mode": "yes"}}


def token(number: int) -> str:
    return f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}"


def ids(platform: Platform, number: int) -> dict[str, str]:
    """Token and device id of a phone."""
    name = "android_id" if platform == "android" else "identifier_for_vendor"
    return {"client_token": token(2 * number), name: token(2 * number + 1)[:16]}


def reinstalled(platform: Platform, number: int) -> dict[str, str]:
    """The same phone's after the maker's only app was removed and installed again."""
    other, own = ids(platform, number + 1_000), ids(platform, number)
    return own | ({"client_token": other["client_token"]} if platform == "android" else other | {
        "client_token": own["client_token"]
    })  # fmt: skip


@pytest.mark.parametrize("platform", ["android", "ios"])
async def test_a_phone_after_reinstallation_keeps_its_id_from_another_network(live: Live, platform: Platform):
    app = App(live, platform)
    first = await app.identify(HOME, **ids(platform, 1))
    again = await app.identify(ELSEWHERE, **reinstalled(platform, 1))
    assert again["visitor_id"] == first["visitor_id"]
    if platform == "android":  # the id of the device says it alone, and nothing attests it (decisions 18.5)
        assert 85 <= again["visitor_confidence"] <= 89
    # Both are keys from then on: the one that is new finds it as well.
    once_more = await app.identify(OFFICE, **reinstalled(platform, 1))
    assert once_more["visitor_id"] == first["visitor_id"]
    assert fired(once_more) == {}


@pytest.mark.parametrize("platform", ["android", "ios"])
@pytest.mark.slow(0.3)
async def test_twenty_phones_of_one_model_behind_one_address_are_twenty(live: Live, platform: Platform):
    app = App(live, platform)
    said = {"client_token_is_new": True}
    first = [(await app.identify(OFFICE, **ids(platform, one), **said))["visitor_id"] for one in range(20)]
    again = [(await app.identify(OFFICE, **ids(platform, one)))["visitor_id"] for one in range(20)]
    assert len(set(first)) == 20
    assert first == again


@pytest.mark.parametrize("without", [(), ("client_token",)])
async def test_an_android_phone_is_a_new_visitor_after_a_factory_reset(live: Live, without: tuple[str, ...]):
    app = App(live, "android")
    first = await app.identify(HOME, **ids("android", 1) | dict.fromkeys(without))
    reset = await app.identify(HOME, **ids("android", 2) | dict.fromkeys(without))
    assert reset["visitor_is_new"]
    assert reset["visitor_id"] != first["visitor_id"]


@pytest.mark.parametrize("platform", ["android", "ios"])
async def test_a_phone_keeps_its_id_when_three_settings_change_at_once_elsewhere(live: Live, platform: Platform):
    app = App(live, platform)
    first = await app.identify(HOME, **ids(platform, 1))
    changed = await app.identify(ELSEWHERE, **ids(platform, 1), **THREE_SETTINGS)
    assert changed["visitor_id"] == first["visitor_id"]
    assert fired(changed) == {}


@pytest.mark.parametrize("platform", ["android", "ios"])
async def test_android_follows_the_device_id_and_ios_the_token(live: Live, platform: Platform):
    """Where the two name two visitors."""
    app = App(live, platform)
    one = await app.identify(HOME, **ids(platform, 1))
    other = await app.identify(OFFICE, **ids(platform, 2), model="another model")
    mixed = ids(platform, 1) | {"client_token": ids(platform, 2)["client_token"]}
    expected = {"android": (one, {}), "ios": (other, {"model": "another model"})}[platform]
    seen = await app.identify(ELSEWHERE, **mixed, **expected[1])
    assert seen["visitor_id"] == expected[0]["visitor_id"]


async def test_a_token_on_an_android_phone_with_another_device_id_was_copied(live: Live):
    app = App(live, "android")
    first = await app.identify(HOME, **ids("android", 1))
    copied = await app.identify(HOME, **ids("android", 2) | {"client_token": ids("android", 1)["client_token"]})
    assert copied["visitor_id"] != first["visitor_id"]
    assert fired(copied) == {"token_conflict": 15}
    assert (await app.identify(ELSEWHERE, **ids("android", 1)))["visitor_id"] == first["visitor_id"]


async def test_a_device_id_on_other_hardware_was_copied(live: Live):
    app = App(live, "android")
    first = await app.identify(HOME, **ids("android", 1))
    other: dict[str, Any] = {
        "model": "SM-A55", "manufacturer": "samsung", "cores": 8, "screen": {"width": 1080, "height": 2340, "scale": 2},
    }  # fmt: skip
    copied = await app.identify(ELSEWHERE, android_id=ids("android", 1)["android_id"], client_token=None, **other)
    assert copied["visitor_id"] != first["visitor_id"]
    assert fired(copied) == {"token_conflict": 15}
    assert (await app.identify(ELSEWHERE, **ids("android", 1)))["visitor_id"] == first["visitor_id"]


async def test_a_device_id_that_joins_by_likeness_proves_nothing(live: Live):
    """Who copies a report without token sends an id of his own with it, and is not its owner afterwards."""
    app = App(live, "android")
    owner: dict[str, Any] = {"android_id": None, "client_token": token(1)}
    first = await app.identify(HOME, **owner)
    await app.identify(HOME, android_id=token(7)[:16], client_token=None)
    thief = await app.identify(ELSEWHERE, android_id=token(7)[:16], client_token=None, timezone="Asia/Tokyo")
    assert thief["visitor_id"] != first["visitor_id"]


@pytest.mark.parametrize("shared", ["9774d56d682e549c", "0000000000000000", "UP1A.231105.003.A1"])
async def test_a_device_id_that_many_phones_have_joins_none(live: Live, shared: str):
    app = App(live, "android")
    one = await app.identify(HOME, android_id=shared, client_token=token(1))
    other = await app.identify(ELSEWHERE, android_id=shared, client_token=token(2), timezone="Asia/Tokyo")
    assert one["visitor_id"] != other["visitor_id"]


@pytest.mark.parametrize("platform", ["android", "ios"])
async def test_the_documented_report_survives_a_reinstallation(live: Live, platform: Platform):
    app = App(live, platform)
    signals = json.loads(block("mobile.md", "json", f'"platform": "{platform}"'))["signals"]
    del signals["platform"]
    lost = "client_token" if platform == "android" else "identifier_for_vendor"
    first = await app.identify(HOME, **signals)
    again = await app.identify(ELSEWHERE, **signals | {lost: token(3), "nonce": token(4)})
    assert again["visitor_id"] == first["visitor_id"]
