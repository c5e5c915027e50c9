"""App Attest over HTTP (decisions 7.5): a device attests its key once, and asserts from then on."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from svc.identify.attestation.challenge import MAX_KEYS_OF_VISITOR, AttestedKey
from svc.identify.attestation.trust import published_trust
from svc.identify.tables import ATTESTED_KEYS, DOCUMENTS, VISITOR_KEYS
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import load
from svc.serve.service_parts import read_trust
from tests.domain.apple_world import APP, DEVELOPMENT, EXTENSIONS_OF_IOS_27, Device, write_roots
from tests.domain.test_report_native import iphone
from tests.spec.automation import Automation
from tests.spec.test_retention import swept
from tests.support.live import PUBLIC_ADDRESS, Live, live_service, succeeded

IOS = {"x-svc-sdk-platform": "ios"}
OTHER_APP = "A1B2C3D4E5.com.example.till"


@asynccontextmanager
async def shop(tmp_path: Path, **settings: Any) -> AsyncGenerator[Live, None]:
    """A service that trusts the root of the tests and two apps."""
    given = {
        "attestation_apple_roots_file": write_roots(tmp_path / "apple.pem"),
        "attestation_apple_apps": (APP, OTHER_APP),
    }
    async with live_service(tmp_path / "data", **{**given, **settings}) as live:
        yield live


def ios_key(live: Live, **fields: Any) -> str:
    """A public key of an iOS app."""
    _, secret = live.issue(platforms=("ios",), allowed_origins=(), **fields)
    return secret


async def challenge_of(live: Live, key: str) -> bytes:
    answer = succeeded(await live.client.post("/api/v1/attestation/challenge", headers={"x-api-key": key, **IOS}))
    return base64.b64decode(answer["challenge"])


async def identify(live: Live, key: str, attestation: Any = None, phone: int = 1) -> dict[str, Any]:
    """The response to a phone's report."""
    vendor_id = str(UUID(int=phone << 100 | phone))
    device = {"model": f"iPhone{16 + phone},1", "manufacturer": "Apple", "vendor_id": vendor_id, "os_version": "27.0"}
    signals = iphone(device=device, cores=4 + 2 * phone, disk_gb=100.3 + phone, timezone="Europe/London")
    signals |= {} if attestation is None else {"attestation": attestation}
    headers = {"x-forwarded-for": PUBLIC_ADDRESS, "user-agent": "Shop/5 CFNetwork/3826.600.41 Darwin/26.0.0"}
    return succeeded(await live.identify(key, signals, origin=None, sdk={"platform": "ios"}, headers=headers))


async def evidence(live: Live, key: str, attestation: Any, phone: int = 1) -> tuple[str, ...]:
    """Why `attestation_failed` fired for a report; empty where it did not."""
    response = await identify(live, key, attestation, phone)
    with live.found.store.read() as snapshot:
        request_id = UUID(response["request_id"]).bytes
        (found,) = [
            document.evidence.get("attestation_failed", ())
            for (_, raw_id), document in snapshot.scan(DOCUMENTS)
            if raw_id == request_id
        ]
    fired = [trigger["signal"] for trigger in response.get("triggers", ())]
    assert ("attestation_failed" in fired) == bool(found), (fired, found)
    return found


async def attest(live: Live, key: str, device: Device, phone: int = 1) -> tuple[str, ...]:
    return await evidence(live, key, device.attested(await challenge_of(live, key)), phone)


async def assert_(live: Live, key: str, device: Device, phone: int = 1) -> tuple[str, ...]:
    return await evidence(live, key, device.asserted(await challenge_of(live, key)), phone)


def kept(live: Live) -> dict[bytes, AttestedKey]:
    """Attested keys by id; each listed with its visitor, and nothing else is."""
    with live.found.store.read() as snapshot:
        keys = {key_id: key for (_, key_id), key in snapshot.scan(ATTESTED_KEYS)}
        listed = {
            key_id: raw_id.decode() for (_, raw_id), listed in snapshot.scan(VISITOR_KEYS) for key_id in listed.key_ids
        }
    assert listed == {key_id: key.visitor_id for key_id, key in keys.items()}
    return keys


async def document(live: Live, response: dict[str, Any]) -> dict[str, Any]:
    """As the server API shows it."""
    _, secret = live.issue("secret")
    found = await live.client.get(f"/api/v1/events/{response['request_id']}", headers={"x-api-key": secret})
    return found.json()["document"]


