"""Interface 2.2, 7, 8 and decisions 3.10, 4: the rate limit of an organization."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import httpx
import pytest

from svc.features.organizations import jobs as organizations
from svc.features.organizations.command import create_organization
from svc.kernel.tenants.billing import IDENTIFIABLE_MICROS
from svc.kernel.values.ids import DAY_MS
from tests.spec.responses import BROWSER, assert_error, forward, nothing_stored, post, visit
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service


def rate(response: httpx.Response) -> tuple[int, int]:
    return int(response.headers["ratelimit-limit"]), int(response.headers["ratelimit-remaining"])


def limited(live: Live, limit: int) -> partial[tuple[object, str]]:
    """Issues keys of a new organization with this limit, for production unless told otherwise."""
    return partial(live.issue, organization=live.new_organization(rate_limit=limit).number, environment="production")


async def test_a_new_organization_has_100_per_second(live: Live):
    """Decisions 4: the default."""
    created = create_organization(live.found, live.world, "default", credit=0)
    _, secret = live.issue(environment="production", organization=created.number)
    assert rate(await visit(live, secret)) == (100, 99)


async def test_the_burst_equals_the_limit_and_then_returns_429(live: Live):
    """Interface 2.2, 7; decisions 3.10, 4: whole tokens left, and `Retry-After` of at least one second."""
    _, secret = limited(live, 3)()
    for remaining in (2, 1, 0):
        response = await visit(live, secret)
        assert response.status_code == 200
        assert rate(response) == (3, remaining)
        assert "retry-after" not in response.headers
    with nothing_stored(live):
        response = await visit(live, secret)
    assert assert_error(response, 429, "rate_limited").startswith("The organization is over its rate limit.")
    assert rate(response) == (3, 0)
    assert response.headers["retry-after"] == "1"
    assert response.headers["svc-balance-micros"] == str(10_000_000 - 3 * IDENTIFIABLE_MICROS)


async def test_tokens_are_refilled_over_time_up_to_the_limit(live: Live):
    """Decisions 4: a token bucket; `RateLimit-Remaining` counts whole tokens."""
    _, secret = limited(live, 2)()
    assert [rate(await visit(live, secret))[1] for _ in range(2)] == [1, 0]
    live.clock.advance(seconds=0.499)
    assert (await visit(live, secret)).status_code == 429
    live.clock.advance(seconds=0.001)
    assert rate(await visit(live, secret)) == (2, 0)
    live.clock.advance(hours=1)
    assert [(await visit(live, secret)).status_code for _ in range(3)] == [200, 200, 429]


async def test_a_token_is_available_after_the_retry_after_delay(live: Live):
    """Interface 2.2: seconds to wait."""
    _, secret = limited(live, 1)()
    await visit(live, secret)
    seconds = int((await visit(live, secret)).headers["retry-after"])
    live.clock.advance(seconds=seconds)
    assert (await visit(live, secret)).status_code == 200


async def test_all_keys_and_environments_of_an_organization_share_one_limit(live: Live):
    """Decisions 4."""
    issue = limited(live, 8)
    remaining: list[int] = []
    for environment in ("production", "staging", "development"):
        _, secret = issue(environment=environment)
        remaining.append(rate(await visit(live, secret))[1])
    _, proxy = issue("proxy")
    headers = {**BROWSER, "x-svc-visitor-ip": PUBLIC_ADDRESS}
    remaining += [rate(await forward(live, proxy, headers))[1] for _ in range(5)]
    assert remaining == [7, 6, 5, 4, 3, 2, 1, 0]
    _, server = issue("secret")
    assert_error(await forward(live, server, headers), 429, "rate_limited")


async def test_one_organization_does_not_use_up_the_limit_of_another(live: Live):
    """Interface 8: per organization."""
    _, loud = limited(live, 1)()
    _, quiet = limited(live, 1)()
    assert [(await visit(live, loud)).status_code for _ in range(3)] == [200, 429, 429]
    assert (await visit(live, quiet)).status_code == 200


async def test_zero_means_no_limit_and_omits_both_headers(live: Live):
    """Decisions 4."""
    _, secret = limited(live, 0)()
    for _ in range(3):
        response = await visit(live, secret)
        assert response.status_code == 200
        assert "svc-balance-micros" in response.headers
        assert not [name for name in response.headers if name.startswith("ratelimit-")]


async def test_keys_outside_production_use_at_most_a_quarter_of_the_limit(live: Live):
    """Decisions 4; what is left is production's."""
    issue = limited(live, 8)
    _, staging = issue(environment="staging")
    _, development = issue(environment="development")
    _, production = issue()
    statuses = [(await visit(live, secret)).status_code for secret in (staging, development, staging, development)]
    assert statuses == [200, 200, 429, 429]
    refused = await visit(live, development)
    assert "keys outside production are over their part" in assert_error(refused, 429, "rate_limited")
    assert rate(refused) == (8, 0)
    assert refused.headers["retry-after"] == "1"
    assert rate(await visit(live, production)) == (8, 5), "what was refused has taken no token"


