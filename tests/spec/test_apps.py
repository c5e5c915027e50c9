"""Reports of apps: which fields count, which flags fire, and what the service finds in them by itself.

Sections are those of the design of the mobile SDKs: 1, what an SDK needs of the service; 4, the report; 5, how it is
sent; 7, integrity flags.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import msgspec
import pytest

from svc.features.weights.jobs import save_weights
from svc.identify.scoring.score import StoredWeights, WeightsChange
from svc.identify.scoring.signals import CATALOG
from svc.identify.tables import WEIGHTS
from svc.kernel.values.fields import Platform
from tests.spec.responses import IDENTIFY
from tests.support.live import PUBLIC_ADDRESS, Live, succeeded
from tests.test_docs import block

AGENTS: dict[Platform, str] = {"android": "okhttp/4.12.0", "ios": "Shop/42 CFNetwork/1494.0.7 Darwin/23.4.0"}
NEW_FLAGS = [
    ("hooked", "android", 25),
    ("hooked", "ios", 25),
    ("debugger", "android", 10),
    ("debugger", "ios", 10),
    ("developer_options", "android", 0),
    ("unofficial_store", "android", 0),
]


def app_report(platform: Platform, **changes: Any) -> dict[str, Any]:
    """The report of an ordinary phone."""
    phones: dict[Platform, dict[str, Any]] = {
        "android": {
            "manufacturer": "Google", "model": "Pixel 8", "os_version": "15", "architecture": "arm64-v8a", "cores": 9,
            "memory_mb": 7_480, "disk_gb": 110, "screen": {"width": 1080, "height": 2400, "scale": 2.625},
            "android_id": "a1b2c3d4e5f60718",
        },
        "ios": {
            "model": "iPhone15,3", "os_version": "17.4.1", "cores": 6, "memory_mb": 5_689,
            "screen": {"width": 1290, "height": 2796, "scale": 3},
            "identifier_for_vendor": "6F1C2B9A-3D4E-4F50-8A6B-7C8D9E0F1A2B",
        },
    }  # fmt: skip
    user = {"languages": ["en-GB"], "timezone": "Europe/London", "font_scale": 1.0, "client_token": "t" * 32}
    return {"platform": platform, **phones[platform], **user, **changes}


class App:
    """An app with its key: what it sends, and what it hears."""

    def __init__(self, live: Live, platform: Platform) -> None:
        self.live = live
        self.platform: Platform = platform
        self.key, self.secret = live.issue(platforms=(platform,), allowed_origins=())

    async def identify(
        self, address: str = PUBLIC_ADDRESS, user_agent: str | None = None, sdk: str | None = None, **changes: Any
    ) -> dict[str, Any]:
        """The response to a report that differs from the ordinary one in `changes`."""
        headers = {
            "x-api-key": self.secret,
            "user-agent": user_agent or AGENTS[self.platform],
            "x-forwarded-for": address,
        }
        body = {"sdk": {"platform": sdk or self.platform}, "signals": app_report(self.platform, **changes)}
        return succeeded(await self.live.client.post(IDENTIFY, json=body, headers=headers))

    def weigh(self, **weights: int) -> None:
        """Give signals a weight of the organization's own."""
        job = partial(
            save_weights,
            number=self.live.organization.number,
            key_id=None,
            platform=self.platform,
            change=WeightsChange(weights=weights),
            now_ms=self.live.clock.now_ms,
        )
        (saved,) = self.live.found.store.write_now([job])
        assert isinstance(saved, StoredWeights)


def fired(response: dict[str, Any]) -> dict[str, int]:
    """Signal -> weight."""
    return {trigger["signal"]: trigger["weight"] for trigger in response.get("triggers", [])}


@pytest.mark.parametrize(("flag", "platform", "weight"), NEW_FLAGS)
async def test_section_7_a_new_flag_fires_its_signal_with_its_weight(
    live: Live, flag: str, platform: Platform, weight: int
):
    app = App(live, platform)
    assert fired(await app.identify(flags={flag: True})) == ({flag: weight} if weight else {})
    app.weigh(**{flag: 33})
    assert fired(await app.identify(flags={flag: True})) == {flag: 33}
    assert fired(await app.identify(flags={flag: False})) == {}


