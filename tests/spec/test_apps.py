"""Reports of apps: which fields count, which flags fire, and what the service finds in them by itself.

Sections are those of the design of the mobile SDKs: 1, what an SDK needs of the service; 4, the report; 5, how it is
sent; 7, integrity flags.
"""

from __future__ import annotations

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