@pytest.mark.slow(0.3)
async def test_one_address_with_a_public_key_uses_at_most_a_quarter_and_at_least_ten(live: Live):
    """Decisions 4: IPv4 /32, IPv6 /64."""
    for limit, most in ((80, 20), (20, 10), (4, 4)):
        _, secret = limited(live, limit)()
        one = {**BROWSER, "x-forwarded-for": "81.2.69.1"}
        statuses = [(await visit(live, secret, headers=one)).status_code for _ in range(most)]
        assert statuses == [200] * most
        message = assert_error(await visit(live, secret, headers=one), 429, "rate_limited")
        assert message.startswith("This visitor address is" if most < limit else "The organization is")
    issue = limited(live, 40)
    _, secret = issue()
    of_a_network = [{**BROWSER, "x-forwarded-for": f"2a02:6b8:1:1::{host:x}"} for host in range(1, 12)]
    assert [(await visit(live, secret, headers=one)).status_code for one in of_a_network] == [200] * 10 + [429]
    for other in ("81.2.69.2", "2a02:6b8:1:2::1"):
        assert (await visit(live, secret, headers={**BROWSER, "x-forwarded-for": other})).status_code == 200
    _, server = issue("secret")
    behind = {**BROWSER, "x-svc-visitor-ip": "2a02:6b8:1:1::1"}
    assert (await forward(live, server, behind)).status_code == 200, "only public keys are anybody's to copy"


def forwarded(public: str, address: str) -> dict[str, str]:
    """What a first-party proxy sends for a visitor of that address."""
    visitor = {"x-svc-public-key": public, "x-svc-visitor-ip": address, "x-svc-visitor-origin": ORIGIN}
    return {**visitor, "x-svc-visitor-user-agent": BROWSER["user-agent"]}


@pytest.mark.slow(0.2)
async def test_an_address_behind_a_first_party_proxy_has_the_bucket_that_it_has_directly(live: Live):
    """Decisions 2.9 and 4: one visitor takes no more by way of the proxy, and leaves the rest to the others."""
    issue = limited(live, 40)
    (_, public), (_, proxy) = issue(), issue("proxy")
    one = {**BROWSER, "x-forwarded-for": "81.2.69.1"}
    statuses = [(await visit(live, public, headers=one)).status_code for _ in range(4)]
    statuses += [(await forward(live, proxy, forwarded(public, "81.2.69.1"))).status_code for _ in range(6)]
    assert statuses == [200] * 10
    refused = await forward(live, proxy, forwarded(public, "81.2.69.1"))
    assert assert_error(refused, 429, "rate_limited").startswith("This visitor address is")
    assert (await visit(live, public, headers=one)).status_code == 429
    assert (await forward(live, proxy, forwarded(public, "81.2.69.2"))).status_code == 200
    assert (await forward(live, proxy, {"x-svc-visitor-ip": "81.2.69.1"})).status_code == 200, "no public key, no limit"


@pytest.mark.served(client_rate=40)
async def test_an_address_behind_a_proxy_is_limited_in_deferred_reports_too(live: Live):
    """Decisions 4: the other routes of a public key, sent or forwarded."""
    organization = live.new_organization(rate_limit=1).number
    _, public = live.issue(organization=organization, environment="production")
    _, proxy = live.issue("proxy", organization=organization, environment="production")

    async def supplement(key: str, headers: dict[str, str]) -> int:
        path = f"/api/v1/events/{live.world.request_id(live.clock.now_ms)}/supplement"
        body = {"token": "x", "sdk": {"platform": "web"}, "signals": {"tier": "deferred"}}
        return (await live.client.post(path, json=body, headers={"x-api-key": key, **headers})).status_code

    direct = {**BROWSER, "origin": ORIGIN, "x-forwarded-for": "81.2.69.1"}
    assert [await supplement(public, direct) for _ in range(5)] == [422] * 5
    behind = forwarded(public, "81.2.69.1")
    assert [await supplement(proxy, behind) for _ in range(6)] == [422] * 5 + [429]
    assert await supplement(proxy, forwarded(public, "81.2.69.2")) == 422
    assert await supplement(proxy, {"x-svc-visitor-ip": "81.2.69.1"}) == 422


@pytest.mark.slow(0.3)
async def test_an_ipv6_customer_with_many_addresses_uses_at_most_half_of_the_limit(live: Live):
    """A /48 has 65,536 addresses in the sense of decisions 4; four of them would shut out everybody else."""
    _, secret = limited(live, 80)()

    async def statuses(addresses: Iterable[str]) -> list[int]:
        return [
            (await visit(live, secret, headers={**BROWSER, "x-forwarded-for": address})).status_code
            for address in addresses
        ]

    assert await statuses(f"2a02:6b8:1:{network:x}::1" for network in range(40)) == [200] * 40
    assert await statuses(["2a02:6b8:1:ffff::1"]) == [429]
    assert await statuses(["2a02:6b8:2:1::1", "81.2.69.1"]) == [200, 200]