@pytest.mark.parametrize("spelling", [True, 1, "true", "1"])
async def test_section_7_a_flag_is_set_as_bridges_spell_it(live: Live, spelling: Any):
    app = App(live, "android")
    response = await app.identify(sdk="react-native-android", flags={"rooted": spelling, "frida": "false", "hooked": 0})
    assert fired(response) == {"rooted": 15}


async def test_section_7_the_service_finds_a_wrong_clock_by_itself(live: Live):
    app = App(live, "ios")
    now_ms, ten_minutes = live.clock.now_ms, 600_000
    assert fired(await app.identify(collected_at=0)) == {}, "it weighs nothing by default"
    app.weigh(clock_tampered=12)
    for collected_at in (now_ms, now_ms - ten_minutes, now_ms + ten_minutes, None):
        assert fired(await app.identify(collected_at=collected_at)) == {}
    for collected_at in (now_ms - ten_minutes - 1, now_ms + ten_minutes + 1, 0):
        assert fired(await app.identify(collected_at=collected_at)) == {"clock_tampered": 12}
    assert fired(await app.identify(collected_at=now_ms, flags={"clock_tampered": True}, clock_tampered=True)) == {}


async def test_section_7_weights_that_were_saved_before_count_the_new_signals_as_nothing(live: Live):
    """Decisions 6.2."""
    app = App(live, "android")
    app.weigh(rooted=15)

    def saved_by_an_earlier_version(transaction: Any) -> None:
        ((key, stored),) = list(transaction.scan(WEIGHTS, live.organization.number))
        older = {name: weight for name, weight in stored.weights.items() if CATALOG[name].since != "0.3.0"}
        transaction.put(WEIGHTS, key, msgspec.structs.replace(stored, weights=older))

    assert live.found.store.write_now([saved_by_an_earlier_version]) == [None]
    assert fired(await app.identify(flags={"hooked": True, "debugger": True, "rooted": True})) == {"rooted": 15}


@pytest.mark.parametrize("platform", ["android", "ios"])
async def test_section_4_an_unknown_field_lowers_no_confidence(live: Live, platform: Platform):
    app = App(live, platform)
    first = await app.identify()
    extra: dict[str, Any] = {
        "sdk_int": 36, "sensors": ["a"], "left_out": ["gpu"], "bridge": {"name": "flutter"}, "checks": {"ran": ["x"]},
        "app": {"package": "com.example.shop", "version": "43", "left_out": ["gpu"]}, "flags": {"haunted": True},
        "settings": {"animation_scale": 1}, "device": {"sdk_int": 36},
    }  # fmt: skip
    again = await app.identify(**extra)
    assert (again["visitor_id"], again["visitor_confidence"]) == (first["visitor_id"], 100)


async def test_section_4_the_size_of_an_iphones_disk_is_not_compared(live: Live):
    app = App(live, "ios")
    first = await app.identify(disk_gb=128)
    again = await app.identify(disk_gb=512)
    assert (again["visitor_id"], again["visitor_confidence"]) == (first["visitor_id"], 100)


@pytest.mark.parametrize(
    ("platform", "user_agent", "signals"),
    [
        ("android", "svc-android/0.1.0 (Android 15; com.example.shop/42)", {}),
        ("android", "Shop/42", {}),
        ("android", "Apache-HttpClient/UNAVAILABLE (java 1.4)", {}),
        ("ios", "UnityPlayer/2022.3.10f1 (UnityWebRequest/1.0, libcurl/8.1.1-DEV)", {}),
        ("ios", "com.example.shop/42", {}),
        ("android", "Java/17.0.1", {"bot_user_agent": 20}),
        ("android", "Java-http-client/17.0.9", {"bot_user_agent": 20}),
        ("ios", "curl/7.64.1 (x86_64-apple-darwin18.0)", {"bot_user_agent": 20}),
    ],
)
async def test_section_5_what_an_app_sends_with_fires_nothing(
    live: Live, platform: Platform, user_agent: str, signals: dict[str, int]
):
    assert fired(await App(live, platform).identify(user_agent=user_agent)) == signals


# Section 1: which phone a report is from, by token and device id


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
