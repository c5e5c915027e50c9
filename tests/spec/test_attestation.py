"""Attestation over HTTP (interface 2.5, 4.1, 8; decisions 7.5): challenges, and what becomes of them in identify."""

from __future__ import annotations

import base64
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from svc.identify.attestation.challenge import LIFETIME_MS
from svc.identify.tables import CHALLENGES, DOCUMENTS, STATISTICS
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import load
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import StoreFullError
from svc.serve.service_parts import read_trust
from tests.domain.attestation_world import APP, SIGNER, attested, batch, chain, described, leaf, root
from tests.spec.responses import TIMESTAMP, assert_error, assert_request_id, nothing_stored
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service, report, succeeded
from tests.support.worlds import EPOCH_MS

CHALLENGE = "/api/v1/attestation/challenge"
ANDROID = {"x-svc-sdk-platform": "android"}
PHONE = {"platform": "android", "model": "Pixel 8a", "manufacturer": "Google", "os_version": "14"}
FIRED = {"signal": "attestation_failed", "group": "integrity", "weight": 30}


def android_key(live: Live, **fields: Any) -> str:
    """A public key of an Android app."""
    _, secret = live.issue(platforms=("android",), allowed_origins=(), **fields)
    return secret


@pytest.fixture
def key(live: Live) -> str:
    """A public key of an Android app."""
    return android_key(live)


async def ask(live: Live, key: str, headers: dict[str, str] = ANDROID) -> httpx.Response:
    return await live.client.post(CHALLENGE, headers={"x-api-key": key, **headers})


async def challenge_of(live: Live, key: str) -> str:
    return succeeded(await ask(live, key))["challenge"]


async def identify(live: Live, key: str, attestation: Any = None, **headers: str) -> dict[str, Any]:
    """The answer to a phone's report."""
    signals = PHONE if attestation is None else {**PHONE, "attestation": attestation}
    headers = {"x-forwarded-for": PUBLIC_ADDRESS} | {name.replace("_", "-"): text for name, text in headers.items()}
    return succeeded(await live.identify(key, signals, origin=None, sdk={"platform": "android"}, headers=headers))