@pytest.mark.served(nonproduction_per_day=2)
async def test_identifications_outside_production_have_a_cap_for_each_utc_day(live: Live, public: str, key: str):
    """Decisions 4: `429` until midnight; a duplicate costs nothing, and production goes on."""
    live.clock.advance(hours=1)
    _, staging = live.issue(environment="staging")
    first = await visit(live, staging, headers={**BROWSER, "idempotency-key": "k"})
    assert (await visit(live, key)).status_code == 200
    refused = await visit(live, staging)
    message = assert_error(refused, 429, "rate_limited")
    assert "its identifications outside production of today" in message
    midnight_ms = (live.clock.now_ms // DAY_MS + 1) * DAY_MS
    assert int(refused.headers["retry-after"]) * 1000 == midnight_ms - live.clock.now_ms
    again = await visit(live, staging, headers={**BROWSER, "idempotency-key": "k"})
    assert again.json()["request_id"] == first.json()["request_id"]
    assert (await visit(live, public)).status_code == 200
    live.clock.advance(seconds=int(refused.headers["retry-after"]))
    assert (await visit(live, key)).status_code == 200


@pytest.mark.served(read_rate=2, management_rate=1, client_rate=3)
async def test_other_routes_have_their_own_limits_before_any_work(live: Live, server_key: str):
    """Decisions 4: reads, management, and what public keys may do beside identify."""
    number = live.new_organization(rate_limit=1).number
    _, public = live.issue(organization=number, environment="production")
    _, secret = live.issue("secret", organization=number, environment="production")
    _, management = live.issue("management", organization=number)

    async def ask(method: str, path: str, key: str) -> httpx.Response:
        headers = {"x-api-key": key} | ({"origin": ORIGIN} if key.startswith("svc_pk_") else {})
        return await live.client.request(method, "/api/v1" + path, headers=headers)

    async def challenge(key: str = public) -> httpx.Response:
        return await ask("POST", "/attestation/challenge", key)

    assert [(await challenge()).status_code for _ in range(3)] == [200, 200, 200]
    with nothing_stored(live):
        refused = await challenge()
    message = assert_error(refused, 429, "rate_limited")
    assert message.startswith("The organization is over its rate limit for challenges and deferred reports.")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["access-control-allow-origin"] == ORIGIN
    assert [(await ask("GET", "/events", secret)).status_code for _ in range(3)] == [200, 200, 429]
    assert [(await ask("GET", "/management/key", management)).status_code for _ in range(2)] == [200, 429]
    assert (await visit(live, public)).status_code == 200, "identify has a limit of its own"
    assert (await ask("GET", "/events", server_key)).status_code == 200
    live.clock.advance(seconds=1)
    assert (await challenge()).status_code == 200
    for rate_limit, taken in ((5, 5), (0, 8)):  # as many as identifications, where that is more
        of = live.new_organization(rate_limit=rate_limit).number
        _, key = live.issue(organization=of, environment="production")
        statuses = [(await challenge(key)).status_code for _ in range(8)]
        assert statuses == [200] * taken + [429] * (8 - taken)


async def test_a_request_refused_before_admission_takes_no_token_and_has_no_limit_headers(live: Live):
    """Decisions 3.10: "every identify answer that reached admission"."""
    _, secret = limited(live, 2)()
    refused = [
        await visit(live, secret, origin="https://other.example"),
        await visit(live, secret, sdk=5),
        await visit(live, secret, headers={"idempotency-key": "x" * 256}),
        await post(live, secret, b"nonsense"),
        await post(live, secret, b" " * (2 << 20)),
        await post(live, secret, b"{}", content_type="text/plain"),
    ]
    for response in refused:
        assert response.is_client_error
        for name in ("ratelimit-limit", "ratelimit-remaining", "svc-balance-micros"):
            assert name not in response.headers
    assert rate(await visit(live, secret)) == (2, 1)


async def test_a_402_has_the_headers_too(live: Live):
    """Decisions 3.10."""
    organization = live.new_organization(credit_usd=0.002, rate_limit=5)
    _, secret = live.issue(environment="production", organization=organization.number)
    response = await visit(live, secret)
    assert_error(response, 402, "no_credit")
    assert rate(response) == (5, 4)
    assert response.headers["svc-balance-micros"] == "2000"


@pytest.mark.parametrize("limit", [1, 5])
async def test_a_changed_limit_applies_at_the_next_request(live: Live, limit: int):
    """Decisions 4, 10: set by the operator while the service runs."""
    organization = live.new_organization(rate_limit=3)
    _, secret = live.issue(organization=organization.number)
    assert rate(await visit(live, secret)) == (3, 2)
    live.found.store.write_now([partial(organizations.set_rate_limit, number=organization.number, per_s=limit)])
    live.clock.advance(seconds=1)
    assert rate(await visit(live, secret)) == (limit, limit - 1)


async def test_a_restart_refills_the_bucket(directory: Path):
    """Decisions 4."""
    async with live_service(directory) as live:
        _, secret = limited(live, 1)()
        assert [(await visit(live, secret)).status_code for _ in range(2)] == [200, 429]
    async with live_service(directory) as live:
        assert (await visit(live, secret)).status_code == 200