async def test_a_device_attests_once_and_asserts_from_then_on(directory: Path):
    async with shop(directory) as live:
        key, device = ios_key(live), Device()
        first = await identify(live, key, device.attested(await challenge_of(live, key)))
        assert "triggers" not in first
        shown = {"format": "apple-app-attest", "verified": True, "app_id": APP, "environment": "production"}
        shown["key_first_seen_at"] = "2026-01-01T00:00:00.000Z"
        assert (await document(live, first))["attestation"] == {**shown, "counter": 0}
        live.clock.advance(hours=1)
        for counter in (1, 2):
            challenge = await challenge_of(live, key)
            raw = device.assertion(challenge, extensions=EXTENSIONS_OF_IOS_27 if counter == 2 else None)
            response = await identify(live, key, device.asserted(challenge, raw))
            assert "triggers" not in response
            of_ios_27 = {"bundle_version": "42", "distribution": "app_store"} if counter == 2 else {}
            assert (await document(live, response))["attestation"] == {**shown, "counter": counter, **of_ios_27}
        (found,) = kept(live).values()
        assert found == AttestedKey(
            device.point, APP, "production", 2, first["visitor_id"], live.clock.now_ms - 3_600_000, live.clock.now_ms
        )


async def test_an_assertion_is_valid_once(directory: Path):
    async with shop(directory) as live:
        key, device = ios_key(live), Device()
        assert await attest(live, key, device) == ()
        challenge = await challenge_of(live, key)
        sent = device.asserted(challenge)
        assert await evidence(live, key, sent) == ()
        assert await evidence(live, key, sent) == ("challenge_used", "counter_replayed")
        fresh = {**sent, "challenge": base64.b64encode(await challenge_of(live, key)).decode()}
        assert await evidence(live, key, fresh) == ("signature_invalid", "counter_replayed")
        challenge = await challenge_of(live, key)
        copied = device.asserted(challenge, device.assertion(challenge, counter=1))
        assert await evidence(live, key, copied) == ("counter_replayed",)
        assert kept(live)[device.id].counter == 1
        assert await assert_(live, key, device) == ()


async def test_a_repeated_attestation_resets_no_counter(directory: Path):
    async with shop(directory) as live:
        key, device = ios_key(live), Device()
        sent = device.attested(await challenge_of(live, key))
        assert await evidence(live, key, sent) == ()
        assert await assert_(live, key, device) == ()
        assert await evidence(live, key, sent) == ("challenge_used",)
        assert await attest(live, key, device) == ()
        assert kept(live)[device.id].counter == 1


async def test_a_failed_attestation_uses_up_its_challenge_and_stores_no_key(directory: Path):
    async with shop(directory) as live:
        key, device = ios_key(live), Device(app="A1B2C3D4E5.com.example.fake")
        challenge = await challenge_of(live, key)
        assert await evidence(live, key, device.attested(challenge)) == ("app_unexpected",)
        assert await evidence(live, key, Device().attested(challenge)) == ("challenge_used",)
        invented = Device().attested(bytes(range(1, 33)))
        assert await evidence(live, key, invented) == ("challenge_unknown",)
        late = await challenge_of(live, key)
        live.clock.advance(seconds=300)
        assert await evidence(live, key, Device().attested(late)) == ("challenge_expired",)
        assert kept(live) == {}
        assert await assert_(live, key, Device()) == ("key_unknown",)


async def test_a_key_is_known_to_its_organization_and_to_all_its_api_keys(directory: Path):
    async with shop(directory) as live:
        device = Device()
        assert await attest(live, ios_key(live), device) == ()
        assert await assert_(live, ios_key(live, environment="production"), device) == ()
        number = live.new_organization().number
        foreign = ios_key(live, organization=number)
        assert await assert_(live, foreign, device) == ("key_unknown",)
        assert await attest(live, foreign, device) == ()
        assert await assert_(live, foreign, device) == ()
        with live.found.store.read() as snapshot:
            counters = {owner: kept_key.counter for (owner, _), kept_key in snapshot.scan(ATTESTED_KEYS)}
        assert counters == {live.organization.number: 1, number: 3}


@pytest.mark.slow(0.2)
async def test_a_key_of_another_app_or_of_a_development_build_proves_nothing_in_production(directory: Path):
    async with shop(directory) as live:
        development, production = ios_key(live), ios_key(live, environment="production")
        built = Device("built", aaguid=DEVELOPMENT)
        assert await attest(live, production, built) == ("environment_unexpected",)
        assert await attest(live, development, built) == ()
        assert await assert_(live, development, built) == ()
        assert await assert_(live, production, built) == ("environment_unexpected",)
        assert await attest(live, development, Device("one")) == ()
        same_key = Device("one", app=OTHER_APP)
        assert await assert_(live, development, same_key) == ("app_unexpected",)


async def test_by_default_the_apple_root_is_trusted_and_no_app_is(directory: Path):
    async with shop(directory, attestation_apple_roots_file=None) as live:
        key = ios_key(live)
        assert await attest(live, key, Device()) == ("chain_untrusted",)
    assert read_trust(Config()).apple == published_trust().apple
    assert not read_trust(Config()).apple.apps


async def test_an_android_root_verifies_no_apple_device(directory: Path):
    async with shop(
        directory, attestation_apple_roots_file=None, attestation_roots_file=write_roots(directory / "apple.pem")
    ) as live:
        assert await attest(live, ios_key(live), Device()) == ("chain_untrusted",)