def failed(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The triggers of an answer that are about attestation."""
    return [trigger for trigger in answer.get("triggers", ()) if trigger["signal"] == "attestation_failed"]


async def evidence(live: Live, key: str, attestation: Any, **headers: str) -> tuple[str, ...]:
    """Why `attestation_failed` fired for a report; empty where it did not."""
    answer = await identify(live, key, attestation, **headers)
    with live.found.store.read() as snapshot:
        *_, (_, document) = snapshot.scan(DOCUMENTS, live.organization.number)
    found = document.evidence.get("attestation_failed", ())
    confidence = "high" if len(found) > 1 else "medium"
    assert failed(answer) == ([{**FIRED, "confidence": confidence}] if found else [])
    return found


def naming(challenge: str) -> dict[str, Any]:
    """An attestation that proves nothing, but names a challenge."""
    return {"format": "none", "challenge": challenge}


# The challenge


async def test_a_challenge_is_32_random_bytes_valid_for_five_minutes(live: Live, key: str):
    response = await ask(live, key)
    answer = response.json()
    assert response.status_code == 200
    assert set(answer) == {"challenge", "expires_at"}
    assert len(base64.b64decode(answer["challenge"], validate=True)) == 32
    assert TIMESTAMP.fullmatch(answer["expires_at"])
    assert datetime.fromisoformat(answer["expires_at"]).timestamp() * 1000 == EPOCH_MS + 300_000
    assert_request_id(response.headers["x-request-id"])
    assert await challenge_of(live, key) != answer["challenge"]


async def test_a_challenge_is_on_disk_before_the_response(live: Live):
    key, secret = live.issue(platforms=("android",))
    challenge = base64.b64decode(await challenge_of(live, secret))
    with live.found.store.read() as snapshot:
        ((found, row),) = snapshot.scan(CHALLENGES)
    assert found == (live.organization.number, EPOCH_MS // LIFETIME_MS, challenge)
    assert (row.key_id, row.issued_at_ms, row.used) == (key.id, EPOCH_MS, False)


async def test_a_challenge_is_free_and_not_an_event(live: Live):
    key = android_key(live, environment="production")
    before = live.balance()
    await challenge_of(live, key)
    assert (live.balance(), live.events()) == (before, [])


@pytest.mark.parametrize("kind", ["secret", "proxy", "management"])
async def test_only_a_public_key_gets_a_challenge(live: Live, kind: str):
    _, secret = live.issue(kind)
    with nothing_stored(live):
        assert_error(await ask(live, secret), 401, "unauthorized")


async def test_a_key_without_the_platform_gets_no_challenge(live: Live, key: str):
    _, web = live.issue()
    with nothing_stored(live):
        for refused, headers in ((web, ANDROID), (key, {}), (key, {"x-svc-sdk-platform": "ios"})):
            assert_error(await ask(live, refused, headers), 401, "unauthorized")


async def test_a_page_may_request_a_challenge_like_an_identification(live: Live):
    """Decisions 3.11: CORS on the whole client API."""
    _, web = live.issue()
    response = await ask(live, web, {"origin": ORIGIN})
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == ORIGIN
    preflight = await live.client.options(
        CHALLENGE, headers={"origin": ORIGIN, "access-control-request-method": "POST"}
    )
    assert preflight.status_code == 204


async def test_a_challenge_is_requested_only_by_post(live: Live):
    response = await live.client.get(CHALLENGE, headers={"x-api-key": android_key(live), **ANDROID})
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "OPTIONS, POST"


@pytest.mark.served(map_bytes=512 << 10)
@pytest.mark.slow(0.2)
async def test_a_full_store_gives_no_challenge(live: Live, key: str):
    for size in (64 << 10, 4 << 10):
        with pytest.raises(StoreFullError):
            fill(live, size)
    given = 0
    while (response := await ask(live, key)).status_code == 200:
        given += 1
    assert_error(response, 503, "service_unavailable")
    assert live.count(CHALLENGES) == given


def fill(live: Live, size: int) -> None:
    """Rows of so many bytes until there is no space for another."""
    for number in count(size):
        live.found.store.write_now([partial(Transaction.put, table=STATISTICS, key=(number, 0, 0), value=bytes(size))])


# What becomes of it


async def test_a_challenge_is_valid_once(live: Live, key: str):
    challenge = await challenge_of(live, key)
    assert await evidence(live, key, naming(challenge)) == ()
    assert await evidence(live, key, naming(challenge)) == ("challenge_used",)


async def test_a_challenge_is_valid_for_the_first_of_many_concurrent_requests(live: Live, key: str):
    challenge = await challenge_of(live, key)
    answers: list[dict[str, Any]] = []

    async def one() -> None:
        answers.append(await identify(live, key, naming(challenge)))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(one)
    assert sorted(len(failed(answer)) for answer in answers) == [0, 1, 1, 1, 1, 1]


async def test_a_challenge_is_used_up_even_where_the_chain_fails(live: Live, key: str):
    challenge = await challenge_of(live, key)
    broken = {"format": "android-key", "challenge": challenge, "certificate_chain": ["AAAA", "BBBB"]}
    assert await evidence(live, key, broken) == ("chain_malformed",)
    assert await evidence(live, key, naming(challenge)) == ("challenge_used",)


async def test_a_challenge_expires_after_five_minutes(live: Live, key: str):
    in_time, late = await challenge_of(live, key), await challenge_of(live, key)
    live.clock.advance(seconds=299.999)
    assert await evidence(live, key, naming(in_time)) == ()
    live.clock.advance(seconds=0.001)
    assert await evidence(live, key, naming(late)) == ("challenge_expired",)
    live.clock.advance(hours=1)
    assert await evidence(live, key, naming(late)) == ("challenge_unknown",)


async def test_a_challenge_is_valid_for_its_own_key_only(live: Live):
    """Another key of the organization, and a key of another organization; neither uses it up."""
    key, other = android_key(live), android_key(live)
    foreign = android_key(live, organization=live.new_organization().number)
    challenge = await challenge_of(live, key)
    assert await evidence(live, other, naming(challenge)) == ("challenge_foreign",)
    answer = await identify(live, foreign, naming(challenge))
    assert failed(answer) == [{**FIRED, "confidence": "medium"}]
    assert await evidence(live, key, naming(challenge)) == ()


async def test_an_unknown_and_a_missing_challenge_are_failures_not_errors(live: Live, key: str):
    invented = base64.b64encode(bytes(32)).decode()
    assert await evidence(live, key, naming(invented)) == ("challenge_unknown",)
    missing = {"format": "android-key", "certificate_chain": attested(chain())["certificate_chain"]}
    assert await evidence(live, key, missing) == ("challenge_missing", "chain_untrusted")


async def test_a_repeated_request_uses_a_challenge_once_and_fires_nothing(live: Live, key: str):
    challenge = await challenge_of(live, key)
    first = await identify(live, key, naming(challenge), idempotency_key="once")
    assert failed(first) == []
    with nothing_stored(live):
        again = await identify(live, key, naming(challenge), idempotency_key="once")
    assert again == {"request_id": first["request_id"], "duplicate": True}


async def test_a_refused_identification_leaves_the_challenge_for_its_retry(live: Live):
    key = android_key(live, environment="production")
    challenge = await challenge_of(live, key)
    live.set_billing_status("blocked")
    with nothing_stored(live):
        response = await live.identify(
            key, {**PHONE, "attestation": naming(challenge)}, origin=None, sdk={"platform": "android"}
        )
        assert_error(response, 402, "billing_blocked")
    live.set_billing_status("free")
    assert await evidence(live, key, naming(challenge)) == ()


async def test_a_proxy_may_send_the_attestation_of_the_key_it_forwards(live: Live, key: str, proxy: str):
    challenge = await challenge_of(live, key)
    forwarded = {"x_svc_visitor_ip": PUBLIC_ADDRESS, "x_svc_public_key": key}
    assert await evidence(live, proxy, naming(challenge), **forwarded) == ()
    assert await evidence(live, key, naming(challenge)) == ("challenge_used",)


async def test_a_chain_up_to_an_unpublished_root_fires(live: Live, key: str):
    challenge = await challenge_of(live, key)
    forged = attested(chain(described(challenge=base64.b64decode(challenge))), base64.b64decode(challenge))
    assert await evidence(live, key, forged) == ("chain_untrusted",)


async def test_the_signal_does_not_exist_for_the_web(live: Live):
    _, web = live.issue()
    answer = succeeded(await live.identify(web, report(attestation={"format": "android-key"})))
    assert failed(answer) == []


# Settings


def root_file(folder: Path) -> str:
    file = folder / "roots.pem"
    file.write_bytes(x509.load_der_x509_certificate(root()).public_bytes(Encoding.PEM))
    return str(file)


async def proof(live: Live, key: str, **changes: Any) -> dict[str, Any]:
    """An attestation that answers a fresh challenge."""
    challenge = base64.b64decode(await challenge_of(live, key))
    certificates = [leaf(described(challenge=challenge, **changes)), batch(serial=12), root()]
    return attested(certificates, challenge)


async def test_a_device_verified_up_to_a_configured_root_fires_nothing(directory: Path):
    async with live_service(directory / "data", attestation_roots_file=root_file(directory)) as live:
        key = android_key(live)
        sent = await proof(live, key)
        assert await evidence(live, key, sent) == ()
        assert await evidence(live, key, sent) == ("challenge_used",)
        fresh = {**sent, "challenge": await challenge_of(live, key)}
        assert await evidence(live, key, fresh) == ("challenge_mismatch",)
        assert await evidence(live, key, await proof(live, key, levels=(0, 0))) == ("software_only",)


async def test_a_revoked_certificate_and_another_app_fire(directory: Path):
    statuses = directory / "status.json"
    statuses.write_text('{"entries": {"c": {"status": "REVOKED"}}}')
    roots = root_file(directory)
    async with live_service(
        directory / "a", attestation_roots_file=roots, attestation_status_file=str(statuses)
    ) as live:
        key = android_key(live)
        assert await evidence(live, key, await proof(live, key)) == ("chain_revoked",)
    for packages, digests, named in (
        ((APP,), (SIGNER.hex(),), ()),
        (("com.example.another",), (), ("app_unexpected",)),
        ((APP,), ("00" * 32,), ("app_unexpected",)),
    ):
        async with live_service(
            directory / f"{packages}{digests}",
            attestation_roots_file=roots,
            attestation_packages=packages,
            attestation_digests=digests,
        ) as live:
            key = android_key(live)
            assert await evidence(live, key, await proof(live, key)) == named


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("attestation_roots_file", "no PEM certificates"),
        ("attestation_status_file", "not a list of certificate statuses"),
    ],
)
def test_an_unusable_file_is_rejected_with_a_message_that_names_it(tmp_path: Path, setting: str, says: str):
    file = tmp_path / "file"
    with pytest.raises(ConfigError, match=f"{setting}: cannot read {file}: No such file"):
        read_trust(Config(**{setting: str(file)}))
    file.write_text("roots?")
    with pytest.raises(ConfigError, match=f"{setting}: {file}: {says}"):
        read_trust(Config(**{setting: str(file)}))


def test_apps_and_digests_are_lists_in_variables_and_a_digest_has_64_digits():
    given = {"SVC_ATTESTATION_PACKAGES": "com.example.shop, com.example.till", "SVC_ATTESTATION_DIGESTS": "5A" * 32}
    assert load(None, given).attestation_packages == ("com.example.shop", "com.example.till")
    assert read_trust(load(None, given)).signing_digests == {SIGNER}
    with pytest.raises(ConfigError, match="SVC_ATTESTATION_DIGESTS"):
        load(None, {"SVC_ATTESTATION_DIGESTS": "5A"})