async def test_a_key_is_erased_with_the_visitor_that_used_it_last(directory: Path):
    async with shop(directory) as live:
        key, admin, moved, own = ios_key(live), Automation(live), Device("moved"), Device("own")
        first = await identify(live, key, moved.attested(await challenge_of(live, key)), phone=1)
        other = await identify(live, key, own.attested(await challenge_of(live, key)), phone=2)
        assert first["visitor_id"] != other["visitor_id"]
        assert await assert_(live, key, moved, phone=2) == ()
        assert {found.visitor_id for found in kept(live).values()} == {other["visitor_id"]}
        assert (await admin("DELETE", f"/visitors/{first['visitor_id']}")).status_code == 204
        assert set(kept(live)) == {moved.id, own.id}
        assert (await admin("DELETE", f"/visitors/{other['visitor_id']}")).status_code == 204
        assert kept(live) == {}
        assert await assert_(live, key, own, phone=2) == ("key_unknown",)


@pytest.mark.slow(0.5)
async def test_a_key_of_an_unidentifiable_visitor_is_erased_by_its_id(directory: Path):
    """Also when its events are over: the key lives longer."""
    async with shop(directory) as live:
        key, admin = ios_key(live), Automation(live)
        for days in (0, 31):
            sent = {"attestation": Device().attested(await challenge_of(live, key))}
            response = (await live.identify(key, sent, origin=None, sdk={"platform": "ios"})).json()
            assert response["identifiable"] is False
            live.clock.advance(hours=24 * days)
            await swept(live, live.clock.now_ms)
            (found,) = kept(live).values()
            assert found.visitor_id == response["visitor_id"]
            assert (await admin("DELETE", f"/visitors/{response['visitor_id']}")).status_code == 204
            assert kept(live) == {}
        assert (await admin("DELETE", f"/visitors/{response['visitor_id']}")).status_code == 404


@pytest.mark.slow(0.3)
async def test_a_key_is_deleted_when_unused_for_the_configured_time(directory: Path):
    async with shop(directory) as live:
        key, used, unused = ios_key(live), Device("used"), Device("unused")
        assert await attest(live, key, used) == ()
        assert await attest(live, key, unused) == ()
        live.clock.advance(hours=24 * 200)
        assert await assert_(live, key, used) == ()
        live.clock.advance(hours=24 * 165 - 1)
        await swept(live, live.clock.now_ms)
        assert set(kept(live)) == {used.id, unused.id}
        live.clock.advance(hours=1)
        await swept(live, live.clock.now_ms)
        assert set(kept(live)) == {used.id}


@pytest.mark.slow(1)
async def test_a_visitor_has_a_bounded_number_of_keys(directory: Path):
    async with shop(directory) as live:
        key = ios_key(live)
        devices = [Device(str(number)) for number in range(MAX_KEYS_OF_VISITOR + 1)]
        for device in devices:
            assert await attest(live, key, device) == ()
        assert set(kept(live)) == {device.id for device in devices[1:]}
        assert await assert_(live, key, devices[0]) == ("key_unknown",)
        assert await assert_(live, key, devices[-1]) == ()


async def test_a_missing_attestation_counts_where_it_has_a_weight(directory: Path):
    async with shop(directory) as live:
        key, admin = ios_key(live), Automation(live)
        assert "triggers" not in await identify(live, key)
        saved = await admin("PUT", "/risk-weights/ios", {"weights": {"attestation_missing": 12}})
        assert saved.status_code == 200, saved.text
        fired = {"signal": "attestation_missing", "group": "integrity", "weight": 12, "confidence": "low"}
        for sent, named in ((None, "attestation_absent"), ({"format": "none"}, "attestation_none")):
            response = await identify(live, key, sent)
            assert (response["triggers"], response["suspect_score"]) == ([fired], 12)
            assert (await document(live, response))["evidence"] == {"attestation_missing": [named]}
        response = await identify(live, key, Device().attested(await challenge_of(live, key)))
        assert "triggers" not in response
        assert (await admin("PUT", "/risk-weights/web", {"weights": {"attestation_missing": 1}})).status_code == 422


# Settings


def test_apps_are_a_list_in_a_variable_and_have_a_team(tmp_path: Path):
    given = {"SVC_ATTESTATION_APPLE_APPS": f"{APP}, {OTHER_APP}"}
    assert load(None, given).attestation_apple_apps == (APP, OTHER_APP)
    for wrong in ("com.example.shop", "a1b2c3d4e5.com.example.shop", "A1B2C3D4E5.", "A1B2C3D4E5.*"):
        with pytest.raises(ConfigError, match="SVC_ATTESTATION_APPLE_APPS"):
            load(None, {"SVC_ATTESTATION_APPLE_APPS": wrong})


def test_an_unusable_file_of_apple_roots_is_rejected_by_name(tmp_path: Path):
    file = tmp_path / "file"
    config = Config(attestation_apple_roots_file=str(file))
    with pytest.raises(ConfigError, match=f"attestation_apple_roots_file: cannot read {file}: No such file"):
        read_trust(config)
    file.write_text("roots?")
    with pytest.raises(ConfigError, match=f"attestation_apple_roots_file: {file}: no PEM certificates"):
        read_trust(config)
